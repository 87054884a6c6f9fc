"""The case table: what a model says of the spans of a sentence before and after its cross-span stage, beside gold."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..data.statistics import Span
from ..inference import rank_of_span, read_labels
from ..model.configuration_triaffine import NONE_LABEL
from ..model.modeling_triaffine import NestedNEROutput, TriaffineForNestedNER, evaluating
from ..model.processing_triaffine import TriaffineProcessor
from .prediction import word_batches

# A label and its probability.
Reading = tuple[str, float]


@dataclass(frozen=True)
class CaseSpan:
    """One span of a case.

    Attributes:
        start, end: in words, `end` exclusive; text: these words with spaces between them.
        gold: the span's gold types; none for what is no entity.
        label, probability: the span's label by p, or `None`; with several, all of them, joined by " + ", and the
            probability of the likeliest.
        rank: place among the sentence's spans by their likeliest entity label, from 1, as candidates are chosen; None
            where the span is wider than the model scores.
        final_label, final_probability: the same by pᶜ; None where the span is no candidate, or the model
            has no cross-span stage.
    """

    start: int
    end: int
    text: str
    gold: list[str]
    label: str
    probability: float
    rank: int | None
    final_label: str | None
    final_probability: float | None


@dataclass(frozen=True)
class Case:
    """A sentence with the spans that are gold, or entities by p or by pᶜ, sorted by start, then longest first."""

    id: str
    text: str
    num_spans: int
    spans: list[CaseSpan]


def make_cases(
    model: TriaffineForNestedNER, processor: TriaffineProcessor, records: Sequence[dict[str, Any]]
) -> list[Case]:
    """The case of each record, which has `id`, `tokens`, `entities`, and `pos` and context where the model reads them.

    Sentences run alone; their scores are those of any batch.
    """
    if not records:
        return []  # nor a progress bar of nothing
    cases: dict[int, Case] = {}
    with evaluating(model):
        for (row,), inputs in word_batches(model, processor, records, batch_size=1, doing="Making cases"):
            cases[row] = _make_case(model.config, records[row], model(**inputs))
    return [cases[row] for row in range(len(records))]


def _make_case(config: Any, record: Mapping[str, Any], output: NestedNEROutput) -> Case:
    words = record["tokens"]
    gold: dict[Span, set[str]] = defaultdict(set)
    for entity in record["entities"]:
        gold[entity["start"], entity["end"]].add(entity["type"])
    assert output.span_logits is not None
    everywhere = [(i, j) for i in range(len(words)) for j in range(i, len(words))]
    heads, tails = zip(*everywhere, strict=True)
    before = _readings(config, everywhere, output.span_logits[0, list(heads), list(tails)], not config.cross_span)
    after: dict[Span, Reading] = {}
    if output.candidates is not None and output.logits is not None:
        after = _readings(config, output.candidates[0].tolist(), output.logits[0], True)
    entities = {span for readings in (before, after) for span, (label, _) in readings.items() if label != NONE_LABEL}

    def describe(span: Span) -> CaseSpan:
        start, end = span
        is_scored = config.max_span_width is None or end - start <= config.max_span_width
        width, multi_label = config.max_span_width, config.multi_label
        rank = rank_of_span(output, (start, end - 1), width, multi_label)[0] if is_scored else None
        text = " ".join(words[start:end])
        return CaseSpan(start, end, text, sorted(gold[span]), *before[span], rank, *after.get(span, (None, None)))

    shown = sorted(entities | set(gold), key=lambda span: (span[0], -span[1]))
    return Case(record["id"], " ".join(words), len(everywhere), [describe(span) for span in shown])


def _readings(config: Any, spans: Sequence[Sequence[int]], logits: Tensor, is_final: bool) -> dict[Span, Reading]:
    """Span (start, end exclusive) → its label, or labels, and the likeliest one's probability; logits [spans, R]."""
    return {
        (i, j + 1): (" + ".join(label for label, _ in labels), labels[0][1])
        for (i, j), labels in zip(spans, read_labels(config, logits, is_final), strict=True)
    }
