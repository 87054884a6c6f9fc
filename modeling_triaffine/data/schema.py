"""The one schema of all corpora: its features, the checks every record passes, and the error that names what failed.

Holds nothing about file formats: a reader hands what it found to a `RecordChecker` and yields what comes back.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from datasets import Features, List, Value

from ..configuration_triaffine import NONE_LABEL

FEATURES = Features(
    {
        "id": Value("string"),
        "doc_id": Value("string"),
        "sent_id": Value("int32"),
        "tokens": List(Value("string")),
        "pos": List(Value("string")),
        "entities": List({"start": Value("int32"), "end": Value("int32"), "type": Value("string")}),
        "left_tokens": List(Value("string")),
        "right_tokens": List(Value("string")),
    }
)
"""Every reader's columns. `left_tokens` and `right_tokens` are null where the corpus says nothing about context and a
list, perhaps an empty one, where it brings its own: `add_context` fills in the former and keeps the latter."""

ENTITY_FIELDS = ("start", "end", "type")
CONTEXT_FIELDS = ("left_tokens", "right_tokens")


class Entity(TypedDict):
    """One entity by positions in its sentence: `start`, `end` (exclusive), counted in words or in characters."""

    start: int
    end: int
    type: str


class Record(TypedDict):
    """One sentence, in the form of `FEATURES`."""

    id: str
    doc_id: str
    sent_id: int
    tokens: list[str]
    pos: list[str]
    entities: list[Entity]
    left_tokens: list[str] | None
    right_tokens: list[str] | None


class CorpusError(ValueError):
    """A corpus file cannot be read as it stands; the message says where, what is wrong and what to do."""

    @classmethod
    def at(cls, path: Path | str, where: str, problem: str, remedy: str) -> CorpusError:
        """`where` is a place inside the file ("line 3"), or empty for the file as a whole."""
        place = f"{path}, {where}" if where else str(path)
        return cls(f"{place}: {problem}. {remedy}.")


class RecordChecker:
    """Checks what a reader found in one file and counts what is dropped on the way.

    Args:
        path: the file, for messages.
        labels: the entity types allowed; None allows any.
        unique_ids: refuse an id that occurred before. Remembers every id; switch it off to read in constant memory.

    Attributes:
        counts: what was dropped, in words ("duplicate entities dropped") → how many. Readers add to it.
    """

    def __init__(self, path: Path | str, labels: Iterable[str] | None = None, unique_ids: bool = True):
        self.path = path
        self.labels = None if labels is None else frozenset(labels)
        self.counts: Counter[str] = Counter()
        self._places_of_ids: dict[str, str] | None = {} if unique_ids else None

    def error(self, where: str, problem: str, remedy: str) -> CorpusError:
        return CorpusError.at(self.path, where, problem, remedy)

    def report(self) -> str:
        """One sentence on what was dropped; empty where nothing was."""
        dropped = ", ".join(f"{what}: {count}" for what, count in sorted(self.counts.items()))
        return f"{Path(self.path).name}: {dropped}." if dropped else ""

    def __call__(self, raw: object, where: str) -> Record:
        """The record of one sentence.

        Args:
            raw: the fields of `FEATURES` as found. `pos` may be missing (no tags), so may the context fields; of these,
                one alone means that the other side is empty. Identical entities are kept once and counted.
            where: the place in the file, for messages: "line 3".

        Raises:
            CorpusError: a field is missing or of another type, an entity lies outside the sentence or has an unknown
                type, `pos` and `tokens` differ in length, or the id occurred before.
        """
        fields = self._object(raw, where, "the record")
        self._count_ignored(fields, tuple(FEATURES), "field")
        tokens = self._strings(fields, "tokens", where)
        if not tokens:
            raise self.error(where, "field 'tokens' is empty", "Remove the record: a sentence has at least one word")
        context = {name: self._strings(fields, name, where) for name in CONTEXT_FIELDS if fields.get(name) is not None}
        return Record(
            id=self._new_id(fields, where),
            doc_id=self._typed(fields, "doc_id", str, where),
            sent_id=self._sentence_number(fields, where),
            tokens=tokens,
            pos=self._part_of_speech(fields, len(tokens), where),
            entities=self._entities(fields, len(tokens), where),
            left_tokens=context.get("left_tokens", []) if context else None,
            right_tokens=context.get("right_tokens", []) if context else None,
        )

    def _sentence_number(self, fields: Mapping[str, Any], where: str) -> int:
        number: int = self._typed(fields, "sent_id", int, where)
        if not -(2**31) <= number < 2**31:
            raise self.error(where, f"field 'sent_id' is {number}, beyond 32 bits", "Count sentences in their document")
        return number

    def _new_id(self, fields: Mapping[str, Any], where: str) -> str:
        identifier = self._typed(fields, "id", str, where)
        if self._places_of_ids is not None:
            first = self._places_of_ids.setdefault(identifier, where)
            if first != where:
                problem = f"field 'id': {identifier!r} was used before, at {first}"
                raise self.error(where, problem, "Give each sentence an id of its own, or remove the repeated one")
        return identifier

    def _part_of_speech(self, fields: Mapping[str, Any], num_tokens: int, where: str) -> list[str]:
        tags = self._strings(fields, "pos", where) if fields.get("pos") is not None else []
        if tags and len(tags) != num_tokens:
            problem = f"field 'pos' has {len(tags)} tags for {num_tokens} tokens"
            raise self.error(where, problem, "Give one tag a token, or an empty list where there are none")
        return tags

    def _entities(self, fields: Mapping[str, Any], num_tokens: int, where: str) -> list[Entity]:
        found = self._typed(fields, "entities", list, where)
        spans = [self._entity(raw, f"entities[{index}]", num_tokens, where) for index, raw in enumerate(found)]
        unique = dict.fromkeys(spans)
        if len(unique) < len(spans):
            self.counts["duplicate entities dropped"] += len(spans) - len(unique)
        return [Entity(start=start, end=end, type=kind) for start, end, kind in unique]

    def _entity(self, raw: object, name: str, num_tokens: int, where: str) -> tuple[int, int, str]:
        fields = self._object(raw, where, f"field '{name}'")
        self._count_ignored(fields, ENTITY_FIELDS, "entity field")
        start = self._typed(fields, "start", int, where, name)
        end = self._typed(fields, "end", int, where, name)
        kind = self._typed(fields, "type", str, where, name)
        if kind in ("", NONE_LABEL):
            problem = f"field '{name}.type' is {kind!r}, the name for what is no entity"
            raise self.error(where, problem, "Name the entity's type, or remove the entity")
        if not 0 <= start < end <= num_tokens:
            problem = f"field '{name}' runs from {start} to {end}, the sentence has {num_tokens} tokens"
            rule = "Start and end count tokens from 0, the end is exclusive: 0 <= start < end <= number of tokens"
            raise self.error(where, problem, rule)
        if self.labels is not None and kind not in self.labels:
            problem = f"field '{name}.type' is {kind!r}, which is not among the labels {sorted(self.labels)}"
            raise self.error(where, problem, "Correct the type, or add it to `labels`")
        return start, end, kind

    def _object(self, raw: object, where: str, name: str) -> Mapping[str, Any]:
        if not isinstance(raw, Mapping):
            problem = f"{name} should be an object, found {_shown(raw)}"
            raise self.error(where, problem, f"A record has the fields {', '.join(FEATURES)}")
        return raw

    def _typed(self, fields: Mapping[str, Any], name: str, kind: type, where: str, parent: str = "") -> Any:
        full_name = f"{parent}.{name}" if parent else name
        if name not in fields:
            raise self.error(where, f"field '{full_name}' is missing", f"Add it, {_KINDS[kind]}")
        value = fields[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.error(where, f"field '{full_name}' is {_shown(value)}", f"It must be {_KINDS[kind]}")
        if isinstance(value, str):
            self._check_encodable(value, full_name, where)
        return value

    def _strings(self, fields: Mapping[str, Any], name: str, where: str) -> list[str]:
        values = self._typed(fields, name, list, where)
        for index, value in enumerate(values):
            if not isinstance(value, str) or not value:
                problem = f"field '{name}[{index}]' is {_shown(value)}"
                raise self.error(where, problem, "It must be a string that is not empty")
        self._check_encodable("".join(values), name, where)
        return values

    def _check_encodable(self, text: str, name: str, where: str) -> None:
        """JSON can spell half a surrogate pair (\\ud800), which no UTF-8 table can hold."""
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            problem = f"field '{name}' holds {error.object[error.start]!r}, half of a surrogate pair"
            raise self.error(where, problem, "Replace it by the whole character") from None

    def _count_ignored(self, fields: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
        if not fields.keys() <= set(known):
            self.counts.update(f"{what} '{name}' ignored" for name in fields.keys() - set(known))


_KINDS = {str: "a string", int: "a whole number", list: "a list"}


def _shown(value: object) -> str:
    return "null" if value is None else f"{reprlib.repr(value)} ({type(value).__name__})"
