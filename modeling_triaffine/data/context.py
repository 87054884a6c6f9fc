"""Context of a sentence, made from its neighbours in the document.

Holds what the words of context are; how many sub-words of them the encoder sees is the processor's matter.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import Any, TypeVar

from datasets import Dataset, DatasetDict
from datasets.fingerprint import Hasher

from .schema import CONTEXT_FIELDS

CONTEXTS = ("none", "previous_sentence", "document")

AnyDataset = TypeVar("AnyDataset", Dataset, DatasetDict)


def add_context(dataset: AnyDataset, context: str, max_tokens: int) -> AnyDataset:
    """Fills in `left_tokens` and `right_tokens` where the corpus brings none of its own.

    Neighbours are the sentences of the same `doc_id`, in the order of `sent_id`, within the data set given (within each
    split of a `DatasetDict`). Records that bring their own context (lists, not null) are kept as they are.

    Args:
        dataset: of the schema; order and columns stay.
        context: "none": nothing, both sides empty; "previous_sentence": the sentence before on the left, nothing on the
            right (the published setting on GENIA); "document": as many neighbouring words as there are, on both sides.
        max_tokens: the most words a side, the nearest ones; a sentence is cut where it is reached.

    Raises:
        ValueError: `context` is none of these, or `max_tokens` is negative.
        TypeError: the data set is a streaming one, whose neighbours are not at hand.
    """
    if context not in CONTEXTS:
        raise ValueError(f"There is no context {context!r}. Choose one of {', '.join(CONTEXTS)}.")
    if max_tokens < 0:
        raise ValueError(f"max_tokens is {max_tokens}, but a number of words cannot be negative. Give 0 or more.")
    if isinstance(dataset, DatasetDict):
        return DatasetDict({split: add_context(part, context, max_tokens) for split, part in dataset.items()})
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"add_context needs a Dataset or DatasetDict, and was given a {type(dataset).__name__}, which does not "
            f"hold a sentence's neighbours. Load the corpus without streaming=True."
        )
    neighbours = _Neighbours(dataset, context, max_tokens)
    return dataset.map(
        neighbours.fill_in,
        with_indices=True,
        features=dataset.features,
        new_fingerprint=Hasher.hash([dataset._fingerprint, context, max_tokens]),  # else all the words are hashed
        desc="Adding context",
    )


class _Neighbours:
    """The words around each sentence of a data set.

    A document's words are one list; a sentence knows where in it it begins and ends, so that context is a slice.
    """

    def __init__(self, dataset: Dataset, context: str, max_tokens: int):
        self.context = context
        self.max_tokens = max_tokens
        self.places: dict[int, tuple[list[str], int, int, int]] = {}  # row → words, previous begin, begin, end
        if context != "none":
            self._locate(dataset)

    def _locate(self, dataset: Dataset) -> None:
        documents: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for row, (doc_id, sent_id) in enumerate(zip(dataset["doc_id"], dataset["sent_id"], strict=True)):
            documents[doc_id].append((sent_id, row))
        tokens = dataset["tokens"][:]
        for sentences in documents.values():
            rows = [row for _, row in sorted(sentences)]
            words = [word for row in rows for word in tokens[row]]
            begins = list(accumulate((len(tokens[row]) for row in rows), initial=0))
            for position, row in enumerate(rows):
                previous = begins[max(position - 1, 0)]
                self.places[row] = words, previous, begins[position], begins[position + 1]

    def fill_in(self, record: dict[str, Any], row: int) -> dict[str, list[str]]:
        """The two context columns of the record in that row of the data set."""
        if any(record[side] is not None for side in CONTEXT_FIELDS):
            return {side: record[side] or [] for side in CONTEXT_FIELDS}
        if self.context == "none":
            return {side: [] for side in CONTEXT_FIELDS}
        words, previous, begin, end = self.places[row]
        farthest = previous if self.context == "previous_sentence" else 0
        right_end = end if self.context == "previous_sentence" else end + self.max_tokens
        return {
            "left_tokens": words[max(farthest, begin - self.max_tokens) : begin],
            "right_tokens": words[end:right_end],
        }
