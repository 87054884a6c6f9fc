"""Weights of processes that live long: in memory of their own, not in a mapped file that may change."""

from itertools import chain

from torch import nn


def own_weights(model: nn.Module) -> None:
    """Copies weights on the CPU, which safetensors maps: another file in the place of theirs would change them."""
    for weight in chain(model.parameters(), model.buffers()):
        if weight.device.type == "cpu":
            weight.data = weight.data.clone()
