"""The progress of a training in a log or a terminal, in place of the Trainer's own reports."""

import logging
import sys
import time
from collections.abc import Mapping
from typing import Any

from transformers import PrinterCallback, ProgressCallback, Trainer, TrainerCallback, TrainerControl, TrainerState

from ..evaluation.scores import summary_metrics
from ..publishing.card_tables import format_duration

logger = logging.getLogger(__name__)

# Seconds until the first line, and at most between two lines; the time doubles from line to line.
FIRST_LINE, MAX_BETWEEN = 5.0, 60.0


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
