"""The one schema of all corpora: texts, sentences of words, entities; and `RecordChecker`, to which readers report."""

from __future__ import annotations

import logging
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypeVar, cast

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from ..files import JOINERS, shown
from ..model.kinds_triaffine import NONE_LABEL
from ..model.text_triaffine import INVISIBLE_SPACES, Offsets, composed

CONTEXT_FIELDS = ("left_tokens", "right_tokens")
OF_TABLES = (
    "docs/corpora.md#a-table-spreadsheet-or-dataframe converts a table of entities with pandas; adapt_dataset converts "
    "a data set, which Dataset.from_list makes of one record for each text or sentence"
)

UnicodeText = Annotated[str, StringConstraints(min_length=0)]
"""Without half surrogate pairs (\\ud800 in JSON), which UTF-8 lacks: pydantic looks for them under any bound."""
Words = list[Annotated[str, StringConstraints(min_length=1)]]
STRICT = ConfigDict(strict=True)


def _is_label(kind: str) -> str:
    if kind in ("", NONE_LABEL) or kind != kind.strip():
        raise ValueError(f"A type is no {NONE_LABEL!r}, is not empty and has no white space around it")
    return kind


Label = Annotated[UnicodeText, AfterValidator(_is_label)]  # the type of an entity


@with_config(STRICT)
class Entity(TypedDict):
    """One entity by its positions `start` and `end` (exclusive), counted in words or in characters.

    Examples:
        >>> from modeling_triaffine.data import Entity
        >>> Entity(start=0, end=2, type="Person")
        {'start': 0, 'end': 2, 'type': 'Person'}
    """

    start: int
    end: int
    type: Label


@with_config(STRICT)
class Record(TypedDict):
    """One sentence, in the form of `FEATURES`. In a file, it may lack `pos` (no tags) and the context."""

    id: UnicodeText
    doc_id: UnicodeText
    sent_id: int
    tokens: Annotated[Words, Field(min_length=1)]
    pos: NotRequired[Words | None]
    entities: list[Entity]
    left_tokens: NotRequired[Words | None]
    right_tokens: NotRequired[Words | None]


RECORD_FIELDS = tuple(Record.__annotations__)
ENTITY_FIELDS = tuple(Entity.__annotations__)


class Text(TypedDict):
    """A text of a corpus, as every reader returns it. Positions count characters.

    A corpus of words alone gives its words, joined by spaces. `doc_id` names the text. Of the optional fields, the
    corpus gives `borders` (positions that no sentence crosses), `sentences` with their `sentence_ids` and the number of
    the `first_sentence` (without them, a splitter finds sentences), its own `words` with their `pos`, `left_tokens` and
    `right_tokens` (context of a single sentence) and the `split`. If several words share characters, `forms` are the
    words as written, and `word_entities` count words. `where` is the place in the corpus, for messages.

    Examples:
        >>> from modeling_triaffine.data import Text
        >>> Text(doc_id="news-1", text="Orsk", entities=[{"start": 0, "end": 4, "type": "City"}])["text"]
        'Orsk'
    """

    doc_id: str
    text: str
    entities: list[Entity]
    borders: NotRequired[list[int]]
    sentences: NotRequired[list[Offsets]]
    sentence_ids: NotRequired[list[str]]
    first_sentence: NotRequired[int]
    words: NotRequired[list[Offsets]]
    pos: NotRequired[list[str]]
    forms: NotRequired[list[str]]
    word_entities: NotRequired[list[Entity]]
    left_tokens: NotRequired[list[str]]
    right_tokens: NotRequired[list[str]]
    split: NotRequired[str]
    where: NotRequired[str]


def annotated(
    doc_id: str, text: str, found: Iterable[Entity | None], where: str, borders: Iterable[int] | None = None
) -> Text:
    """A text as written with the entities that were found in it; None stands for one that was dropped."""
    made = Text(doc_id=doc_id, text=text, entities=[entity for entity in found if entity], where=where)
    if borders is not None:
        made["borders"] = sorted({border for border in borders if 0 < border < len(text)})
    return made


class CorpusError(ValueError):
    """A corpus file cannot be read; the message says where, what is wrong and what to do.

    Examples:
        >>> from modeling_triaffine.data import CorpusError
        >>> CorpusError.at("a.jsonl", "line 1", "field 'end' is missing", "Add it")
        CorpusError("a.jsonl, line 1: field 'end' is missing. Add it.")
    """

    summary = ""
    """Place and problem, without the remedy."""

    @classmethod
    def at(cls, path: Path | str, where: str, problem: str, remedy: str) -> CorpusError:
        """Makes the error; `where` is a place in the file ("line 3"), or empty for the file as a whole."""
        place = f"{path}, {where}" if where else str(path)
        error = cls(f"{place}: {problem}. {remedy}.")
        error.summary = f"{place}: {problem}"
        return error


logger = logging.getLogger(__name__)
Value = TypeVar("Value")

MAX_EXAMPLES = 3
WITHOUT_SPANS = "texts without a field of spans, read as texts without entities"
BAD_RECORDS = "bad records dropped"
BAD_ENTITIES = "bad entities dropped"
DISCONTINUOUS = "discontinuous entities dropped"
LOST_ACROSS_SENTENCES = "entities across sentences dropped"
OF_WHITE_SPACE = "entities of white space alone dropped"
OFFSETS = (
    "If the offsets do not count characters, name what they count (convert --offsets, offsets=); if they count a line "
    "end of two characters as one, give the text with line ends of one"
)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    has_config = hasattr(kind, "__pydantic_config__")
    return TypeAdapter(UnicodeText if kind is str else kind, config=None if has_config else STRICT)


class RecordChecker:
    """Checks what a reader found in the files of a split, and counts what is kept, dropped, ignored or changed.

    Args:
        path, read_as: the file, and which format it was taken for, for messages.
        offsets: the unit of offsets, one of `OFFSET_UNITS`.
        max_bad_records: number of unreadable records and entities to drop, each named in the report.

    Attributes:
        counts: what was dropped, ignored or changed, in words ("relations ignored") → how often.
        sentences, entities_kept, entities_dropped: totals; the entities in the file are the sum of the last two.
        folder, is_document: the folder around the files of a split, or its only file; whether each of several is a
            document, the name of which `keeps_suffix` if some differ in it alone (eng.train and eng.testa).

    Examples:
        >>> from modeling_triaffine.data import RecordChecker
        >>> check = RecordChecker("bars.txt")
        >>> check.note("relations ignored")
        >>> check.counts
        Counter({'relations ignored': 1})
    """

    def __init__(self, path: Path | str, read_as: str = "", offsets: str | None = None, max_bad_records: int = 0):
        self.path = path
        self.read_as = read_as
        self.max_bad_records = max_bad_records
        self.offsets = offsets or CHARACTERS
        if self.offsets not in OFFSET_UNITS:
            raise ValueError(f"`offsets` is {offsets!r}. Give one of {', '.join(OFFSET_UNITS)}.")
        self.folder: Path | None = None
        self.is_document = self.keeps_suffix = False
        self.counts = Counter[str]()
        self.sentences = self.entities_kept = self.entities_dropped = 0
        self._examples: dict[str, list[str]] = {}

    def error(self, where: str, problem: str, remedy: str) -> CorpusError:
        """Returns the error for a place in the file; the `remedy` is a sentence without its full stop."""
        return CorpusError.at(self.path, where, problem, f"{remedy}. {self.read_as}" if self.read_as else remedy)

    # ---- Counts ----

    def drop(self, why: str, number: int = 1, example: str = "") -> None:
        """Counts entities of the file that are in no record."""
        self.entities_dropped += number
        self.note(why, number, example)

    def note(self, what: str, number: int = 1, example: str = "") -> None:
        """Counts what is ignored or changed, other than entities dropped; keeps the first examples."""
        if not number:
            return
        self.counts[what] += number
        examples = self._examples.setdefault(what, [])
        if example and (len(examples) < MAX_EXAMPLES or what in (BAD_RECORDS, BAD_ENTITIES)):
            examples.append(example)

    def note_other_fields(self, fields: Iterable[str], known: Iterable[str], what: str = "field") -> None:
        """Counts the fields that are not read; `what` describes them."""
        for name in {*fields}.difference(known):
            self.note(f"{what} '{name}' ignored")

    def unique(self, entities: Sequence[Entity]) -> list[Entity]:
        """Returns each entity once; repeated ones are counted."""
        unique = {(entity["start"], entity["end"], entity["type"]): entity for entity in entities}
        self.drop("duplicate entities dropped", len(entities) - len(unique))
        return list(unique.values())

    def numbered(self, texts: Iterable[Text]) -> Iterator[Text]:
        """Yields the texts; those with the name of an earlier one, such as pages of a document, get a number."""
        found = Counter[str]()
        for text in texts:
            if "sentence_ids" not in text:  # with them, texts of one name are parts of one document
                name = text["doc_id"]
                while text["doc_id"] in found:
                    found[name] += 1
                    text["doc_id"] = f"{name}#{found[name]}"
                found[text["doc_id"]] = 1
                place = f"{text.get('where', '')}: {text['doc_id']}"
                self.note("texts with the name of an earlier one, numbered", text["doc_id"] != name, place)
            yield text

    @contextmanager
    def record(self) -> Iterator[None]:
        """Drops and counts a record if its reading in the block raises CorpusError, unless too many were dropped."""
        try:
            yield
        except CorpusError as error:
            if (dropped := self._dropped()) >= self.max_bad_records:
                before = f"{dropped} were dropped before. " if dropped else ""
                remedy = "To drop bad records, say how many: --max_bad_records, max_bad_records=."
                raise CorpusError(f"{error} {before}{remedy}") from None
            self.note(BAD_RECORDS, example=error.summary or str(error))

    def _dropped(self) -> int:
        return self.counts[BAD_RECORDS] + self.counts[BAD_ENTITIES]

    def report(self) -> str:
        """Sums up in one line what was kept and what was not; empty if nothing was dropped or noted."""
        if not self.counts:
            return ""
        noted = []
        if self.sentences:  # of texts, the entities kept are not counted
            found = self.entities_kept + self.entities_dropped
            noted = [f"sentences: {self.sentences}", f"entities kept: {self.entities_kept} of {found}"]
        for what, count in sorted(self.counts.items()):
            examples = self._examples[what]
            more = ["…"] if len(examples) < count else []
            noted.append(f"{what}: {count}" + (f" ({' | '.join([*examples, *more])})" if examples else ""))
        return f"{Path(self.path).name}: {'; '.join(noted)}."

    def tell(self) -> str:
        """Logs the report as one warning, if there is one, and returns it."""
        if report := self.report():
            logger.warning("%s", report)
        return report

    # ---- Checks ----

    def entity(
        self, text: str, fragments: list[Offsets], type: str, quote: str | None = None, where: str = "", name: str = ""
    ) -> Entity | None:
        """Returns an entity of a text by its characters, without white space at its ends.

        None if it is dropped and counted: white space alone, or fragments that anything but white space separates.

        Args:
            fragments: (start, end exclusive), in the unit of `offsets`.
            quote: the entity's text as the tool wrote it, to be compared; None if it wrote none.
            where, name: the place in the file, and the entity in that place: "entities[2]".

        Raises:
            CorpusError: it is outside of its text, differs from its quote or has no valid type (`max_bad_records`).
        """
        fragments = [(start, end) for start, end in fragments if start != end]
        try:
            self.valid(type, cast(Any, Label), where, f"{name}.type")
            parts = self._in_text(text, fragments, quote, where, name)
        except CorpusError as error:
            if self._dropped() >= self.max_bad_records:
                raise
            self.drop(BAD_ENTITIES, 1, error.summary)
            return None
        if len(parts) > 1:
            self.drop(DISCONTINUOUS, 1, f"{where}: {type} {in_context(text, parts[0][0], parts[-1][1])}")
            return None
        start, end = parts[0] if parts else (0, 0)
        entity = without_space(text, Entity(start=start, end=end, type=type))
        if entity["start"] == entity["end"]:
            self.drop(OF_WHITE_SPACE, 1, f"{where}: {name}")
            return None
        return entity

    def _in_text(
        self, text: str, fragments: Sequence[Offsets], quote: str | None, where: str, name: str
    ) -> list[Offsets]:
        """The fragments in characters, in order and joined; CorpusError if they do not fit the text or the quote."""
        in_text: list[Offsets] = []
        at = positions(text, self.offsets)
        for start, end in fragments:
            first, last = bisect_right(at, start) - 1, bisect_left(at, end)
            if not 0 <= start <= end <= at[-1] or (at[first], at[last]) != (start, end):  # also inside a character
                problem = f"field '{name}' runs from {start} to {end}, the text has {len(text)} characters"
                raise self.error(where, problem, OFFSETS)
            in_text.append((first, last))
        parts = joined(text, in_text)
        covered = ["".join(text[start:end] for start, end in some) for some in (parts, in_text)]  # either is quoted
        if quote is not None and len(parts) == 1 and not any(same_but_for_space(quote, found) for found in covered):
            problem = f"field '{name}' quotes {quote!r}, but from {parts[0][0]} to {parts[0][1]} the text is "
            raise self.error(where, f"{problem}'{in_context(text, *parts[0])}'", OFFSETS)
        return parts

    def __call__(self, raw: Mapping[str, Any], where: str) -> Record:
        """The record of a sentence in the words of the corpus, at a place in the file ("line 3"); each entity once."""
        record = self.valid(raw, Record, where)
        self.note_other_fields(raw, RECORD_FIELDS)
        for entity in raw["entities"]:
            self.note_other_fields(entity, ENTITY_FIELDS, "entity field")
        size, pos = len(record["tokens"]), record.get("pos") or []
        if pos and len(pos) != size:
            problem = f"field 'pos' has {len(pos)} tags for {size} tokens"
            raise self.error(where, problem, "Give one tag for each token, or an empty list")
        self.check_positions(record["entities"], size, where)
        entities = self.unique(record["entities"])
        left, right = record.get("left_tokens"), record.get("right_tokens")
        if left is not None or right is not None:  # if one side of the context is given, the other is empty
            left, right = left or [], right or []
        return Record(**{**record, "pos": pos, "entities": entities, "left_tokens": left, "right_tokens": right})

    def check_positions(self, entities: Iterable[Entity], size: int, where: str) -> None:
        """CorpusError unless the entities are inside of `size` tokens."""
        for index, entity in enumerate(entities):
            start, end = entity["start"], entity["end"]
            if not 0 <= start < end <= size:
                problem = f"field 'entities[{index}]' runs from {start} to {end}, and there are {size} tokens"
                raise self.error(where, problem, "Start and end count tokens from 0, the end is exclusive")

    def valid(self, raw: object, kind: type[Value], where: str, name: str = "", remedy: str = "") -> Value:
        """Returns the value as one of this type, or raises CorpusError for the field `name` (empty: the record)."""
        try:
            return cast(Value, _adapter(cast(Any, kind)).validate_python(raw))
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
        place, value = found["loc"], found["input"]
        is_missing = found["type"] == "missing" and isinstance(value, Mapping)
        if found["type"] == "missing" and not is_missing:  # of a list that is too short, the list is shown
            place = place[:-1]
        path = name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        what = f"field '{path.removeprefix('.')}'" if path else "the record"
        if is_missing:
            raise self.error(where, f"{what} is missing; the fields are {names_of(value)}", remedy or "Add it")
        raise self.error(where, f"{what} is {shown(value)}", remedy or found["msg"].removeprefix("Value error, "))


def names_of(fields: Iterable[str]) -> str:
    """The first names of fields, for messages."""
    return ", ".join(map(repr, list(fields)[:10])) or "none"


# ---- Offsets in texts ----

BYTE_ORDER_MARK = "\ufeff"
CHARACTERS = "characters"
OFFSET_UNITS: dict[str, Callable[[str], int]] = {
    CHARACTERS: lambda character: 1,
    "utf16": lambda character: 1 + (ord(character) > 0xFFFF),
    "bytes": lambda character: len(character.encode()),
}
"""Unit of offsets (UTF-16 units: JavaScript and Java; bytes: of UTF-8) → how many of them a character has."""
NOT_COMPARED = re.compile(rf"[\s{BYTE_ORDER_MARK}]+|\\[nrt]")
"""White space, for which some tools write backslash and n in quotes, and marks of the byte order."""
SHOWN_AROUND = 20  # characters of context on either side of an example
SHOWN_INSIDE = 40


@lru_cache(maxsize=1)  # for all entities of a text
def positions(text: str, unit: str) -> Sequence[int]:
    """The offset of each character of the text in one of `OFFSET_UNITS`, and at last that of its end."""
    if unit == CHARACTERS:
        return range(len(text) + 1)
    return list(accumulate(map(OFFSET_UNITS[unit], text), initial=0))


def joined(text: str, fragments: Sequence[Offsets]) -> list[Offsets]:
    """The fragments in order, joined if white space alone separates them: brat starts a new one on every line."""
    parts: list[Offsets] = []
    for start, end in sorted(fragments):
        if parts and not text[parts[-1][1] : start].translate(INVISIBLE_SPACES).strip():
            parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
        else:
            parts.append((start, end))
    return parts


def without_space(text: str, entity: Entity) -> Entity:
    """The entity without white space at its boundaries, as the pipeline returns entities."""
    inside = text[entity["start"] : entity["end"]].translate(INVISIBLE_SPACES)
    start = entity["start"] + len(inside) - len(inside.lstrip())
    return Entity(start=start, end=start + len(inside.strip()), type=entity["type"])


def same_but_for_space(quote: str, text: str) -> bool:
    """The quote that a tool wrote is the text, with white space in other places at most."""
    bare, other = (NOT_COMPARED.sub("", composed(string.translate(INVISIBLE_SPACES))) for string in (quote, text))
    return bare == other


def in_context(text: str, start: int, end: int) -> str:
    """The characters `start` to `end` in brackets with some context, on one line; invisible characters are escaped."""
    before = ("…" if start > SHOWN_AROUND else "") + text[max(0, start - SHOWN_AROUND) : start]
    after = text[end : end + SHOWN_AROUND] + ("…" if end + SHOWN_AROUND < len(text) else "")
    inside = text[start:end]
    if len(inside) > SHOWN_INSIDE:
        inside = f"{inside[: SHOWN_INSIDE // 2]}…{inside[-SHOWN_INSIDE // 2 :]}"
    line = re.sub(r"\s", " ", f"{before}[{inside}]{after}").strip()
    return "".join(c if c.isprintable() or c in JOINERS else c.encode("unicode_escape").decode() for c in line)
