"""A training's events: it checks what it resumes, saves in time, stops at a signal, and logs its scores."""

import logging
import math
import time
from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState
from transformers.trainer_callback import ExportableState

from ..evaluation.scores import summary_metrics
from .batching import TrainingBatchSampler
from .interruptions import CheckpointError
from .optimization import has_average

logger = logging.getLogger(__name__)

MOST_SECONDS = 300.0
"""The longest time between two checkpoints."""

# Options whose values are in the state of optimizer and sampler, so that a resumed run keeps them.
KEPT = ("learning_rate", "encoder_learning_rate", "embeddings_learning_rate", "weight_decay", "seed", "data_seed")
NEW_RUN = "or start a new run with the checkpoint as --model_name_or_path"


class TrainingCallback(TrainerCallback, ExportableState):
    """The callback of [`NestedNERTrainer`].

    Attributes:
        facts: the options in `KEPT` and a digest of the training data. They are saved in every checkpoint.
        sampler: the sampler of the run, which needs to know the epoch: if several processes resume in the middle of an
            epoch, accelerate wraps it twice, and neither wrapper passes the epoch on.
        most_evaluations: number of epochs, evenly spaced up to the last, that may end with an evaluation or checkpoint,
            where `min_steps` asks for many; None for all of them.
        is_stopping: whether any process was told to stop: this update is the last one.
        is_due: whether a checkpoint is due in any process.
    """

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.sampler: TrainingBatchSampler | None = None
        self.most_evaluations: int | None = None
        self.is_stopping = self.is_due = False
        self.saved_at = math.inf

    def state(self) -> dict[str, Any]:
        return {"args": {}, "attributes": {"facts": self.facts}}

    def wants_checkpoint(self, args: Any) -> bool:
        return args.save_strategy != "no" and time.monotonic() - self.saved_at >= MOST_SECONDS

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self.saved_at, self.is_stopping, self.is_due = time.monotonic(), False, False
        callbacks: Any = state.stateful_callbacks
        callbacks.setdefault(type(self).__name__, self.state())  # a checkpoint may have none
        if state.global_step > 0:
            optimizer = kwargs["optimizer"]
            has_begun = optimizer.state or getattr(kwargs["lr_scheduler"], "last_epoch", 0)
            if not has_begun and state.global_step < state.max_steps:
                raise CheckpointError(
                    f"The checkpoint has no optimizer (save_only_model). Resume another one, {NEW_RUN}."
                )
            if has_average(optimizer) and getattr(args, "ema_decay", None) is None:
                raise CheckpointError(
                    f"The checkpoint has averaged weights. Resume with the --ema_decay of its run, {NEW_RUN}."
                )
        if args.save_strategy != "no":
            after = f"after update {args.save_steps}" if args.save_strategy == "steps" else "after an epoch"
            logger.info("The first checkpoint comes %s, or after %.0f minutes.", after, MOST_SECONDS / 60)

    def on_epoch_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.sampler is not None:
            self.sampler.set_epoch(int(state.epoch or 0))

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> TrainerControl:
        self.is_stopping &= not control.should_training_stop  # else this update is the last one anyway
        # The end of an epoch evaluates before it saves: a checkpoint from before would be resumed without its scores.
        ends_epoch = float(state.epoch or 0).is_integer()
        control.should_save |= (self.is_due or self.is_stopping) and not ends_epoch
        control.should_training_stop |= self.is_stopping
        if control.should_training_stop and not self.is_stopping and has_average(kwargs["optimizer"]):
            kwargs["optimizer"].eval()  # the model ends with the average
        control.should_log |= control.should_evaluate  # the loss up to this evaluation
        return control

    def on_epoch_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> TrainerControl:
        ends_epoch = float(state.epoch or 0).is_integer()
        if self.is_stopping and not ends_epoch:
            control.should_evaluate = control.should_save = False
        elif self.most_evaluations is not None and (self.is_stopping or not control.should_training_stop):
            before, now = (
                epoch * self.most_evaluations // state.num_train_epochs
                for epoch in (round(state.epoch or 0) - 1, round(state.epoch or 0))
            )
            if before == now:
                control.should_evaluate = control.should_save = False
        control.should_save |= ends_epoch and (self.is_stopping or self.is_due)
        control.should_log |= control.should_evaluate
        return control

    def on_save(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self.saved_at, self.is_due = time.monotonic(), False

    def on_log(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        logs = kwargs["logs"]
        place = f"Update {state.global_step} of {state.max_steps}, epoch {state.epoch or 0:.4g}"
        if "loss" in logs:
            logger.info("%s: training loss %.4g", place, float(logs["loss"]))
        if "eval_f1" in logs:
            logger.info("%s: %s, loss %.4g", place, format_metrics(logs), float(logs["eval_loss"]))


def format_metrics(logs: Mapping[str, float], prefix: str = "eval") -> str:
    """The scores of an evaluation in percent, for a line of the log: `precision 71.2, recall 69.0, F1 70.1, …`."""
    scores = {title: logs.get(f"{prefix}_{name}") for name, title in summary_metrics().items()}
    return ", ".join(f"{title} {100 * float(score):.1f}" for title, score in scores.items() if score is not None)
