"""What a training does at its events: checks when it resumes, when to score, averaged weights, and its progress."""

import logging
import math
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from transformers import (
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..evaluation.scores import summary_metrics
from ..publishing.card_tables import format_duration
from .batching import TrainingBatchSampler
from .interruptions import ResumeError
from .optimization import has_average

logger = logging.getLogger(__name__)

# Seconds until the first line, and at most between two lines; the time doubles from line to line.
FIRST_LINE, MAX_BETWEEN = 5.0, 60.0
NEW_RUN = "or start a new run with the checkpoint as model_name_or_path"


class TrainingCallback(TrainerCallback):
    """The callback of [`NestedNERTrainer`].

    Args:
        learning_rates: those of the arguments, by part of the model.
        averages: whether the optimizer averages the weights; the model then ends with the average.

    Attributes:
        sampler: the sampler of the run, which needs to know the epoch. The Trainer does not pass it on if it
            resumes in the middle of an epoch in several processes: accelerate then wraps the sampler twice, and neither
            wrapper does.
        most_evaluations: number of epochs, evenly spaced up to the last, that may end with an evaluation or checkpoint,
            where `min_steps` asks for many; None for all of them.

    Raises:
        ResumeError: the checkpoint is that of another optimizer, or has averaged weights and these are not wanted.
    """

    def __init__(self, learning_rates: Mapping[str, float], averages: bool):
        self.learning_rates = learning_rates
        self.averages = averages
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
            self._check_optimizer(optimizer, getattr(args.optim, "value", args.optim))
            _find_best_checkpoint(state, str(args.output_dir))
            _compare_epochs(state, len(kwargs["train_dataloader"]), args.gradient_accumulation_steps)
            self._compare_learning_rates(optimizer)

    def on_epoch_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.sampler is not None:
            self.sampler.set_epoch(int(state.epoch))

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> TrainerControl:
        if control.should_training_stop and self.averages:
            kwargs["optimizer"].eval()
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

    def _check_optimizer(self, optimizer: Any, name: str) -> None:
        # torch adds `differentiable` to the defaults of any optimizer whose state it loads, not to its groups.
        missing = sorted(set(getattr(optimizer, "defaults", ())) - {"differentiable"} - set(optimizer.param_groups[0]))
        if missing:
            raise ResumeError(
                f"The checkpoint is that of another optimizer: it has no {', '.join(missing)}, which {name} needs. "
                f"Resume with the --optim of its run, {NEW_RUN}."
            )
        if has_average(optimizer) and not self.averages:
            raise ResumeError(
                f"The checkpoint has averaged weights. Resume with the --ema_decay of its run, {NEW_RUN}."
            )

    def _compare_learning_rates(self, optimizer: Any) -> None:
        """Warns of new learning rates: the scheduler of the checkpoint keeps its initial ones."""
        for group in optimizer.param_groups:
            # The user's own optimizer has no names, and rates that follow the scores have no initial value.
            if not {"name", "initial_lr"} <= group.keys():
                continue
            part = group["name"].removesuffix("_no_decay")
            begun, asked = float(group["initial_lr"]), self.learning_rates[part]
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


# ---- Progress ----


class Lines(TrainerCallback):
    """Logs the scores of evaluations and, unless a bar shows them, the updates at least once a minute.

    `trainer` has the number of sentences trained on so far, over all processes, and the loss of the last update.
    """

    def __init__(self, trainer: Any, updates: bool = True):
        self.trainer = trainer
        self.updates = updates
        self.training_loss = ""
        self.batches = 0  # of the evaluation that is running
        self.last: float | None = None  # time of the last line; None before training

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self.between = FIRST_LINE
        self.start = self.last = time.monotonic()
        self.first_update, self.first_sentences = state.global_step, int(self.trainer.sentences_seen)

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.updates and self._is_due():
            seconds = time.monotonic() - self.start
            rate = (int(self.trainer.sentences_seen) - self.first_sentences) / seconds
            left = seconds / (state.global_step - self.first_update) * (state.max_steps - state.global_step)
            logger.info(
                "Update %d of %d (epoch %.2f of %d): loss %.4g, %.3g sentences/s, %s left",
                *(state.global_step, state.max_steps, state.epoch or 0, state.num_train_epochs),
                *(float(self.trainer.last_loss), rate, format_duration(left)),
            )

    def on_prediction_step(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self.batches += 1
        if self.updates and self._is_due():
            logger.info("Evaluation: batch %d of %d", self.batches, len(kwargs["eval_dataloader"]))

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        self.batches = 0

    on_predict = on_evaluate

    def on_log(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        logs: dict[str, float] = kwargs["logs"]
        if "loss" in logs:
            self.training_loss = f", training loss {float(logs['loss']):.4g}"
        if "eval_f1" in logs:
            logger.info(
                "Epoch %.4g of %d, update %d of %d: %s, loss %.4g%s",
                *(state.epoch or 0, state.num_train_epochs, state.global_step, state.max_steps),
                *(format_metrics(logs), float(logs["eval_loss"]), self.training_loss),
            )

    def _is_due(self) -> bool:
        now = time.monotonic()
        if self.last is None or now - self.last < self.between:
            return False
        self.last, self.between = now, min(2 * self.between, MAX_BETWEEN)
        return True


class Bar(ProgressCallback):
    """The Trainer's bar with the loss beside it, instead of a dictionary for each log."""

    def __init__(self, trainer: Any):
        super().__init__()
        self.trainer = trainer

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        advance: Any = super().on_step_end  # untyped in transformers
        advance(args, state, control, **kwargs)
        if self.training_bar is not None and state.global_step % max(1, int(args.logging_steps)) == 0:
            self.training_bar.set_postfix_str(f"loss {float(self.trainer.last_loss):.4g}")

    def on_log(self, *arguments: Any, **options: Any) -> None:
        """`Lines` logs the scores."""


def report_progress(trainer: Trainer) -> None:
    """Replaces the progress reports of the Trainer; there is no bar unless standard error is a terminal."""
    if not sys.stderr.isatty():
        trainer.args.disable_tqdm = True
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    with_bar = not trainer.args.disable_tqdm
    trainer.add_callback(Lines(trainer, updates=not with_bar))
    if with_bar:
        trainer.add_callback(Bar(trainer))


def format_metrics(logs: Mapping[str, float]) -> str:
    """The scores of an evaluation in percent, for a line of the log: `precision 71.2, recall 69.0, F1 70.1, …`."""
    shown = []
    for name, title in summary_metrics().items():
        is_undefined = name == "precision" and not logs["eval_predicted"]
        shown.append(f"{title} –" if is_undefined else f"{title} {100 * float(logs[f'eval_{name}']):.1f}")
    return ", ".join(shown)
