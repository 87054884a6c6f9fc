"""The span stage by Triton kernels on a GPU, and of full tensors by blocks that the backward pass recomputes.

Neither stores the cube of scores: the backward pass needs p and the log-sum-exp of each span. Axes as in
`model/triaffine_blocks.py`, which computes all else.
"""

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..model.triaffine_blocks import OUTSIDE, Block, Cube, FullCube, Plan, ProductCube, inside_scores, plan_blocks
from ..model.triaffine_blocks import attend_inside as attend_by_blocks


def attend_inside(plan: Plan, attention: Cube, scoring: Cube, keep: bool) -> tuple[Tensor, Tensor | None]:
    """As [`triaffine_blocks.attend_inside`]; kernels do not keep the cube of s, which is then computed again."""
    if uses_kernels(plan.packed.device):
        return attend_by_kernels(plan, attention, scoring), None
    if torch.is_grad_enabled() and isinstance(attention, FullCube) and isinstance(scoring, FullCube):
        p, cube = _AttendInside.apply(plan, keep, *attention, *scoring)
        return p, cube if keep else None
    return attend_by_blocks(plan, attention, scoring, keep)


@functools.cache
def uses_kernels(device: torch.device) -> bool:
    """True if the Triton kernels agree with the blocks on this device; tried once, on a small problem."""
    if device.type != "cuda":
        return False
    from .kernels import triton_is_available  # a CPU need not wait for Triton's import

    if not triton_is_available():
        return False
    try:
        try_kernels(device)
    except torch.OutOfMemoryError:  # not a fault of the kernels
        raise
    except Exception as error:  # Triton's compiler and the driver have errors of their own
        warnings.warn(f"The Triton kernels do not work on {device} and are not used: {error}", stacklevel=2)
        return False
    return True


def attend_by_kernels(plan: Plan, attention: Cube, scoring: Cube) -> Tensor:
    """p [B, R, N, N] of [`attend_inside`], computed by the Triton kernels."""
    from .kernels import Factors, KeyFactors, ProductFactors, triton_span_scores

    def factors(cube: Cube) -> Factors:
        if isinstance(cube, ProductCube):
            return ProductFactors(*(part.flatten(0, 1) for part in cube))
        tails = cube.tails.unsqueeze(1).expand(-1, cube.shape()[1], -1, -1)
        return KeyFactors(_keys(plan, cube), tails.flatten(0, 1))

    return triton_span_scores(factors(attention), factors(scoring)).unflatten(0, (plan.batch, -1))


def _keys(plan: Plan, cube: FullCube) -> Tensor:
    """T contracted with the heads, for each (head, inside) word of each sentence and label: [B·R, N, N, e]."""
    labels, sentences, words = cube.shape()[1], plan.packed // plan.num_words, plan.packed % plan.num_words
    by_head = (cube.heads[sentences] @ cube.contracted.flatten(2)).unflatten(2, (labels, -1))  # [n, I, R, e]
    by_head = by_head.permute(2, 0, 1, 3).flatten(0, 1)
    groups = sentences * labels + torch.arange(labels, device=sentences.device).unsqueeze(1)  # [R, n]
    rows = (groups * plan.num_words + words).flatten()
    size = plan.batch * labels * plan.num_words
    keys = by_head.new_zeros(size, *by_head.shape[1:]).index_copy(0, rows, by_head)
    return keys.unflatten(0, (plan.batch * labels, -1)).transpose(1, 2)


def try_kernels(device: torch.device) -> None:
    """Compares values and gradients of kernels and blocks; AssertionError where they differ.

    There are more words, and wider factors, than the kernels take at once; of full tensors one label, as blocks take
    it. Scores are near 1, as softmax in TF32 needs.
    """
    words, width = 34, 40
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).mul(0.5).to(device).requires_grad_()

    # The first call may come from a prediction.
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device.type, enabled=False):
        plan = plan_blocks(torch.full((1,), words, device=device), words, None, None, 1)
        full = [FullCube(draw(1, words, width), draw(words, width, 1, width), draw(1, words, width)) for _ in range(2)]
        products = [ProductCube(*(draw(1, 2, words, width) for _ in range(3))) for _ in range(2)]
        for attention, scoring in (full, products):
            found = attend_by_kernels(plan, attention, scoring), attend_by_blocks(plan, attention, scoring, False)[0]
            results = []
            for p in found:
                gradients = torch.autograd.grad(p.triu().square().sum(), [*attention, *scoring])
                results.append([p.triu(), *gradients])
            for by_kernels, by_blocks in zip(*results, strict=True):
                torch.testing.assert_close(by_kernels, by_blocks, rtol=0.01, atol=0.01 * by_blocks.abs().max().item())


class _AttendInside(torch.autograd.Function):
    """Attention to the inside words, by full tensors; its softmax is updated block by block."""

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
