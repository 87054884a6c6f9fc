"""Contractions with a full triaffine tensor [R, d, d+1, d+1], and the one buffer that all its gradients are added to.

The tensor is most of the model, so it is never permuted or copied, and no gradient of its size is ever made beside the
one that autograd hands on: the contractions of a forward pass, of both stages, add their parts label by label to a
buffer, which goes to the parameter when the last of them is done (or is the parameter's own `grad`, see `in_place`).

Axes: n words or pairs, a and e the widths of head and tail vectors. On CUDA these are padded with zeros from d+1 to a
multiple of 8, so that every product is one that tensor cores take.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

# Numbers to which the axes of d+1 are padded on CUDA: 16 bytes in half precision.
ALIGNMENT = 8


class GradientBuffer:
    """Where the contractions of one forward pass add the gradient of a tensor, a label at a time.

    It belongs to one run of the backward pass: parts that an earlier, partial run left (`autograd.grad` of something
    else through the same graph) are forgotten.

    Args:
        tensor: [R, d, d+1, d+1].
        in_place: add to `tensor.grad` itself. Nothing of the tensor's size is then made where a gradient is there
            already, but autograd never sees the gradient: no hooks, no data-parallel training.
    """

    def __init__(self, tensor: Tensor, in_place: bool):
        if in_place and (not tensor.is_leaf or tensor._backward_hooks or tensor._post_accumulate_grad_hooks):
            raise ValueError(
                "The gradient of a triaffine tensor is to be added in place, but the tensor is no plain parameter or "
                "has hooks that would not be called; switch it off: head.save_memory(False)."
            )
        self.tensor = tensor
        self.in_place = in_place
        self.backward_run: int | None = None
        self.gradient: Tensor | None = None
        self.written: set[int] = set()

    def add(self, label: int, left: Tensor, right: Tensor) -> None:
        """gradient[label] += leftᵀ · right, left [n, d], right [n, a, e]."""
        run = torch._C._current_graph_task_id()
        if run != self.backward_run:
            self._start(run)
        assert self.gradient is not None
        of_label = self.gradient[label]
        first = label not in self.written
        self.written.add(label)
        if right.dtype == of_label.dtype and right.shape[1:] == of_label.shape[1:]:
            torch.addmm(of_label.flatten(1), left.mT, right.flatten(1), beta=0 if first else 1, out=of_label.flatten(1))
            return
        product = (left.mT @ right.flatten(1)).unflatten(1, right.shape[1:])
        product = product[:, : of_label.shape[1], : of_label.shape[2]]
        of_label.copy_(product) if first else of_label.add_(product)

    def _start(self, run: int) -> None:
        self.backward_run = run
        self.written = set()
        if self.in_place and self.tensor.grad is not None:
            self.gradient = self.tensor.grad
            self.written = set(range(len(self.tensor)))
            return
        self.gradient = torch.empty_like(self.tensor, requires_grad=False, memory_format=torch.contiguous_format)
        if self.in_place:
            self.tensor.grad = self.gradient

    def take(self) -> Tensor | None:
        """The whole gradient, which the buffer then forgets; None when it was added in place or nothing was added."""
        gradient, self.gradient, self.backward_run = self.gradient, None, None
        if gradient is None:
            return None
        for label in set(range(len(gradient))) - self.written:
            gradient[label].zero_()
        return None if self.in_place else gradient


class _Deliver(torch.autograd.Function):
    """Hands the buffered gradient to the tensor. Its output holds nothing: it ties the contractions to the tensor."""

    @staticmethod
    def forward(ctx, tensor, buffer):
        ctx.buffer = buffer
        return tensor.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx, _):
        return ctx.buffer.take(), None


class FullWeight(NamedTuple):
    """A full triaffine tensor [R, d, d+1, d+1] within one forward pass; made by [`hold_weight`].

    tensor: its numbers, apart from autograd. ticket: scalar that every contraction takes, so that autograd runs
    `_Deliver` after all of them. buffer: where they add its gradient.
    """

    tensor: Tensor
    ticket: Tensor
    buffer: GradientBuffer


@torch.compiler.disable
def hold_weight(tensor: Tensor, in_place: bool = False) -> FullWeight:
    """Makes the tensor ready for the contractions of one forward pass; see [`GradientBuffer`]."""
    buffer = GradientBuffer(tensor, in_place and tensor.requires_grad)
    return FullWeight(tensor.detach(), _Deliver.apply(tensor, buffer), buffer)


def pad_boundaries(vectors: Tensor) -> Tensor:
    """Head or tail vectors [..., d+1] as the contractions take them: on CUDA padded to whole multiples of 8."""
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
    def forward(ctx, insides, ticket, tensor, buffer, label):
        ctx.save_for_backward(insides, tensor)
        ctx.buffer, ctx.label = buffer, label
        weight = _of_label(tensor, label, insides.dtype)
        return (insides @ weight.flatten(1)).unflatten(1, weight.shape[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        insides, tensor = ctx.saved_tensors
        for_insides = None
        if ctx.needs_input_grad[0]:
            for_insides = gradient.flatten(1) @ _of_label(tensor, ctx.label, gradient.dtype).flatten(1).mT
        if ctx.needs_input_grad[1]:
            ctx.buffer.add(ctx.label, insides, gradient)
        return for_insides, gradient.new_zeros(()), None, None, None


class _ContractPairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, heads, tails, ticket, tensor, buffer):
        ctx.save_for_backward(heads, tails, tensor)
        ctx.buffer = buffer
        outer = _outer(heads, tails)
        labels = range(len(tensor))
        return torch.stack([outer @ _of_label(tensor, label, heads.dtype).flatten(1).mT for label in labels])

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        heads, tails, tensor = ctx.saved_tensors
        outer = _outer(heads, tails)
        for_outer = torch.zeros_like(outer)
        for label, of_label in enumerate(gradient):
            for_outer.addmm_(of_label, _of_label(tensor, label, gradient.dtype).flatten(1))
            if ctx.needs_input_grad[2]:
                ctx.buffer.add(label, of_label, outer.unflatten(1, (heads.shape[1], tails.shape[1])))
        for_outer = for_outer.unflatten(1, (heads.shape[1], tails.shape[1]))
        for_heads = (for_outer @ tails.unsqueeze(-1)).squeeze(-1)
        for_tails = (heads.unsqueeze(-2) @ for_outer).squeeze(-2)
        return for_heads, for_tails, gradient.new_zeros(()), None, None


def _outer(heads: Tensor, tails: Tensor) -> Tensor:
    return (heads.unsqueeze(-1) * tails.unsqueeze(-2)).flatten(1)


def _of_label(tensor: Tensor, label: int, dtype: torch.dtype) -> Tensor:
    """W of one label [d, a, e] as the products take it; itself wherever nothing has to be cast or padded."""
    of_label = tensor[label].to(dtype)
    padding = _padding(of_label)
    return functional.pad(of_label, (0, padding, 0, padding)) if padding else of_label


def _padding(values: Tensor) -> int:
    return -values.shape[-1] % ALIGNMENT if values.is_cuda else 0
