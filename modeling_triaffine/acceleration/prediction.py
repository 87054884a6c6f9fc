"""The span stage of low-rank models in prediction: fewer, fused steps over memory that fits the processor's cache."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..model.triaffine_blocks import OUTSIDE, Plan, ProductCube, at_least_float32

# Largest block, which fits the processor's cache (2 MB in float32), and its head words.
CACHED_NUMBERS, HEAD_WORDS = 2**19, 8


def attend_without_gradient(plan: Plan, attention: ProductCube, scoring: ProductCube) -> Tensor:
    """p [B, R, N, N] of [`attend_inside`], of low-rank cubes in fewer, fused steps, without a backward pass.

    Blocks are of head words i, each with all tail and inside words of their spans.
    """
    batch, labels, num_words = scoring.shape()
    max_width = plan.max_width
    dtype = torch.promote_types(scoring.tails.dtype, torch.float32)
    p = scoring.tails.new_zeros((batch * labels, num_words, num_words), dtype=dtype)
    queries, values = ([part.flatten(0, 1) for part in cube] for cube in (attention, scoring))
    with torch.autocast(p.device.type, enabled=False):
        # All blocks use the same memory: fresh pages would cost more than the arithmetic.
        buffers = [p.new_empty(0, dtype=part.dtype) for part in (scoring.tails, scoring.tails, p)]
        for first in range(0, num_words, HEAD_WORDS):
            last = min(first + HEAD_WORDS, num_words)
            stop = min(num_words, last - 1 + (max_width or num_words))
            reach = stop - first
            numbers = (last - first) * reach * max(reach, scoring.tails.shape[-1])
            size = max(1, CACHED_NUMBERS // numbers)
            for row in range(0, len(p), size):
                rows = slice(row, row + size)
                query, value = ([part[rows] for part in cube] for cube in (queries, values))
                p[rows, first:last, first:stop] = attend_from_heads(query, value, first, last, stop, buffers)
    return p.unflatten(0, (batch, labels))


def attend_from_heads(
    attention: Sequence[Tensor],
    scoring: Sequence[Tensor],
    first: int,
    last: int,
    stop: int,
    buffers: Sequence[Tensor] | None = None,
) -> Tensor:
    """p [M, I, J] of the head words from `first` to `last`, with tail words up to `stop`, in at least float32.

    attention, scoring: u, x, v [M, N, w], a row per sentence and label. buffers: memory for products and scores, in the
    dtype of these, and for weights, in that of p.
    """
    pairs, scores, weights = (None, None, None) if buffers is None else buffers
    heads, reach = (torch.arange(first, end, device=scoring[0].device) for end in (last, stop))
    outside = (reach < heads[:, None, None]) | (reach > reach[:, None])  # [I, J, K]
    attended = at_least_float32(_pair_scores(attention, first, last, stop, pairs, scores))
    attended.add_(outside.flatten(0, 1).to(attended.dtype), alpha=OUTSIDE)
    attended = torch.softmax(attended, -1, out=_emptied(weights))
    values = _pair_scores(scoring, first, last, stop, pairs, scores)
    return attended.mul_(values).sum(-1).unflatten(-1, (heads.shape[0], reach.shape[0]))


def _pair_scores(
    cube: Sequence[Tensor], first: int, last: int, stop: int, pairs: Tensor | None, scores: Tensor | None
) -> Tensor:
    """Scores [M, I·J, K] of the head words from `first` to `last` with tail and inside words up to `stop`."""
    heads, insides, tails = cube
    products = torch.mul(heads[:, first:last, None], tails[:, None, first:stop], out=_emptied(pairs))
    return torch.bmm(products.flatten(1, 2), insides[:, first:stop].mT, out=_emptied(scores))


def _emptied(buffer: Tensor | None) -> Tensor | None:
    """The buffer as an argument `out`, which then takes any shape and reuses its memory."""
    return None if buffer is None else buffer.resize_(0)
