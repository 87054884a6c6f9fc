"""Contractions with a full triaffine tensor, and the operations that the package makes faster.

Axes: n words or pairs, a and e the widths of head and tail vectors, d+1, r labels, c the width d of inside vectors.
"""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .triaffine_blocks import Cube, Plan, attend_inside


class FullWeight:
    """A full triaffine tensor [R, d, d+1, d+1] within one forward pass, whose contractions share its gradient."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        self.of_labels = tensor.unbind()  # whose gradients autograd stacks once

    def __len__(self) -> int:
        return len(self.tensor)

    def pad(self, boundaries: Tensor) -> Tensor:
        """Head or tail vectors [..., d+1], widened as those axes of the results of contractions are."""
        return boundaries

    def contract_words(self, insides: Tensor, labels: slice) -> Tensor:
        """T_n = Σ_c W[r, c] x_nc of some labels for inside vectors x [n, d] → [n, a, r, e]."""
        weights = (weight.to(insides.dtype).unsqueeze(2) for weight in self.of_labels[labels])
        contracted = [(insides @ weight.flatten(1)).unflatten(1, weight.shape[1:]) for weight in weights]
        return contracted[0] if len(contracted) == 1 else torch.cat(contracted, 2)

    def contract_pairs(self, heads: Tensor, tails: Tensor) -> Tensor:
        """y_rnc = Σ_ae W[r, c, a, e] u_na v_ne for boundaries u, v [n, a] of given spans → [R, n, d]."""
        outer = (heads.unsqueeze(-1) * tails.unsqueeze(-2)).flatten(1)
        return torch.stack([outer @ weight.to(outer.dtype).flatten(1).mT for weight in self.of_labels])


@dataclass
class Acceleration:
    """Operations that the package, where it is imported, replaces by faster ones with the same numbers.

    Attributes:
        linear_layers: (module) → a context for a call of the module, whose linear layers are then faster.
        full_weight: (tensor) → a [`FullWeight`], made for each forward pass.
        labels_at_once: (attention, scoring) → for how many labels full tensors are contracted at once.
        labels_to_keep: (attention, scoring, plan, budget in bytes) → for how many labels to store what is contracted
            with full tensors for the backward pass, which recomputes the others.
        attend_inside: as [`triaffine_blocks.attend_inside`]; without the whole cube where it is not needed.
        run: (model, inputs) → the model's output in prediction.
    """

    linear_layers: Callable[[nn.Module], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    full_weight: Callable[[Tensor], FullWeight] = FullWeight
    labels_at_once: Callable[..., int] = lambda *_: 1
    labels_to_keep: Callable[..., float] = lambda *_: math.inf
    attend_inside: Callable[[Plan, Cube, Cube, bool], tuple[Tensor, Tensor | None]] = attend_inside
    run: Callable[[Any, dict[str, Any]], Any] = lambda model, inputs: model(**inputs)


ACCELERATION = Acceleration()


def multiplies_bfloat16() -> bool:
    """True if the processor multiplies bfloat16 faster than float32.

    Without instructions for it, bfloat16 takes many times as long. Intel's processors need those of AMX, which virtual
    machines often hide: with `avx512_bf16` alone, a product of bfloat16 took 1.75 times as long as one of float32.
    """
    has: Any = torch.cpu.get_capabilities()
    names = ["amx_bf16", "bf16"]  # Intel's and ARM's
    if not has.get("cpu_name", "").startswith("Intel"):
        names.append("avx512_bf16")
    return any(has.get(name, False) for name in names)
