"""Sentences of given words as the model reads them: long ones in the windows of the model's processor.

Memory and time for a sentence grow faster than its length, and corpora have sentences of any length: a newspaper in
columns without blank lines is one of 200,000 words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model.text_triaffine import Piece
from ..nesting import Span
from .schema import CONTEXT_FIELDS

if TYPE_CHECKING:
    from ..model.processing_triaffine import TriaffineProcessor


class Window(NamedTuple):
    """A part of the record in a `row`: all of it, or as another record the words of a `piece`, from `start`."""

    row: int
    record: dict[str, Any] | None = None
    piece: Piece | None = None
    start: int = 0


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
        return piece is None or piece.owns(start, end)

    def join(self, found: Iterable[Iterable[Mapping[str, Any]]]) -> list[list[dict[str, Any]]]:
        """The entities of each window, in its words → those of each record, in its own, each once."""
        by_record: list[list[dict[str, Any]]] = [[] for _ in self.records]
        for number, (window, entities) in enumerate(zip(self._windows, found, strict=True)):
            own = (entity for entity in entities if self.owns(number, entity["start"], entity["end"]))
            by_record[window.row] += (_moved(entity, window.start) for entity in own)
        for row in {window.row for window in self._windows if window.piece}:
            by_record[row].sort(key=lambda entity: (entity["start"], -entity["end"]))  # those of windows overlap
        return by_record

    def join_spans(self, found: Iterable[Iterable[Span]]) -> list[list[Span]]:
        """The same for spans, (start, end exclusive)."""
        joined = self.join([{"start": start, "end": end} for start, end in spans] for spans in found)
        return [[(span["start"], span["end"]) for span in spans] for spans in joined]

    def missed_spans(self) -> int:
        """Returns the number of spans of entities that are in no window of their sentence."""
        inside = self.join_spans(map(spans_of, self))
        return sum(
            len(spans_of(self.records[row])) - len(inside[row]) for row in {w.row for w in self._windows if w.piece}
        )


def _cut(row: int, record: Mapping[str, Any], processor: Any) -> Iterator[Window]:
    """The windows of a long record."""
    entities = sorted(record.get("entities") or (), key=lambda entity: entity["start"])
    starts = [entity["start"] for entity in entities]
    for piece in processor.windows(record["tokens"], *(record.get(side) or () for side in CONTEXT_FIELDS)):
        start, end = piece.offsets[0][0], piece.offsets[-1][1]
        sides = zip(CONTEXT_FIELDS, (piece.left, piece.right), strict=True)
        window = {**record, "tokens": piece.words, **dict(sides)}
        if record.get("pos"):
            window["pos"] = record["pos"][start:end]
        if record.get("entities") is not None:
            near = entities[bisect_left(starts, start) : bisect_left(starts, end)]
            window["entities"] = [_moved(entity, -start) for entity in near if entity["end"] <= end]
        yield Window(row, window, piece, start)


def spans_of(record: Mapping[str, Any]) -> set[Span]:
    """The spans of the entities, those of several types once."""
    return {(entity["start"], entity["end"]) for entity in record["entities"]}


def _moved(entity: Mapping[str, Any], words: int) -> dict[str, Any]:
    return {**entity, "start": entity["start"] + words, "end": entity["end"] + words}
