"""`RecordChecker`: what a reader reports to. It checks entities and sentences, and counts what is dropped or ignored.

Knows nothing about file formats. Several examples of each count are kept, and `report` makes one line of all.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError

from ..model.kinds_triaffine import NONE_LABEL
from ..model.text_triaffine import FINER_SPLITTERS, Offsets
from ..parsing import shown
from .offsets import CHARACTERS, in_characters, in_context, joined, positions, same_but_for_space, without_space
from .schema import CONTEXT_FIELDS, ENTITY_FIELDS, RECORD_FIELDS, CorpusError, Entity, Record

logger = logging.getLogger(__name__)

Value = TypeVar("Value")

UnicodeText = Annotated[str, StringConstraints(min_length=0)]
"""pydantic looks for half surrogate pairs, which JSON can escape (\\ud800) and UTF-8 not represent, under any bound."""
Words = list[Annotated[str, StringConstraints(min_length=1)]]

MAX_EXAMPLES = 3
MUCH_LOST = 0.05
WITHOUT_SPANS = "texts without a field of spans, read as texts without entities"
BAD_RECORDS = "bad records dropped"
BAD_ENTITIES = "bad entities dropped"
DISCONTINUOUS = "discontinuous entities dropped"
OF_WHITE_SPACE = "entities of white space alone dropped"
OFFSETS = "If the offsets do not count characters, name what they count (convert --offsets, offsets=)"


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(UnicodeText if kind is str else kind, config=ConfigDict(strict=True))


class RecordChecker:
    """Checks what a reader found in the files of a split, and counts what is kept, dropped, ignored or changed.

    Args:
        path: the file, for messages.
        labels: the entity types allowed; None allows any.
        read_as: the end of errors: which format the file was taken for.
        offsets: the unit of offsets, one of `OFFSET_UNITS`.
        max_bad_records: number of unreadable records and entities to drop, each named in the report.

    Attributes:
        counts: what was dropped, ignored or changed, in words ("relations ignored") → how often.
        sentences, entities_kept, entities_dropped: totals; the entities in the file are the sum of the last two.
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
        read_as: str = "",
        offsets: str | None = None,
        max_bad_records: int = 0,
    ):
        self.path = path
        self.labels = None if labels is None else frozenset(labels)
        self.read_as = read_as
        self.offsets = offsets or CHARACTERS
        self.max_bad_records = max_bad_records
        self.folder: Path | None = None
        self.is_document = False
        self.counts = Counter[str]()
        self.sentences = self.entities_kept = self.entities_dropped = 0
        self._labels_kept, self._labels_dropped = Counter[str](), Counter[str]()
        self._kept_by: dict[str, Counter[str]] = {}
        self._examples: dict[str, list[str]] = {}
        self._ids: dict[str, str] = {}

    def error(self, where: str, problem: str, remedy: str) -> CorpusError:
        """The error for a place in the file; the `remedy` is a sentence without its full stop."""
        return CorpusError.at(self.path, where, problem, f"{remedy}. {self.read_as}" if self.read_as else remedy)

    # ---- Counts ----

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
        if example and (len(examples) < MAX_EXAMPLES or what in (BAD_RECORDS, BAD_ENTITIES)):
            examples.append(example)

    def note_other_fields(self, fields: Mapping[str, Any], known: Iterable[str], what: str = "field") -> None:
        """Counts the fields that are not read; `what` describes them."""
        for name in fields.keys() - known:
            self.note(f"{what} '{name}' ignored")

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
    def record(self) -> Iterator[None]:
        """Guards the reading of a record: drops it if it raises a CorpusError, unless too many were dropped before."""
        try:
            yield
        except CorpusError as error:
            if error.is_last:
                raise
            self._drop_bad(error)
            self.note(BAD_RECORDS, example=error.summary or str(error))

    def _drop_bad(self, error: CorpusError) -> None:
        """Raises the error if as many records and entities as may be dropped have been."""
        dropped = self.counts[BAD_RECORDS] + self.counts[BAD_ENTITIES]
        if dropped >= self.max_bad_records:
            before = f"{dropped} were dropped before. " if dropped else ""
            last = CorpusError(
                f"{error} {before}To drop bad records, say how many: --max_bad_records, max_bad_records=."
            )
            last.is_last = True
            raise last from None

    def report(self) -> str:
        """Sums up in one line what was kept and what was not; empty if nothing was dropped or noted."""
        if not self.counts:
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
        return f"{Path(self.path).name}: {kept}{'; '.join(noted)}."

    def tell(self) -> None:
        """Logs the report as one warning, if there is one."""
        if report := self.report():
            logger.warning("%s", report)

    def _shown_examples(self, what: str) -> str:
        examples = self._examples.get(what)
        if not examples:
            return ""
        more = ["…"] if len(examples) < self.counts[what] else []
        return f" ({' | '.join([*examples, *more])})"

    # ---- Checks ----

    def entity(
        self,
        text: str,
        fragments: Sequence[Offsets],
        type: str,
        quote: str | None = None,
        where: str = "",
        name: str = "",
    ) -> Entity | None:
        """An entity of a text by its characters; None if it is dropped, which is counted.

        Dropped are entities of several fragments, unless white space alone separates them, and of white space alone.
        White space at an entity's boundaries is no part of it.

        Args:
            fragments: (start, end exclusive), in the unit of `offsets`.
            quote: the entity's text as the tool wrote it, to be compared; None if it wrote none.
            where: the place in the file, for messages.
            name: of the entity in that place: "entities[2]".

        Raises:
            CorpusError: the entity is outside of its text, differs from its quote or has no valid type, and more are
                not to be dropped (`max_bad_records`).
        """
        fragments = [(start, end) for start, end in fragments if start != end]
        try:
            self.label(type, where, name)
            parts = self._in_text(text, fragments, quote, where, name)
        except CorpusError as error:
            self._drop_bad(error)
            self.drop(BAD_ENTITIES, 1, error.summary, type)
            return None
        if len(parts) > 1:
            self.drop(DISCONTINUOUS, 1, f"{where}: {type} {in_context(text, parts[0][0], parts[-1][1])}", type)
            return None
        start, end = parts[0] if parts else (0, 0)
        entity = without_space(text, Entity(start=start, end=end, type=type))
        if entity["start"] == entity["end"]:
            self.drop(OF_WHITE_SPACE, 1, f"{where}: {name}", type)
            return None
        return entity

    def _in_text(
        self, text: str, fragments: Sequence[Offsets], quote: str | None, where: str, name: str
    ) -> list[Offsets]:
        """The fragments in characters, in order and joined; CorpusError if they do not fit the text or the quote."""
        in_text: list[Offsets] = []
        for start, end in fragments:
            found = in_characters((start, end), positions(text, self.offsets))
            if found is None:
                problem = f"field '{name}' runs from {start} to {end}, the text has {len(text)} characters"
                raise self.error(where, problem, OFFSETS)
            in_text.append(found)
        parts = joined(text, in_text)
        if quote is not None and len(parts) == 1 and not same_but_for_space(quote, text[slice(*parts[0])]):
            problem = f"field '{name}' quotes {quote!r}, but from {parts[0][0]} to {parts[0][1]} the text is "
            raise self.error(where, f"{problem}'{in_context(text, *parts[0])}'", OFFSETS)
        return parts

    def label(self, type: str, where: str, name: str) -> None:
        """Raises CorpusError unless this can be the type of an entity; `name` is the entity's, for messages."""
        if type in ("", NONE_LABEL) or type != type.strip():
            problem = f"field '{name}.type' is {type!r}"
            raise self.error(
                where, problem, f"A type is no {NONE_LABEL!r}, is not empty and has no white space around it"
            )
        if self.labels is not None and type not in self.labels:
            problem = f"field '{name}.type' is {type!r}, which is not among the labels {sorted(self.labels)}"
            raise self.error(where, problem, "Correct it, or add it to `labels`")

    def __call__(self, raw: object, where: str) -> Record:
        """Checks one sentence in the words of the corpus and returns its record, with each entity once.

        Args:
            raw: the fields of `FEATURES` as found. `pos` may be missing (no tags), and so may the context fields; if
                one of these is given, the other side is empty.
            where: the place in the file, for messages: "line 3".
        """
        fields = self.mapping(raw, where, "the record", f"A record has the fields {', '.join(RECORD_FIELDS)}")
        self.note_other_fields(fields, RECORD_FIELDS)
        name, doc_id = (self.typed(fields, field, str, where) for field in ("id", "doc_id"))
        tokens = self.typed(fields, "tokens", Words, where)
        pos, left, right = (
            self.typed(fields, field, Words, where) if fields.get(field) is not None else None
            for field in ("pos", *CONTEXT_FIELDS)
        )
        if not tokens:
            raise self.error(where, "field 'tokens' is empty", "A sentence needs at least one word")
        if pos and len(pos) != len(tokens):
            problem = f"field 'pos' has {len(pos)} tags for {len(tokens)} tokens"
            raise self.error(where, problem, "Give one tag for each token, or an empty list")
        entities = self.unique(self.entities(fields, len(tokens), where))
        if left is not None or right is not None:
            left, right = left or [], right or []
        number = self.typed(fields, "sent_id", int, where)
        self.once(name, where)
        return Record(
            id=name,
            doc_id=doc_id,
            sent_id=number,
            tokens=tokens,
            pos=pos or [],
            entities=entities,
            left_tokens=left,
            right_tokens=right,
        )

    def entities(self, fields: Mapping[str, Any], size: int, where: str) -> list[Entity]:
        """Checks the field `entities` of a sentence of `size` tokens."""
        checked = []
        for index, raw in enumerate(self.typed(fields, "entities", list, where)):
            name = f"entities[{index}]"
            entity = self.mapping(raw, where, f"field '{name}'", f"An entity has the fields {', '.join(ENTITY_FIELDS)}")
            self.note_other_fields(entity, ENTITY_FIELDS, "entity field")
            start, end = (self.typed(entity, side, int, where, name) for side in ("start", "end"))
            kind = self.typed(entity, "type", str, where, name)
            self.label(kind, where, name)
            if not 0 <= start < end <= size:
                problem = f"field '{name}' runs from {start} to {end}, and there are {size} tokens"
                raise self.error(where, problem, "Start and end count tokens from 0, the end is exclusive")
            checked.append(Entity(start=start, end=end, type=kind))
        return checked

    def once(self, id: str, where: str) -> None:
        """Raises CorpusError if a sentence before had the same id."""
        if id in self._ids:
            problem = f"field 'id': {id!r} was used before, at {self._ids[id]}"
            raise self.error(where, problem, "Give each sentence its own id, or remove the repeated one")
        self._ids[id] = f"{self.path}, {where}"

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
            return cast(Value, _adapter(cast(Any, kind)).validate_python(fields[name]))
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
        # Of a list that is too short, what is missing has no value to show: the list is shown.
        place = found["loc"][:-1] if found["type"] == "missing" else found["loc"]
        path += "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        raise self.error(where, f"field '{path}' is {shown(found['input'])}", remedy or found["msg"])


def names_of(fields: Mapping[str, Any]) -> str:
    """The first names of fields, for messages."""
    return ", ".join(map(repr, list(fields)[:10])) or "none"


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
