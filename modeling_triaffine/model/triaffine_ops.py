"""The algebra of the triaffine head: pure tensor functions, no parameters, no configuration.

Span indices (i, j) are both inclusive here and in every tensor; `start`/`end` with an exclusive end belong to the data.
Axes, as letters of the einsums: b sentence, i head word, j tail word, k inside word, r label, l scored candidate,
g related candidate; a, c, e the width of head, inside and tail vectors (d+1, d, d+1), p the rank.

A *factor* stands for the scores s_ijkr or o_ijkr: the projected words and the weights they are computed from. Each
stage has two forms with one signature: plain einsums as the reference (`…_reference`), and a fast form. The fast form
of the span stage never stores the cube s_ijkr: `triaffine_blocks.py`, or what [`Acceleration`] has in its place;
contractions with full tensors are in `triaffine_weights.py`.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .triaffine_blocks import (
    BLOCK_NUMBERS,
    BLOCK_WORDS,
    Cube,
    FullCube,
    Plan,
    ProductCube,
    at_least_float32,
    plan_blocks,
)
from .triaffine_weights import ACCELERATION, FullWeight

# Full: [R, d, d+1, d+1], axes label, inside, head, tail; as a tensor, or prepared for one forward pass.
# Low rank: head [R, d+1, ρ], inside [R, d, ρ], tail [R, d+1, ρ].
LowRank = tuple[Tensor, Tensor, Tensor]
TriaffineWeight = Tensor | FullWeight | LowRank


def append_one(vectors: Tensor) -> Tensor:
    """Boundary vectors u → u' = [u; 1]. [..., d] → [..., d+1]."""
    return torch.cat([vectors, vectors.new_ones(*vectors.shape[:-1], 1)], dim=-1)


def num_labels(weight: TriaffineWeight) -> int:
    """R of a triaffine tensor of any kind."""
    return len(weight[0] if isinstance(weight, tuple) else weight)


def whole_tensor(weight: TriaffineWeight) -> Tensor:
    """The tensor [R, d, d+1, d+1], for low rank the product of its factors."""
    if not isinstance(weight, tuple):
        return weight if isinstance(weight, Tensor) else weight.tensor
    head_factor, inside_factor, tail_factor = weight
    return torch.einsum("rap,rcp,rep->rcae", head_factor, inside_factor, tail_factor)


class TriaffineFactor(NamedTuple):
    """s_ijkr = TriAff(h_i, h_j, h_k, W_r): heads and tails [B, N, d+1], insides [B, N, d], weight of R labels."""

    heads: Tensor
    insides: Tensor
    tails: Tensor
    weight: TriaffineWeight

    @property
    def labels(self) -> int:
        return num_labels(self.weight)

    @property
    def is_full(self) -> bool:
        return isinstance(self.weight, Tensor | FullWeight)

    @property
    def width(self) -> int:
        """Width of the vectors from which blocks of the cube are computed."""
        return self.weight[0].shape[-1] if isinstance(self.weight, tuple) else self.heads.shape[-1]

    def whole_cube(self) -> Tensor:
        """All scores, by their definition: [B, R, i, j, k]."""
        # Inside words first: the order with the fewest operations takes twice the time.
        contracted = torch.einsum("bkc,rcae->bkrae", self.insides, whole_tensor(self.weight))
        return torch.einsum("bkrae,bia,bje->brijk", contracted, self.heads, self.tails)

    def cube(self, labels: slice, plan: Plan) -> Cube:
        """Scores of some labels in the form that is computed by blocks or kernels."""
        heads, insides, tails = (autocast(part) for part in self[:3])
        if isinstance(self.weight, FullWeight):
            words = insides.flatten(0, 1)[plan.packed]
            contracted = self.weight.contract_words(words, labels)
            return FullCube(self.weight.pad(heads), contracted, self.weight.pad(tails))
        factors = (factor[labels] for factor in self.weight)
        return ProductCube(
            *(project(part, factor) for part, factor in zip((heads, insides, tails), factors, strict=True))
        )

    def spans(self, candidates: Tensor) -> Tensor:
        """Scores of the spans `candidates` [B, m, 2] with all inside words: [B, R, m, N]."""
        heads, tails = gather_boundaries(self.heads, self.tails, candidates)
        insides = self.insides.unsqueeze(1).expand(-1, self.labels, -1, -1)
        return triaffine_pairs(heads, insides, tails, self.weight)


class AdditiveFactor(NamedTuple):
    """s_ijkr = head_ir + tail_jr + inside_kr, each [B, N, R]; a part that is None adds nothing."""

    insides: Tensor
    heads: Tensor | None = None
    tails: Tensor | None = None

    @property
    def labels(self) -> int:
        return self.insides.shape[-1]

    @property
    def is_full(self) -> bool:
        return False

    @property
    def width(self) -> int:
        """As in [`TriaffineFactor`]."""
        return 3

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Parts of head, inside and tail words [B, R, N]."""
        nothing = torch.zeros_like(self.insides)
        parts = (self.heads, self.insides, self.tails)
        heads, insides, tails = ((nothing if part is None else part).transpose(1, 2) for part in parts)
        return heads, insides, tails

    def whole_cube(self) -> Tensor:
        """All scores, by their definition: [B, R, i, j, k]."""
        heads, insides, tails = self._parts()
        return heads[..., :, None, None] + tails[..., None, :, None] + insides[..., None, None, :]

    def cube(self, labels: slice, plan: Plan) -> Cube:
        """Scores of some labels as those of a [`ProductCube`], u · 1 · 1 + 1 · x · 1 + 1 · 1 · v."""
        heads, insides, tails = (autocast(part[:, labels]) for part in self._parts())
        one = torch.ones_like(heads)
        parts = (heads, one, one), (one, insides, one), (one, one, tails)
        return ProductCube(*(torch.stack(part, dim=-1) for part in parts))

    def spans(self, candidates: Tensor) -> Tensor:
        """Scores of the spans `candidates` [B, m, 2] with all inside words: broadcastable to [B, R, m, N]."""
        scores = self.insides.transpose(1, 2).unsqueeze(2)
        if self.heads is not None and self.tails is not None:
            heads, tails = gather_boundaries(self.heads, self.tails, candidates)
            scores = scores + (heads + tails).transpose(1, 2).unsqueeze(-1)
        return scores


Factor = TriaffineFactor | AdditiveFactor


class SpanScores(NamedTuple):
    """Output of the span stage.

    scores [B, R, N, N]: p_ijr without its bias; entries that are no span are finite, but meaningless.
    attention_cube [B, R, N, N, N] (k, i, j): s_ijkr if it was stored; the candidates need a few rows of it.
    """

    scores: Tensor
    attention_cube: Tensor | None = None


def span_scores_reference(
    attention: Factor,
    scoring: Factor,
    lengths: Tensor,
    max_width: int | None = None,
    packed: Tensor | None = None,
    kept_bytes: int | None = None,
) -> SpanScores:
    """[`span_scores`] by its definition, with the whole cube in memory; only the factors are used."""
    cube = at_least_float32(attention.whole_cube())
    weights = inside_attention_reference(cube)
    scores = (weights * scoring.whole_cube().to(weights.dtype)).sum(-1)
    return SpanScores(scores, cube.movedim(-1, 2))


def inside_attention_reference(cube: Tensor) -> Tensor:
    """α_ijkr = softmax over i ≤ k ≤ j of s_ijkr, 0 elsewhere: [B, R, i, j, k] as `whole_cube` of a factor gives it."""
    words = torch.arange(cube.shape[-1], device=cube.device)
    inside = (words >= words[:, None, None]) & (words <= words[:, None])
    return masked_softmax(cube, inside, dim=-1)


# Excluded from torch.compile: the shapes of blocks depend on the lengths.
@torch.compiler.disable
def span_scores(
    attention: Factor,
    scoring: Factor,
    lengths: Tensor,
    max_width: int | None = None,
    packed: Tensor | None = None,
    kept_bytes: int | None = None,
) -> SpanScores:
    """Attention over inside words and decomposed scoring of all spans: the span stage.

    α_ijkr = softmax over k in [i, j] of s_ijkr;  p_ijr = Σ_k α_ijkr · o_ijkr.

    Full tensors are contracted label by label (with the package's Triton kernels, for several labels at once), low-rank
    ones with as many labels at once as fit into a block.

    Args:
        attention, scoring: the factors of s (R labels, or one that all labels share) and o (R labels).
        lengths [B]: words of each sentence.
        max_width: widest span, in words.
        packed [n]: `Plan.packed`, if made on the host.
        kept_bytes: see [`TriaffineSpanHead`].
    """
    attention, scoring = _hold(attention), _hold(scoring)
    batch, num_words = attention.insides.shape[:2]
    chunk, numbers = _chunk_labels(attention, scoring)
    plan = plan_blocks(lengths, num_words, max_width, packed, numbers)
    # The candidates need a few rows of s: it is stored if it is smaller than the contracted words of one label.
    keep = attention.is_full and attention.labels == scoring.labels
    keep = keep and batch * scoring.labels * num_words**3 <= len(plan.packed) * attention.width**2
    shared_attention = attention.cube(slice(0, 1), plan) if attention.labels == 1 else None

    def score(labels: slice) -> tuple[Tensor, Tensor | None]:
        values = scoring.cube(labels, plan)
        scores = shared_attention.expand_labels(values) if shared_attention else attention.cube(labels, plan)
        return ACCELERATION.attend_inside(plan, scores, values, keep)

    results = []
    labels_to_keep = ACCELERATION.labels_to_keep(attention, scoring, plan, kept_bytes)
    chunk = int(max(1, min(chunk, labels_to_keep)))  # where memory is short, in the backward pass too
    for first in range(0, scoring.labels, chunk):
        labels = slice(first, min(first + chunk, scoring.labels))
        if labels.stop <= labels_to_keep:
            results.append(score(labels))
        else:
            results.append(checkpoint(score, labels, use_reentrant=False, preserve_rng_state=False))
    cubes = [cube for _, cube in results if cube is not None]
    return SpanScores(torch.cat([p for p, _ in results], dim=1), torch.cat(cubes, dim=1) if cubes else None)


def _chunk_labels(attention: Factor, scoring: Factor) -> tuple[int, int]:
    """How many labels are computed at once, and how many numbers a block then holds per inside word."""
    batch, num_words = attention.insides.shape[:2]
    numbers = batch * num_words * max(num_words, attention.width, scoring.width)
    if attention.is_full or scoring.is_full:
        return ACCELERATION.labels_at_once(attention, scoring), numbers
    chunk = max(1, min(scoring.labels, BLOCK_NUMBERS // max(1, BLOCK_WORDS * numbers)))
    return chunk, chunk * numbers


def candidate_attention(
    attention: Factor, candidates: Tensor, num_words: int, attention_cube: Tensor | None = None
) -> Tensor:
    """α_ijkr for the spans `candidates` [B, m, 2] only: [B, R, m, N], 0 outside i ≤ k ≤ j.

    Taken from [`SpanScores.attention_cube`] if it was stored, otherwise recomputed for these spans.
    """
    if attention_cube is None:
        scores = at_least_float32(attention.spans(candidates))
    else:
        sentences = torch.arange(len(candidates), device=candidates.device).unsqueeze(1)
        scores = attention_cube[sentences, :, :, candidates[..., 0], candidates[..., 1]].transpose(1, 2)
    words = torch.arange(num_words, device=scores.device)
    inside = (words >= candidates[..., :1]) & (words <= candidates[..., 1:])
    return masked_softmax(scores, inside.unsqueeze(1), dim=-1)


def triaffine_pairs(heads: Tensor, insides: Tensor, tails: Tensor, weight: TriaffineWeight) -> Tensor:
    """TriAff(h_i, h_j, x_gr, W_r) for given spans l = (i, j) and labelled inside vectors x_gr.

    heads and tails [B, L, d+1] (the boundaries of each span), insides [B, R, G, d] → [B, R, L, G].
    """
    heads, insides, tails = (autocast(part) for part in (heads, insides, tails))
    if isinstance(weight, Tensor):
        weight = ACCELERATION.full_weight(weight)
    if isinstance(weight, FullWeight):
        firsts, lasts = (weight.pad(part).flatten(0, 1) for part in (heads, tails))
        spans = weight.contract_pairs(firsts, lasts).unflatten(1, heads.shape[:2]).transpose(0, 1)
        return spans @ insides.transpose(-1, -2)
    head_factor, inside_factor, tail_factor = weight
    spans = project(heads, head_factor) * project(tails, tail_factor)
    # Labels first, [R, B·G, d] × [R, d, ρ]: a product batched over sentences would copy the factor for each.
    insides = insides.transpose(0, 1).flatten(1, 2) @ inside_factor.to(insides.dtype)
    return spans @ insides.unflatten(1, (len(spans), -1)).permute(1, 0, 3, 2)


def triaffine_pairs_reference(heads: Tensor, insides: Tensor, tails: Tensor, weight: TriaffineWeight) -> Tensor:
    """[`triaffine_pairs`] by its definition."""
    contracted = torch.einsum("brgc,rcae->brgae", insides, whole_tensor(weight))
    return torch.einsum("brgae,bla,ble->brlg", contracted, heads, tails)


def project(vectors: Tensor, factor: Tensor) -> Tensor:
    """[B, N, d] times [R, d, ρ] → [B, R, N, ρ]."""
    # One product for all labels: a batched one would copy the factor for every sentence.
    columns = factor.to(vectors.dtype).transpose(0, 1).flatten(1)
    return (vectors @ columns).unflatten(-1, (len(factor), -1)).transpose(1, 2).contiguous()


def _hold(factor: Factor) -> Factor:
    """The factor with its full tensor, if any, prepared for one forward pass."""
    if isinstance(factor, TriaffineFactor) and isinstance(factor.weight, Tensor):
        return factor._replace(weight=ACCELERATION.full_weight(factor.weight))
    return factor


def autocast(values: Tensor) -> Tensor:
    """The values in autocast's precision where it is enabled."""
    device = values.device.type
    return values.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else values


def masked_softmax(scores: Tensor, mask: Tensor, dim: int) -> Tensor:
    """Softmax over the entries where `mask` is True; 0 elsewhere, also if it is False everywhere."""
    mask, scores = torch.broadcast_tensors(mask, scores)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim).masked_fill(~mask, 0.0)


def label_probabilities(logits: Tensor, multi_label: bool = False, temperature: float = 1.0) -> Tensor:
    """Probabilities [..., R] of a span's labels, None the last, in at least float32.

    softmax of logits [..., R] / temperature. With `multi_label` the logits are [..., R - 1], each label has
    sigmoid(logit / temperature), and None the probability that the span has none of them, Π (1 − p).
    """
    scaled = at_least_float32(logits) / temperature
    if not multi_label:
        return scaled.softmax(-1)
    return torch.cat([scaled.sigmoid(), (-scaled).sigmoid().prod(-1, keepdim=True)], dim=-1)


def entity_likelihood(logits: Tensor, multi_label: bool) -> Tensor:
    """What spans are ranked by, [..., R] → [...]: the highest probability of a label other than None, the last one.

    With `multi_label`, where None is no label, it is the highest logit, as sigmoids saturate at 0 and 1.
    """
    return logits.amax(-1) if multi_label else label_probabilities(logits)[..., :-1].amax(-1)


def select_candidates(
    span_logits: Tensor, valid: Tensor, max_candidates: int, max_width: int | None = None, multi_label: bool = False
) -> tuple[Tensor, Tensor]:
    """The spans most likely to be some entity, without gradient through the choice.

    span_logits [B, N, N, R], None the last label, or [B, N, N, R - 1] with `multi_label`; valid [B, N, N]: which pairs
    are spans. Ranked by [`entity_likelihood`], ties by (i, j).
    Returns candidates [B, m, 2] ordered by (i, j), and their mask [B, m]: shorter sentences have fewer.
    """
    batch, num_words = valid.shape[:2]
    width = num_words if max_width is None else min(max_width, num_words)
    spans = width * num_words - width * (width - 1) // 2
    count = min(max_candidates, spans)
    scores = entity_likelihood(at_least_float32(span_logits.detach()), multi_label)
    scores = scores.masked_fill(~valid, torch.finfo(scores.dtype).min).view(batch, -1)
    # Of the spans tied with the last one chosen, the first: faster than a stable sort of all spans.
    least = scores.topk(count).values[:, -1:]
    likelier, equal = scores > least, scores == least
    chosen = likelier | (equal & (equal.cumsum(-1) <= count - likelier.sum(-1, keepdim=True)))
    # Places without a candidate go last, as span (0, 0).
    places = torch.arange(scores.shape[1], device=scores.device)
    places = torch.where(chosen & valid.view(batch, -1), places, num_words * num_words)
    order = places.topk(count, largest=False).values
    mask = order < num_words * num_words
    order = order.masked_fill(~mask, 0)
    return torch.stack([order // num_words, order % num_words], dim=-1), mask


def gather_boundaries(heads: Tensor, tails: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors of the head and tail words of the candidates: 2 × [B, N, D] and [B, m, 2] → 2 × [B, m, D]."""
    return gather_words(heads, candidates[..., 0]), gather_words(tails, candidates[..., 1])


def gather_words(vectors: Tensor, index: Tensor) -> Tensor:
    """vectors [B, N, D] at index [B, M] → [B, M, D]."""
    rows = flat_index(index, vectors.shape[1]).flatten()
    return vectors.flatten(0, 1).index_select(0, rows).unflatten(0, index.shape)


def flat_index(index: Tensor, size: int) -> Tensor:
    """Index [B, M] into sentences of `size` words → index into the words of all sentences, b · size + index."""
    return index + size * torch.arange(len(index), device=index.device).unsqueeze(1)


def gather_spans(values: Tensor, candidates: Tensor) -> Tensor:
    """values [B, N, N, ...] at the candidates [B, m, 2] → [B, m, ...]."""
    batch = torch.arange(values.shape[0], device=values.device).unsqueeze(-1)
    return values[batch, candidates[..., 0], candidates[..., 1]]


class PairFactor(NamedTuple):
    """TriAff(h_i, h_j, h_gr, W_r) of candidates l = (i, j) and g: heads, tails [B, m, d+1], spans [B, R, m, d]."""

    heads: Tensor
    spans: Tensor
    tails: Tensor
    weight: TriaffineWeight


def cross_span_scores(
    attention: PairFactor,
    scoring: PairFactor,
    candidate_mask: Tensor,
    axis: str,
    pairs: Callable[..., Tensor] = triaffine_pairs,
) -> tuple[Tensor, Tensor]:
    """pᶜ without its bias, from q = `attention` and t = `scoring`; candidate_mask [B, m].

    axis "key" (paper): β = softmax over g of q_lg, pᶜ_l = Σ_g β_lg t_lg.
    axis "query" (published code): β = softmax over l of q_lg, pᶜ_g = Σ_l β_lg t_lg.
    `pairs` computes q and t: [`triaffine_pairs`], or its definition.
    Returns pᶜ [B, m, R] and β [B, l, g, R].
    """
    dim, broadcast = {"key": (-1, -2), "query": (-2, -1)}[axis]
    mask = candidate_mask.unsqueeze(1).unsqueeze(broadcast)
    weights = masked_softmax(at_least_float32(pairs(*attention)), mask, dim=dim)
    scores = (weights * pairs(*scoring).to(weights.dtype)).sum(dim)
    return scores.transpose(1, 2), weights.permute(0, 2, 3, 1)


def span_mask(lengths: Tensor, num_words: int, max_width: int | None = None) -> Tensor:
    """Which (i, j) are spans of the sentence: i ≤ j < length, at most `max_width` words. lengths [B] → [B, N, N]."""
    words = torch.arange(num_words, device=lengths.device)
    width = words - words[:, None]
    shape = (width >= 0) & (width < (max_width or num_words))
    return shape & (words < lengths[:, None])[:, None, :]
