"""The same numbers as in `model/`, faster: Triton kernels, fused prediction, products by oneDNN, layers in int8.

Nothing here travels with a model: its own code, without the package, computes by torch's own operations.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .full_tensors import buffered_weight, is_recomputed
from .int8 import find_quantizer
from .onednn import linear_layers
from .prediction import attend_without_gradient

if TYPE_CHECKING:  # the import of `model` registers the model with transformers, which calls `accelerate`
    from ..model.triaffine_weights import Acceleration


def accelerate(operations: "Acceleration") -> None:
    """Sets the operations of this folder in place of the plain ones."""
    operations.linear_layers = linear_layers
    operations.full_weight = buffered_weight
    operations.is_recomputed = is_recomputed
    operations.span_kernels = span_kernels
    operations.find_quantizer = find_quantizer


def span_kernels(device: torch.device, is_full: bool) -> Callable[..., Tensor] | None:
    """The span stage by Triton kernels on a GPU where they work, else for prediction with low rank in fewer steps."""
    if device.type == "cuda":
        from .span_stage import attend_by_kernels, kernels_work  # a CPU need not wait for Triton's import

        if kernels_work(device):
            return attend_by_kernels
    return None if is_full or torch.is_grad_enabled() else attend_without_gradient
