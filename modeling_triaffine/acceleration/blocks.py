"""The span stage of full tensors by blocks with a running softmax, which the backward pass recomputes.

The cube is never stored: the backward pass needs p and the log-sum-exp of each span. Axes as in
`model/triaffine_blocks.py`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..model.triaffine_blocks import OUTSIDE, Block, Cube, FullCube, Plan, attend_inside, inside_scores


def attend_in_blocks(plan: Plan, attention: Cube, scoring: Cube, keep: bool) -> tuple[Tensor, Tensor | None]:
    """The same as [`triaffine_blocks.attend_inside`]."""
    if not (isinstance(attention, FullCube) and isinstance(scoring, FullCube)):
        return attend_inside(plan, attention, scoring, keep)
    p, cube = _AttendInside.apply(plan, keep, *attention, *scoring)
    return p, cube if keep else None


class _AttendInside(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: Plan, keep: bool, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        attention, scoring = FullCube(*tensors[:3]), FullCube(*tensors[3:])
        batch, labels, words = scoring.shape()
        dtype = torch.promote_types(scoring.tails.dtype, torch.float32)
        peak = scoring.tails.new_full((batch, labels, words, words), OUTSIDE, dtype=dtype)
        total, weighted = torch.zeros_like(peak), torch.zeros_like(peak)
        kept = peak.new_zeros(batch, labels, words, words, words) if keep else peak.new_zeros(0)
        with torch.autocast(peak.device.type, enabled=False):
            for block in plan.blocks:
                scores, _ = inside_scores(attention, plan, block, dtype)
                values, _ = scoring.scores(plan, block)
                area = (..., block.heads, block.tails)
                highest = torch.maximum(peak[area], scores.amax(2))
                weights = (scores - highest.unsqueeze(2)).exp_()
                shrink = (peak[area] - highest).exp_()
                total[area] = total[area] * shrink + weights.sum(2)
                weighted[area] = weighted[area] * shrink + (weights * values).sum(2)
                peak[area] = highest
                if keep:
                    kept[:, :, block.words, block.heads, block.tails] = scores.masked_fill_(scores == OUTSIDE, 0)
        total.clamp_(min=1)  # of spans it is at least 1
        p = weighted / total
        ctx.plan, ctx.keep = plan, keep
        ctx.save_for_backward(p, peak + total.log(), *tensors)
        return p, kept

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, for_kept: Tensor) -> tuple[Tensor | None, ...]:
        p, log_sum, *tensors = ctx.saved_tensors
        attention, scoring = FullCube(*tensors[:3]), FullCube(*tensors[3:])
        gradients = [*empty_gradients(attention, p.dtype), *empty_gradients(scoring, p.dtype)]
        with torch.autocast(p.device.type, enabled=False):
            for block in ctx.plan.blocks:
                scores, attention_saved = inside_scores(attention, ctx.plan, block, p.dtype)
                values, scoring_saved = scoring.scores(ctx.plan, block)
                area = (..., block.heads, block.tails)
                for_values = (scores - log_sum[area].unsqueeze(2)).exp_() * gradient[area].unsqueeze(2)
                for_scores = for_values * (values - p[area].unsqueeze(2))
                if ctx.keep:
                    for_scores += for_kept[:, :, block.words, block.heads, block.tails]
                for_scores, for_values = for_scores.to(tensors[0].dtype), for_values.to(tensors[3].dtype)
                add_full_gradients(ctx.plan, block, attention_saved, for_scores, gradients[:3])
                add_full_gradients(ctx.plan, block, scoring_saved, for_values, gradients[3:])
        converted = (part.to(tensor.dtype) for part, tensor in zip(gradients, tensors, strict=True))
        return None, None, *converted


def empty_gradients(cube: FullCube, dtype: torch.dtype) -> list[Tensor]:
    """Buffers to which the blocks add their gradients; a contracted word is in one block only, and has one gradient."""
    buffers = [part.new_zeros(part.shape, dtype=dtype) for part in cube]
    buffers[1] = torch.empty_like(cube.contracted, memory_format=torch.contiguous_format)
    return buffers


def add_full_gradients(plan: Plan, block: Block, saved: Any, gradient: Tensor, gradients: Sequence[Tensor]) -> None:
    """Accumulates the gradients of a [`FullCube`]'s tensors from that of a block's scores, [B, 1, K, I, J]."""
    sentences, heads, contracted, tails, half = saved
    gradient = gradient.flatten(0, 2)[plan.places(block)]
    for_contracted = gradients[1][block.rows, :, 0]
    if heads.shape[1] <= tails.shape[1]:
        for_tails = gradient.mT @ half
        for_half = gradient @ tails
        torch.bmm(heads.mT, for_half, out=for_contracted)
        for_heads = for_half @ contracted.mT
    else:
        for_heads = gradient @ half
        for_half = gradient.mT @ heads
        torch.bmm(for_half.mT, tails, out=for_contracted)
        for_tails = for_half @ contracted
    gradients[0][:, block.heads].index_add_(0, sentences, for_heads.to(gradients[0].dtype))
    gradients[2][:, block.tails].index_add_(0, sentences, for_tails.to(gradients[2].dtype))
