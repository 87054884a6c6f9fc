"""The algebra of the triaffine head: pure tensor functions, no parameters, no configuration.

Span indices (i, j) are both inclusive here and in every tensor; `start`/`end` with an exclusive end belong to the data.
Axes, as letters of the einsums: b sentence, i head word, j tail word, k inside word, r label, l scored candidate,
g related candidate; a, c, e the width of head, inside and tail vectors (d+1, d, d+1), p the rank.

A *factor* stands for the scores s_ijkr or o_ijkr: the projected words and the weights they are computed from. Each
stage has two forms with one signature: plain einsums as the reference (`…_reference`), and a fast form. The fast form
of the span stage never stores the cube s_ijkr: `triaffine_blocks.py`, or what [`Acceleration`] has in its place.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .triaffine_blocks import ACCELERATION, Cube, FullCube, FullWeight, Plan, ProductCube, at_least_float32, plan_blocks

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
    """s_ijkr = TriAff(h_i, h_j, h_k, W_r) of a full tensor: heads, tails [B, N, d+1], insides [B, N, d]."""

    heads: Tensor
    insides: Tensor
    tails: Tensor
    weight: Tensor | FullWeight

    @property
    def labels(self) -> int:
        return len(self.weight)

    @property
    def width(self) -> int:
        """Width of the vectors from which blocks of the cube are computed."""
        return self.heads.shape[-1]

    def whole_cube(self) -> Tensor:
        """All scores, by their definition: [B, R, i, j, k]."""
        # Inside words first: the order with the fewest operations takes twice the time.
        contracted = torch.einsum("bkc,rcae->bkrae", self.insides, whole_tensor(self.weight))
        return torch.einsum("bkrae,bia,bje->brijk", contracted, self.heads, self.tails)

    def cube(self, labels: slice, plan: Plan) -> Cube:
        """Scores of some labels in the form that is computed by blocks or kernels."""
        assert isinstance(self.weight, FullWeight)
        heads, insides, tails = (autocast(part) for part in self[:3])
        contracted = self.weight.contract_words(insides.flatten(0, 1)[plan.packed], labels)
        return FullCube(self.weight.pad(heads), contracted, self.weight.pad(tails))

    def spans(self, candidates: Tensor) -> Tensor:
        """Scores of the spans `candidates` [B, m, 2] with all inside words: [B, R, m, N]."""
        insides = self.insides.unsqueeze(1).expand(-1, self.labels, -1, -1)
        return triaffine_pairs(torch.stack([self.heads, self.tails]), insides, self.weight, candidates)


class ProductFactor(NamedTuple):
    """s_ijkr = Σ_w u_irw x_krw v_jrw of vectors projected for each label: ends (u, v) [2, B, R, N, w], insides x.

    Methods as of [`TriaffineFactor`].
    """

    ends: Tensor
    insides: Tensor

    @property
    def labels(self) -> int:
        return self.insides.shape[1]

    @property
    def width(self) -> int:
        return self.insides.shape[-1]

    def whole_cube(self) -> Tensor:
        heads, tails = self.ends
        return torch.einsum("briw,brkw,brjw->brijk", heads, self.insides, tails)

    def cube(self, labels: slice, plan: Plan) -> Cube:
        heads, tails = self.ends.unbind()
        return ProductCube(*(autocast(part[:, labels]) for part in (heads, self.insides, tails)))

    def spans(self, candidates: Tensor) -> Tensor:
        return span_products(self.ends, candidates) @ self.insides.mT


Factor = TriaffineFactor | ProductFactor


def additive_factor(insides: Tensor, heads: Tensor | None = None, tails: Tensor | None = None) -> ProductFactor:
    """s_ijkr = head_ir + tail_jr + inside_kr, each [B, N, R], as u · 1 · 1 + 1 · x · 1 + 1 · 1 · v."""
    insides = insides.transpose(1, 2).unsqueeze(-1)
    ones = torch.ones_like(insides)
    if heads is None or tails is None:
        return ProductFactor(torch.stack([ones, ones]), insides)
    heads, tails = (part.transpose(1, 2).unsqueeze(-1) for part in (heads, tails))
    heads, insides, tails = (
        torch.cat(part, dim=-1) for part in ((heads, ones, ones), (ones, insides, ones), (ones, ones, tails))
    )
    return ProductFactor(torch.stack([heads, tails]), insides)


def triaffine_factor(ends: Tensor, insides: Tensor, weight: TriaffineWeight) -> Factor:
    """TriAff(h_i, h_j, h_k, W_r) of head and tail vectors `ends` [2, B, N, d] and inside vectors [B, N, d]."""
    if isinstance(weight, tuple):
        head_factor, inside_factor, tail_factor = weight
        of_insides = project(insides.unsqueeze(0), (inside_factor,)).squeeze(0)
        return ProductFactor(project(ends, (head_factor, tail_factor)), of_insides)
    heads, tails = append_one(ends)
    return TriaffineFactor(heads, insides, tails, weight)


def project(vectors: Tensor, factors: Sequence[Tensor]) -> Tensor:
    """Vectors [k, B, N, d] times their factors, k × [R, d, ρ] or [R, d+1, ρ] → [k, B, R, N, ρ], in one product.

    A factor's row beyond d is for the 1 that is appended to boundary vectors.
    """
    count, batch, words, width = vectors.shape
    columns = torch.stack(tuple(factors)).to(vectors.dtype).transpose(1, 2).flatten(2)  # [k, d+1, R·ρ]
    if columns.shape[1] > width:
        columns, bias = columns.split([width, 1], dim=1)
        products = torch.baddbmm(bias, vectors.flatten(1, 2), columns)
    else:
        products = vectors.flatten(1, 2) @ columns
    return products.view(count, batch, words, len(factors[0]), -1).transpose(2, 3)


def span_products(ends: Tensor, candidates: Tensor) -> Tensor:
    """Products of the projected boundaries [2, B, R, N, ρ] of the spans `candidates` [B, m, 2]: [B, R, m, ρ]."""
    batch, num_words = ends.shape[1], ends.shape[3]
    first = torch.arange(0, 2 * batch * num_words, num_words, device=candidates.device).view(2, batch, 1)
    rows = (candidates.movedim(-1, 0) + first).flatten()
    found = ends.transpose(2, 3).flatten(0, 2).index_select(0, rows)
    heads, tails = found.unflatten(0, (2, *candidates.shape[:2])).unbind()
    return (heads * tails).transpose(1, 2)


class SpanScores(NamedTuple):
    """Output of the span stage."""

    scores: Tensor  # [B, R, N, N]: p_ijr without its bias; entries that are no span are finite, but meaningless
    # [B, R, N, N, N] (k, i, j): s_ijkr if it was stored; the candidates need a few rows of it.
    attention_cube: Tensor | None = None


def span_scores_reference(attention: Factor, scoring: Factor, *_: Any) -> SpanScores:
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
    attention: Factor, scoring: Factor, lengths: Tensor, max_width: int | None = None, packed: Tensor | None = None
) -> SpanScores:
    """The span stage: α_ijkr = softmax over k in [i, j] of s_ijkr;  p_ijr = Σ_k α_ijkr · o_ijkr.

    Full tensors are contracted for some labels at a time (`Acceleration.label_chunks`); without one, all labels are
    computed at once.

    Args:
        attention, scoring: the factors of s (R labels, or one that all labels share) and o (R labels).
        lengths [B]: words of each sentence; max_width: of the widest span.
        packed [n]: `Plan.packed`, if made on the host.
    """
    attention, scoring = _prepared(attention), _prepared(scoring)
    batch, num_words = len(lengths), attention.insides.shape[-2]
    if isinstance(attention, ProductFactor) and isinstance(scoring, ProductFactor):
        plan = Plan(batch, num_words, max_width, lengths, ())
        values = scoring.cube(slice(None), plan)
        queries = attention.cube(slice(None), plan).expand_labels(values)
        return SpanScores(ACCELERATION.attend_inside(plan, queries, values, False)[0])
    numbers = batch * num_words * max(num_words, attention.width, scoring.width)
    plan = plan_blocks(lengths, num_words, max_width, packed, numbers)
    # The candidates need a few rows of s: it is stored if it is smaller than the contracted words of one label.
    keep = isinstance(attention, TriaffineFactor) and attention.labels == scoring.labels
    keep = keep and batch * scoring.labels * num_words**3 <= len(plan.packed) * attention.width**2
    shared_attention = attention.cube(slice(0, 1), plan) if attention.labels == 1 else None

    def score(labels: slice) -> tuple[Tensor, Tensor | None]:
        values = scoring.cube(labels, plan)
        scores = shared_attention.expand_labels(values) if shared_attention else attention.cube(labels, plan)
        return ACCELERATION.attend_inside(plan, scores, values, keep)

    results = []
    for labels, is_stored in ACCELERATION.label_chunks(attention, scoring, plan):
        if is_stored:
            results.append(score(labels))
        else:
            results.append(checkpoint(score, labels, use_reentrant=False, preserve_rng_state=False))
    cubes = [cube for _, cube in results if cube is not None]
    return SpanScores(torch.cat([p for p, _ in results], dim=1), torch.cat(cubes, dim=1) if cubes else None)


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


def triaffine_pairs(ends: Tensor, insides: Tensor, weight: TriaffineWeight, candidates: Tensor) -> Tensor:
    """TriAff(h_i, h_j, x_gr, W_r) for the spans l = (i, j) and labelled inside vectors x_gr.

    ends: vectors of the head and tail words, [2, B, N, d], of a full tensor also [2, B, N, d+1]; candidates [B, m, 2],
    insides [B, R, G, d] → [B, R, m, G].
    """
    ends, insides = autocast(ends), autocast(insides)
    if isinstance(weight, tuple):
        head_factor, inside_factor, tail_factor = weight
        spans = span_products(project(ends, (head_factor, tail_factor)), candidates)
        # Labels first, [R, B·G, d] × [R, d, ρ]: a product batched over sentences would copy the factor for each.
        projected = insides.transpose(0, 1).flatten(1, 2) @ inside_factor.to(insides.dtype)
        return spans @ projected.unflatten(1, (len(insides), -1)).permute(1, 0, 3, 2)
    if isinstance(weight, Tensor):
        weight = ACCELERATION.full_weight(weight)
    heads, tails = (weight.pad(part).flatten(0, 1) for part in _candidate_ends(ends, candidates, insides))
    spans = weight.contract_pairs(heads, tails).unflatten(1, candidates.shape[:2]).transpose(0, 1)
    return spans @ insides.transpose(-1, -2)


def triaffine_pairs_reference(ends: Tensor, insides: Tensor, weight: TriaffineWeight, candidates: Tensor) -> Tensor:
    """[`triaffine_pairs`] by its definition."""
    heads, tails = _candidate_ends(ends, candidates, insides)
    contracted = torch.einsum("brgc,rcae->brgae", insides, whole_tensor(weight))
    return torch.einsum("brgae,bla,ble->brlg", contracted, heads, tails)


def _candidate_ends(ends: Tensor, candidates: Tensor, insides: Tensor) -> tuple[Tensor, Tensor]:
    """Boundary vectors of the candidates, one wider than inside vectors by their 1: 2 × [B, m, d+1]."""
    heads, tails = ends if ends.shape[-1] > insides.shape[-1] else append_one(ends)
    return gather_words(heads, candidates[..., 0]), gather_words(tails, candidates[..., 1])


def _prepared(factor: Factor) -> Factor:
    """The factor with its full tensor, if any, prepared for one forward pass."""
    if isinstance(factor, TriaffineFactor) and isinstance(factor.weight, Tensor):
        return factor._replace(weight=ACCELERATION.full_weight(factor.weight))
    return factor


def autocast(values: Tensor) -> Tensor:
    """The values in autocast's precision where it is enabled."""
    device = values.device.type
    return values.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else values


def masked_softmax(scores: Tensor, mask: Tensor, dim: int) -> Tensor:
    """Softmax over the entries where `mask` is True; 0 elsewhere, even if `mask` is False everywhere."""
    return torch.where(mask, scores, torch.finfo(scores.dtype).min).softmax(dim) * mask


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
    """The likelihood that ranks spans, [..., R] → [...]: the highest probability of a label other than None, the last.

    With `multi_label`, where None is no label, it is the highest logit, as sigmoids saturate at 0 and 1.
    """
    return logits.amax(-1) if multi_label else label_probabilities(logits)[..., :-1].amax(-1)


# The lowest number of int64, and the bits of a place in the keys of candidates: of sentences of up to 23,170 words.
_LOWEST, _PLACES = -(2**63), 2**29 - 1


def select_candidates(
    span_logits: Tensor, valid: Tensor, max_candidates: int, max_width: int | None = None, multi_label: bool = False
) -> tuple[Tensor, Tensor]:
    """The spans that rank first by [`entity_likelihood`], ties by (i, j), without gradient through the choice.

    span_logits [B, N, N, R], None the last label, or [B, N, N, R - 1] with `multi_label`; valid [B, N, N]: which pairs
    are spans. Returns candidates [B, m, 2] ordered by (i, j), and their mask [B, m]: shorter sentences have fewer.
    """
    batch, num_words = valid.shape[:2]
    width = num_words if max_width is None else min(max_width, num_words)
    spans = width * num_words - width * (width - 1) // 2
    scores = entity_likelihood(span_logits.detach().float(), multi_label) + 0.0  # no -0
    # One key for score and place: floats are in the order of their bits, those below 0 in reverse. The last 29 bits
    # have the place, so that of equal scores the first is chosen.
    bits = scores.view(torch.int32)
    keys = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long() << 29
    places = torch.arange(_PLACES, _PLACES - num_words * num_words, -1, device=scores.device)
    keys = torch.where(valid, keys | places.view(num_words, num_words), _LOWEST).view(batch, -1)
    chosen = keys.topk(min(max_candidates, spans), sorted=False).values
    order = (_PLACES - (chosen & _PLACES)).sort().values
    # Keys of pairs that are no span have the largest place: they come last, as span (0, 0).
    mask = order < num_words * num_words
    order = order * mask
    return torch.stack([order // num_words, order % num_words], dim=-1), mask


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


def cross_span_scores(queries: Tensor, values: Tensor, candidate_mask: Tensor, axis: str) -> tuple[Tensor, Tensor]:
    """pᶜ without its bias, from q and t of all pairs of candidates [B, R, l, g]; candidate_mask [B, m].

    axis "key" (paper): β = softmax over g of q_lg, pᶜ_l = Σ_g β_lg t_lg.
    axis "query" (published code): β = softmax over l of q_lg, pᶜ_g = Σ_l β_lg t_lg.
    Returns pᶜ [B, m, R] and β [B, l, g, R].
    """
    dim, broadcast = {"key": (-1, -2), "query": (-2, -1)}[axis]
    mask = candidate_mask.unsqueeze(1).unsqueeze(broadcast)
    weights = masked_softmax(at_least_float32(queries), mask, dim=dim)
    scores = (weights * values.to(weights.dtype)).sum(dim)
    return scores.transpose(1, 2), weights.permute(0, 2, 3, 1)


def span_mask(lengths: Tensor, num_words: int, max_width: int | None = None) -> Tensor:
    """Marks the spans (i, j) of the sentence: i ≤ j < length, at most `max_width` words. lengths [B] → [B, N, N]."""
    words = torch.arange(num_words, device=lengths.device)
    width = words - words[:, None]
    shape = (width >= 0) & (width < (max_width or num_words))
    return shape & (words < lengths[:, None])[:, None, :]
