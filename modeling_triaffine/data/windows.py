"""Sentences of given words as the model reads them: long ones in the windows of raw text.

Memory and time for a sentence grow faster than its length, and corpora have sentences of any length: a newspaper in
columns without blank lines is one of 200,000 words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model.text_triaffine import MAX_SENTENCE_WORDS, belongs, in_windows
from ..nesting import Span
from .schema import CONTEXT_FIELDS

if TYPE_CHECKING:
    from ..model.processing_triaffine import TriaffineProcessor

# Long sentences that are kept while their windows are read.
RECORDS_KEPT = 8


class Window(NamedTuple):
    """The words `start` to `end` (exclusive) of the record in a row, the first and last shared with other windows."""

    row: int
    start: int
    end: int
    shared_before: int
    shared_after: int


class Windows(Sequence[dict[str, Any]]):
    """Records as the model reads them: those of more than the processor's `max_sentence_words` in windows.

    A window is a record, too: its words with their parts of speech, the entities inside it, and what stands around it
    as context. It is made when it is read, so that a sentence of any length takes the memory of its windows. Other
    records are as they were.

    Args:
        records: with `tokens`, and the other fields of records if they have them.
        processor: that of the model; None: windows of the default size, without context.

    Attributes:
        places: for each window its place in the records; the row alone of a record that is whole.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]], processor: TriaffineProcessor | None = None):
        from datasets import Dataset

        self.records = records
        self.places: list[Window | int] = []
        self._context, self._reach, self._max_words = "none", 0, MAX_SENTENCE_WORDS
        if processor is not None:
            self._context, self._reach = processor.context, processor.max_subwords
            self._max_words = processor.max_sentence_words
        sentences: Iterable[Sequence[str]] = (record["tokens"] for record in records)
        if isinstance(records, Dataset) and "tokens" in records.column_names:  # a transform may add the column
            sentences = records["tokens"]
        for row, tokens in enumerate(sentences):
            if len(tokens) <= self._max_words:
                self.places.append(row)
                continue
            for piece in in_windows([((n, n + 1) for n in range(len(tokens)))], self._max_words):
                (start, _), (_, end) = piece.offsets[0], piece.offsets[-1]
                self.places.append(Window(row, start, end, piece.shared_before, piece.shared_after))
        self._kept: dict[int, tuple[dict[str, Any], list[int]]] = {}

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, number: Any) -> Any:
        place = self.places[number]
        if not isinstance(place, Window):
            return self.records[place]
        record, starts = self._long_record(place.row)
        words = slice(place.start, place.end)
        part = {**record, "tokens": record["tokens"][words]}
        part |= dict(zip(CONTEXT_FIELDS, self._around(place, record), strict=True))
        if "id" in record:
            part["id"] = f"{record['id']}, words {place.start} to {place.end - 1}"
        if record.get("pos"):
            part["pos"] = record["pos"][words]
        if record.get("entities") is not None:
            near = record["entities"][bisect_left(starts, place.start) : bisect_left(starts, place.end)]
            part["entities"] = [_moved(entity, -place.start) for entity in near if entity["end"] <= place.end]
        return part

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.__getitem__, range(len(self)))

    def owns(self, number: int, start: int, end: int) -> bool:
        """Whether an entity of a window, in its words (`end` exclusive), counts there and not in a neighbour."""
        place = self.places[number]
        if not isinstance(place, Window):
            return True
        return belongs(start, end, place.end - place.start, place.shared_before, place.shared_after)

    def join(self, found: Iterable[Iterable[Mapping[str, Any]]]) -> list[list[dict[str, Any]]]:
        """The entities of each window, in its words → those of each record, in its own, each once."""
        by_record: list[list[dict[str, Any]]] = [[] for _ in self.records]
        for number, (place, entities) in enumerate(zip(self.places, found, strict=True)):
            row, first = (place.row, place.start) if isinstance(place, Window) else (place, 0)
            own = (entity for entity in entities if self.owns(number, entity["start"], entity["end"]))
            by_record[row] += (_moved(entity, first) for entity in own)
        for row in {place.row for place in self.places if isinstance(place, Window)}:
            by_record[row].sort(key=lambda entity: (entity["start"], -entity["end"]))  # those of windows overlap
        return by_record

    def join_spans(self, found: Iterable[Iterable[Span]]) -> list[list[Span]]:
        """The same for spans, (start, end exclusive)."""
        joined = self.join([{"start": start, "end": end} for start, end in spans] for spans in found)
        return [[(span["start"], span["end"]) for span in spans] for spans in joined]

    def describe_long(self) -> str:
        """One line on the records that are read in windows, with the longest; empty if there are none."""
        sizes: dict[int, int] = {}
        for place in self.places:
            if isinstance(place, Window):
                sizes[place.row] = place.end
        if not sizes:
            return ""
        longest = max(sizes, key=sizes.__getitem__)
        name = self.records[longest].get("id", f"row {longest}")
        inside = sum(map(len, self.join_spans(map(spans_of, self))))
        outside = sum(len(spans_of(record)) for record in self.records) - inside
        return (
            f"{len(sizes):,} of {len(self.records):,} sentences have more than {self._max_words} words, the longest "
            f"({name}) {sizes[longest]:,}; they are read in windows of {self._max_words // 4} words, and {outside:,} "
            "entity spans that are in none are missed."
        )

    def _around(self, place: Window, record: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """What is left and right of a window, as of raw text's: the words that it does not share with a neighbour."""
        tokens = record["tokens"]
        left, right = (list(record.get(side) or []) for side in CONTEXT_FIELDS)
        before = tokens[max(0, place.start - self._reach) : place.start]
        after = tokens[place.end : place.end + self._reach]
        if self._context == "document":
            return [*left, *before][-self._reach :], [*after, *right][: self._reach]
        if place.start:
            left = before if self._context == "previous_sentence" else []
        return left, [] if after else right

    def _long_record(self, row: int) -> tuple[dict[str, Any], list[int]]:
        """The record, its entities in order, and their first words."""
        if row not in self._kept:
            record = dict(self.records[row])
            if record.get("entities") is not None:
                record["entities"] = sorted(record["entities"], key=lambda entity: int(entity["start"]))
            if len(self._kept) == RECORDS_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[row] = record, [entity["start"] for entity in record.get("entities") or ()]
        return self._kept[row]


def spans_of(record: Mapping[str, Any]) -> set[Span]:
    """The spans of the entities, those of several types once."""
    return {(entity["start"], entity["end"]) for entity in record["entities"]}


def _moved(entity: Mapping[str, Any], words: int) -> dict[str, Any]:
    return {**entity, "start": entity["start"] + words, "end": entity["end"] + words}
