"""What a training tells while it runs: a bar on a terminal, and one line whenever the validation data was scored."""

import logging
import sys
from typing import Any

import datasets
import transformers
from transformers import PrinterCallback, ProgressCallback, Trainer, TrainerCallback, TrainingArguments

logger = logging.getLogger(__name__)


class ScoreLines(TrainerCallback):
    """Logs the scores on the validation data, with the training loss that was logged last."""

    def __init__(self) -> None:
        self.loss = ""

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        control.should_log = True  # also where an epoch has fewer updates than there are between two logs
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **kwargs: Any) -> None:
        logs = logs or {}
        if "loss" in logs:
            self.loss = f", training loss {float(logs['loss']):.4g}"
        if "eval_f1" in logs:
            f1, flat, nested = (100 * float(logs[f"eval_{name}"]) for name in ("f1", "flat_f1", "nested_f1"))
            logger.info(
                "Epoch %.4g of %.4g, update %d of %d: F1 %.1f (flat %.1f, nested %.1f), loss %.4g%s",
                *(state.epoch or 0, state.num_train_epochs, state.global_step, state.max_steps),
                *(f1, flat, nested, float(logs["eval_loss"]), self.loss),
            )


class Bar(ProgressCallback):
    """The Trainer's bar without the numbers, which `ScoreLines` logs in a form that can be read."""

    def on_log(self, *arguments: Any, **options: Any) -> None:
        pass


def tell_scores_in_lines(trainer: Trainer) -> None:
    """Takes the place of the Trainer's own telling."""
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    trainer.add_callback(ScoreLines())
    if not trainer.args.disable_tqdm:
        trainer.add_callback(Bar())


def quieten(training: TrainingArguments) -> None:
    """No bars but the training's own, and none at all where nobody sees them move."""
    transformers.utils.logging.disable_progress_bar()
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
        training.disable_tqdm = True
