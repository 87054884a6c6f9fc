"""Metrics of one's own: what `compute_metrics` of a trainer is given, and the names of what it returns."""

from collections.abc import Mapping
from typing import Any

import datasets
from transformers import EvalPrediction
from transformers.trainer_utils import denumpify_detensorize

from ..evaluation.scoring import Sentences


class EntityPrediction(EvalPrediction):
    """The predicted and the gold entities of a data set: the argument of a trainer's `compute_metrics`.

    It unpacks to both, as transformers' own: `predictions, references = prediction`.

    Attributes:
        predictions: for each record a list of predicted entities {start, end (exclusive, in words), type, score}.
        references: for each record a list of gold entities {start, end, type}; also by transformers' name, `label_ids`.
        records: the data set, with `tokens`, `id` and all its other columns: `records[3]["tokens"]`.

    Examples:
        >>> from modeling_triaffine.training import EntityPrediction
        >>> def compute_metrics(prediction: EntityPrediction) -> dict[str, float]:
        ...     predicted, gold = prediction
        ...     return {"per_sentence": sum(map(len, predicted)) / len(gold)}
        >>> city = {"start": 0, "end": 1, "type": "City"}
        >>> compute_metrics(EntityPrediction([[city], []], [[city], [city]], records=None))
        {'per_sentence': 0.5}
    """

    def __init__(
        self,
        predictions: Sentences,
        references: Sentences,
        records: datasets.Dataset,
    ):
        entities: Any = (predictions, references)  # arrays in transformers
        super().__init__(*entities)
        self.references = references
        self.records = records


def prefix_metrics(metrics: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The metrics as Python numbers, with the prefix before the names that lack it."""
    numbers: dict[str, Any] = denumpify_detensorize(dict(metrics))
    return {name if name.startswith(f"{prefix}_") else f"{prefix}_{name}": value for name, value in numbers.items()}
