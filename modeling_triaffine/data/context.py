"""The context of a sentence, from its neighbours in the document.

Which words those are is decided in `text_triaffine.py`, for raw text and records alike; the processor decides how many
of their sub-words the encoder sees.
"""

from collections import defaultdict
from typing import Any

from datasets import DatasetDict, Features
from datasets.fingerprint import Hasher

from ..model.options_triaffine import MODEL_OPTIONS
from ..model.text_triaffine import neighbouring_words
from .features import FEATURES, AnyDataset, as_records
from .schema import CONTEXT_FIELDS


def add_context(dataset: AnyDataset, context: str, max_tokens: int) -> AnyDataset:
    """Fills in `left_tokens` and `right_tokens` if the corpus has no context of its own.

    Neighbours are the sentences of the same `doc_id`, in the order of `sent_id`, within the data set (within each split
    of a `DatasetDict`); a sentence without a `doc_id` has none. Records with their own context (lists, not null) are
    not changed.

    Args:
        dataset: with `tokens`, and `doc_id` and `sent_id` unless `context` is "none"; order and columns are kept.
        context: "none": both sides are empty; "previous_sentence": the previous sentence on the left, nothing on the
            right (the published setting on GENIA); "document": all neighbouring words on both sides.
        max_tokens: the maximum number of words on each side, the nearest ones.

    Raises:
        ValueError: `context` is none of these, or a column is missing.
        TypeError: the data set is a streaming one.

    Examples:
        >>> from datasets import Dataset
        >>> from modeling_triaffine.data import add_context
        >>> columns = {"doc_id": ["1", "1"], "sent_id": [0, 1], "tokens": [["Rain", "."], ["Sun"]]}
        >>> add_context(Dataset.from_dict(columns), "document", max_tokens=128)["left_tokens"][:]
        [[], ['Rain', '.']]
    """
    MODEL_OPTIONS["context"].check(context)
    if isinstance(dataset, DatasetDict):
        return DatasetDict({split: add_context(part, context, max_tokens) for split, part in dataset.items()})
    dataset = as_records(dataset, ["tokens"] if context == "none" else ["tokens", "doc_id", "sent_id"], "add_context")
    documents: dict[str | int, list[tuple[int, int]]] = defaultdict(list)
    if context != "none":
        for row, (doc_id, sent_id) in enumerate(zip(dataset["doc_id"], dataset["sent_id"], strict=True)):
            documents[row if doc_id is None else doc_id].append((sent_id, row))
    tokens = dataset["tokens"][:] if documents else []
    places: dict[int, tuple[list[list[str]], int]] = {}  # row → the sentences of its document, and its position
    for members in documents.values():
        rows = [row for _, row in sorted(members)]
        sentences = [tokens[row] for row in rows]
        places |= {row: (sentences, position) for position, row in enumerate(rows)}

    def fill_in(record: dict[str, Any], row: int) -> dict[str, list[str]]:
        if any(record.get(side) is not None for side in CONTEXT_FIELDS):
            return {side: record.get(side) or [] for side in CONTEXT_FIELDS}
        around = neighbouring_words(*places.get(row, ([], 0)), context, max_tokens)
        return dict(zip(CONTEXT_FIELDS, around, strict=True))

    return dataset.map(
        fill_in,
        with_indices=True,
        features=Features({**dataset.features, **{side: FEATURES[side] for side in CONTEXT_FIELDS}}),
        new_fingerprint=Hasher.hash([dataset._fingerprint, context, max_tokens]),  # otherwise all words are hashed
        desc="Adding context",
    )
