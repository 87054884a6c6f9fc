"""Fast forms: products with full tensors, and p_ij = Σ_k softmax_k(s_ijk) · o_ijk without the cube of all (i, j, k).

Cubes of low rank are computed by blocks of head words, each with all tail and inside words of its spans; where these
would fill memory, the backward pass computes them again. With a full tensor, blocks have some inside words k, and the
rectangle of head and tail words around them (i ≤ k, j ≥ k); their sums are weighed by the highest score of all blocks.
The package, where it is installed, has kernels for CUDA, and recomputes blocks of full tensors in training; it replaces
the operations in `ACCELERATION`.

A cube of scores is stored as the tensors from which its blocks are computed: `FullCube`, `ProductCube`.
Axes: b sentence, r label, i head word, j tail word, k inside word, n contracted word or pair, a, e widths of head and
tail vectors (d+1), c of inside vectors (d), w any; N words of a sentence, I, J, K those of a block.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

# Score of a word that is not inside a span: its exponential is 0 beside any real score, without the NaN of infinities.
OUTSIDE = -1e30
# Largest block in numbers, over all axes (16 MB in float32).
BLOCK_NUMBERS = 4 * 2**20
# Inside words of a block, at least, and blocks of a sentence, about: a third of the cube is then computed.
BLOCK_WORDS, BLOCKS = 8, 8
# Low rank: head words of a block, its largest size without a backward pass, which fits the processor's cache (2 MB in
# float32), and the numbers of all blocks above which the backward pass recomputes them (1 GB).
HEAD_WORDS, CACHED_NUMBERS, STORED_NUMBERS = 8, 2**19, 2**28


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

    def pad(self, values: Tensor, block: Block, fill: float = 0.0) -> Tensor:
        """Values [..., I, J] of a block → of all pairs of words, [..., N, N]."""
        sides = (part for words in (block.tails, block.heads) for part in (words.start, self.num_words - words.stop))
        return functional.pad(values, (*sides,), value=fill)

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
        lengths [B]: words of each sentence, of which the longest has `num_words` with padding.
        max_width: widest span, in words.
        packed: [`Plan.packed`], made on the host for another device; None computes with padding there. The CPU packs
            by the lengths, from which it also knows the words at each position.
        numbers_per_word: numbers that a block holds per inside word.
    """
    batch, size = len(lengths), max(BLOCK_WORDS, -(-num_words // BLOCKS))
    size = max(1, min(size, BLOCK_NUMBERS // max(1, numbers_per_word)))
    if lengths.device.type == "cpu":
        packed, counts = pack_words(lengths, num_words)
    elif packed is None:
        packed = torch.arange(batch * num_words, device=lengths.device).view(batch, num_words).T.flatten()
        counts = [batch] * num_words
    else:  # a single block: the words at each position are not known
        counts, size = [len(packed)], num_words
    reach = (max_width or num_words) - 1
    blocks = []
    row = 0
    for first in range(0, num_words, size):
        last = min(first + size, num_words)
        rows = slice(row, row + sum(counts[first:last]))
        heads, tails = slice(max(0, first - reach), last), slice(first, min(num_words, last + reach))
        blocks.append(Block(slice(first, last), heads, tails, rows))
        row = rows.stop
    return Plan(batch, num_words, max_width, packed, tuple(blocks))


def pack_words(lengths: Tensor, num_words: int) -> tuple[Tensor, list[int]]:
    """[`Plan.packed`] without padding, and the number of words at each position k."""
    real = lengths > torch.arange(num_words).unsqueeze(1)
    index = real.flatten().nonzero().squeeze(1)
    return index % len(lengths) * num_words + index // len(lengths), real.sum(1).tolist()


class FullCube(NamedTuple):
    """s_ijk = Σ_ae T_k[a, e] u_ia v_je of each label: blocks compute one label at a time, kernels several.

    heads u [B, N, a], contracted T [n, a, R, e] of the packed words, tails v [B, N, e].
    """

    heads: Tensor
    contracted: Tensor
    tails: Tensor

    def expand_labels(self, like: "Cube") -> "FullCube":
        """Itself: its single label is broadcast over those of another cube."""
        return self

    def shape(self) -> tuple[int, int, int]:
        return self.heads.shape[0], self.contracted.shape[2], self.heads.shape[1]

    def scores(self, plan: Plan, block: Block) -> tuple[Tensor, Any]:
        """Scores [B, 1, K, I, J] of a block, and what is needed for its gradient."""
        sentences = plan.packed[block.rows] // plan.num_words  # b of each packed word
        heads, tails = self.heads[sentences, block.heads], self.tails[sentences, block.tails]
        contracted = self.contracted[block.rows, :, 0]
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

    def scores(self, plan: Plan, block: Block) -> tuple[Tensor, Any]:
        """Scores [B, R, K, I, J] of a block, to be combined with those of a [`FullCube`]."""
        parts = self.heads[:, :, block.heads], self.insides[:, :, block.words], self.tails[:, :, block.tails]
        return torch.einsum("briw,brkw,brjw->brkij", *parts), None


Cube = FullCube | ProductCube


def attend_inside(plan: Plan, attention: Cube, scoring: Cube, keep: bool) -> tuple[Tensor, Tensor | None]:
    """p [B, R, N, N] in at least float32 from the cubes of s and o, which have the same labels.

    Entries with i > j, or wider than the plan's spans, are meaningless but finite. With `keep` also the whole cube of s
    [B, R, N, N, N] (k, i, j), 0 where k is not inside, if a cube is a [`FullCube`].
    """
    if isinstance(attention, ProductCube) and isinstance(scoring, ProductCube):
        return attend_products(plan, attention, scoring), None
    dtype = torch.promote_types(scoring.tails.dtype, torch.float32)
    peaks, totals, weighted, cube = [], [], [], []
    with torch.autocast(scoring.tails.device.type, enabled=False):
        for block in plan.blocks:
            scores, _ = inside_scores(attention, plan, block, dtype)
            values, _ = scoring.scores(plan, block)
            peak = scores.detach().amax(2)
            weights = (scores - peak.unsqueeze(2)).exp_()
            peaks.append(plan.pad(peak, block, OUTSIDE))
            totals.append(plan.pad(weights.sum(2), block))
            weighted.append(plan.pad((weights * values).sum(2), block))
            if keep:
                cube.append(plan.pad(scores.masked_fill(scores == OUTSIDE, 0), block))
    shrink = torch.stack(peaks)
    shrink = (shrink - shrink.amax(0)).exp_()
    total = (torch.stack(totals) * shrink).sum(0)
    # Of spans it is at least 1. From torch 2.14, `clamp` has no gradient at 1, the total of a span of one word.
    p = (torch.stack(weighted) * shrink).sum(0) / torch.where(total < 1, 1, total)
    return p, torch.cat(cube, dim=2) if keep else None


def attend_products(plan: Plan, attention: ProductCube, scoring: ProductCube) -> Tensor:
    """p of [`attend_inside`], by blocks of head words i, each with all tail and inside words of their spans."""
    batch, labels, num_words = scoring.shape()
    rows, width = batch * labels, attention.tails.shape[-1] + scoring.tails.shape[-1]
    parts = [part.flatten(0, 1) for part in (*attention, *scoring)]
    reach = min(num_words, HEAD_WORDS + (plan.max_width or num_words))
    needs_gradient = torch.is_grad_enabled()
    recomputes = needs_gradient and rows * num_words * reach * (width + 3 * reach) > STORED_NUMBERS
    size = rows if needs_gradient else max(1, CACHED_NUMBERS // (HEAD_WORDS * reach * max(reach, width // 2)))
    # [I, J, K] of the first block, whose spans reach farthest: that of any other is a corner of it.
    words = torch.arange(reach, device=scoring.tails.device)
    outside = (words < words[:HEAD_WORDS, None, None]) | (words > words[:, None])
    outside = outside.to(torch.promote_types(scoring.tails.dtype, torch.float32)) * OUTSIDE
    # Inside words last is the faster order in a backward pass, but makes the softmax of short sentences slow.
    outside, axis = (outside, -1) if needs_gradient else (outside.movedim(-1, 0).contiguous(), 1)
    blocks = []
    with torch.autocast(scoring.tails.device.type, enabled=False):
        for first in range(0, num_words, HEAD_WORDS):
            last = min(first + HEAD_WORDS, num_words)
            stop = min(num_words, last - 1 + (plan.max_width or num_words))
            chunks = []
            for row in range(0, rows, size):
                chunk = [part[row : row + size] for part in parts]
                place = chunk[:3], chunk[3:], outside, axis, first, last, stop
                if recomputes:
                    chunks.append(checkpoint(attend_from_heads, *place, use_reentrant=False, preserve_rng_state=False))
                else:
                    chunks.append(attend_from_heads(*place))
            found = chunks[0] if len(chunks) == 1 else torch.cat(chunks)
            blocks.append(functional.pad(found, (first, num_words - stop)))
    return torch.cat(blocks, dim=1).unflatten(0, (batch, labels))


def attend_from_heads(
    attention: Sequence[Tensor], scoring: Sequence[Tensor], outside: Tensor, axis: int, first: int, last: int, stop: int
) -> Tensor:
    """p [M, I, J] of the head words from `first` to `last`, with tail words up to `stop`, in at least float32.

    attention, scoring: u, x, v [M, N, w], a row per sentence and label; axis: where inside words are in the scores,
    [M, I, J, K] or [M, K, I, J]; outside: 0 or `OUTSIDE` to add to these scores, or those of more words.
    """
    heads, reach = slice(last - first), slice(stop - first)
    corner = (heads, reach, reach) if axis == -1 else (reach, heads, reach)
    attended = at_least_float32(_pair_scores(attention, axis, first, last, stop)).add_(outside[corner])
    attended = without_tiny_gradients(attended).softmax(axis)
    values = without_tiny_gradients(_pair_scores(scoring, axis, first, last, stop))
    return (attended * values).sum(axis)


def _pair_scores(cube: Sequence[Tensor], axis: int, first: int, last: int, stop: int) -> Tensor:
    """Scores of the head words from `first` to `last` with tail and inside words up to `stop`."""
    heads, insides, tails = cube
    pairs = heads[:, first:last, None] * tails[:, None, first:stop]
    products, words = pairs.flatten(1, 2), insides[:, first:stop]
    if axis == -1:
        return (products @ words.mT).unflatten(1, pairs.shape[1:3])
    return (words @ products.mT).unflatten(2, pairs.shape[1:3])


def is_plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """True if what the module computes is known: it is of exactly this class, without hooks or another `forward`."""
    hooks = module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks
    return type(module) is kind and "forward" not in module.__dict__ and not any(hooks)


class _WithoutTinyGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return functional.hardshrink(gradient, torch.finfo(gradient.dtype).tiny ** 0.4)


def without_tiny_gradients(values: Tensor) -> Tensor:
    """The values, whose gradients below 1e-15 (of float32) become 0 on the CPU.

    Those of improbable words and labels would become denormal numbers, with which a product takes many times as long.
    """
    may_have_any = values.requires_grad and values.device.type == "cpu" and values.dtype != torch.float16
    return _WithoutTinyGradients.apply(values) if may_have_any else values


def at_least_float32(values: Tensor) -> Tensor:
    """Converts half precision to float32; other types stay as they are."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def inside_scores(cube: Cube, plan: Plan, block: Block, dtype: torch.dtype) -> tuple[Tensor, Any]:
    """Scores of a block in `dtype`, `OUTSIDE` where not i ≤ k ≤ j; and what is needed for their gradient."""
    scores, saved = cube.scores(plan, block)
    words, heads, tails = (
        torch.arange(part.start, part.stop, device=scores.device) for part in (block.words, block.heads, block.tails)
    )
    outside = (words[:, None] < heads).unsqueeze(2) | (words[:, None] > tails).unsqueeze(1)
    return scores.to(dtype).masked_fill_(outside, OUTSIDE), saved


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
    """Operations that the package, where it is imported, replaces by faster ones with the same numbers."""

    # A context for a call of the module, whose linear layers are then faster.
    linear_layers: Callable[[nn.Module], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    run_lstm: Callable[[Any, Tensor], Tensor] = lambda lstm, values: lstm(values)[0]
    full_weight: Callable[[Tensor], FullWeight] = FullWeight  # for each forward pass
    # (attention, scoring, plan) → the labels that full tensors are contracted for at once, and whether what is
    # contracted is stored for the backward pass, which else computes it again.
    label_chunks: Callable[..., Iterable[tuple[slice, bool]]] = lambda _, scoring, __: (
        (slice(label, label + 1), True) for label in range(scoring.labels)
    )
    attend_inside: Callable[[Plan, Cube, Cube, bool], tuple[Tensor, Tensor | None]] = attend_inside
    run: Callable[[Any, dict[str, Any]], Any] = lambda model, inputs: model(**inputs)  # in prediction


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
