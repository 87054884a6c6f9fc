"""What makes numeric tests hold on every machine: results that are compared within a tolerance, and odd addresses.

The last bits of a sum depend on the processor, the number of threads and the address of its terms.
"""

from typing import Any

import pytest
import torch
from torch import nn

SCORE_TOLERANCE = 1e-5


def near(found: Any) -> Any:
    """Entities, or lists of them, as what is to be found: equal but for their scores, which are within a tolerance."""
    if isinstance(found, list):
        return [near(one) for one in found]
    return {**found, "score": pytest.approx(found["score"], abs=SCORE_TOLERANCE)}


@torch.no_grad()
def move_to_odd_addresses(module: nn.Module) -> nn.Module:
    """Moves every weight to an address that is no multiple of 64 bytes, as that of weights in a file may be."""
    for parameter in module.parameters():
        memory = torch.empty(parameter.numel() + 17, dtype=parameter.dtype)
        start = next(n for n in range(1, 17) if (memory.data_ptr() + n * parameter.element_size()) % 64)
        place = memory[start : start + parameter.numel()].view_as(parameter)
        parameter.data = place.copy_(parameter)
        assert parameter.data_ptr() % 64
    return module
