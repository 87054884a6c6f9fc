"""The context of a sentence, from its neighbours in the document.

Which words those are is decided in `text_triaffine.py`, for raw text and records alike; the processor decides how many
of their sub-words the encoder sees.
"""

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
    """Fills in `left_tokens` and `right_tokens` if the corpus has no context of its own.

    Neighbours are the sentences of the same `doc_id`, in the order of `sent_id`, within the data set (within each split
    of a `DatasetDict`). Records with their own context (lists, not null) are not changed.

    Args:
        dataset: of the schema; order and columns are kept.
        context: "none": both sides are empty; "previous_sentence": the previous sentence on the left, nothing on the
            right (the published setting on GENIA); "document": all neighbouring words on both sides.
        max_tokens: the maximum number of words on each side, the nearest ones.

    Raises:
        ValueError: `context` is none of these, or `max_tokens` is negative.
        TypeError: the data set is a streaming one.
    """
    if context not in CONTEXTS:
        raise ValueError(f"There is no context {context!r}. Choose one of {', '.join(CONTEXTS)}.")
    if max_tokens < 0:
        raise ValueError(f"max_tokens is {max_tokens}, which is negative. Give the maximum number of words, 0 or more.")
    if isinstance(dataset, DatasetDict):
        return DatasetDict({split: add_context(part, context, max_tokens) for split, part in dataset.items()})
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"add_context needs a Dataset or DatasetDict, but got a {type(dataset).__name__}, in which the neighbours "
            "of a sentence are not accessible. Load the corpus without streaming=True."
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
        new_fingerprint=Hasher.hash([dataset._fingerprint, context, max_tokens]),  # otherwise all words are hashed
        desc="Adding context",
    )


def _neighbours_by_row(dataset: Dataset, context: str, max_tokens: int) -> dict[int, tuple[list[str], list[str]]]:
    """Row → the words on the left and on the right of its sentence; empty for context "none"."""
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
