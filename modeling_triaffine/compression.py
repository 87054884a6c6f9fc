"""Compresses a trained model with full triaffine tensors into a low-rank one, without training it.

Each label's slice W [d, d+1, d+1] becomes a sum of ρ rank-one terms, found by alternating least squares. A trained
tensor is mostly the random numbers it started from, which no ρ terms can hold and real inputs hardly see: given a
sample of inputs, the error is measured along the directions that the tensor's vectors really take.

Axes: c, a, e the width of inside, head and tail vectors (d, d+1, d+1), p the rank, r label, n sampled triples.
"""

import copy
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from .decoding_triaffine import Entity, decode_batch
from .evaluation.scoring import score_entities
from .factors_triaffine import TriaffineTensor
from .modeling_triaffine import TriaffineForNestedNER
from .span_head_triaffine import SpanHeadOutput, TriaffineSpanHead
from .triaffine_ops import LowRank, TriaffineFactor, append_one, at_least_float32

SWEEPS = 60
# A decomposition is finished when a sweep lessens the squared error by less than this part of it, or when it is exact.
TOLERANCE = 1e-7
EXACT = 1e-15
# Added to the diagonal of the normal equations, as a part of its mean: terms may come to lie parallel.
RIDGE = 1e-10
# Part of random numbers in a start that else is the leading singular vectors.
START_NOISE = 0.05
# Keeps what is zero from being divided by zero.
TINY = torch.finfo(torch.float64).tiny

# Triples drawn for a tensor and stage; on so many of them the error of the scores is measured.
TRIPLES = 8192
MEASURED = 1024
# How far the metric goes from that of the weights (0) to that of the scores' mean square (1). Half way, their geometric
# mean, changed the final probabilities less than either end at ranks from 8 to 64: the mean square is ruled by the many
# spans that are far from being entities.
METRIC_EXPONENT = 0.5
# Least second moment along any direction, as a part of their mean: what the sample never shows may still occur.
LEAST_MOMENT = 1e-3

SPAN_STAGE, CROSS_SPAN_STAGE = "span", "cross-span"


class Triples(NamedTuple):
    """What a tensor is applied to: heads [n, d+1], insides [n, R, d] (or R = 1: the same for every label), tails."""

    heads: Tensor
    insides: Tensor
    tails: Tensor


# Name of a tensor within the head → stage → what it meets there.
Drawn = dict[str, dict[str, Triples]]


@dataclass(frozen=True)
class TensorReport:
    """One tensor, compressed.

    Attributes:
        name: of the module within the head.
        numbers_before, numbers_after: parameters.
        weight_error: relative Frobenius error. Large is normal and harmless where it is the random initialisation that
            is lost.
        score_errors: stage → root mean square of the scores' difference, over the standard deviation of the exact ones;
            empty without a sample.
    """

    name: str
    numbers_before: int
    numbers_after: int
    weight_error: float
    score_errors: dict[str, float]


@dataclass(frozen=True)
class CompressionReport:
    """What a compression did.

    Attributes:
        rank: ρ.
        tensors: one report a tensor.
        numbers_before, numbers_after: parameters of the whole model.
        agreement: F1 of the compressed model's entities in the sample against those of the exact model; None without a
            sample.
    """

    rank: int
    tensors: tuple[TensorReport, ...]
    numbers_before: int
    numbers_after: int
    agreement: float | None


def compress_triaffine(
    model: TriaffineForNestedNER,
    rank: int,
    sample: Iterable[Mapping[str, Tensor]] | None = None,
    sweeps: int = SWEEPS,
) -> tuple[TriaffineForNestedNER, CompressionReport]:
    """A copy of the model whose triaffine tensors have rank `rank`; the model itself stays as it is.

    The same model, rank and sample give the same result. Computed in float64, one label at a time, on the model's
    device: a sweep costs about 2·d³·ρ multiplications a label.

    Args:
        model: trained, with `triaffine_rank=None`.
        rank: ρ; the factors must be smaller than the tensors.
        sample: batches of model inputs like those the model is meant for; a few hundred sentences suffice, labels are
            not read. Without it the error of the weights is made small, and small ranks lose more.
        sweeps: most rounds of alternating least squares.

    Raises:
        ValueError: the model has no triaffine tensors or low-rank ones, the rank is none, the sample has no words.
    """
    tensors = _full_tensors(model)
    _check_rank(rank, tensors)
    batches = None if sample is None else list(sample)
    drawn, expected = ({}, []) if batches is None else _draw_triples(model, batches)
    low_rank, reports = {}, []
    for name, tensor in tqdm(tensors.items(), desc="Compressing", leave=False, disable=None):
        low_rank[name] = _compress_tensor(tensor, rank, drawn.get(name, {}), sweeps)
        reports.append(_report_tensor(name, tensor, low_rank[name], drawn.get(name, {})))
    # Whoever is in the memo counts as copied already: all but the tensors is, and they are never held twice.
    compressed = copy.deepcopy(model, {id(tensors[name]): low_rank[name] for name in tensors})
    compressed.config.triaffine_rank = rank
    agreement = None if batches is None else _agreement(_predict(compressed, batches), expected)
    return compressed, CompressionReport(
        rank, tuple(reports), model.num_parameters(), compressed.num_parameters(), agreement
    )


def format_report(report: CompressionReport) -> str:
    """The report as a plain-text table, errors in percent."""
    width = max(len(tensor.name) for tensor in report.tensors)
    lines = [f"{'':{width}}      numbers  at rank {report.rank:<4d}  error of: weights  span scores  cross-span scores"]
    for tensor in report.tensors:
        errors = [tensor.weight_error, *(tensor.score_errors.get(stage) for stage in (SPAN_STAGE, CROSS_SPAN_STAGE))]
        weights, span, cross_span = ("–" if error is None else f"{100 * error:.2f}" for error in errors)
        lines.append(
            f"{tensor.name:{width}}  {tensor.numbers_before:11,d}  {tensor.numbers_after:12,d}  "
            f"{weights:>17}  {span:>11}  {cross_span:>17}"
        )
    lines.append(f"{'model':{width}}  {report.numbers_before:11,d}  {report.numbers_after:12,d}")
    if report.agreement is not None:
        lines.append(f"F1 of its entities in the sample, against the exact model's: {100 * report.agreement:.2f}")
    return "\n".join(lines)


def _full_tensors(model: TriaffineForNestedNER) -> dict[str, TriaffineTensor]:
    tensors = {name: part for name, part in model.head.named_modules() if isinstance(part, TriaffineTensor)}
    if not tensors:
        raise ValueError(
            f"The model has no triaffine tensor that could be compressed: its attention is "
            f"{model.config.attention!r}, its scoring {model.config.scoring!r}."
        )
    if model.config.triaffine_rank is not None:
        raise ValueError(
            f"The model is low-rank already (triaffine_rank={model.config.triaffine_rank}); only full tensors "
            "(triaffine_rank=None) can be compressed."
        )
    return tensors


def _check_rank(rank: int, tensors: Mapping[str, TriaffineTensor]) -> None:
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise ValueError(f"The rank is {rank!r}; it must be a whole number of at least 1.")
    dim, boundary, _ = next(iter(tensors.values())).weight.shape[1:]
    largest = (dim * boundary * boundary - 1) // (dim + 2 * boundary)
    if rank > largest:
        raise ValueError(
            f"At rank {rank} the factors would hold no fewer numbers than the tensors, whose width is {dim}; give a "
            f"rank of at most {largest}."
        )


# ---- What the tensors meet ----


@torch.no_grad()
def _draw_triples(model: TriaffineForNestedNER, batches: Sequence[Mapping[str, Tensor]]) -> tuple[Drawn, list]:
    """Triples that each tensor meets in the sample, and the entities that the model finds in it."""
    sentences = sum(int((batch["num_words"] > 0).sum()) for batch in batches)
    if sentences == 0:
        raise ValueError("The sample has no words; give batches of sentences that the model is meant for.")
    sampler = _TripleSampler(math.ceil(TRIPLES / sentences))
    hook = model.head.register_forward_hook(sampler)
    try:
        entities = _predict(model, batches)
    finally:
        hook.remove()
    return sampler.joined(), entities


@torch.no_grad()
def _predict(model: TriaffineForNestedNER, batches: Sequence[Mapping[str, Tensor]]) -> list[list[Entity]]:
    """Entities of each sentence, without dropout; the model stays in its mode."""
    id2label: Any = model.config.id2label
    was_training = model.training
    model.eval()
    entities: list[list[Entity]] = []
    for batch in tqdm(batches, desc="Reading the sample", leave=False, disable=None):
        inputs = {name: values.to(model.device) for name, values in batch.items() if name != "labels"}
        entities += decode_batch(model(**inputs), id2label)
    model.train(was_training)
    return entities


def _agreement(found: list[list[Entity]], expected: list[list[Entity]]) -> float:
    scores = score_entities(found, expected)
    return scores["f1"] if scores["predicted"] or scores["gold"] else 1.0


class _TripleSampler:
    """Forward hook of the span head that draws `count` triples a sentence, tensor and stage; the same at every run."""

    def __init__(self, count: int):
        self.count = count
        self.generator = torch.Generator().manual_seed(0)
        self.drawn: dict[tuple[str, str], list[Triples]] = defaultdict(list)

    def __call__(self, head: TriaffineSpanHead, inputs: tuple, output: SpanHeadOutput) -> None:
        hidden, lengths = inputs[:2]
        attention, boundaries = head.attention(hidden)
        scoring, values = head.scoring(hidden, boundaries)
        for name, factor in (("attention.triaffine", attention), ("scoring.triaffine", scoring)):
            if isinstance(factor, TriaffineFactor):
                self._draw_words(name, factor, lengths.tolist(), head.config.max_span_width)
        if output.span_attentions is None:  # no cross-span stage
            return
        # h_gr [B, R, m, d]
        spans = output.span_attentions.permute(0, 3, 1, 2).to(values.dtype) @ values.unsqueeze(1)
        stage = head.cross_span
        for name, of_boundaries, of_span in (
            ("attention", stage.attention_boundaries, stage.attention_span),
            ("scoring", stage.scoring_boundaries, stage.scoring_span),
        ):
            name = f"{name}.triaffine" if stage.shares else f"cross_span.{name}_triaffine"
            self._draw_candidates(name, of_boundaries(hidden), of_span(spans), output)

    def _draw_words(self, name: str, factor: TriaffineFactor, lengths: list[int], max_width: int | None) -> None:
        """i ≤ k ≤ j, at most `max_width` words apart."""
        for row, words in enumerate(lengths):
            if words == 0:
                continue
            width = min(max_width or words, words)
            first = self._draw(words - width + 1, 1)
            i, k, j = (first + self._draw(width, 3)).sort(-1).values.to(factor.heads.device).unbind(-1)
            triples = Triples(factor.heads[row, i], factor.insides[row, k].unsqueeze(1), factor.tails[row, j])
            self.drawn[name, SPAN_STAGE].append(triples)

    def _draw_candidates(
        self, name: str, boundaries: tuple[Tensor, Tensor], spans: Tensor, output: SpanHeadOutput
    ) -> None:
        """The boundaries of a candidate l with the representation of a candidate g, from each label's point of view."""
        heads, tails = boundaries
        candidates, masks = output.candidates, output.candidate_mask
        assert candidates is not None
        assert masks is not None
        for row, mask in enumerate(masks):
            drawn = mask.nonzero().squeeze(-1)
            if len(drawn) == 0:
                continue
            scored, related = drawn[self._draw(len(drawn), 2).to(drawn.device)].unbind(-1)
            i, j = candidates[row, scored].unbind(-1)
            insides = spans[row, :, related].transpose(0, 1)
            triples = Triples(append_one(heads[row, i]), insides, append_one(tails[row, j]))
            self.drawn[name, CROSS_SPAN_STAGE].append(triples)

    def _draw(self, numbers: int, columns: int) -> Tensor:
        return torch.randint(numbers, (self.count, columns), generator=self.generator)

    def joined(self) -> Drawn:
        result: Drawn = defaultdict(dict)
        for (name, stage), parts in self.drawn.items():
            joined = Triples(*map(torch.cat, zip(*parts, strict=True)))
            order = torch.randperm(len(joined.heads), generator=self.generator).to(joined.heads.device)
            result[name][stage] = Triples(*(vectors[order] for vectors in joined))
        return result


# ---- One tensor ----


@torch.no_grad()
def _compress_tensor(tensor: TriaffineTensor, rank: int, drawn: Mapping[str, Triples], sweeps: int) -> TriaffineTensor:
    """The tensor's best approximation of this rank, in the metric of the vectors that it meets."""
    labels, dim = tensor.weight.shape[:2]
    roots = _metric_roots(drawn.values()) if drawn else None
    factors: dict[str, list[Tensor]] = {"inside": [], "head": [], "tail": []}
    for of_label in tensor.weight:
        parts = _decompose_in_metric(of_label.double(), rank, roots, sweeps)
        for name, part in zip(factors, parts, strict=True):
            factors[name].append(part.to(of_label.dtype))
    with torch.device("meta"):  # not initialised at random, only to be filled
        low_rank = TriaffineTensor(labels, dim, rank, tensor.std)
    low_rank.load_state_dict({name: torch.stack(parts) for name, parts in factors.items()}, assign=True)
    return low_rank.train(tensor.training)


def _metric_roots(drawn: Iterable[Triples]) -> list[tuple[Tensor, Tensor]]:
    """For insides, heads and tails: a root Q of the metric, and its inverse transposed, [D, D] each.

    The metric is a power of the vectors' second moments; every stage counts the same.
    """
    moments: list[Any] = [0, 0, 0]
    for triples in drawn:
        for axis, vectors in enumerate((triples.insides, triples.heads, triples.tails)):
            rows = vectors.double().flatten(0, -2)
            moment = rows.mT @ rows
            moments[axis] = moments[axis] + moment / moment.trace().clamp(min=TINY)
    roots = []
    for moment in moments:
        values, vectors = torch.linalg.eigh(moment)
        relative = values.clamp(min=0) / values.mean().clamp(min=TINY) + LEAST_MOMENT
        scale = relative ** (METRIC_EXPONENT / 2)
        roots.append((vectors * scale, vectors / scale))
    return roots


def _decompose_in_metric(
    tensor: Tensor, rank: int, roots: list[tuple[Tensor, Tensor]] | None, sweeps: int
) -> list[Tensor]:
    """Factors of tensor [c, a, e]: those of the tensor seen along the roots' directions, turned back."""
    if roots is None:
        return decompose(tensor, rank, sweeps)
    seen = torch.einsum("cae,cx,ay,ez->xyz", tensor, *(root for root, _ in roots))
    return [inverse @ factor for (_, inverse), factor in zip(roots, decompose(seen, rank, sweeps), strict=True)]


def _report_tensor(
    name: str, tensor: TriaffineTensor, low_rank: TriaffineTensor, drawn: Mapping[str, Triples]
) -> TensorReport:
    weight = at_least_float32(tensor.weight.detach())
    head, inside, tail = (at_least_float32(part.detach()) for part in (low_rank.head, low_rank.inside, low_rank.tail))
    factors = head, inside, tail
    return TensorReport(
        name,
        numbers_before=weight.numel(),
        numbers_after=sum(factor.numel() for factor in factors),
        weight_error=_weight_error(weight, factors),
        score_errors={stage: _score_error(weight, factors, triples) for stage, triples in drawn.items()},
    )


def _weight_error(weight: Tensor, factors: LowRank) -> float:
    difference = total = 0.0
    for exact, head, inside, tail in zip(weight, *factors, strict=True):
        approximate = torch.einsum("cp,ap,ep->cae", inside.double(), head.double(), tail.double())
        difference += float((exact - approximate).square().sum())
        total += float(exact.double().square().sum())
    return math.sqrt(difference / total) if total else 0.0


def _score_error(weight: Tensor, factors: LowRank, triples: Triples) -> float:
    heads, insides, tails = (vectors[:MEASURED].to(weight.dtype) for vectors in triples)
    insides = insides.transpose(0, 1)
    head, inside, tail = factors
    approximate = ((heads @ head) * (insides @ inside) * (tails @ tail)).sum(-1)
    exact = torch.cat(
        [
            # [n, (d+1)²] × [R, (d+1)², d] → [R, n, d]
            (((u.unsqueeze(-1) * v.unsqueeze(-2)).flatten(1) @ weight.flatten(2).mT) * x).sum(-1)
            for u, x, v in zip(heads.split(256), insides.split(256, dim=1), tails.split(256), strict=True)
        ],
        dim=1,
    ).double()
    spread = exact.std(correction=0).clamp(min=TINY)
    return float((exact - approximate).square().mean().sqrt() / spread)


# ---- Rank-one terms ----


def decompose(tensor: Tensor, rank: int, sweeps: int = SWEEPS) -> list[Tensor]:
    """Factors [c, ρ], [a, ρ], [e, ρ] with Σ_ρ inside ⊗ head ⊗ tail ≈ tensor [c, a, e], by least squares (CP, PARAFAC).

    Alternating least squares, each sweep starting ahead of the last one's result in the direction it took; where that
    overshoots, the step is taken back and shortened. Deterministic. There is no best approximation to be sure of: this
    finds a good one.
    """
    norm = tensor.norm()
    if norm == 0:
        return [tensor.new_zeros(size, rank) for size in tensor.shape]
    tensor = tensor / norm
    factors, error = _sweep(tensor, _start(tensor, rank))
    ahead, momentum = factors, 0.5
    for _ in range(sweeps - 1):
        found, error_found = _sweep(tensor, ahead)
        if error_found < error:
            ahead = [new + momentum * (new - old) for new, old in zip(found, factors, strict=True)]
            gain = error - error_found
            factors, error, momentum = found, error_found, 1.05 * momentum
            if gain < TOLERANCE * error or error < EXACT:
                break
        elif ahead is factors:
            break
        else:
            ahead, momentum = factors, momentum / 2
    return [factor * norm ** (1 / 3) for factor in factors]


def _start(tensor: Tensor, rank: int) -> list[Tensor]:
    """The leading singular vectors of each axis; random numbers added, and alone where the axis has no more."""
    generator = torch.Generator().manual_seed(0)
    factors = []
    for axis, size in enumerate(tensor.shape):
        factor = torch.randn(size, rank, generator=generator, dtype=tensor.dtype).to(tensor.device) / size**0.5
        unfolded = tensor.movedim(axis, 0).flatten(1)
        leading = torch.linalg.eigh(unfolded @ unfolded.mT).eigenvectors.flip(-1)[:, :rank]
        count = leading.shape[1]
        factor[:, :count] = leading + START_NOISE * factor[:, :count]
        factors.append(factor)
    return factors


def _sweep(tensor: Tensor, factors: list[Tensor]) -> tuple[list[Tensor], float]:
    """One round over the axes, the inside axis twice; and the squared error, for a tensor of norm 1.

    No Khatri-Rao product is made: the tensor is contracted with one factor, which serves the other two axes.
    """
    inside, head, tail = factors
    over_tails = tensor @ tail  # [c, a, p]
    head = _solve(_gram(inside) * _gram(tail), (over_tails * inside.unsqueeze(1)).sum(0))
    inside = _solve(_gram(head) * _gram(tail), (over_tails * head).sum(1))
    inside, head, tail = _balance(inside, head, tail)
    over_heads = tensor.mT @ head  # [c, e, p]
    tail = _solve(_gram(head) * _gram(inside), (over_heads * inside.unsqueeze(1)).sum(0))
    gram, projected = _gram(head) * _gram(tail), (over_heads * tail).sum(1)
    inside = _solve(gram, projected)
    error = 1 - 2 * (projected * inside).sum() + (gram * _gram(inside)).sum()
    return _balance(inside, head, tail), float(error)


def _gram(factor: Tensor) -> Tensor:
    return factor.mT @ factor


def _solve(gram: Tensor, projected: Tensor) -> Tensor:
    """The factor [D, ρ] of the least squares problem with these normal equations."""
    ridge = RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    return torch.linalg.solve(gram + ridge, projected.mT).mT


def _balance(*factors: Tensor) -> list[Tensor]:
    """The same terms, each with equally long vectors on all axes."""
    lengths = [factor.norm(dim=0).clamp(min=TINY) for factor in factors]
    common = torch.stack([length.log() for length in lengths]).mean(0).exp()
    return [factor * (common / length) for factor, length in zip(factors, lengths, strict=True)]
