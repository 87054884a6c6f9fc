"""Numeric tests that hold on every machine: results compared within a tolerance, and weights at odd addresses.

The last bits of a sum depend on the processor, the number of threads and the address of its terms.
"""

from typing import Any

import pytest
import torch
from torch import nn

TOLERANCE = 1e-5


def near(value: Any) -> Any:
    """`value`, plain data, with every float replaced by one that equals whatever is near to it."""
    if isinstance(value, float):
        return pytest.approx(value, abs=TOLERANCE)
    if isinstance(value, dict):
        return {key: near(item) for key, item in value.items()}
    if isinstance(value, list):
        return [near(item) for item in value]
    return value


@torch.no_grad()
def move_to_odd_addresses(module: nn.Module) -> nn.Module:
    """Moves every weight to an address that is no multiple of 64 bytes, as that of weights in a file may be."""
    for parameter in module.parameters():
        if parameter.device.type != "cpu":
            continue
        memory = torch.empty(parameter.numel() + 17, dtype=parameter.dtype)
        start = next(n for n in range(1, 17) if (memory.data_ptr() + n * parameter.element_size()) % 64)
        place = memory[start : start + parameter.numel()].view_as(parameter)
        parameter.data = place.copy_(parameter)
        assert parameter.data_ptr() % 64
    return module
