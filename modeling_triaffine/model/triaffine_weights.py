"""Contractions with a full triaffine tensor, its gradient, and the operations that the package makes faster.

The tensor, [R, d, d+1, d+1], is most of the model. It is never permuted or copied, and has one gradient of its size per
forward pass: the contractions of both stages add their parts label by label to a buffer, which autograd delivers to the
parameter after the last of them.

Axes: n words or pairs, a and e the widths of head and tail vectors. On CUDA these are padded with zeros from d+1 to a
multiple of 8, so that every product can run on tensor cores.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

# The axes of d+1 are padded to a multiple of this on CUDA: 16 bytes in half precision.
ALIGNMENT = 8


def _write_product(left: Tensor, right: Tensor, result: Tensor, add: bool) -> None:
    torch.addmm(result, left.mT, right, beta=1 if add else 0, out=result)


def _no_quantizer(choice: str, *_: Any) -> NoReturn:
    raise ImportError(
        f"`quantize` is {choice!r}, but the code saved with a model computes in floating point only. Install the "
        "package, pip install 'modeling_triaffine[onnx]', and import modeling_triaffine before the model is loaded."
    )


@dataclass
class Acceleration:
    """Operations that the package, where it is imported, replaces by faster ones with the same numbers.

    Attributes:
        linear_layers: (module) → a context for a call of the module, whose linear layers are then faster.
        multiply_transposed: left · rightᵀ, [n, k] and [m, k] → [n, m].
        write_product: (left, right, result, add) writes leftᵀ · right, [n, m] and [n, k] → [m, k], to `result`, or adds
            it to what is there.
        span_kernels: (device, whether a tensor is full) → a function of plan, attention and scoring that returns the p
            of [`attend_inside`]; None if there is none.
        find_quantizer: (choice, dtype, device) → a function that quantizes the encoder of a model and returns the
            model. ValueError for a choice, dtype or device that it does not have, ImportError if it lacks a package.
    """

    linear_layers: Callable[[nn.Module], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    multiply_transposed: Callable[[Tensor, Tensor], Tensor] = lambda left, right: left @ right.mT
    write_product: Callable[[Tensor, Tensor, Tensor, bool], None] = _write_product
    span_kernels: Callable[[torch.device, bool], Callable[..., Tensor] | None] = lambda device, is_full: None
    find_quantizer: Callable[[str, Any, Any], Callable[[Any], Any]] = _no_quantizer


ACCELERATION = Acceleration()


def multiplies_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 faster than float32.

    Without instructions for it, bfloat16 takes many times as long. Intel's processors need those of AMX, which virtual
    machines often hide: with `avx512_bf16` alone, a product of bfloat16 took 1.75 times as long as one of float32.
    """
    if hasattr(torch.cpu, "get_capabilities"):
        has: Any = torch.cpu.get_capabilities()
        names = ["amx_bf16", "bf16"]  # Intel's and ARM's
        if not has.get("cpu_name", "").startswith("Intel"):
            names.append("avx512_bf16")
        return any(has.get(name, False) for name in names)
    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", bool)())  # earlier versions of torch


class GradientBuffer:
    """The gradient of a tensor, to which the contractions of one forward pass add their parts, label by label.

    It belongs to one run of the backward pass: parts of an earlier, partial run (`autograd.grad` of something else
    through the same graph) are discarded.

    Args:
        tensor: [R, d, d+1, d+1].
    """

    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        self.backward_run: int | None = None
        self.gradient: Tensor | None = None
        self.written: set[int] = set()

    def add(self, labels: slice, left: Tensor, right: Tensor) -> None:
        """gradient[labels] += leftᵀ · right, left [n, r·d] for r labels, right [n, a, e]."""
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
        if right.dtype == part.dtype and right.shape[1:] == part.shape[1:]:
            ACCELERATION.write_product(left, right.flatten(1), part.flatten(1), not first)
            return
        product = (left.mT @ right.flatten(1)).unflatten(1, right.shape[1:])[:, : part.shape[1], : part.shape[2]]
        part.copy_(product) if first else part.add_(product)

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


class FullWeight(NamedTuple):
    """A full triaffine tensor [R, d, d+1, d+1] within one forward pass; made by [`hold_weight`].

    tensor: detached. ticket: a scalar argument of every contraction, through which autograd runs `_Deliver` after all
    of them. buffer: the gradient.
    """

    tensor: Tensor
    ticket: Tensor
    buffer: GradientBuffer


@torch.compiler.disable
def hold_weight(tensor: Tensor) -> FullWeight:
    """Prepares the tensor for the contractions of one forward pass; see [`GradientBuffer`]."""
    buffer = GradientBuffer(tensor)
    return FullWeight(tensor.detach(), _Deliver.apply(tensor, buffer), buffer)


def pad_boundaries(vectors: Tensor) -> Tensor:
    """Head or tail vectors [..., d+1] for the contractions: on CUDA padded to a multiple of 8."""
    padding = _padding(vectors)
    return functional.pad(vectors, (0, padding)) if padding else vectors


def contract_words(insides: Tensor, weight: FullWeight, label: int) -> Tensor:
    """T_n = Σ_c W[label, c] x_nc for inside vectors x [n, d] → [n, a, e] (section 1)."""
    return _ContractWords.apply(insides, weight.ticket, weight.tensor, weight.buffer, label)


@torch.compiler.disable
def contract_pairs(heads: Tensor, tails: Tensor, weight: FullWeight) -> Tensor:
    """y_rnc = Σ_ae W[r, c, a, e] u_na v_ne for the boundaries u, v [n, a] of given spans → [R, n, d] (section 6)."""
    return _ContractPairs.apply(heads, tails, weight.ticket, weight.tensor, weight.buffer)


class _ContractWords(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, insides: Tensor, ticket: Tensor, tensor: Tensor, buffer: GradientBuffer, label: int
    ) -> Tensor:
        ctx.save_for_backward(insides, tensor)
        ctx.buffer, ctx.labels = buffer, slice(label, label + 1)
        weight = _of_labels(tensor, ctx.labels, insides.dtype)
        return ACCELERATION.multiply_transposed(insides, weight.flatten(1).mT).unflatten(1, weight.shape[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        insides, tensor = ctx.saved_tensors
        for_insides = None
        if ctx.needs_input_grad[0]:
            weight = _of_labels(tensor, ctx.labels, gradient.dtype)
            for_insides = ACCELERATION.multiply_transposed(gradient.flatten(1), weight.flatten(1))
        if ctx.needs_input_grad[1]:
            ctx.buffer.add(ctx.labels, insides, gradient)
        return for_insides, gradient.new_zeros(()), None, None, None


class _ContractPairs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, heads: Tensor, tails: Tensor, ticket: Tensor, tensor: Tensor, buffer: GradientBuffer
    ) -> Tensor:
        ctx.save_for_backward(heads, tails, tensor)
        ctx.buffer = buffer
        outer = _outer(heads, tails).flatten(1)
        weights = (_of_labels(tensor, labels, heads.dtype) for labels in _groups(tensor, heads))
        spans = [ACCELERATION.multiply_transposed(outer, weight.flatten(1)) for weight in weights]
        return torch.cat(spans, dim=1).unflatten(1, tensor.shape[:2]).transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        heads, tails, tensor = ctx.saved_tensors
        outer = _outer(heads, tails)
        gradient = gradient.transpose(0, 1).flatten(1)  # [n, R·d]
        for_outer = gradient.new_zeros(())
        dim = tensor.shape[1]
        for labels in _groups(tensor, heads):
            part = gradient[:, labels.start * dim : labels.stop * dim]
            product = ACCELERATION.multiply_transposed(part, _of_labels(tensor, labels, gradient.dtype).flatten(1).mT)
            for_outer = for_outer.add_(product) if labels.start else product
            if ctx.needs_input_grad[2]:
                ctx.buffer.add(labels, part, outer)
        for_outer = for_outer.view_as(outer)
        for_heads = (for_outer @ tails.unsqueeze(-1)).squeeze(-1)
        for_tails = (heads.unsqueeze(-2) @ for_outer).squeeze(-2)
        return for_heads, for_tails, gradient.new_zeros(()), None, None


def _outer(heads: Tensor, tails: Tensor) -> Tensor:
    """[n, a] and [n, e] → [n, a, e]."""
    return heads.unsqueeze(-1) * tails.unsqueeze(-2)


def _groups(tensor: Tensor, like: Tensor) -> list[slice]:
    """Labels that are contracted together: all, or one by one if they must be cast or padded first."""
    if tensor.dtype == like.dtype and not _padding(tensor):
        return [slice(0, len(tensor))]
    return [slice(label, label + 1) for label in range(len(tensor))]


def _of_labels(tensor: Tensor, labels: slice, dtype: torch.dtype) -> Tensor:
    """W of some labels [r·d, a, e], cast and padded; a view if neither is necessary."""
    of_labels = tensor[labels].flatten(0, 1).to(dtype)
    padding = _padding(of_labels)
    return functional.pad(of_labels, (0, padding, 0, padding)) if padding else of_labels


def _padding(values: Tensor) -> int:
    return -values.shape[-1] % ALIGNMENT if values.is_cuda else 0
