"""The algebra of the triaffine head: pure tensor functions, no parameters, no configuration.

Span indices (i, j) are both inclusive here and in every tensor; `start`/`end` with an exclusive end belong to the data.
Axes, as letters of the einsums: b sentence, i head word, j tail word, k inside word, r label, l scored candidate,
g related candidate; a, c, e the width of head, inside and tail vectors (d+1, d, d+1), p the rank.

A score s_ijkr over head, tail and inside word is carried as a *factor*: the projected words and the weights, from which
any part of the cube [B, R, N, N, N] can be built. So the cube exists block by block only (`span_scores`), and the few
rows that the candidates need are made again from the same factor (`candidate_attention`).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

# Only the references are einsums: their order of contraction, hence their last bits, depend on what is installed.
try:
    from opt_einsum import contract
except ImportError:
    contract = torch.einsum

# Full: [R, d, d+1, d+1], axes label, inside, head, tail.
# Low rank: head [R, d+1, ρ], inside [R, d, ρ], tail [R, d+1, ρ].
LowRank = tuple[Tensor, Tensor, Tensor]
TriaffineWeight = Tensor | LowRank

# Largest cube block in numbers (256 MB in float32). Larger cubes are cut into blocks of head words.
BLOCK_NUMBERS = 64 * 2**20


def append_one(vectors: Tensor) -> Tensor:
    """Boundary vectors u → u' = [u; 1] (section 1). [..., d] → [..., d+1]."""
    return torch.cat([vectors, vectors.new_ones(*vectors.shape[:-1], 1)], dim=-1)


def triaffine_cube(heads: Tensor, insides: Tensor, tails: Tensor, weight: TriaffineWeight) -> Tensor:
    """TriAff(h_i, h_j, h_k, W_r) for all triples of words.

    heads [B, I, d+1], insides [B, K, d], tails [B, J, d+1] → [B, R, I, J, K].
    """
    if isinstance(weight, Tensor):
        # One label after the other: the contraction with W is by far the largest tensor here.
        return torch.stack([_label_cube(heads, insides, tails, of_label) for of_label in weight], dim=1)
    head_factor, inside_factor, tail_factor = weight
    pairs = _project(heads, head_factor).unsqueeze(3) * _project(tails, tail_factor).unsqueeze(2)
    # [B, R, I·J, ρ] × [B, R, ρ, K]
    cube = pairs.flatten(2, 3) @ _project(insides, inside_factor).transpose(-1, -2)
    return cube.unflatten(2, (heads.shape[1], tails.shape[1]))


def _label_cube(heads: Tensor, insides: Tensor, tails: Tensor, weight: Tensor) -> Tensor:
    """One label's cube [B, I, J, K]; weight [d, d+1, d+1]."""
    # One matrix product over all words of the batch, W neither permuted nor copied: [B, K, a, e]
    contracted = (insides.flatten(0, 1) @ weight.flatten(1)).view(*insides.shape[:2], *weight.shape[1:])
    # [B, 1, I, a] × [B, K, a, e] × [B, 1, e, J]
    cube = heads.unsqueeze(1) @ contracted @ tails.unsqueeze(1).transpose(-1, -2)
    return cube.permute(0, 2, 3, 1)


def triaffine_cube_reference(heads: Tensor, insides: Tensor, tails: Tensor, weight: TriaffineWeight) -> Tensor:
    """[`triaffine_cube`] as its definition says it."""
    return contract("bia,bkc,bje,rcae->brijk", heads, insides, tails, full_weight(weight))


def triaffine_pairs(heads: Tensor, insides: Tensor, tails: Tensor, weight: TriaffineWeight) -> Tensor:
    """TriAff(h_i, h_j, x_gr, W_r) for given spans l = (i, j) and labelled inside vectors x_gr.

    heads and tails [B, L, d+1] (the boundaries of each span), insides [B, R, G, d] → [B, R, L, G].
    """
    if isinstance(weight, Tensor):
        # [B·L, (d+1)²] × [R, (d+1)², d]
        outer = (heads.unsqueeze(-1) * tails.unsqueeze(-2)).flatten(2).flatten(0, 1)
        spans = (outer @ weight.flatten(2).transpose(1, 2)).unflatten(1, heads.shape[:2]).transpose(0, 1)
        return spans @ insides.transpose(-1, -2)
    head_factor, inside_factor, tail_factor = weight
    spans = _project(heads, head_factor) * _project(tails, tail_factor)
    return spans @ (insides @ inside_factor).transpose(-1, -2)


def triaffine_pairs_reference(heads: Tensor, insides: Tensor, tails: Tensor, weight: TriaffineWeight) -> Tensor:
    """[`triaffine_pairs`] as its definition says it."""
    return contract("bla,brgc,ble,rcae->brlg", heads, insides, tails, full_weight(weight))


def full_weight(weight: TriaffineWeight) -> Tensor:
    """The tensor [R, d, d+1, d+1] that low-rank factors stand for (section 1); a full one as it is."""
    if isinstance(weight, Tensor):
        return weight
    head_factor, inside_factor, tail_factor = weight
    return contract("rap,rcp,rep->rcae", head_factor, inside_factor, tail_factor)


def _project(vectors: Tensor, factor: Tensor) -> Tensor:
    """[B, N, d] times [R, d, ρ] → [B, R, N, ρ]."""
    return vectors.unsqueeze(1) @ factor


class TriaffineFactor(NamedTuple):
    """s_ijkr = TriAff(h_i, h_j, h_k, W_r): heads and tails [B, N, d+1], insides [B, N, d], weight of R labels."""

    heads: Tensor
    insides: Tensor
    tails: Tensor
    weight: TriaffineWeight

    def cube(self, rows: slice, columns: slice) -> Tensor:
        """Scores of head words `rows` with tail and inside words `columns`: [B, R, I, J, K]."""
        return triaffine_cube(self.heads[:, rows], self.insides[:, columns], self.tails[:, columns], self.weight)

    def spans(self, candidates: Tensor) -> Tensor:
        """Scores of the spans `candidates` [B, m, 2] with all inside words: [B, R, m, N]."""
        labels = (self.weight if isinstance(self.weight, Tensor) else self.weight[0]).shape[0]
        heads, tails = gather_boundaries(self.heads, self.tails, candidates)
        insides = self.insides.unsqueeze(1).expand(-1, labels, -1, -1)
        return triaffine_pairs(heads, insides, tails, self.weight)


class AdditiveFactor(NamedTuple):
    """s_ijkr = head_ir + tail_jr + inside_kr, each [B, N, R]; a part that is None adds nothing."""

    insides: Tensor
    heads: Tensor | None = None
    tails: Tensor | None = None

    def cube(self, rows: slice, columns: slice) -> Tensor:
        """Scores of head words `rows` with tail and inside words `columns`: broadcastable to [B, R, I, J, K]."""
        scores = self.insides[:, columns].transpose(1, 2)[:, :, None, None, :]
        if self.heads is not None:
            scores = scores + self.heads[:, rows].transpose(1, 2)[:, :, :, None, None]
        if self.tails is not None:
            scores = scores + self.tails[:, columns].transpose(1, 2)[:, :, None, :, None]
        return scores

    def spans(self, candidates: Tensor) -> Tensor:
        """Scores of the spans `candidates` [B, m, 2] with all inside words: broadcastable to [B, R, m, N]."""
        scores = self.insides.transpose(1, 2).unsqueeze(2)
        if self.heads is not None and self.tails is not None:
            heads, tails = gather_boundaries(self.heads, self.tails, candidates)
            scores = scores + (heads + tails).transpose(1, 2).unsqueeze(-1)
        return scores


Factor = TriaffineFactor | AdditiveFactor


def span_scores_reference(attention: Factor, scoring: Factor, num_words: int) -> Tensor:
    """p_ijr without its bias, the whole cube at once: the plain truth that `span_scores` is tested against.

    α_ijkr = softmax over k in [i, j] of s_ijkr;  p_ijr = Σ_k α_ijkr · o_ijkr (sections 3 and 4, decomposed).
    Returns [B, R, N, N]; entries with i > j are 0.
    """
    everything = slice(0, num_words)
    return _block_scores(attention, scoring, everything, everything)


def span_scores(
    attention: Factor,
    scoring: Factor,
    num_words: int,
    max_width: int | None = None,
    block_numbers: int = BLOCK_NUMBERS,
) -> Tensor:
    """p_ijr without its bias (sections 3 and 4), in blocks of head words that keep the cube below `block_numbers`.

    With several blocks each is recomputed in the backward pass, so that no more than one block's cube is kept. Full
    tensors are contracted with the words anew for every block, at (d+1)² numbers a word and label.
    Returns [B, R, N, N]; entries with i > j, or wider than `max_width` words, are 0 or meaningless.
    """
    batch = attention.insides.shape[0]
    width = num_words if max_width is None else min(max_width, num_words)
    if isinstance(scoring, TriaffineFactor):
        labels = (scoring.weight if isinstance(scoring.weight, Tensor) else scoring.weight[0]).shape[0]
    else:
        labels = scoring.insides.shape[-1]
    blocks = _head_blocks(num_words, width, max(1, block_numbers // (batch * labels)))
    if len(blocks) == 1:
        return _block_scores(attention, scoring, *blocks[0])
    score_rows: Callable[..., Tensor] = _block_scores
    if torch.is_grad_enabled():
        score_rows = _recomputed_block_scores
    rows = []
    for heads, columns in blocks:
        block = score_rows(attention, scoring, heads, columns)
        rows.append(torch.nn.functional.pad(block, (columns.start, num_words - columns.stop)))
    return torch.cat(rows, dim=2)


def _recomputed_block_scores(attention: Factor, scoring: Factor, rows: slice, columns: slice) -> Tensor:
    return checkpoint(_block_scores, attention, scoring, rows, columns, use_reentrant=False)


def _head_blocks(num_words: int, width: int, numbers: int) -> list[tuple[slice, slice]]:
    """Cuts the head words into blocks whose (rows, columns, columns) cube holds at most `numbers` numbers."""
    blocks = []
    first = 0
    while first < num_words:
        size = 1
        while first + size < num_words:
            columns = min(num_words, first + size + width) - first
            if (size + 1) * columns * columns > numbers:
                break
            size += 1
        blocks.append((slice(first, first + size), slice(first, min(num_words, first + size - 1 + width))))
        first += size
    return blocks


def _block_scores(attention: Factor, scoring: Factor, rows: slice, columns: slice) -> Tensor:
    """p of the spans with head in `rows` and tail in `columns`: [B, R, I, J]."""
    weights = inside_attention(attention, rows, columns)
    scores = scoring.cube(rows, columns).to(weights.dtype)
    return (weights * scores).sum(-1)


def inside_attention(attention: Factor, rows: slice, columns: slice) -> Tensor:
    """α_ijkr = softmax over i ≤ k ≤ j of s_ijkr, in at least float32 (section 3): [B, R, I, J, K], 0 elsewhere."""
    scores = at_least_float32(attention.cube(rows, columns))
    words = torch.arange(columns.start, columns.stop, device=scores.device)
    heads = torch.arange(rows.start, rows.stop, device=scores.device)
    # [I, J, K]
    inside = (words >= heads[:, None])[:, None, :] & (words <= words[:, None])
    return masked_softmax(scores, inside, dim=-1)


def candidate_attention(attention: Factor, candidates: Tensor, num_words: int) -> Tensor:
    """α of section 3 for the spans `candidates` [B, m, 2] only: [B, R, m, N], 0 outside i ≤ k ≤ j."""
    scores = at_least_float32(attention.spans(candidates))
    words = torch.arange(num_words, device=scores.device)
    inside = (words >= candidates[..., :1]) & (words <= candidates[..., 1:])
    return masked_softmax(scores, inside.unsqueeze(1), dim=-1)


def masked_softmax(scores: Tensor, mask: Tensor, dim: int) -> Tensor:
    """Softmax over the entries where `mask` holds; 0 elsewhere, and all 0 where it holds nowhere."""
    mask, scores = torch.broadcast_tensors(mask, scores)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim).masked_fill(~mask, 0.0)


def select_candidates(
    span_logits: Tensor, valid: Tensor, max_candidates: int, max_width: int | None = None
) -> tuple[Tensor, Tensor]:
    """The spans most likely to be some entity (section 5), without gradient through the choice.

    span_logits [B, N, N, R], None the last label; valid [B, N, N] the spans there are. Ranked by
    max over r ≠ None of softmax(p_ij)_r; equal ones by (i, j).
    Returns candidates [B, m, 2] ordered by (i, j), and their mask [B, m]: shorter sentences have fewer.
    """
    batch, num_words = valid.shape[:2]
    width = num_words if max_width is None else min(max_width, num_words)
    spans = width * num_words - width * (width - 1) // 2
    count = min(max_candidates, spans)
    probability = at_least_float32(span_logits.detach()).softmax(-1)[..., :-1].amax(-1)
    ranked = probability.masked_fill(~valid, -1.0).view(batch, -1).sort(dim=-1, descending=True, stable=True)
    order = ranked.indices[:, :count]
    mask = ranked.values[:, :count] >= 0
    # Invalid entries go last, as span (0, 0), whatever stood in their place.
    order = order.masked_fill(~mask, num_words * num_words).sort(dim=-1).values
    mask = order < num_words * num_words
    order = order.masked_fill(~mask, 0)
    return torch.stack([order // num_words, order % num_words], dim=-1), mask


def gather_boundaries(heads: Tensor, tails: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors of the head and tail words of the candidates: 2 × [B, N, D] and [B, m, 2] → 2 × [B, m, D]."""
    return gather_words(heads, candidates[..., 0]), gather_words(tails, candidates[..., 1])


def gather_words(vectors: Tensor, index: Tensor) -> Tensor:
    """vectors [B, N, D] at index [B, M] → [B, M, D]."""
    return vectors.gather(1, index.unsqueeze(-1).expand(-1, -1, vectors.shape[-1]))


def gather_spans(values: Tensor, candidates: Tensor) -> Tensor:
    """values [B, N, N, ...] at the candidates [B, m, 2] → [B, m, ...]."""
    batch = torch.arange(values.shape[0], device=values.device).unsqueeze(-1)
    return values[batch, candidates[..., 0], candidates[..., 1]]


def cross_span_scores(query: Tensor, related: Tensor, candidate_mask: Tensor, axis: str) -> tuple[Tensor, Tensor]:
    """pᶜ without its bias (section 6), from q and t, each [B, R, l, g]; candidate_mask [B, m].

    axis "key" (paper): β = softmax over g of q_lg, pᶜ_l = Σ_g β_lg t_lg.
    axis "query" (published code): β = softmax over l of q_lg, pᶜ_g = Σ_l β_lg t_lg.
    Returns pᶜ [B, m, R] and β [B, l, g, R].
    """
    dim = {"key": -1, "query": -2}[axis]
    mask = candidate_mask[:, None, None, :] if axis == "key" else candidate_mask[:, None, :, None]
    weights = masked_softmax(at_least_float32(query), mask, dim=dim)
    scores = (weights * related.to(weights.dtype)).sum(dim)
    return scores.transpose(1, 2), weights.permute(0, 2, 3, 1)


def span_mask(lengths: Tensor, num_words: int, max_width: int | None = None) -> Tensor:
    """Which (i, j) are spans of the sentence: i ≤ j < length, at most `max_width` words. lengths [B] → [B, N, N]."""
    words = torch.arange(num_words, device=lengths.device)
    width = words - words[:, None]
    shape = (width >= 0) & (width < (max_width or num_words))
    return shape & (words < lengths[:, None])[:, None, :]


def span_loss(logits: Tensor, labels: Tensor, mask: Tensor, reduction: str) -> Tensor:
    """Cross-entropy of the spans where `mask` holds and the label is not -100, in at least float32 (section 7).

    logits [B, S, R], labels [B, S], mask [B, S]. reduction "sentence": mean over sentences of the mean over each one's
    spans, sentences without any left out; "batch": one mean over all spans. 0 where there is no span at all.
    """
    counted = mask & (labels != -100)
    losses = torch.nn.functional.cross_entropy(
        at_least_float32(logits).flatten(0, 1), labels.masked_fill(~counted, -100).flatten(), reduction="none"
    ).view_as(labels)
    if reduction == "batch":
        return losses.sum() / counted.sum().clamp(min=1)
    spans = counted.sum(-1)
    return (losses.sum(-1) / spans.clamp(min=1)).sum() / (spans > 0).sum().clamp(min=1)


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision to float32, anything else as it is."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
