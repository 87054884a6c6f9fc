"""Batches for training: the processor pads, the collator adds the labels of all spans and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..configuration_triaffine import NONE_LABEL
from ..processing_triaffine import TriaffineProcessor


class DataCollatorForNestedNER:
    """Pads encoded sentences and makes the label matrix [B, N, N] of their entities.

    Label of span (i, j), both inclusive: the entity's, None's where there is none, -100 where no span is (i > j, beyond
    the sentence). Of two types on one span the matrix holds the last in label order; `lost` counts the others.

    Args:
        processor: the [`TriaffineProcessor`] the sentences were encoded with.
        label2id: label ids of the model's configuration.

    A feature without `entities` makes a batch without labels.
    """

    def __init__(self, processor: TriaffineProcessor, label2id: Mapping[str, int]):
        self.processor = processor
        self.label2id = dict(label2id)
        self.lost = 0

    def __call__(self, features: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        batch = self.processor.pad(features)
        if "entities" in features[0]:
            batch["labels"] = self._label_matrix(features, max(1, int(batch["num_words"].max())))
        return batch

    def _label_matrix(self, features: Sequence[dict[str, Any]], num_words: int) -> Tensor:
        labels = torch.full((len(features), num_words, num_words), -100)
        for matrix, feature in zip(labels, features, strict=True):
            length = int(feature["num_words"])
            spans = torch.ones(length, length, dtype=torch.bool).triu()
            matrix[:length, :length][spans] = self.label2id[NONE_LABEL]
            taken: dict[tuple[int, int], set[int]] = {}
            for entity in feature["entities"]:
                span = entity["start"], entity["end"] - 1
                taken.setdefault(span, set()).add(self._label_of(entity))
            for (i, j), of_span in taken.items():
                matrix[i, j] = max(of_span)
                self.lost += len(of_span) - 1
        return labels

    def _label_of(self, entity: Mapping[str, Any]) -> int:
        label = self.label2id.get(entity["type"])
        if label is None or entity["type"] == NONE_LABEL:
            known = ", ".join(name for name in self.label2id if name != NONE_LABEL)
            raise ValueError(
                f"The data has an entity of type {entity['type']!r}, which the model has no label for; it knows "
                f"{known}. Train with all types of the data, or drop the entities of this one."
            )
        return label
