"""p_ij = Σ_k softmax_k(s_ijk) · o_ijk over the inside words i ≤ k ≤ j, exactly, without the cube of all (i, j, k).

Inside words are processed in blocks. The words k of a block are inside a rectangle of head and tail words only (i ≤ k,
j ≥ k); its scores are computed, added to a running softmax and dropped. The backward pass needs p and the log-sum-exp
of each span, and recomputes the blocks. The package, where it is installed, is faster on CUDA and in prediction.

A cube of scores is stored as the tensors from which its blocks are computed: `FullCube`, `ProductCube`.
Axes: b sentence, r label, i head word, j tail word, k inside word, n contracted word, a, e, w widths; N words of a
sentence, I, J, K those of a block.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Score of a word that is not inside a span: its exponential is 0 beside any real score, without the NaN of infinities.
OUTSIDE = -1e30
# Largest block in numbers, over all axes (16 MB in float32).
BLOCK_NUMBERS = 4 * 2**20
# Inside words of a block, at least, and blocks of a sentence, about: a third of the cube is then computed.
BLOCK_WORDS, BLOCKS = 8, 8


class Block(NamedTuple):
    """The inside words, the head and tail words of their spans, and the rows of the inside words in `Plan.packed`."""

    words: slice
    heads: slice
    tails: slice
    rows: slice


class Plan(NamedTuple):
    """The blocks of a batch. packed [n]: index b·N + k of the words to be contracted, ordered by k, then b."""

    batch: int
    num_words: int
    max_width: int | None
    packed: Tensor
    blocks: tuple[Block, ...]

    def sentences(self, block: Block) -> Tensor:
        """Sentence b of each packed word of the block."""
        return self.packed[block.rows] // self.num_words

    def places(self, block: Block) -> Tensor:
        """Flat index (b, k) of each packed word in the block's cube."""
        size = block.words.stop - block.words.start
        words = self.packed[block.rows]
        return words // self.num_words * size + words % self.num_words - block.words.start


def plan_blocks(
    lengths: Tensor, num_words: int, max_width: int | None, packed: Tensor | None, numbers_per_word: int
) -> Plan:
    """Chooses the words to contract and the blocks, without waiting for the device.

    Args:
        lengths [B]: words of each sentence.
        num_words: N, the padded length.
        max_width: widest span, in words.
        packed: [`Plan.packed`], made on the host for another device; None computes with padding there. The CPU packs
            by the lengths, from which it also knows the words at each position.
        numbers_per_word: numbers that a block holds per inside word.
    """
    batch = len(lengths)
    counts: list[int] | None = None
    if lengths.device.type == "cpu":
        packed, counts = pack_words(lengths, num_words)
    elif packed is None:
        packed, counts = pad_words(batch, num_words, lengths.device)
    return cut_into_blocks(batch, num_words, max_width, packed, counts, numbers_per_word)


def pack_words(lengths: Tensor, num_words: int) -> tuple[Tensor, list[int]]:
    """[`Plan.packed`] without padding, and the number of words at each position k."""
    real = lengths > torch.arange(num_words).unsqueeze(1)
    index = real.flatten().nonzero().squeeze(1)
    return index % len(lengths) * num_words + index // len(lengths), real.sum(1).tolist()


def pad_words(batch: int, num_words: int, device: torch.device) -> tuple[Tensor, list[int]]:
    """As [`pack_words`], for sentences that are all N words long."""
    words, sentences = torch.arange(num_words, device=device), torch.arange(batch, device=device)
    return (words.unsqueeze(1) + sentences * num_words).flatten(), [batch] * num_words


def cut_into_blocks(
    batch: int, num_words: int, max_width: int | None, packed: Tensor, counts: list[int] | None, numbers_per_word: int
) -> Plan:
    """The plan for packed words; a single block if the `counts` of words at each position are not known."""
    if counts is None:
        rows = slice(0, len(packed))
        return Plan(batch, num_words, max_width, packed, (_block(0, num_words, num_words, max_width, rows),))
    size = max(BLOCK_WORDS, -(-num_words // BLOCKS))
    size = max(1, min(size, BLOCK_NUMBERS // max(1, numbers_per_word)))
    blocks = []
    row = 0
    for first in range(0, num_words, size):
        last = min(first + size, num_words)
        rows = slice(row, row + sum(counts[first:last]))
        blocks.append(_block(first, last, num_words, max_width, rows))
        row = rows.stop
    return Plan(batch, num_words, max_width, packed, tuple(blocks))


def _block(first: int, last: int, num_words: int, max_width: int | None, rows: slice) -> Block:
    reach = (max_width or num_words) - 1
    heads, tails = slice(max(0, first - reach), last), slice(first, min(num_words, last + reach))
    return Block(slice(first, last), heads, tails, rows)


class FullCube(NamedTuple):
    """One label's s_ijk = Σ_ae T_k[a, e] u_ia v_je.

    heads u [B, N, a], contracted T [n, a, e] of the packed words, tails v [B, N, e].
    """

    heads: Tensor
    contracted: Tensor
    tails: Tensor

    def expand_labels(self, like: "Cube") -> "FullCube":
        """As [`ProductCube.expand_labels`], of a cube that has one label, too."""
        return self

    def shape(self) -> tuple[int, int, int]:
        return self.heads.shape[0], 1, self.heads.shape[1]

    def empty_gradients(self, dtype: torch.dtype) -> list[Tensor]:
        """Buffers for the gradients of the blocks. A contracted word is in one block only, so it has one gradient."""
        heads, _, tails = self
        return [
            heads.new_zeros(heads.shape, dtype=dtype),
            torch.empty_like(self.contracted, memory_format=torch.contiguous_format),
            tails.new_zeros(tails.shape, dtype=dtype),
        ]

    def scores(self, plan: Plan, block: Block) -> tuple[Tensor, Any]:
        """Scores [B, 1, K, I, J] of a block, and what is needed for its gradient."""
        sentences = plan.sentences(block)
        heads, tails = self.heads[sentences, block.heads], self.tails[sentences, block.tails]
        contracted = self.contracted[block.rows]
        # The side with fewer words is contracted first.
        if heads.shape[1] <= tails.shape[1]:
            half = heads @ contracted  # [n, I, e]
            scores = half @ tails.mT
        else:
            half = tails @ contracted.mT  # [n, J, a]
            scores = heads @ half.mT
        size = block.words.stop - block.words.start
        cube = scores.new_zeros(plan.batch * size, *scores.shape[1:])
        cube.index_copy_(0, plan.places(block), scores)
        return cube.unflatten(0, (plan.batch, 1, size)), (sentences, heads, contracted, tails, half)

    def add_gradients(
        self, plan: Plan, block: Block, saved: Any, gradient: Tensor, gradients: Sequence[Tensor]
    ) -> None:
        """Accumulates the gradients of the three tensors from that of a block's scores, [B, 1, K, I, J]."""
        sentences, heads, contracted, tails, half = saved
        gradient = gradient.flatten(0, 2)[plan.places(block)]
        for_contracted = gradients[1][block.rows]
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


class ProductCube(NamedTuple):
    """s_ijk = Σ_w u_iw x_kw v_jw for each label: heads u, insides x, tails v, each [B, R, N, w]."""

    heads: Tensor
    insides: Tensor
    tails: Tensor

    def expand_labels(self, like: "Cube") -> "ProductCube":
        """The same scores for each label of another cube."""
        return ProductCube(*(part.expand(-1, like.shape()[1], -1, -1) for part in self))

    def shape(self) -> tuple[int, int, int]:
        return self.heads.shape[0], self.heads.shape[1], self.heads.shape[2]

    def empty_gradients(self, dtype: torch.dtype) -> list[Tensor]:
        """Buffers to which the blocks add their gradients."""
        return [part.new_zeros(part.shape, dtype=dtype) for part in self]

    def scores(self, plan: Plan, block: Block) -> tuple[Tensor, Any]:
        """Scores [B, R, K, I, J] of a block, and what is needed for its gradient."""
        heads, insides, tails = self._parts(block)
        size = insides.shape[2]
        if heads.shape[2] <= tails.shape[2]:
            pairs = (insides.unsqueeze(3) * heads.unsqueeze(2)).flatten(2, 3)  # [B, R, K·I, w]
            scores = (pairs @ tails.mT).unflatten(2, (size, -1))
        else:
            pairs = (insides.unsqueeze(3) * tails.unsqueeze(2)).flatten(2, 3)  # [B, R, K·J, w]
            scores = (pairs @ heads.mT).unflatten(2, (size, -1)).mT
        return scores, pairs

    def add_gradients(
        self, plan: Plan, block: Block, saved: Any, gradient: Tensor, gradients: Sequence[Tensor]
    ) -> None:
        """Accumulates the gradients of the three tensors from that of a block's scores, [B, R, K, I, J]."""
        heads, insides, tails = self._parts(block)
        for_heads, for_insides, for_tails = (
            part[:, :, words] for part, words in zip(gradients, (block.heads, block.words, block.tails), strict=True)
        )
        if heads.shape[2] <= tails.shape[2]:
            near, far, for_near, for_far = heads, tails, for_heads, for_tails
        else:
            near, far, for_near, for_far = tails, heads, for_tails, for_heads
            gradient = gradient.mT
        for_far += gradient.flatten(2, 3).mT @ saved
        for_pairs = (gradient.flatten(2, 3) @ far).unflatten(2, gradient.shape[2:4])  # [B, R, K, near, w]
        for_near += (for_pairs * insides.unsqueeze(3)).sum(2)
        for_insides += (for_pairs * near.unsqueeze(2)).sum(3)

    def _parts(self, block: Block) -> tuple[Tensor, Tensor, Tensor]:
        return self.heads[:, :, block.heads], self.insides[:, :, block.words], self.tails[:, :, block.tails]


Cube = FullCube | ProductCube


def attend_inside(plan: Plan, attention: Cube, scoring: Cube, keep: bool) -> tuple[Tensor, Tensor | None]:
    """p [B, R, N, N] in at least float32 from the cubes of s and o, which have the same labels.

    Entries with i > j, or wider than the plan's spans, are meaningless but finite. With `keep` also the whole cube of s
    [B, R, N, N, N] (k, i, j), 0 where k is not inside.
    """
    p, cube = _AttendInside.apply(plan, type(attention), type(scoring), keep, *attention, *scoring)
    return p, cube if keep else None


class _AttendInside(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, plan: Plan, attention_type: type[Cube], scoring_type: type[Cube], keep: bool, *tensors: Tensor
    ) -> tuple[Tensor, Tensor]:
        attention, scoring = attention_type(*tensors[:3]), scoring_type(*tensors[3:])
        batch, labels, words = scoring.shape()
        dtype = torch.promote_types(scoring.tails.dtype, torch.float32)
        peak = scoring.tails.new_full((batch, labels, words, words), OUTSIDE, dtype=dtype)
        total, weighted = torch.zeros_like(peak), torch.zeros_like(peak)
        kept = peak.new_zeros(batch, labels, words, words, words) if keep else peak.new_zeros(0)
        with torch.autocast(peak.device.type, enabled=False):
            for block in plan.blocks:
                scores, _ = _inside_scores(attention, plan, block, dtype)
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
        ctx.plan, ctx.types, ctx.keep = plan, (attention_type, scoring_type), keep
        ctx.save_for_backward(p, peak + total.log(), *tensors)
        return p, kept

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, for_kept: Tensor) -> tuple[Tensor | None, ...]:
        p, log_sum, *tensors = ctx.saved_tensors
        attention, scoring = ctx.types[0](*tensors[:3]), ctx.types[1](*tensors[3:])
        gradients = [*attention.empty_gradients(p.dtype), *scoring.empty_gradients(p.dtype)]
        with torch.autocast(p.device.type, enabled=False):
            for block in ctx.plan.blocks:
                scores, attention_saved = _inside_scores(attention, ctx.plan, block, p.dtype)
                values, scoring_saved = scoring.scores(ctx.plan, block)
                area = (..., block.heads, block.tails)
                for_values = (scores - log_sum[area].unsqueeze(2)).exp_() * gradient[area].unsqueeze(2)
                for_scores = for_values * (values - p[area].unsqueeze(2))
                if ctx.keep:
                    for_scores += for_kept[:, :, block.words, block.heads, block.tails]
                for_scores, for_values = for_scores.to(tensors[0].dtype), for_values.to(tensors[3].dtype)
                attention.add_gradients(ctx.plan, block, attention_saved, for_scores, gradients[:3])
                scoring.add_gradients(ctx.plan, block, scoring_saved, for_values, gradients[3:])
        converted = (part.to(tensor.dtype) for part, tensor in zip(gradients, tensors, strict=True))
        return None, None, None, None, *converted


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision to float32, anything else as it is."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _inside_scores(cube: Cube, plan: Plan, block: Block, dtype: torch.dtype) -> tuple[Tensor, Any]:
    """Scores of a block in `dtype`, `OUTSIDE` where not i ≤ k ≤ j; and what is needed for their gradient."""
    scores, saved = cube.scores(plan, block)
    words, heads, tails = (
        torch.arange(part.start, part.stop, device=scores.device) for part in (block.words, block.heads, block.tails)
    )
    outside = (words[:, None] < heads).unsqueeze(2) | (words[:, None] > tails).unsqueeze(1)
    return scores.to(dtype).masked_fill_(outside, OUTSIDE), saved
