"""What the trainer does at the Trainer's own events: the epoch for the batches, and what a resumed run must know."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path

import torch
from transformers import TrainerCallback, TrainerState

from .batching import TrainingBatchSampler

logger = logging.getLogger(__name__)


class EpochCallback(TrainerCallback):
    """Tells the training sampler its epoch.

    The Trainer does so too, but in several processes not after a checkpoint in the middle of an epoch: there
    accelerate wraps the batches twice, and neither passes the epoch on to the sampler.
    """

    sampler: TrainingBatchSampler | None = None

    def on_epoch_begin(self, args, state, control, **kwargs):
        if self.sampler is not None:
            self.sampler.set_epoch(int(state.epoch))


class ResumeCallback(TrainerCallback):
    """Finds the best checkpoint of a resumed run again, and warns of learning rates that do not count.

    Args:
        learning_rates: those that are asked for, by part of the model.
    """

    def __init__(self, learning_rates: Mapping[str, float]):
        self.learning_rates = learning_rates

    def on_train_begin(self, args, state, control, optimizer=None, **kwargs):
        if state.global_step > 0:
            _find_best_checkpoint(state, Path(args.output_dir))
            self._compare_learning_rates(optimizer)

    def _compare_learning_rates(self, optimizer: torch.optim.Optimizer) -> None:
        """The scheduler of the checkpoint goes on with the rates that it began with."""
        for group in optimizer.param_groups:
            if "name" not in group:  # of an optimizer that was given, with rates of its own
                continue
            part = group["name"].removesuffix("_no_decay")
            begun, asked = float(group["initial_lr"]), self.learning_rates[part]
            if not math.isclose(begun, asked):
                logger.warning(
                    "The learning rate of the %s stays %g, with which the checkpoint began, and does not become %g. "
                    "For other rates, start a new run with the checkpoint as model_name_or_path.",
                    *(part, begun, asked),
                )


def _find_best_checkpoint(state: TrainerState, output_dir: Path) -> None:
    """Sets the path of the best checkpoint: the folder may have been moved, or be called by another name now."""
    if state.best_global_step is None:
        return
    here = output_dir / f"checkpoint-{state.best_global_step}"
    if here.is_dir():
        state.best_model_checkpoint = str(here)
    elif state.best_model_checkpoint is None or not Path(state.best_model_checkpoint).is_dir():
        logger.warning(
            "The best checkpoint so far, of update %d, is gone: the best of those to come takes its place.",
            state.best_global_step,
        )
        state.best_metric = state.best_global_step = state.best_model_checkpoint = None
