"""Reads CoNLL-U with entities as brackets in MISC, as in GUM and CorefUD.

    1	the	the	DET	…	Entity=(1-person-new
    4	Orsk	Orsk	PROPN	…	Entity=(2-place-new)1)

The type of an entity is the part `etype` of those listed in `global.Entity` (the second one without such a comment).
Mentions of all kinds are entities, in GUM even pronouns. Empty nodes are left out.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..reading import numbered_paragraphs, read_head
from ..schema import DISCONTINUOUS, LOST_ACROSS_SENTENCES, Entity, RecordChecker, Text
from . import CorpusFormat
from .columns import Layout, Rows, read_columns

MISC, WIDTH = 9, 10
BRACKET = re.compile(r"(\()?([^()]+)(\))?")
PART_OF_SEVERAL = re.compile(r"\[([0-9]+)/[0-9]+\]$")
"""The end of an entity's name if it is one part of a discontinuous entity: [1/2]."""


@dataclass
class Conllu(Layout):
    """The ten columns of CoNLL-U, and what the brackets in them say across sentences.

    Args:
        type_part: of the parts in a bracket: the second, unless the file names them.
        left_open: names of entities that began in earlier sentences.
    """

    type_part: int = 1
    left_open: Counter[str] = field(default_factory=Counter)

    def read_comment(self, name: str, value: str, where: str, check: RecordChecker) -> None:
        """Reads the meaning of a bracket's parts; the start of a document closes all entities."""
        if name == "global.Entity":
            parts = value.split("-")
            if "etype" not in parts:
                problem = f"global.Entity is {value!r}, without the part etype"
                raise check.error(where, problem, "The entities of the corpus need types, in a part of that name")
            self.type_part = parts.index("etype")
        elif name.startswith("newdoc"):
            self.left_open.clear()

    def entities_of(self, rows: Rows, check: RecordChecker) -> list[Entity]:
        """The entities of a sentence whose brackets both stand in it, by words."""
        entities: list[Entity] = []
        is_open: dict[str, list[tuple[str, int]]] = defaultdict(list)  # name → types and first words
        num_words = 0
        for number, row in rows:
            where, of_word = f"line {number}", self.is_word(row)
            for opens, inside, closes in _brackets(row[MISC], where, check):
                name, *_ = parts = inside.split("-")
                if opens:
                    kind = parts[self.type_part] if self.type_part < len(parts) else ""
                    is_open[name].append((kind, num_words))
                if closes and is_open[name]:
                    kind, start = is_open[name].pop()
                    part = PART_OF_SEVERAL.search(name)
                    if part is not None and part[1] == "1":
                        check.drop(DISCONTINUOUS, example=f"{where}: {name}")
                    elif part is None and (not kind or start >= num_words + of_word):
                        what = "words" if kind else "a type"
                        check.drop(f"entities without {what} dropped", example=f"{where}: {name}")
                    elif part is None:
                        entities.append(Entity(start=start, end=num_words + of_word, type=kind))
                elif closes and self.left_open[name]:
                    self.left_open[name] -= 1
                elif closes:
                    raise check.error(where, f"Entity closes {name!r}, which is not open", "Open it where it begins")
            num_words += of_word
        for name, unclosed in is_open.items():
            self.left_open[name] += len(unclosed)
            for _ in unclosed:
                check.drop(LOST_ACROSS_SENTENCES, example=f"line {rows[0][0]}: {name}")
        return entities


def _brackets(misc: str, where: str, check: RecordChecker) -> Sequence[tuple[str, str, str]]:
    """Returns of each bracket whether it opens, its parts, and whether it closes."""
    value = next((pair.partition("=")[2] for pair in misc.split("|") if pair.startswith("Entity=")), "")
    brackets = BRACKET.findall(value)
    if "".join(map("".join, brackets)) != value or not all(opens or closes for opens, _, closes in brackets):
        problem = f"Entity is {value!r}, which cannot be parsed as brackets"
        rule = "An entity opens as (name-type and closes as name), and its name contains no brackets"
        raise check.error(where, problem, rule)
    return brackets


def read_conllu(path: Path, check: RecordChecker) -> Iterator[Text]:
    """Reads the documents one by one; a CorpusError names the line."""
    if "Entity=" not in read_head(path):
        check.note("files without brackets (Entity=) in the first lines", example=path.name)
    layout = Conllu("\t", WIDTH, tokens=1, pos=3, numbered=True)
    yield from read_columns(numbered_paragraphs(path, check), path, layout, check, with_text=True)


CONLLU = CorpusFormat(
    name="conllu",
    description="CoNLL-U with entities as brackets in MISC",
    read=read_conllu,
    suffixes=(".conllu",),
    recognizes=lambda head: bool(re.search(r"(?m)^1\t(?:[^\t\n]*\t){8}[^\t\n]*$", head)) and "Entity=(" in head,
)
