"""What was kept of a corpus, what was dropped, ignored or changed, and the one line that reports it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

from ..model.text_triaffine import FINER_SPLITTERS
from .offsets import UncheckedOffsets
from .schema import CorpusError, Entity

MAX_EXAMPLES = 3
MUCH_LOST = 0.05
BAD_RECORDS = "bad records dropped"
WITHOUT_SPANS = "texts without a field of spans, read as texts without entities"


class _TooManyBadRecordsError(CorpusError):
    """One more than may be dropped."""


class ReadingCounts:
    """What a reader keeps, drops, ignores and changes.

    Args:
        path: the file, for messages.
        max_bad_records: how many records that cannot be read are dropped, each named in the report; see `record`.

    Attributes:
        counts: what was dropped, ignored or changed, in words ("duplicate entities dropped") → how often.
        sentences, entities_kept, entities_dropped: totals; the entities in the file are the sum of the last two.
        unchecked_offsets: what the offsets could count that no quote checks.
    """

    def __init__(self, path: Path | str, max_bad_records: int = 0):
        self.path = path
        self.max_bad_records = max_bad_records
        self.counts: Counter[str] = Counter()
        self.sentences = self.entities_kept = self.entities_dropped = 0
        self._labels_kept: Counter[str] = Counter()
        self._labels_dropped: Counter[str] = Counter()
        self._kept_by: dict[str, Counter[str]] = {}
        self._examples: dict[str, list[str]] = {}
        self.unchecked_offsets = UncheckedOffsets()

    def drop(
        self, why: str, number: int = 1, example: str = "", label: str | None = None, kept_by: Iterable[str] = ()
    ) -> None:
        """Counts entities of the file that are in no record.

        Args:
            label: their type, if it is known.
            kept_by: word splitters that would keep them, the one of the fewest words first.
        """
        self.entities_dropped += number
        if label is not None:
            self._labels_dropped[label] += number
        self._kept_by.setdefault(why, Counter()).update(dict.fromkeys(kept_by, number))
        self.note(why, number, example)

    def note(self, what: str, number: int = 1, example: str = "") -> None:
        """Counts what is ignored or changed, other than entities dropped; keeps the first examples."""
        self.counts[what] += number
        examples = self._examples.setdefault(what, [])
        if example and (len(examples) < MAX_EXAMPLES or what == BAD_RECORDS):
            examples.append(example)

    def keep(self, entities: Iterable[Entity]) -> None:
        """Counts a sentence with these entities."""
        types = [entity["type"] for entity in entities]
        self.sentences += 1
        self.entities_kept += len(types)
        self._labels_kept.update(types)

    def unique(self, entities: Sequence[Entity]) -> list[Entity]:
        """The entities, each once; the others are counted."""
        unique = {(entity["start"], entity["end"], entity["type"]): entity for entity in entities}
        if len(unique) < len(entities):
            self.drop("duplicate entities dropped", len(entities) - len(unique))
        return list(unique.values())

    @contextmanager
    def record(self, entities: int = 0) -> Iterator[None]:
        """Around what reads one record: drops it if it raises a CorpusError, unless too many were dropped before.

        What the record added to the counts is taken back. A generator may yield in it when the record is complete.

        Args:
            entities: how many the record has, as far as known; they count as dropped.
        """
        taken_back = ("counts", "entities_dropped", "_labels_dropped", "_kept_by", "_examples")
        before = {name: _copied(vars(self)[name]) for name in taken_back} if self.max_bad_records else {}
        try:
            yield
        except CorpusError as error:
            if not before or isinstance(error, _TooManyBadRecordsError):
                raise
            dropped = before["counts"][BAD_RECORDS]
            if dropped >= self.max_bad_records:
                more = f"Bad records dropped before: {dropped}, as many as max_bad_records allows."
                raise _TooManyBadRecordsError(f"{error} {more}") from error
            vars(self).update(before)
            self.note(BAD_RECORDS, example=error.summary or str(error))
            if entities:
                self.drop("entities of bad records dropped", entities)

    def whole(self, error: CorpusError) -> CorpusError:
        """The error of what is no single record, and so is never dropped; it says so if records may be."""
        if not self.max_bad_records or isinstance(error, _TooManyBadRecordsError):
            return error
        return CorpusError(f"{error} It cannot be dropped as a single record, so max_bad_records does not apply.")

    def add(self, other: ReadingCounts) -> None:
        """Adds what another one has counted."""
        self.entities_dropped += other.entities_dropped
        for what, number in other.counts.items():
            self.note(what, number)
            most = number if what == BAD_RECORDS else MAX_EXAMPLES - len(self._examples[what])
            self._examples[what] += other._examples[what][:most]

    def report(self) -> str:
        """One line on what was kept and what was not; empty if nothing was dropped or noted."""
        unchecked = str(self.unchecked_offsets)
        if not self.counts and not unchecked:
            return ""
        found = self.entities_kept + self.entities_dropped
        kept = (
            f"sentences: {self.sentences}; entities kept: {self.entities_kept} of {found}; " if self.sentences else ""
        )
        noted = [
            f"{what}: {count}{self._shown_examples(what)}{describe_remedies(self._kept_by.get(what, {}))}"
            for what, count in sorted(self.counts.items())
        ]
        losses = describe_losses(self._labels_dropped, self._labels_kept + self._labels_dropped)
        if losses and self.sentences:  # of texts, the entities kept are not counted
            noted.append(losses)
        if unchecked:
            noted.append(unchecked)
        return f"{Path(self.path).name}: {kept}{'; '.join(noted)}."

    def _shown_examples(self, what: str) -> str:
        examples = self._examples.get(what)
        if not examples:
            return ""
        more = ["…"] if len(examples) < self.counts[what] else []
        return f" ({' | '.join([*examples, *more])})"


def _copied(value: Any) -> Any:
    """As `deepcopy`, which takes the time of every example, of numbers and of dictionaries of counts and lists."""
    copied = copy(value)
    if isinstance(value, dict):
        copied.update((name, copy(inside)) for name, inside in value.items() if not isinstance(inside, int))
    return copied


def describe_remedies(kept_by: Mapping[str, int]) -> str:
    """The word splitters that would keep more entities than those of fewer words, each with how many."""
    best: list[str] = []
    for name in FINER_SPLITTERS:
        if kept_by.get(name, 0) > max((kept_by[other] for other in best), default=0):
            best.append(name)
    kept = ", ".join(f"--word_splitter {name} would keep {kept_by[name]}" for name in best)
    return f", of which {kept}" if kept else ""


def describe_losses(lost: Mapping[str, int], entities: Mapping[str, int]) -> str:
    """The labels that lose more than 5 % of their entities, with those that lose all; empty if none does."""
    much = [label for label in sorted(lost) if lost[label] > MUCH_LOST * entities[label]]
    shown = ", ".join(
        f"{label} {lost[label]} of {entities[label]}{' (all)' if lost[label] == entities[label] else ''}"
        for label in much
    )
    return f"labels that lose more than {100 * MUCH_LOST:g} %: {shown}" if much else ""
