"""The same numbers as in `model/`, faster: Triton kernels, CUDA graphs, products by oneDNN.

Nothing here travels with a model: its own code, without the package, computes by torch's own operations.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..model import triaffine_blocks
from ..model.triaffine_blocks import Cube, Plan
from .blocks import attend_in_blocks
from .full_tensors import buffered_weight, labels_that_fit, labels_to_keep
from .graphs import run_model
from .onednn import linear_layers

if TYPE_CHECKING:  # the import of `model` registers the model with transformers, which calls `accelerate`
    from ..model.triaffine_ops import Factor
    from ..model.triaffine_weights import Acceleration


def accelerate(operations: "Acceleration") -> None:
    """Sets the operations of this folder in place of the plain ones."""
    operations.linear_layers = linear_layers
    operations.full_weight = buffered_weight
    operations.labels_at_once = labels_at_once
    operations.labels_to_keep = labels_to_keep
    operations.attend_inside = attend_inside
    operations.run = run_model


def labels_at_once(attention: "Factor", scoring: "Factor") -> int:
    """The number of labels scored at once: as many as fit by Triton kernels; else one."""
    return labels_that_fit(attention, scoring) if uses_kernels(attention.insides.device) else 1


def attend_inside(plan: Plan, attention: Cube, scoring: Cube, keep: bool) -> tuple[Tensor, Tensor | None]:
    """Attends by Triton kernels on a GPU where they work; else by blocks, which a backward pass recomputes."""
    if uses_kernels(plan.packed.device):
        from .span_stage import attend_by_kernels

        return attend_by_kernels(plan, attention, scoring), None
    attend = attend_in_blocks if torch.is_grad_enabled() else triaffine_blocks.attend_inside
    return attend(plan, attention, scoring, keep)


def uses_kernels(device: torch.device) -> bool:
    """True if the span stage runs in Triton kernels on this device."""
    if device.type != "cuda":
        return False
    from .span_stage import kernels_work  # a CPU need not wait for Triton's import

    return kernels_work(device)
