"""`NestedNERMetric`: the scores of `scoring.py` behind the interface of Hugging Face `evaluate`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import evaluate
from datasets import Features, List, Value

from .scores import Scores
from .scoring import Sentences, check_same_sentences, read_entities, score_entities

Entities = Sequence[Mapping[str, Any]]

_ENTITIES = List({"start": Value("int64"), "end": Value("int64"), "type": Value("string")})


class NestedNERMetric(evaluate.Metric):
    """Nested NER scores as an `evaluate.Metric`; takes the constructor arguments of that class.

    Examples:
        >>> from modeling_triaffine import NestedNERMetric
        >>> gold = [[{"start": 0, "end": 3, "type": "Person"}, {"start": 1, "end": 2, "type": "City"}], []]
        >>> metric = NestedNERMetric()
        >>> metric.add_batch(predictions=[gold[0][:1], []], references=gold)
        >>> metric.compute()["recall"]
        0.5
    """

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description="Exact-match precision, recall and F1 of entities that may be nested.",
            citation="",
            inputs_description="A list of entities for each sentence, and optionally `labels`, as of `score_entities`.",
            features=Features({"predictions": _ENTITIES, "references": _ENTITIES}),
        )

    def add(self, *, prediction: Entities | None = None, reference: Entities | None = None, **kwargs: Any) -> None:
        """Adds the entities of one sentence; `evaluate.combine` passes them as `predictions` and `references`."""
        sides = {"predictions": prediction, "references": reference, **kwargs}
        self.add_batch(**{side: [entities] for side, entities in sides.items()})

    # Arrow would truncate floats to integers, reject the other keys of pipeline output, and lose sentences where one
    # side is empty; hence entities are checked and normalised first.
    def add_batch(self, *, predictions: Iterable[Entities], references: Iterable[Entities], **kwargs: Any) -> None:
        """Adds the entities of several sentences."""
        rows: dict[str, list[Any]] = {"predictions": [], "references": []}
        for side, sentences in (("predictions", predictions), ("references", references)):
            for number, entities in enumerate(() if sentences is None else sentences):  # `compute` passes None
                found = sorted(read_entities(entities, f"{side}, sentence {number}"))
                rows[side].append([dict(zip(("start", "end", "type"), entity, strict=True)) for entity in found])
        check_same_sentences(**rows)
        super().add_batch(**rows, **kwargs)

    def _compute(self, *, predictions: Sentences, references: Sentences, labels: Iterable[str] | None = None) -> Scores:
        return score_entities(predictions, references, labels)
