"""CoNLL-U with entities as brackets in MISC, as GUM and CorefUD have them.

    # global.Entity = GRP-etype-infstat
    1	the	the	DET	…	Entity=(1-person-new
    2	mayor	mayor	NOUN	…	_
    3	of	of	ADP	…	_
    4	Orsk	Orsk	PROPN	…	Entity=(2-place-new)1)

Tokens are the syntactic words (of a multi-word token its parts; empty nodes are left out), tags are the UPOS column,
the type is the part `etype` of those that `global.Entity` names (without it, the second). Mentions of all kinds are
entities, in GUM pronouns too. Discontinuous ones, those over the end of a sentence and those without a type are dropped
and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .conll import Documents, comment_field, line_blocks
from .reading import CorpusFormat
from .schema import Entity, Record, RecordChecker

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, UPOS, MISC = (COLUMNS.index(name) for name in ("ID", "FORM", "UPOS", "MISC"))
NODE = re.compile(r"[0-9]+(?:[-.][0-9]+)?")
DEFAULT_PARTS = ("GRP", "etype")
BRACKET = re.compile(r"(\()?([^()]+)(\))?")
PART_OF_SEVERAL = re.compile(r"\[([0-9]+)/[0-9]+\]$")
"""What the name of a mention ends in where it is one part of a discontinuous one: [1/2]."""


class Mention(NamedTuple):
    """A mention that is open: its name and type, and the number of its first word."""

    name: str
    type: str
    start: int


def read_conllu(path: Path, check: RecordChecker) -> Iterator[Record]:
    """The file's sentences, read one by one.

    Args:
        path: plain or gzipped.
        check: counts mentions that are dropped.

    Raises:
        CorpusError: names the line of what cannot be read: another number of columns, brackets that do not close what
            is open, no etype among the parts that `global.Entity` names.
    """
    documents = Documents(path.name.partition(".")[0])
    mentions = _Mentions(check)
    for block in line_blocks(path, check):
        rows = []
        for number, line in block:
            if line.startswith("#"):
                documents.read_comment(line)
                mentions.read_comment(line, f"line {number}")
            else:
                rows.append((f"line {number}", _row(line, f"line {number}", check)))
        words = [row for _, row in rows if _is_word(row)]
        entities = list(mentions.of_sentence(rows))
        pos = [row[UPOS] for row in words]
        if words:
            sentence = {
                **documents.next_sentence(),
                "tokens": [row[FORM] for row in words],
                "pos": [] if set(pos) == {"_"} else pos,
                "entities": entities,
            }
            yield check(sentence, rows[0][0])


def _is_word(row: Sequence[str]) -> bool:
    """Whether it is a syntactic word; else it is the surface of several, or an empty node."""
    return row[ID].isdecimal()


def _row(line: str, where: str, check: RecordChecker) -> list[str]:
    row = line.split("\t")
    if len(row) != len(COLUMNS) or not NODE.fullmatch(row[ID]):
        problem = f"{line[:40]!r} is no line of CoNLL-U"
        raise check.error(where, problem, f"A line has an id and {len(COLUMNS) - 1} more columns, with tabs between")
    return row


class _Mentions:
    """Follows the brackets through a file."""

    def __init__(self, check: RecordChecker):
        self.check = check
        self.parts: Sequence[str] = DEFAULT_PARTS
        self.left_open: Counter[str] = Counter()  # names of mentions that began in earlier sentences

    def read_comment(self, line: str, where: str) -> None:
        """Takes what a bracket's parts mean; a new document leaves nothing open."""
        name, value = comment_field(line)
        if name == "global.Entity":
            self.parts = value.split("-")
            if "etype" not in self.parts:
                problem = f"global.Entity is {value!r}, without the part etype"
                raise self.check.error(where, problem, "The corpus must have entity types, in a part of that name")
        elif name.startswith("newdoc"):
            self.left_open.clear()

    def of_sentence(self, rows: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Entity]:
        """The entities of a sentence, by its words."""
        is_open: list[Mention] = []
        num_words = 0
        for where, row in rows:
            is_word = _is_word(row)
            for opens, inside, closes in self._brackets(row[MISC], where):
                if opens:
                    is_open.append(self._opened(inside, num_words))
                if closes:
                    mention = self._closed(inside.partition("-")[0], is_open, where)
                    if mention is not None:
                        yield from self._entity(mention, num_words + is_word, where)
            num_words += is_word
        for mention in is_open:
            self.left_open[mention.name] += 1
            self.check.drop("entities lost, over the end of a sentence", example=f"{rows[0][0]}: {mention.name}")

    def _brackets(self, misc: str, where: str) -> list[tuple[str, str, str]]:
        value = next((pair.partition("=")[2] for pair in misc.split("|") if pair.startswith("Entity=")), "")
        brackets = BRACKET.findall(value)
        if "".join(map("".join, brackets)) != value or not all(opens or closes for opens, _, closes in brackets):
            problem = f"Entity is {value!r}, which are no brackets"
            raise self.check.error(
                where, problem, "A mention opens as (name-type, closes as name), and names no bracket"
            )
        return brackets

    def _opened(self, inside: str, start: int) -> Mention:
        parts = inside.split("-")
        column = self.parts.index("etype")
        return Mention(name=parts[0], type=parts[column] if column < len(parts) else "", start=start)

    def _closed(self, name: str, is_open: list[Mention], where: str) -> Mention | None:
        """Takes the mention with this name that opened last from those open; None if it is of an earlier sentence."""
        for mention in reversed(is_open):
            if mention.name == name:
                is_open.remove(mention)
                return mention
        if not self.left_open[name]:
            raise self.check.error(where, f"Entity closes {name!r}, which is not open", "See where it should begin")
        self.left_open[name] -= 1
        return None

    def _entity(self, mention: Mention, end: int, where: str) -> Iterator[Entity]:
        part = PART_OF_SEVERAL.search(mention.name)
        example = f"{where}: {mention.name}"
        if part is not None:
            if part[1] == "1":
                self.check.drop("discontinuous entities dropped", example=example)
        elif not mention.type:
            self.check.drop("entities without a type dropped", example=example)
        elif mention.start >= end:
            self.check.drop("entities without words dropped", example=example)
        else:
            yield Entity(start=mention.start, end=end, type=mention.type)


CONLLU = CorpusFormat(
    name="conllu",
    description="CoNLL-U with entities as brackets in MISC",
    suffixes=(".conllu",),
    recognizes=lambda head: bool(re.search(r"(?m)^1\t(?:[^\t\n]*\t){8}[^\t\n]*$", head)) and "Entity=(" in head,
    read=read_conllu,
)
