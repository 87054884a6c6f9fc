"""The one schema of all corpora: its rows, the checks that every record passes, and the error if one fails.

Knows nothing about file formats: a reader passes what it finds to a `RecordChecker` and yields what that returns.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from ..model.kinds_triaffine import NONE_LABEL
from ..model.text_triaffine import FINER_SPLITTERS
from ..parsing import difference, shown
from .counting import UncheckedOffsets

CONTEXT_FIELDS = ("left_tokens", "right_tokens")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MAX_EXAMPLES = 3
MUCH_LOST = 0.05
BAD_RECORDS = "bad records dropped"
TO_DATASET = (
    "Make a data set of one record for each text or sentence with datasets.Dataset.from_list; "
    "docs/corpora.md#a-table-spreadsheet-or-dataframe shows how to group the rows of a table"
)
OF_TABLES = (
    "If it is a table of entities, docs/corpora.md#a-table-spreadsheet-or-dataframe converts it with pandas; if it is "
    "a data set, adapt_dataset does"
)

Kind = TypeVar("Kind", str, int, list[Any])
Span = tuple[int, int]
"""(start, end), end exclusive, in words or in characters."""


class Entity(TypedDict):
    """One entity by its positions `start` and `end` (exclusive), counted in words or in characters.

    Examples:
        >>> from modeling_triaffine.data import Entity
        >>> Entity(start=0, end=2, type="Person")
        {'start': 0, 'end': 2, 'type': 'Person'}
    """

    start: int
    end: int
    type: str


class Record(TypedDict):
    """One sentence, in the form of `FEATURES`.

    Examples:
        >>> from modeling_triaffine import load_nested_ner
        >>> load_nested_ner("outputs/demo/corpus")["train"][0]["sent_id"]
        0
    """

    id: str
    doc_id: str
    sent_id: int
    tokens: list[str]
    pos: list[str]
    entities: list[Entity]
    left_tokens: list[str] | None
    right_tokens: list[str] | None


RECORD_FIELDS = tuple(Record.__annotations__)
ENTITY_FIELDS = tuple(Entity.__annotations__)


class Text(TypedDict):
    """A text as written; its entities count characters, and so do `borders`, which no sentence crosses.

    Examples:
        >>> from modeling_triaffine.data import Text
        >>> Text(doc_id="news-1", text="Orsk", borders=[], entities=[{"start": 0, "end": 4, "type": "City"}])["text"]
        'Orsk'
    """

    doc_id: str
    text: str
    entities: list[Entity]
    borders: list[int]


class CorpusError(ValueError):
    """A corpus file cannot be read; the message says where, what is wrong and what to do.

    Examples:
        >>> from pathlib import Path
        >>> from modeling_triaffine import load_nested_ner
        >>> from modeling_triaffine.data import CorpusError
        >>> _ = Path("damaged.jsonl").write_text('{"tokens": ["Orsk"], "entities": [{"start": 0}]}')
        >>> try:
        ...     load_nested_ner("damaged.jsonl")
        ... except CorpusError as error:
        ...     print("line 1" in str(error))
        True
    """

    summary = ""
    """Place and problem, without the remedy."""

    @classmethod
    def at(cls, path: Path | str, where: str, problem: str, remedy: str) -> CorpusError:
        """`where` is a place in the file ("line 3"), or empty for the file as a whole."""
        place = f"{path}, {where}" if where else str(path)
        error = cls(f"{place}: {problem}. {remedy}.")
        error.summary = f"{place}: {problem}"
        return error


class _TooManyBadRecordsError(CorpusError):
    """One more than may be dropped."""


class RecordChecker:
    """Checks what a reader found in one file, and counts what is kept and what is dropped.

    Args:
        path: the file, for messages.
        labels: the entity types allowed; None allows any.
        unique_ids: reject an id that occurred before. Keeps all ids in memory; disable it to read in constant memory.
        read_as: says which form the file was taken for, and why, at the end of errors.
        offsets: what they count, one of `counting.COUNTS`; None takes characters, unless quotes show another count.
        max_bad_records: how many records that cannot be read are dropped, each named in the report; see `record`.

    Attributes:
        folder, is_document: of a split of several files, the folder around them, and whether each is a document.
        unchecked_offsets: what the offsets could count that no quote checks.
        counts: what was dropped, ignored or changed, in words ("duplicate entities dropped") → how often. Readers add
            to it by `drop` and `note`.
        sentences, entities_kept, entities_dropped: totals; the entities in the file are the sum of the last two.

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
        self.path = path
        self.read_as = read_as
        self.offsets = offsets
        self.max_bad_records = max_bad_records
        self.folder: Path | None = None
        self.is_document = False
        self.labels = None if labels is None else frozenset(labels)
        self.counts: Counter[str] = Counter()
        self.sentences = self.entities_kept = self.entities_dropped = 0
        self._labels_kept: Counter[str] = Counter()
        self._labels_dropped: Counter[str] = Counter()
        self._kept_by: dict[str, Counter[str]] = {}
        self._examples: dict[str, list[str]] = {}
        self._spellings = {unicodedata.normalize("NFC", label): label for label in self.labels or ()}
        self.unique_ids = unique_ids
        self._places_of_ids: dict[str, str] = {}
        self.unchecked_offsets = UncheckedOffsets()

    def error(self, where: str, problem: str, remedy: str) -> CorpusError:
        return CorpusError.at(self.path, where, problem, f"{remedy}. {self.read_as()}" if self.read_as else remedy)

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

    @contextmanager
    def record(self, entities: int = 0) -> Iterator[None]:
        """Around what reads one record: drops it if it raises a CorpusError, unless too many were dropped before.

        What the record added to the counts is taken back. A generator may yield in it when the record is complete.

        Args:
            entities: how many the record has, as far as known; they count as dropped.

        Raises:
            CorpusError: the record is bad, and `max_bad_records` were dropped.
        """
        before = self._state() if self.max_bad_records else None
        try:
            yield
        except _TooManyBadRecordsError:
            raise
        except CorpusError as error:
            if before is None:
                raise
            dropped = before[1][BAD_RECORDS]
            if dropped >= self.max_bad_records:
                more = f"{BAD_RECORDS} before: {dropped}, as many as max_bad_records allows"
                raise _TooManyBadRecordsError(f"{error} {more[0].upper()}{more[1:]}.") from error
            self.entities_dropped, self.counts, self._labels_dropped, self._kept_by, self._examples = before
            self.note(BAD_RECORDS, example=error.summary or str(error))
            if entities:
                self.drop("entities of bad records dropped", entities)

    def whole(self, error: CorpusError) -> CorpusError:
        """The error of what is no single record, and so is never dropped; it says so if records may be."""
        if not self.max_bad_records or isinstance(error, _TooManyBadRecordsError):
            return error
        return CorpusError(f"{error} It cannot be dropped as a single record, so max_bad_records does not apply.")

    def _state(self) -> tuple[int, Counter[str], Counter[str], dict[str, Counter[str]], dict[str, list[str]]]:
        """A copy of what records add to before they are complete."""
        kept_by = {why: Counter(names) for why, names in self._kept_by.items()}
        examples = {what: [*found] for what, found in self._examples.items()}
        return self.entities_dropped, Counter(self.counts), Counter(self._labels_dropped), kept_by, examples

    def add(self, other: RecordChecker) -> None:
        """Adds what another checker has counted."""
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
        examples = self._examples.get(what, [])
        more = [] if len(examples) in (0, self.counts[what]) else ["…"]
        return f" ({' | '.join([*examples, *more])})" if examples else ""

    def __call__(self, raw: object, where: str) -> Record:
        """Checks one sentence and returns its record.

        Args:
            raw: the fields of `FEATURES` as found. `pos` may be missing (no tags), and so may the context fields; if
                one of these is given, the other side is empty. Duplicate entities are kept once and counted.
            where: the place in the file, for messages: "line 3".

        Raises:
            CorpusError: a field is missing or of the wrong type, an entity is outside of the sentence or has an
                unknown type, `pos` and `tokens` differ in length, or the id occurred before.
        """
        fields = self.mapping(raw, where, "the record", f"A record has the fields {', '.join(RECORD_FIELDS)}")
        self._count_ignored(fields, RECORD_FIELDS, "field")
        tokens = self._strings(fields, "tokens", where)
        if not tokens:
            raise self.error(where, "field 'tokens' is empty", "Remove the record: a sentence needs at least one word")
        context = {name: self._strings(fields, name, where) for name in CONTEXT_FIELDS if fields.get(name) is not None}
        record = Record(
            id=self._new_id(fields, where),
            doc_id=self.typed(fields, "doc_id", str, where),
            sent_id=self._sentence_number(fields, where),
            tokens=tokens,
            pos=self._part_of_speech(fields, len(tokens), where),
            entities=self._entities(fields, len(tokens), where),
            left_tokens=context.get("left_tokens", []) if context else None,
            right_tokens=context.get("right_tokens", []) if context else None,
        )
        if self.unique_ids:
            self._places_of_ids[record["id"]] = f"{self.path}, {where}"
        self.sentences += 1
        self.entities_kept += len(record["entities"])
        self._labels_kept.update(entity["type"] for entity in record["entities"])
        return record

    def _sentence_number(self, fields: Mapping[str, Any], where: str) -> int:
        number = self.typed(fields, "sent_id", int, where)
        if not -(2**31) <= number < 2**31:
            raise self.error(
                where, f"field 'sent_id' is {number}, beyond 32 bits", "Number the sentences of a document"
            )
        return number

    def _new_id(self, fields: Mapping[str, Any], where: str) -> str:
        identifier = self.typed(fields, "id", str, where)
        if self.unique_ids:
            place = f"{self.path}, {where}"
            first = self._places_of_ids.get(identifier, place)
            if first != place:
                problem = f"field 'id': {identifier!r} was used before, at {first}"
                raise self.error(where, problem, "Give each sentence its own id, or remove the repeated one")
        return identifier

    def _part_of_speech(self, fields: Mapping[str, Any], num_tokens: int, where: str) -> list[str]:
        tags = self._strings(fields, "pos", where) if fields.get("pos") is not None else []
        if tags and len(tags) != num_tokens:
            problem = f"field 'pos' has {len(tags)} tags for {num_tokens} tokens"
            raise self.error(where, problem, "Give one tag for each token, or an empty list")
        return tags

    def _entities(self, fields: Mapping[str, Any], num_tokens: int, where: str) -> list[Entity]:
        found = self.typed(fields, "entities", list, where)
        entities = [self.entity(raw, f"entities[{index}]", num_tokens, where) for index, raw in enumerate(found)]
        unique = dict.fromkeys((entity["start"], entity["end"], entity["type"]) for entity in entities)
        if len(unique) < len(entities):
            self.drop("duplicate entities dropped", len(entities) - len(unique))
        return [Entity(start=start, end=end, type=kind) for start, end, kind in unique]

    def entity(self, raw: object, name: str, size: int, where: str, unit: str = "tokens") -> Entity:
        """Checks one entity.

        Args:
            raw: an object with `start`, `end` (exclusive) and `type`.
            name: its name in the file, for messages: "entities[2]".
            size: number of tokens of its sentence, or of characters of its text.
            where: the place in the file, for messages.
            unit: what `start`, `end` and `size` count, "tokens" or "characters".

        Raises:
            CorpusError: a field is missing or of the wrong type, the type is unknown, or the offsets are outside.
        """
        fields = self.mapping(raw, where, f"field '{name}'", f"An entity has the fields {', '.join(ENTITY_FIELDS)}")
        self._count_ignored(fields, ENTITY_FIELDS, "entity field")
        start = self.typed(fields, "start", int, where, name)
        end = self.typed(fields, "end", int, where, name)
        kind = self.typed(fields, "type", str, where, name)
        if kind in ("", NONE_LABEL):
            problem = f"field '{name}.type' is {kind!r}, which is reserved for spans that are not entities"
            raise self.error(where, problem, "Give the entity's type, or remove the entity")
        if kind != kind.strip():
            problem = f"field '{name}.type' is {kind!r}, with white space around the type"
            raise self.error(
                where, problem, "Remove it, because labels that differ only in white space would be two labels"
            )
        if found := CONTROL.search(kind):
            problem = f"field '{name}.type' is {kind!r}, with the control character {found[0]!r}"
            raise self.error(where, problem, "Remove it, because no table or file of columns could contain the type")
        other = self._spellings.setdefault(unicodedata.normalize("NFC", kind), kind)
        if other != kind:
            problem = f"field '{name}.type' is {kind!a}, which differs from {other!a} in Unicode normalization alone"
            raise self.error(where, problem, "Write both alike, as unicodedata.normalize('NFC', label) does")
        if not 0 <= start < end <= size:
            whole = {"tokens": "sentence", "characters": "text"}[unit]
            problem = f"field '{name}' runs from {start} to {end}, the {whole} has {size} {unit}"
            rule = f"Start and end count {unit} from 0, the end is exclusive: 0 <= start < end <= number of {unit}"
            raise self.error(where, problem, rule)
        if self.labels is not None and kind not in self.labels:
            problem = f"field '{name}.type' is {kind!r}, which is not among the labels {sorted(self.labels)}"
            alike = next(filter(None, (difference(kind, label) for label in sorted(self.labels))), "")
            problem += f". {alike}" if alike else ""
            raise self.error(where, problem, "Correct it, or add it to `labels`")
        return Entity(start=start, end=end, type=kind)

    def mapping(self, raw: object, where: str, name: str, remedy: str) -> Mapping[str, Any]:
        """Returns `raw` if it is an object with fields; `name` is its name in the file."""
        if not isinstance(raw, Mapping):
            raise self.error(where, f"{name} should be an object, found {shown(raw)}", remedy)
        return raw

    def typed(self, fields: Mapping[str, Any], name: str, kind: type[Kind], where: str, parent: str = "") -> Kind:
        """The value of a required field of type str, int or list; `parent` is the object that the field belongs to."""
        full_name = f"{parent}.{name}" if parent else name
        if name not in fields:
            problem = f"field '{full_name}' is missing; the fields are {names_of(fields)}"
            raise self.error(where, problem, f"Add it, {_KINDS[kind]}")
        value = fields[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.error(where, f"field '{full_name}' is {shown(value)}", f"It must be {_KINDS[kind]}")
        if isinstance(value, str):
            self.check_encodable(value, full_name, where)
        return value

    def _strings(self, fields: Mapping[str, Any], name: str, where: str) -> list[str]:
        values = self.typed(fields, name, list, where)
        for index, value in enumerate(values):
            if not isinstance(value, str) or not value:
                problem = f"field '{name}[{index}]' is {shown(value)}"
                raise self.error(where, problem, "It must be a non-empty string")
        self.check_encodable("".join(values), name, where)
        return values

    def check_encodable(self, text: str, name: str, where: str) -> None:
        """Raises CorpusError if `text`, the value of the field `name`, cannot be encoded.

        JSON can escape half of a surrogate pair (\\ud800), which UTF-8 cannot represent.
        """
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            problem = f"field '{name}' has {error.object[error.start]!r}, half of a surrogate pair"
            raise self.error(where, problem, "Replace it with the complete character") from None

    def _count_ignored(self, fields: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
        if not fields.keys() <= set(known):
            for name in fields.keys() - set(known):
                self.note(f"{what} '{name}' ignored")


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


def names_of(fields: Mapping[str, Any]) -> str:
    """The first names of fields, for messages."""
    return ", ".join(map(repr, list(fields)[:10])) or "none"


_KINDS = {str: "a string", int: "an integer", list: "a list"}
