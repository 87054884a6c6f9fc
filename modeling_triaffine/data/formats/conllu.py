"""Reads CoNLL-U with entities as brackets in MISC, as in GUM and CorefUD.

    # global.Entity = GRP-etype-infstat
    1	the	the	DET	…	Entity=(1-person-new
    2	mayor	mayor	NOUN	…	_
    3	of	of	ADP	…	_
    4	Orsk	Orsk	PROPN	…	Entity=(2-place-new)1)

Tokens are the syntactic words (the parts of multi-word tokens; empty nodes are left out), tags are the UPOS column, and
the type of an entity is the part `etype` of those listed in `global.Entity` (the second one without such a comment).
Mentions of all kinds are entities, in GUM even pronouns. So are tags in MISC: NorNE has `name=B-PER`, Stanza's output
`ner=S-PER`. Discontinuous entities, those that cross the end of a sentence and those without a type are dropped and
counted. The text as written is the comment `# text`, or rebuilt from the forms and `SpaceAfter=No`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from ..alignment import LOST_ACROSS_SENTENCES
from ..corpus_format import CorpusFormat
from ..reading import document_name, numbered_paragraphs
from ..record_checker import DISCONTINUOUS, RecordChecker
from ..schema import Entity, Text
from ..texts import WrittenSentence, text_of_sentences
from .layout import NODE
from .sentence_ids import SentenceIds
from .tags import STANDARD, Tag, decode_tags, part_of_tag
from .written_words import NO_SPACE, Row, is_word, written_text

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, UPOS, MISC = (COLUMNS.index(name) for name in ("ID", "FORM", "UPOS", "MISC"))
TAG_NAMES = ("ner", "ne", "name")
"""Names in MISC of tags, in any case; the last one may be of something else."""
SHOWN = 40
BRACKET = re.compile(r"(\()?([^()]+)(\))?")
PART_OF_SEVERAL = re.compile(r"\[([0-9]+)/[0-9]+\]$")
"""The end of an entity's name if it is one part of a discontinuous entity: [1/2]."""


def read_conllu(path: Path, check: RecordChecker) -> Iterator[Text]:
    """Reads the documents one by one: sentences joined by spaces, paragraphs (`# newpar`) by an empty line."""
    for _, sentences in groupby(_sentences(path, check), key=lambda found: found[1].record["doc_id"]):
        (where, first), *others = sentences
        yield text_of_sentences([first, *(sentence for _, sentence in others)], where)


def _sentences(path: Path, check: RecordChecker) -> Iterator[tuple[str, WrittenSentence]]:
    """The sentences, each with its place."""
    ids = SentenceIds(document_name(path, check), check.is_document)
    brackets = _Brackets(check)
    for paragraph in numbered_paragraphs(path, check):
        lines, gap, comment = [], " ", ""
        for number, line in paragraph:
            if line.startswith("#"):
                name, value = ids.read_comment(line)
                brackets.read_comment(name, value, f"line {number}")
                gap = "\n\n" if name in ("newpar", "newpar id") else gap
                comment = value if name == "text" else comment
            else:
                lines.append((f"line {number}", line))
        with check.record():
            rows = [(where, _row(line, where, check)) for where, line in lines]
            words = [row for _, row in rows if is_word(row[ID])]
            entities = [*brackets.entities_of(rows), *decode_tags(_tags_of_words(rows, check), check)]
            if not words:
                continue
            where = rows[0][0]
            written = (Row(row[ID], row[FORM], NO_SPACE in row[MISC].split("|")) for _, row in rows)
            text, offsets = written_text([*written], comment, check, where)
            pos = [row[UPOS] for row in words]
            fields = {
                **ids.next_sentence(),
                "tokens": [row[FORM] for row in words],
                "pos": [] if set(pos) == {"_"} else pos,
                "entities": entities,
            }
            yield where, WrittenSentence(check(fields, where), text, offsets, gap)


def _tags_of_words(rows: Sequence[tuple[str, Sequence[str]]], check: RecordChecker) -> list[list[Tag]]:
    """The tags of each word; those on the line of a multi-word token are those of its words, if these have none."""
    by_id = {row[ID]: _tags(row, where, check) for where, row in rows}
    for number in [number for number, tags in by_id.items() if tags]:
        first, _, last = number.partition("-")
        inside = [word for word in by_id if last and is_word(word) and int(first) <= int(word) <= int(last)]
        if not any(by_id[word] for word in inside):
            for word in inside:
                position = (word == inside[0], word == inside[-1])
                by_id[word] = [(part_of_tag(prefix, *position), kind) for prefix, kind in by_id[number]]
    return [by_id[row[ID]] for _, row in rows if is_word(row[ID])]


def _tags(row: Sequence[str], where: str, check: RecordChecker) -> list[Tag]:
    """The tags in MISC."""
    tags: list[Tag] = []
    for name, _, value in (pair.partition("=") for pair in row[MISC].split("|")):
        if name.lower() in TAG_NAMES:
            found = STANDARD.read(value)
            if found is None and name.lower() != TAG_NAMES[-1]:
                check.note(f"values of {name} in MISC that are no tags (B-type) ignored", example=f"{where}: {value}")
            tags += found or ()
    return tags


def _row(line: str, where: str, check: RecordChecker) -> list[str]:
    row = line.split("\t")
    if len(row) != len(COLUMNS) or not NODE.fullmatch(row[ID]):
        shown = f"{line[: SHOWN // 2]}…{line[-SHOWN:]}" if len(line) > 2 * SHOWN else line
        problem = f"{shown!r}, with {len(row)} columns, is not a line of CoNLL-U"
        rule = f"A line has an id and {len(COLUMNS) - 1} more columns, separated by tabs"
        raise check.error(where, problem, f"{rule}; columns with tags are read with format='iob2' (--format iob2)")
    return row


class _Brackets:
    """Follows the brackets through a file."""

    def __init__(self, check: RecordChecker):
        self.check = check
        self.type_column = 1  # of the parts in a bracket: the second, unless the file names them
        self.left_open: Counter[str] = Counter()  # names of entities that began in earlier sentences

    def read_comment(self, name: str, value: str, where: str) -> None:
        """Reads the meaning of a bracket's parts; the start of a document closes all entities."""
        if name == "global.Entity":
            parts = value.split("-")
            if "etype" not in parts:
                problem = f"global.Entity is {value!r}, without the part etype"
                raise self.check.error(where, problem, "The entities of the corpus need types, in a part of that name")
            self.type_column = parts.index("etype")
        elif name.startswith("newdoc"):
            self.left_open.clear()

    def entities_of(self, rows: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Entity]:
        """The entities of a sentence, by words."""
        is_open: dict[str, list[tuple[str, int]]] = defaultdict(list)  # name → types and first words
        num_words = 0
        for where, row in rows:
            of_word = is_word(row[ID])
            for opens, inside, closes in self._parsed(row[MISC], where):
                name, *_ = parts = inside.split("-")
                if opens:
                    kind = parts[self.type_column] if self.type_column < len(parts) else ""
                    is_open[name].append((kind, num_words))
                if closes and is_open[name]:
                    yield from self._entity(name, *is_open[name].pop(), num_words + of_word, where)
                elif closes and self.left_open[name]:
                    self.left_open[name] -= 1
                elif closes:
                    problem = f"Entity closes {name!r}, which is not open"
                    raise self.check.error(where, problem, "Open it where it begins")
            num_words += of_word
        for name, entities in is_open.items():
            self.left_open[name] += len(entities)
            for _ in entities:
                self.check.drop(LOST_ACROSS_SENTENCES, example=f"{rows[0][0]}: {name}")

    def _parsed(self, misc: str, where: str) -> list[tuple[str, str, str]]:
        value = next((pair.partition("=")[2] for pair in misc.split("|") if pair.startswith("Entity=")), "")
        brackets = BRACKET.findall(value)
        if "".join(map("".join, brackets)) != value or not all(opens or closes for opens, _, closes in brackets):
            problem = f"Entity is {value!r}, which cannot be parsed as brackets"
            rule = "An entity opens as (name-type and closes as name), and its name contains no brackets"
            raise self.check.error(where, problem, rule)
        return brackets

    def _entity(self, name: str, kind: str, start: int, end: int, where: str) -> Iterator[Entity]:
        part = PART_OF_SEVERAL.search(name)
        example = f"{where}: {name}"
        if part is not None:
            if part[1] == "1":
                self.check.drop(DISCONTINUOUS, example=example)
        elif not kind:
            self.check.drop("entities without a type dropped", example=example)
        elif start >= end:
            self.check.drop("entities without words dropped", example=example)
        else:
            yield Entity(start=start, end=end, type=kind)


CONLLU = CorpusFormat(
    name="conllu",
    description="CoNLL-U with entities as brackets in MISC",
    read=read_conllu,
    suffixes=(".conllu",),
    recognizes=lambda head: bool(re.search(r"(?m)^1\t(?:[^\t\n]*\t){8}[^\t\n]*$", head)) and "Entity=(" in head,
    tools="GUM, CorefUD, NorNE, Stanza",
    example="4\tOrsk\tOrsk\tPROPN\tNNP\t_\t2\tnmod\t_\tEntity=(2-place-new)1)",
)
