"""A small training, and ways to make it fail."""

import itertools
import os
from collections.abc import Callable

import torch
from transformers import TrainerCallback

from tests.helpers.micro_training import micro_records

RECORDS = micro_records(12, seed=4)  # of which `UPDATES` makes 2 epochs of 6 batches
UPDATES = {"num_train_epochs": 2, "per_device_train_batch_size": 2, "save_strategy": "steps", "save_steps": 1}
UPDATES["save_total_limit"] = 99


def failing_at_batch(number: int, fail: Callable) -> Callable:
    """A forward hook of the model that lets `fail(output)` happen at its `number`-th batch."""
    batches = itertools.count(1)

    def hook(_module, _inputs, output):
        if next(batches) == number:
            fail(output)

    return hook


def make_loss_nan(output) -> None:
    output.loss = output.loss * float("nan")


class SignalAfter(TrainerCallback):
    """Sends a signal to this process after an update."""

    def __init__(self, update: int, number: int):
        self.update, self.number = update, number

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.update:
            os.kill(os.getpid(), self.number)


def assert_same_weights(weights: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    torch.testing.assert_close(dict(weights), dict(expected), rtol=0, atol=0)
