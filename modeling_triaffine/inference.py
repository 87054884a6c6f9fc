"""The state in which a model is read, not trained."""

import contextlib
from collections.abc import Iterator

import torch

from .model.modeling_triaffine import TriaffineForNestedNER


@contextlib.contextmanager
def evaluating(model: TriaffineForNestedNER) -> Iterator[None]:
    """Without dropout and gradients inside, in the mode it was in outside."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
