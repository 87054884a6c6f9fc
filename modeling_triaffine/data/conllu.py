"""Reads CoNLL-U with entities as brackets in MISC, as in GUM and CorefUD.

    # global.Entity = GRP-etype-infstat
    1	the	the	DET	…	Entity=(1-person-new
    2	mayor	mayor	NOUN	…	_
    3	of	of	ADP	…	_
    4	Orsk	Orsk	PROPN	…	Entity=(2-place-new)1)

Tokens are the syntactic words (the parts of multi-word tokens; empty nodes are left out), tags are the UPOS column, and
the type of an entity is the part `etype` of those listed in `global.Entity` (the second one without such a comment).
Mentions of all kinds are entities, in GUM even pronouns. Discontinuous entities, those that cross the end of a sentence
and those without a type are dropped and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .alignment import LOST_ACROSS_SENTENCES
from .conll import SentenceIds, comment_field, numbered_paragraphs
from .corpus_format import CorpusFormat
from .schema import Entity, Record, RecordChecker

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, UPOS, MISC = (COLUMNS.index(name) for name in ("ID", "FORM", "UPOS", "MISC"))
NODE = re.compile(r"[0-9]+(?:[-.][0-9]+)?")
DEFAULT_PARTS = ("GRP", "etype")
BRACKET = re.compile(r"(\()?([^()]+)(\))?")
PART_OF_SEVERAL = re.compile(r"\[([0-9]+)/[0-9]+\]$")
"""The end of an entity's name if it is one part of a discontinuous entity: [1/2]."""


class OpenEntity(NamedTuple):
    """An entity whose bracket is open: its name and type, and the index of its first word."""

    name: str
    type: str
    start: int


def read_conllu(path: Path, check: RecordChecker) -> Iterator[Record]:
    """Reads the sentences one by one.

    Args:
        path: plain or gzipped.
        check: counts the entities that are dropped.

    Raises:
        CorpusError: wrong number of columns, a bracket that closes an entity that is not open, or no etype in
            `global.Entity`; the message names the line.
    """
    ids = SentenceIds(path.name.partition(".")[0])
    brackets = _Brackets(check)
    for paragraph in numbered_paragraphs(path, check):
        rows = []
        for number, line in paragraph:
            if line.startswith("#"):
                ids.read_comment(line)
                brackets.read_comment(line, f"line {number}")
            else:
                rows.append((f"line {number}", _row(line, f"line {number}", check)))
        words = [row for _, row in rows if _is_word(row)]
        entities = list(brackets.entities_of(rows))
        pos = [row[UPOS] for row in words]
        if words:
            sentence = {
                **ids.next_sentence(),
                "tokens": [row[FORM] for row in words],
                "pos": [] if set(pos) == {"_"} else pos,
                "entities": entities,
            }
            yield check(sentence, rows[0][0])


def _is_word(row: Sequence[str]) -> bool:
    """Whether a row is a syntactic word, not a multi-word token or an empty node."""
    return row[ID].isdecimal()


def _row(line: str, where: str, check: RecordChecker) -> list[str]:
    row = line.split("\t")
    if len(row) != len(COLUMNS) or not NODE.fullmatch(row[ID]):
        problem = f"{line[:40]!r} is not a line of CoNLL-U"
        raise check.error(where, problem, f"A line has an id and {len(COLUMNS) - 1} more columns, separated by tabs")
    return row


class _Brackets:
    """Follows the brackets through a file."""

    def __init__(self, check: RecordChecker):
        self.check = check
        self.parts: Sequence[str] = DEFAULT_PARTS
        self.left_open: Counter[str] = Counter()  # names of entities that began in earlier sentences

    def read_comment(self, line: str, where: str) -> None:
        """Reads the meaning of a bracket's parts; the start of a document closes all entities."""
        name, value = comment_field(line)
        if name == "global.Entity":
            self.parts = value.split("-")
            if "etype" not in self.parts:
                problem = f"global.Entity is {value!r}, without the part etype"
                raise self.check.error(where, problem, "The entities of the corpus need types, in a part of that name")
        elif name.startswith("newdoc"):
            self.left_open.clear()

    def entities_of(self, rows: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Entity]:
        """The entities of a sentence, by words."""
        is_open: list[OpenEntity] = []
        num_words = 0
        for where, row in rows:
            is_word = _is_word(row)
            for opens, inside, closes in self._parsed(row[MISC], where):
                if opens:
                    is_open.append(self._opened(inside, num_words))
                if closes:
                    closed = self._closed(inside.partition("-")[0], is_open, where)
                    if closed is not None:
                        yield from self._entity(closed, num_words + is_word, where)
            num_words += is_word
        for entity in is_open:
            self.left_open[entity.name] += 1
            self.check.drop(LOST_ACROSS_SENTENCES, example=f"{rows[0][0]}: {entity.name}")

    def _parsed(self, misc: str, where: str) -> list[tuple[str, str, str]]:
        value = next((pair.partition("=")[2] for pair in misc.split("|") if pair.startswith("Entity=")), "")
        brackets = BRACKET.findall(value)
        if "".join(map("".join, brackets)) != value or not all(opens or closes for opens, _, closes in brackets):
            problem = f"Entity is {value!r}, which cannot be parsed as brackets"
            rule = "An entity opens as (name-type and closes as name), and its name has no brackets"
            raise self.check.error(where, problem, rule)
        return brackets

    def _opened(self, inside: str, start: int) -> OpenEntity:
        parts = inside.split("-")
        column = self.parts.index("etype")
        return OpenEntity(name=parts[0], type=parts[column] if column < len(parts) else "", start=start)

    def _closed(self, name: str, is_open: list[OpenEntity], where: str) -> OpenEntity | None:
        """Removes the last open entity of this name from `is_open`; None if it began in an earlier sentence."""
        for entity in reversed(is_open):
            if entity.name == name:
                is_open.remove(entity)
                return entity
        if not self.left_open[name]:
            raise self.check.error(where, f"Entity closes {name!r}, which is not open", "Open it where it begins")
        self.left_open[name] -= 1
        return None

    def _entity(self, entity: OpenEntity, end: int, where: str) -> Iterator[Entity]:
        part = PART_OF_SEVERAL.search(entity.name)
        example = f"{where}: {entity.name}"
        if part is not None:
            if part[1] == "1":
                self.check.drop("discontinuous entities dropped", example=example)
        elif not entity.type:
            self.check.drop("entities without a type dropped", example=example)
        elif entity.start >= end:
            self.check.drop("entities without words dropped", example=example)
        else:
            yield Entity(start=entity.start, end=end, type=entity.type)


CONLLU = CorpusFormat(
    name="conllu",
    description="CoNLL-U with entities as brackets in MISC",
    suffixes=(".conllu",),
    recognizes=lambda head: bool(re.search(r"(?m)^1\t(?:[^\t\n]*\t){8}[^\t\n]*$", head)) and "Entity=(" in head,
    read=read_conllu,
)
