"""What a training does at its events: it checks what it resumes, and decides when to score and to average weights."""

import logging
import math
import os
from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from .batching import TrainingBatchSampler
from .interruptions import ResumeError
from .optimization import has_average, learning_rates

logger = logging.getLogger(__name__)

NEW_RUN = "or start a new run with the checkpoint as model_name_or_path"


class TrainingCallback(TrainerCallback):
    """The callback of [`NestedNERTrainer`].

    Attributes:
        sampler: the sampler of the run, which needs to know the epoch. The Trainer does not pass it on if it
            resumes in the middle of an epoch in several processes: accelerate then wraps the sampler twice, and neither
            wrapper does.
        most_evaluations: number of epochs, evenly spaced up to the last, that may end with an evaluation or checkpoint,
            where `min_steps` asks for many; None for all of them.

    Raises:
        ResumeError: the checkpoint is that of another optimizer, or has averaged weights and these are not wanted.
    """

    def __init__(self) -> None:
        self.sampler: TrainingBatchSampler | None = None
        self.most_evaluations: int | None = None

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if state.global_step > 0:
            optimizer = kwargs["optimizer"]
            has_begun = optimizer.state or getattr(kwargs["lr_scheduler"], "last_epoch", 0)
            if not has_begun and state.global_step < state.max_steps:
                raise ResumeError(
                    "The checkpoint has weights, but no optimizer and no schedule (save_only_model). Start a new run "
                    "with the checkpoint as --model_name_or_path."
                )
            _check_optimizer(optimizer, args)
            _find_best_checkpoint(state, str(args.output_dir))
            _compare_epochs(state, len(kwargs["train_dataloader"]), args.gradient_accumulation_steps)
            _compare_learning_rates(optimizer, learning_rates(args))

    def on_epoch_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.sampler is not None:
            self.sampler.set_epoch(int(state.epoch))

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> TrainerControl:
        if control.should_training_stop and _averages(args):
            kwargs["optimizer"].eval()  # the model ends with the average
        control.should_log |= control.should_evaluate  # the loss up to this evaluation
        return control

    def on_epoch_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> TrainerControl:
        if self.most_evaluations is not None and not control.should_training_stop:  # else it is the last epoch
            before, now = (
                epoch * self.most_evaluations // state.num_train_epochs
                for epoch in (round(state.epoch) - 1, round(state.epoch))
            )
            if before == now:
                control.should_evaluate = control.should_save = False
        control.should_log |= control.should_evaluate
        return control


def _averages(args: Any) -> bool:
    """Whether the optimizer averages the weights."""
    return getattr(args, "ema_decay", None) is not None


def _check_optimizer(optimizer: Any, args: Any) -> None:
    # torch adds `differentiable` to the defaults of any optimizer whose state it loads, not to its groups.
    name = getattr(args.optim, "value", args.optim)
    missing = sorted(set(getattr(optimizer, "defaults", ())) - {"differentiable"} - set(optimizer.param_groups[0]))
    if missing:
        raise ResumeError(
            f"The checkpoint is that of another optimizer: it has no {', '.join(missing)}, which {name} needs. "
            f"Resume with the --optim of its run, {NEW_RUN}."
        )
    if has_average(optimizer) and not _averages(args):
        raise ResumeError(f"The checkpoint has averaged weights. Resume with the --ema_decay of its run, {NEW_RUN}.")


def _compare_learning_rates(optimizer: Any, asked_rates: Mapping[str, float]) -> None:
    """Warns of new learning rates: the scheduler of the checkpoint keeps its initial ones."""
    for group in optimizer.param_groups:
        # The user's own optimizer has no names, and rates that follow the scores have no initial value.
        if not {"name", "initial_lr"} <= group.keys():
            continue
        part = group["name"].removesuffix("_no_decay")
        begun, asked = float(group["initial_lr"]), asked_rates[part]
        if not math.isclose(begun, asked):
            logger.warning(
                "The learning rate of the %s stays %g, as in the checkpoint, and does not become %g. For other "
                "rates, start a new run with the checkpoint as model_name_or_path.",
                *(part, begun, asked),
            )


def _compare_epochs(state: TrainerState, batches: int, batches_in_update: int) -> None:
    """Warns if an epoch, of so many batches, has another number of updates than before: the Trainer counts updates."""
    epochs, updates = divmod(state.global_step, math.ceil(batches / batches_in_update))
    now = epochs + updates * batches_in_update / batches
    if state.epoch is not None and not math.isclose(now, state.epoch, abs_tol=1e-6):
        logger.warning(
            "The checkpoint is of update %d, epoch %.4g. With this training data, batch size and number of processes, "
            "it counts as epoch %.4g of %d. Resume it with the settings it was trained with, or use it as "
            "model_name_or_path of a new run.",
            *(state.global_step, state.epoch, now, state.num_train_epochs),
        )


def _find_best_checkpoint(state: TrainerState, output_dir: str) -> None:
    """Updates the path of the best checkpoint, since the folder of the run may have been moved or renamed."""
    if state.best_global_step is None:
        return
    here = os.path.join(output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.best_global_step}")
    if os.path.isdir(here):
        state.best_model_checkpoint = here
    elif state.best_model_checkpoint is None or not os.path.isdir(state.best_model_checkpoint):
        logger.warning(
            "The best checkpoint so far, of update %d, is missing; the best of the following ones replaces it.",
            state.best_global_step,
        )
        state.best_metric = state.best_global_step = state.best_model_checkpoint = None
