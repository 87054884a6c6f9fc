"""The same numbers as in `model/`, faster: Triton kernels, products of matrices by oneDNN, linear layers in int8.

Nothing here travels with a model: its own code, without the package, computes by torch's own operations.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .int8 import find_quantizer
from .onednn import linear_layers, multiply_transposed, write_product

if TYPE_CHECKING:  # the import of `model` registers the model with transformers, which calls `accelerate`
    from ..model.triaffine_weights import Acceleration


def accelerate(operations: "Acceleration") -> None:
    """Sets the operations of this folder in place of the plain ones."""
    operations.linear_layers = linear_layers
    operations.multiply_transposed = multiply_transposed
    operations.write_product = write_product
    operations.span_kernels = span_kernels
    operations.find_quantizer = find_quantizer


def span_kernels(device: torch.device) -> Callable[..., Tensor] | None:
    """The span stage by Triton kernels; None if they do not work on this device, or it is no GPU."""
    if device.type != "cuda":
        return None
    from .span_stage import attend_by_kernels, kernels_work  # a CPU need not wait for Triton's import

    return attend_by_kernels if kernels_work(device) else None
