"""Sentences of given words as the model reads them: long ones in the windows of the model's processor.

Memory and time for a sentence grow faster than its length, and corpora have sentences of any length: a newspaper in
columns without blank lines is one of 200,000 words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model.decoding_triaffine import FoundInText
from ..model.text_triaffine import Piece
from ..nesting import Span
from .schema import CONTEXT_FIELDS
from .texts import moved

if TYPE_CHECKING:
    from ..model.processing_triaffine import TriaffineProcessor

WHOLE = Piece([])
"""Stands for all words of a record."""


class Window(NamedTuple):
    """A part of the record in a `row`: all of it, or the words of a `piece`, as a `record` of its own."""

    row: int
    record: Mapping[str, Any] | None = None
    piece: Piece = WHOLE


class Windows(Sequence[dict[str, Any]]):
    """Records as the model reads them: those of more than the processor's `max_sentence_words` in windows.

    A window is a record, too: its words with their parts of speech, the entities inside it, and what stands around it
    as context. Other records are as they were.

    Args:
        records: with `tokens`, and the other fields of records if they have them.
        processor: the model's processor; None: all records stay whole.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]], processor: TriaffineProcessor | None = None):
        from datasets import Dataset

        self.records = records
        sentences: Iterable[Sequence[str]] = (record["tokens"] for record in records)
        if isinstance(records, Dataset) and "tokens" in records.column_names:  # a transform may add the column
            sentences = records["tokens"]
        self._windows: list[Window] = []
        for row, tokens in enumerate(sentences):
            is_long = processor is not None and len(tokens) > processor.max_sentence_words
            self._windows += _cut(row, records[row], processor) if is_long else [Window(row)]

    def __len__(self) -> int:
        return len(self._windows)

    def __getitem__(self, number: Any) -> Any:
        window = self._windows[number]
        return self.records[window.row] if window.record is None else window.record

    def owns(self, number: int, start: int, end: int) -> bool:
        """An entity of a window, in its words (`end` exclusive), counts there and not in a neighbour."""
        piece = self._windows[number].piece
        return piece is WHOLE or piece.owns(start, end)

    def join(self, found: Iterable[Iterable[Any]]) -> list[list[Any]]:
        """The entities of each window, in its words → those of each record, in its own, each once."""
        by_record = [FoundInText() for _ in self.records]
        for window, entities in zip(self._windows, found, strict=True):
            by_record[window.row].add(window.piece, entities)
        for of_record in by_record:
            if of_record.words:  # windows overlap, and so their entities are not in order
                of_record.entities.sort(key=lambda entity: (entity["start"], -entity["end"]))
        return [of_record.entities for of_record in by_record]

    def join_spans(self, found: Iterable[Iterable[Span]]) -> list[list[Span]]:
        """The same for spans, (start, end exclusive)."""
        joined = self.join([{"start": start, "end": end} for start, end in spans] for spans in found)
        return [[(span["start"], span["end"]) for span in spans] for spans in joined]


def _cut(row: int, record: Mapping[str, Any], processor: Any) -> Iterator[Window]:
    """The windows of a long record."""
    entities = sorted(record.get("entities") or (), key=lambda entity: entity["start"])
    starts = [entity["start"] for entity in entities]
    for piece in processor.windows(record["tokens"], *(record.get(side) or () for side in CONTEXT_FIELDS)):
        start, end = piece.offsets[0][0], piece.offsets[-1][1]
        window = {**record, "tokens": piece.words, **dict(zip(CONTEXT_FIELDS, (piece.left, piece.right), strict=True))}
        if record.get("pos"):
            window["pos"] = record["pos"][start:end]
        if record.get("entities") is not None:
            near = entities[bisect_left(starts, start) : bisect_left(starts, end)]
            inside = (entity for entity in near if entity["end"] <= end)
            window["entities"] = [{**entity, **moved(entity, -start)} for entity in inside]
        yield Window(row, window, piece)


def spans_of(record: Mapping[str, Any]) -> set[Span]:
    """The spans of the entities, those of several types once."""
    return {(entity["start"], entity["end"]) for entity in record["entities"]}
