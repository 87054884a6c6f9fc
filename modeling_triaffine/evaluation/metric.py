"""`NestedNERMetric`: the scores of `scores.py` behind the interface of Hugging Face `evaluate`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import evaluate
from datasets import Features, List, Value

from .scores import Scores, Sentences, as_dicts, paired_sentences, score_entities

Entities = Sequence[Mapping[str, Any]]

_ENTITIES = List({"start": Value("int64"), "end": Value("int64"), "type": Value("string")})


class NestedNERMetric(evaluate.Metric):
    """Computes nested NER scores as an `evaluate.Metric`; takes the constructor arguments of that class.

    The scores are those of `score_entities`, with its errors.

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

    def add(self, *, prediction: Entities, reference: Entities, **kwargs: Any) -> None:
        """Adds the entities of one sentence."""
        self.add_batch(predictions=[prediction], references=[reference], **kwargs)

    # Arrow would truncate floats to integers, reject the other keys of pipeline output, and lose sentences where one
    # side is empty; hence entities are checked and normalised first.
    def add_batch(self, *, predictions: Iterable[Entities], references: Iterable[Entities], **kwargs: Any) -> None:
        """Adds the entities of several sentences."""
        pairs = list(paired_sentences(list(predictions), list(references)))
        found, gold = [as_dicts(found) for found, _ in pairs], [as_dicts(gold) for _, gold in pairs]
        super().add_batch(predictions=found, references=gold, **kwargs)

    def _compute(self, *, predictions: Sentences, references: Sentences, labels: Iterable[str] | None = None) -> Scores:
        return score_entities(predictions, references, labels)
