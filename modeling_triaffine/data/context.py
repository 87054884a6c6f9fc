"""Context of a sentence, made from its neighbours in the document.

Which words those are is decided in `text_triaffine.py`, for raw text and records alike; how many sub-words of them the
encoder sees is the processor's matter.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, TypeVar

from datasets import Dataset, DatasetDict
from datasets.fingerprint import Hasher

from ..model.configuration_triaffine import CHOICES
from ..model.text_triaffine import neighbouring_words
from .schema import CONTEXT_FIELDS

CONTEXTS = CHOICES["context"]

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
    neighbours = _neighbours_by_row(dataset, context, max_tokens)

    def fill_in(record: dict[str, Any], row: int) -> dict[str, list[str]]:
        if any(record[side] is not None for side in CONTEXT_FIELDS):
            return {side: record[side] or [] for side in CONTEXT_FIELDS}
        return dict(zip(CONTEXT_FIELDS, neighbours.get(row, ([], [])), strict=True))

    return dataset.map(
        fill_in,
        with_indices=True,
        features=dataset.features,
        new_fingerprint=Hasher.hash([dataset._fingerprint, context, max_tokens]),  # else all the words are hashed
        desc="Adding context",
    )


def _neighbours_by_row(dataset: Dataset, context: str, max_tokens: int) -> dict[int, tuple[list[str], list[str]]]:
    """Words on the left and on the right of each row's sentence; nothing for context "none"."""
    if context == "none":
        return {}
    documents: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, (doc_id, sent_id) in enumerate(zip(dataset["doc_id"], dataset["sent_id"], strict=True)):
        documents[doc_id].append((sent_id, row))
    tokens = dataset["tokens"][:]
    neighbours: dict[int, tuple[list[str], list[str]]] = {}
    for sentences in documents.values():
        rows = [row for _, row in sorted(sentences)]
        sides = neighbouring_words([tokens[row] for row in rows], context, max_tokens)
        neighbours.update(zip(rows, zip(*sides, strict=True), strict=True))
    return neighbours
