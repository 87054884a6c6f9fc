"""Case tables: a model's labels for the spans of a sentence before and after the cross-span stage, and gold."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..data.collator import encode_records
from ..data.windows import Windows
from ..model.configuration_triaffine import TriaffineConfig
from ..model.kinds_triaffine import NONE_LABEL
from ..model.model_triaffine import NestedNEROutput, TriaffineForNestedNER, evaluating
from ..model.processing_triaffine import TriaffineProcessor
from ..nesting import Span
from ..span_predictions import model_inputs, rank_of_span, read_labels

LabelAndProbability = tuple[str, float]


@dataclass(frozen=True)
class CaseSpan:
    """One span of a case.

    Attributes:
        start, end: in words, `end` exclusive; text: these words joined by spaces.
        gold: the gold types of the span; empty if it is not an entity.
        label, probability: the label by p (`"None"` if not an entity) and its probability; several labels are joined by
            " + ", with the probability of the likeliest.
        rank: rank among the spans of the sentence, from 1, by the likeliest entity label, as candidates are selected;
            None if the span exceeds `max_span_width`.
        final_label, final_probability: the same by pᶜ; None if the span is not a candidate or the model has no
            cross-span stage.
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
    """A sentence with its spans that are entities in gold, by p or by pᶜ, sorted by start, then longest first.

    num_spans: how many spans of the sentence are ranked.
    """

    id: str
    text: str
    num_spans: int
    spans: list[CaseSpan]


def make_cases(
    model: TriaffineForNestedNER, processor: TriaffineProcessor, records: Sequence[dict[str, Any]]
) -> list[Case]:
    """The case of each record, with `id`, `tokens`, `entities`, and `pos` and context if the model reads them.

    A sentence that the model reads in windows has a case for each.
    """
    processor.check_fits(model.config)
    windows = Windows(records, processor)
    features = encode_records(processor, windows) if records else []
    with evaluating(model):
        return [
            _make_case(model.config, window, model(**model_inputs(model, processor, [feature])))
            for window, feature in zip(windows, features, strict=True)
        ]


def _make_case(config: TriaffineConfig, record: Mapping[str, Any], output: NestedNEROutput) -> Case:
    words = record["tokens"]
    gold: dict[Span, set[str]] = defaultdict(set)
    for entity in record["entities"]:
        gold[entity["start"], entity["end"]].add(entity["type"])
    assert output.span_logits is not None
    everywhere = [(i, j) for i in range(len(words)) for j in range(i, len(words))]
    heads, tails = zip(*everywhere, strict=True)
    before = _label_spans(config, everywhere, output.span_logits[0, list(heads), list(tails)], not config.cross_span)
    after: dict[Span, LabelAndProbability] = {}
    if output.candidates is not None and output.logits is not None:
        after = _label_spans(config, output.candidates[0].tolist(), output.logits[0], True)
    entities = {span for labels in (before, after) for span, (label, _) in labels.items() if label != NONE_LABEL}

    width = config.max_span_width
    num_spans = rank_of_span(output, (0, 0), width, config.multi_label)[1]

    def describe(span: Span) -> CaseSpan:
        start, end = span
        is_ranked = width is None or end - start <= width
        rank = rank_of_span(output, (start, end - 1), width, config.multi_label)[0] if is_ranked else None
        text = " ".join(words[start:end])
        return CaseSpan(start, end, text, sorted(gold[span]), *before[span], rank, *after.get(span, (None, None)))

    shown = sorted(entities | set(gold), key=lambda span: (span[0], -span[1]))
    return Case(record["id"], " ".join(words), num_spans, [describe(span) for span in shown])


def _label_spans(
    config: TriaffineConfig, spans: Sequence[Sequence[int]], logits: Tensor, is_final: bool
) -> dict[Span, LabelAndProbability]:
    """Span (start, end exclusive) → its labels, joined, and the probability of the likeliest; logits [spans, R]."""
    return {
        (i, j + 1): (" + ".join(label for label, _ in labels), labels[0][1])
        for (i, j), labels in zip(spans, read_labels(config, logits, is_final), strict=True)
    }
