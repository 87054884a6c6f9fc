"""`RecordChecker`: the checks that every record passes, whatever its format, and the counts of what is dropped.

Knows nothing about file formats: a reader passes what it finds to the checker and yields what that returns.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError

from ..model.kinds_triaffine import NONE_LABEL
from ..parsing import shown
from .counts import ReadingCounts
from .look_alikes import difference
from .schema import CONTEXT_FIELDS, ENTITY_FIELDS, RECORD_FIELDS, CorpusError, Entity, Record

Value = TypeVar("Value")

UnicodeText = Annotated[str, StringConstraints(min_length=0)]
"""pydantic looks for half surrogate pairs, which JSON can escape (\\ud800) and UTF-8 not represent, under any bound."""
Words = list[Annotated[str, StringConstraints(min_length=1)]]


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(UnicodeText if kind is str else kind, config=ConfigDict(strict=True))


class RecordChecker(ReadingCounts):
    """Checks what a reader found in one file, and counts what is kept and what is dropped ([`ReadingCounts`]).

    Args:
        path: the file, for messages.
        labels: the entity types allowed; None allows any.
        unique_ids: reject an id that occurred before. Keeps all ids in memory; disable it to read in constant memory.
        read_as: says which form the file was taken for, and why, at the end of errors.
        offsets: what they count, one of `offsets.COUNTS`; None takes characters, unless quotes show another count.
        max_bad_records: how many records that cannot be read are dropped, each named in the report; see `record`.

    Attributes:
        folder, is_document: of a split of several files, the folder around them, and whether each is a document.

    Examples:
        >>> from modeling_triaffine.data import RecordChecker
        >>> check = RecordChecker("bars.txt")
        >>> check.note("relations ignored")
        >>> check.counts
        Counter({'relations ignored': 1})
    """

    def __init__(
        self,
        path: Path | str,
        labels: Iterable[str] | None = None,
        unique_ids: bool = True,
        read_as: Callable[[], str] | None = None,
        offsets: str | None = None,
        max_bad_records: int = 0,
    ):
        super().__init__(path, max_bad_records)
        self.labels = None if labels is None else frozenset(labels)
        self.unique_ids = unique_ids
        self.read_as = read_as
        self.offsets = offsets
        self.folder: Path | None = None
        self.is_document = False
        self._spellings = {unicodedata.normalize("NFC", label): label for label in self.labels or ()}
        self._places_of_ids: dict[str, str] = {}

    def error(self, where: str, problem: str, remedy: str) -> CorpusError:
        return CorpusError.at(self.path, where, problem, f"{remedy}. {self.read_as()}" if self.read_as else remedy)

    def __call__(self, raw: object, where: str) -> Record:
        """Checks one sentence and returns its record.

        Args:
            raw: the fields of `FEATURES` as found. `pos` may be missing (no tags), and so may the context fields; if
                one of these is given, the other side is empty. Duplicate entities are kept once and counted.
            where: the place in the file, for messages: "line 3".
        """
        fields = self.mapping(raw, where, "the record", f"A record has the fields {', '.join(RECORD_FIELDS)}")
        self.note_other_fields(fields, RECORD_FIELDS, "field")
        tokens = self.typed(fields, "tokens", Words, where)
        pos, left, right = (
            self.typed(fields, name, Words, where) if fields.get(name) is not None else None
            for name in ("pos", *CONTEXT_FIELDS)
        )
        in_context = left is not None or right is not None
        record = Record(
            id=self.typed(fields, "id", str, where),
            doc_id=self.typed(fields, "doc_id", str, where),
            sent_id=self.typed(fields, "sent_id", int, where),
            tokens=tokens,
            pos=pos or [],
            entities=self.unique(self.entities(fields, len(tokens), where)),
            left_tokens=(left or []) if in_context else None,
            right_tokens=(right or []) if in_context else None,
        )
        num_tags = len(record["pos"])
        if not tokens:
            remedy = "Remove the record: a sentence needs at least one word"
            raise self.error(where, "field 'tokens' is empty", remedy)
        if num_tags not in (0, len(tokens)):
            problem = f"field 'pos' has {num_tags} tags for {len(tokens)} tokens"
            raise self.error(where, problem, "Give one tag for each token, or an empty list")
        if not -(2**31) <= record["sent_id"] < 2**31:
            problem = f"field 'sent_id' is {record['sent_id']}, which needs more than 32 bits"
            raise self.error(where, problem, "Number the sentences of a document")
        if self.unique_ids:
            place = f"{self.path}, {where}"
            if (first := self._places_of_ids.setdefault(record["id"], place)) != place:
                problem = f"field 'id': {record['id']!r} was used before, at {first}"
                raise self.error(where, problem, "Give each sentence its own id, or remove the repeated one")
        self.keep(record["entities"])
        return record

    def entities(self, fields: Mapping[str, Any], size: int, where: str, unit: str = "tokens") -> list[Entity]:
        """Checks the entities of a sentence or text; see `entity`."""
        found = self.typed(fields, "entities", list, where)
        return [self.entity(raw, f"entities[{index}]", size, where, unit) for index, raw in enumerate(found)]

    def entity(self, raw: object, name: str, size: int, where: str, unit: str = "tokens") -> Entity:
        """Checks one entity.

        Args:
            raw: an object with `start`, `end` (exclusive) and `type`.
            name: its name in the file, for messages: "entities[2]".
            size: number of tokens of its sentence, or of characters of its text.
            where: the place in the file, for messages.
            unit: what `start`, `end` and `size` count, "tokens" or "characters".
        """
        fields = self.mapping(raw, where, f"field '{name}'", f"An entity has the fields {', '.join(ENTITY_FIELDS)}")
        self.note_other_fields(fields, ENTITY_FIELDS, "entity field")
        entity = Entity(
            start=self.typed(fields, "start", int, where, name),
            end=self.typed(fields, "end", int, where, name),
            type=self.typed(fields, "type", str, where, name),
        )
        kind, start, end = entity["type"], entity["start"], entity["end"]
        if kind in ("", NONE_LABEL):
            problem = f"field '{name}.type' is {kind!r}, which is reserved for spans that are not entities"
            raise self.error(where, problem, "Give the entity's type, or remove the entity")
        if kind != kind.strip():
            problem = f"field '{name}.type' is {kind!r}, with white space around the type"
            remedy = "Remove it, because labels that differ only in white space would be two labels"
            raise self.error(where, problem, remedy)
        other = self._spellings.setdefault(unicodedata.normalize("NFC", kind), kind)
        if other != kind:
            problem = f"field '{name}.type' is {kind!a}, which differs from {other!a} in Unicode normalization alone"
            remedy = "Write both alike, as unicodedata.normalize('NFC', label) does"
            raise self.error(where, problem, remedy)
        if not 0 <= start < end <= size:
            whole = "sentence" if unit == "tokens" else "text"
            problem = f"field '{name}' runs from {start} to {end}, the {whole} has {size} {unit}"
            remedy = f"Start and end count {unit} from 0, the end is exclusive: 0 <= start < end <= number of {unit}"
            raise self.error(where, problem, remedy)
        if self.labels is not None and kind not in self.labels:
            problem = f"field '{name}.type' is {kind!r}, which is not among the labels {sorted(self.labels)}"
            if alike := next(filter(None, (difference(kind, label) for label in sorted(self.labels))), ""):
                problem += f". {alike}"
            raise self.error(where, problem, "Correct it, or add it to `labels`")
        return entity

    def mapping(self, raw: object, where: str, name: str, remedy: str) -> Mapping[str, Any]:
        """Returns `raw` if it is an object with fields; `name` is its name in the file."""
        if not isinstance(raw, Mapping):
            raise self.error(where, f"{name} should be an object, found {shown(raw)}", remedy)
        return raw

    def typed(
        self, fields: Mapping[str, Any], name: str, kind: type[Value], where: str, parent: str = "", remedy: str = ""
    ) -> Value:
        """The value of a required field of a type that pydantic knows: str, int, list[int], …

        Args:
            parent: the object that the field belongs to, for messages.
            remedy: what to do if it is of another type; by default what pydantic says of that.
        """
        path = f"{parent}.{name}" if parent else name
        if name not in fields:
            raise self.error(where, f"field '{path}' is missing; the fields are {names_of(fields)}", "Add it")
        try:
            value: Value = _adapter(cast(Any, kind)).validate_python(fields[name])
            return value
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
        # Of a list that is too short, what is missing has no value to show: the list is shown.
        place = found["loc"][:-1] if found["type"] == "missing" else found["loc"]
        path += "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        raise self.error(where, f"field '{path}' is {shown(found['input'])}", remedy or found["msg"])

    def note_other_fields(self, fields: Mapping[str, Any], known: Iterable[str], what: str) -> None:
        """Counts the fields that are not read; `what` they are, in words."""
        for name in fields.keys() - known:
            self.note(f"{what} '{name}' ignored")


def names_of(fields: Mapping[str, Any]) -> str:
    """The first names of fields, for messages."""
    return ", ".join(map(repr, list(fields)[:10])) or "none"
