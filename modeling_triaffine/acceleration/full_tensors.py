"""Contractions with a full triaffine tensor, and the buffer to which they add its gradient.

The tensor, [R, d, d+1, d+1], is most of the model. In its own type on a CPU it is never permuted or copied, and it has
one gradient of its size per forward pass: the contractions of both stages add their parts to a buffer, which autograd
delivers to the parameter after the last of them.

Axes: n words or pairs, a and e the widths of head and tail vectors. On CUDA these are padded with zeros from d+1 to a
multiple of 8, so that every product can run on tensor cores, in a copy of the labels that are computed at once.
"""

import os
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ..model.triaffine_blocks import FullWeight, Plan
from ..model.triaffine_ops import Factor, TriaffineFactor, autocast
from .onednn import multiply_transposed, write_product
from .span_stage import uses_kernels

ALIGNMENT = 8  # the axes of d+1 are padded to a multiple of this on CUDA: 16 bytes in half precision
# Labels are computed at once on CUDA, as many as make a tensor of so many bytes: for one label, most operations take
# longer to launch than to run.
AT_ONCE_BYTES = 2**30
# Fraction of the free memory for contracted words that are stored for the backward pass; the others are recomputed.
KEPT_SHARE = 0.25


class GradientBuffer:
    """The gradient of a tensor [R, d, d+1, d+1], to which the contractions of a forward pass add their parts by labels.

    It belongs to one run of the backward pass: parts of an earlier, partial run (`autograd.grad` of something else
    through the same graph) are discarded.
    """

    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        self.backward_run: int | None = None
        self.gradient: Tensor | None = None
        self.written: set[int] = set()

    def add(self, labels: slice, left: Tensor, right: Tensor) -> None:
        """gradient[labels] += leftᵀ · right, left [n, r·d] for r labels, right [n, a, e]."""
        part, first = self._part(labels)
        if right.dtype == part.dtype and right.shape[1:] == part.shape[1:]:
            write_product(left, right.flatten(1), part.flatten(1), not first)
        else:
            _write_or_add((left.mT @ right.flatten(1)).unflatten(1, right.shape[1:]), part, first)

    def add_product(self, labels: slice, product: Tensor) -> None:
        """gradient[labels] += product [r, d, a, e] for r labels."""
        part, first = self._part(labels)
        _write_or_add(product, part.unflatten(0, product.shape[:2]), first)

    def _part(self, labels: slice) -> tuple[Tensor, bool]:
        """The part of the gradient for these labels, [r·d, d+1, d+1], and whether nothing was added to it before."""
        run = torch._C._current_graph_task_id()  # has no public name
        if run != self.backward_run:
            self.backward_run, self.written = run, set()
            self.gradient = torch.empty_like(self.tensor, requires_grad=False, memory_format=torch.contiguous_format)
        assert self.gradient is not None
        part = self.gradient[labels].flatten(0, 1)  # [r·d, d+1, d+1]
        wanted = set(range(labels.start, labels.stop))
        first = not self.written & wanted
        if not first:
            self._zero(wanted - self.written)
        self.written |= wanted
        return part, first

    def _zero(self, labels: set[int]) -> None:
        assert self.gradient is not None
        for label in labels:
            self.gradient[label].zero_()

    def take(self) -> Tensor | None:
        """Returns the gradient and empties the buffer; None if nothing was added."""
        if self.gradient is None:
            return None
        self._zero(set(range(len(self.gradient))) - self.written)
        gradient, self.gradient, self.backward_run = self.gradient, None, None
        return gradient


class _Deliver(torch.autograd.Function):
    """Delivers the buffered gradient to the tensor. Its output has no content, it links contractions and tensor."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, buffer: GradientBuffer) -> Tensor:
        ctx.buffer = buffer
        return tensor.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, None]:
        return ctx.buffer.take(), None


class BufferedWeight(FullWeight):
    """A full tensor whose gradient the contractions add to one buffer."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        self.detached = tensor.detach()
        self.buffer = GradientBuffer(tensor)
        # A scalar argument of every contraction, so that autograd runs `_Deliver` after all their backward passes.
        self.link = _Deliver.apply(tensor, self.buffer)

    def pad(self, boundaries: Tensor) -> Tensor:
        """Pads to a multiple of 8 on CUDA."""
        padding = _padding(boundaries)
        return functional.pad(boundaries, (0, padding)) if padding else boundaries

    def contract_words(self, insides: Tensor, labels: slice) -> Tensor:
        return _ContractWords.apply(insides, self.link, self.detached, self.buffer, labels)

    @torch.compiler.disable
    def contract_pairs(self, heads: Tensor, tails: Tensor) -> Tensor:
        return _ContractPairs.apply(heads, tails, self.link, self.detached, self.buffer)


@torch.compiler.disable
def buffered_weight(tensor: Tensor) -> FullWeight:
    """Prepares the tensor for the contractions of one forward pass."""
    return BufferedWeight(tensor)


class _ContractWords(torch.autograd.Function):
    """The tensor contracted with inside words; its backward pass adds the tensor's gradient to the buffer."""

    @staticmethod
    def forward(
        ctx: Any, insides: Tensor, link: Tensor, tensor: Tensor, buffer: GradientBuffer, labels: slice
    ) -> Tensor:
        ctx.save_for_backward(insides, tensor)
        ctx.buffer, ctx.labels = buffer, labels
        weight = _labels_inside(tensor, labels, insides.dtype)
        return multiply_transposed(insides, weight.flatten(1).mT).unflatten(1, weight.shape[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        insides, tensor = ctx.saved_tensors
        for_insides = None
        if ctx.needs_input_grad[0]:
            weight = _labels_inside(tensor, ctx.labels, gradient.dtype)
            for_insides = multiply_transposed(gradient.flatten(1), weight.flatten(1))
        if ctx.needs_input_grad[1]:
            if gradient.shape[2] == 1:
                ctx.buffer.add(ctx.labels, insides, gradient.squeeze(2))
            else:
                product = (insides.mT @ gradient.flatten(1)).unflatten(1, gradient.shape[1:])
                ctx.buffer.add_product(ctx.labels, product.permute(2, 0, 1, 3))
        return for_insides, gradient.new_zeros(()), None, None, None


class _ContractPairs(torch.autograd.Function):
    """The tensor contracted with pairs of head and tail; its backward pass adds the tensor's gradient likewise."""

    @staticmethod
    def forward(ctx: Any, heads: Tensor, tails: Tensor, link: Tensor, tensor: Tensor, buffer: GradientBuffer) -> Tensor:
        ctx.save_for_backward(heads, tails, tensor)
        ctx.buffer = buffer
        outer = (heads.unsqueeze(-1) * tails.unsqueeze(-2)).flatten(1)
        weights = (_of_labels(tensor, labels, heads.dtype) for labels in _groups(tensor, heads))
        spans = [multiply_transposed(outer, weight.flatten(1)) for weight in weights]
        return torch.cat(spans, dim=1).unflatten(1, tensor.shape[:2]).transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        heads, tails, tensor = ctx.saved_tensors
        outer = heads.unsqueeze(-1) * tails.unsqueeze(-2)  # [n, a, e]
        gradient = gradient.transpose(0, 1).flatten(1)  # [n, R·d]
        for_outer = gradient.new_zeros(())
        dim = tensor.shape[1]
        for labels in _groups(tensor, heads):
            part = gradient[:, labels.start * dim : labels.stop * dim]
            product = multiply_transposed(part, _of_labels(tensor, labels, gradient.dtype).flatten(1).mT)
            for_outer = for_outer.add_(product) if labels.start else product
            if ctx.needs_input_grad[2]:
                ctx.buffer.add(labels, part, outer)
        for_outer = for_outer.view_as(outer)
        for_heads = (for_outer @ tails.unsqueeze(-1)).squeeze(-1)
        for_tails = (heads.unsqueeze(-2) @ for_outer).squeeze(-2)
        return for_heads, for_tails, gradient.new_zeros(()), None, None


def _write_or_add(product: Tensor, part: Tensor, first: bool) -> None:
    """Writes or adds a product, which may be padded, to the part of a gradient."""
    product = product[..., : part.shape[-2], : part.shape[-1]]
    part.copy_(product) if first else part.add_(product)


def _groups(tensor: Tensor, like: Tensor) -> list[slice]:
    """Labels that are contracted together: all, or those whose copies fit if they must be cast or padded first."""
    size = len(tensor)
    if tensor.dtype != like.dtype or _padding(tensor):
        size = _labels_at_once(tensor[0].numel() * like.element_size(), tensor.device)
    return [slice(first, min(first + size, len(tensor))) for first in range(0, len(tensor), size)]


def label_chunks(attention: Factor, scoring: Factor, plan: Plan) -> list[tuple[slice, bool]]:
    """The labels for which the span stage contracts words with full tensors at once, and whether it stores the results.

    With kernels, these are as many as fit; otherwise, or if all labels share one attention, of which kernels would need
    copies, one label. The backward pass recomputes the results for which `KEPT_SHARE` is not enough.
    """
    full = [factor for factor in (attention, scoring) if isinstance(factor, TriaffineFactor)]
    insides, chunk, stored = autocast(scoring.insides), 1, scoring.labels
    shares_attention = isinstance(attention, TriaffineFactor) and attention.labels < scoring.labels
    if uses_kernels(insides.device) and not shares_attention:
        batch, num_words = full[0].insides.shape[:2]  # other factors have labels there
        width = max(factor.width for factor in full)
        # The contracted words, these contracted with the heads, and the copied weights.
        rows = max(batch * num_words * width, batch * num_words**2, width**2)
        chunk = _labels_at_once(rows * width * insides.element_size(), insides.device)
    if torch.is_grad_enabled():
        widths = [factor.width for factor in full if factor.labels > 1]
        bytes_of_label = len(plan.packed) * sum(width**2 for width in widths) * insides.element_size()
        stored = int(KEPT_SHARE * free_bytes(plan.packed.device)) // max(1, bytes_of_label)
        chunk = max(1, min(chunk, stored))  # where memory is short for the backward pass, too
    slices = (slice(first, min(first + chunk, scoring.labels)) for first in range(0, scoring.labels, chunk))
    return [(labels, labels.stop <= stored) for labels in slices]


def _labels_at_once(bytes_of_label: int, device: torch.device) -> int:
    return max(1, AT_ONCE_BYTES // max(1, bytes_of_label)) if device.type == "cuda" else 1


def _labels_inside(tensor: Tensor, labels: slice, dtype: torch.dtype) -> Tensor:
    """W of some labels [d, a, r, e], cast and padded; a view of a single label if neither is necessary."""
    return _copy(tensor[labels].permute(1, 2, 0, 3), (1, 3), dtype)


def _of_labels(tensor: Tensor, labels: slice, dtype: torch.dtype) -> Tensor:
    """W of some labels [r·d, a, e], cast and padded; a view if neither is necessary."""
    return _copy(tensor[labels].flatten(0, 1), (1, 2), dtype)


def _copy(values: Tensor, axes: tuple[int, int], dtype: torch.dtype) -> Tensor:
    """The values, contiguous, cast, and padded along these axes, of d+1; themselves if nothing is necessary."""
    padding = _padding(values)
    if not padding:
        return values.to(dtype, memory_format=torch.contiguous_format)
    shape = [size + padding if axis in axes else size for axis, size in enumerate(values.shape)]
    padded = values.new_zeros(shape, dtype=dtype)
    padded[tuple(map(slice, values.shape))] = values
    return padded


def _padding(values: Tensor) -> int:
    return -values.shape[-1] % ALIGNMENT if values.is_cuda else 0


def free_bytes(device: torch.device) -> int:
    """Free memory of the device in bytes; 0 if unknown."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    if device.type == "cpu" and "SC_AVPHYS_PAGES" in getattr(os, "sysconf_names", ()):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 0
