"""Reads columns of tags (IOB2, BIOES, BILOU, BMES), one for every level of nesting, as in GermEval 2014 and DaN+.

    the	B-Person	O
    mayor	I-Person	O
    of	I-Person	O
    Orsk	I-Person	B-City

One token per line, blank lines between sentences, columns separated by tabs, or by spaces if there are no tabs. The tag
columns are the last adjacent columns that contain nothing but tags; the tokens are in the first column, or in the
second if the first one numbers them; multi-word tokens (1-2) and empty nodes (1.1) are then left out. A comment
`# global.columns = ID FORM UPOS NER:1 NER:2`, as in CoNLL-U Plus, or the option `columns` overrides this. Other columns
are ignored and reported, also columns of chunks (CoNLL-2003's third). A word has a tag for every entity around it where
lines have different numbers of tags and O stands alone, as in Wojood, or tags are joined, as in `B-Person|B-City`: I-
continues an entity of its type. Comments come before the tokens of a sentence. Documents begin at `-DOCSTART-` or
`# newdoc id = …`; without either, every sentence is a document of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from pathlib import Path
from typing import Any

from ..corpus_format import CorpusFormat
from ..documents import Document, Sentence, document_of_words
from ..reading import HEAD_SIZE, document_name, numbered_paragraphs, read_head
from ..schema import OF_TABLES, Entity, RecordChecker

NODE = re.compile(r"[0-9]{1,9}(?:[-.][0-9]{1,9})?")
"""The id of a word, of a multi-word token (1-2) or of an empty node (1.1)."""
TAG = re.compile(r"(?:O\|)*(?:O|[BIMELSU]-.+)", re.DOTALL)
"""One tag, or several of one word, joined by |."""
BETWEEN_TAGS = re.compile(r"\|(?=[BIMELSU]-|O(?:\||\Z))")
INSIDE, LAST, SINGLE = "IM", "EL", "SU"
"""Prefixes of tags beside B: of words inside an entity, of its last word, and of its only word."""
RULE = "A tag is O, or B-, I- and a type (IOB2), also with E-, S- (BIOES), L-, U- (BILOU) or M- (BMES)"
NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
"""The id of a multi-word token (1-2) or of an empty node (1.1)."""
DOCUMENT_START = re.compile(r"-DOCSTART-(?!\S)")
NUMBERS_NAME, TOKENS_NAME, POS_NAME, TAGS_NAME = "ID", "FORM", "UPOS", "NER"
CHUNKS = frozenset({"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "NC", "VC", "PC"})
"""The chunk types of CoNLL-2000 and of German CoNLL-2003, whose tags look like those of entities."""


def comment_field(line: str) -> tuple[str, str]:
    """Name and value of a comment: "# newdoc id = a" → ("newdoc id", "a"); without "=" the value is empty."""
    name, _, value = line.removeprefix("#").partition("=")
    return " ".join(name.split()), value.strip()


class SentenceIds:
    """Gives sentences the ids in the comments before them, and numbers them where there are none.

    Before the first document begins, every sentence is a document of its own, unless the file is one.
    """

    def __init__(self, stem: str, is_document: bool = False):
        self.unnamed = (f"{stem}:{number}" for number in count())
        self.doc_id, self.id = stem if is_document else "", ""
        self.sent_id = 0

    def start(self, doc_id: str = "") -> None:
        """Begins a document."""
        self.doc_id = doc_id or next(self.unnamed)
        self.sent_id = 0

    def read_comment(self, line: str) -> tuple[str, str]:
        """Reads `# newdoc id = …`, for the following sentences, or `# sent_id = …`, for the next one.

        Returns name and value of any comment.
        """
        name, value = comment_field(line)
        if name in ("newdoc", "newdoc id"):
            self.start(value)
        elif name == "sent_id":
            self.id = value
        return name, value

    def next_sentence(self) -> dict[str, Any]:
        """`id`, `doc_id` and `sent_id` of the next sentence."""
        doc_id, sent_id = (self.doc_id, self.sent_id) if self.doc_id else (next(self.unnamed), 0)
        identifier, self.id = self.id or f"{doc_id}:{sent_id}", ""
        self.sent_id += 1
        return {"id": identifier, "doc_id": doc_id, "sent_id": sent_id}


@dataclass(frozen=True)
class Layout:
    """How a line is split into columns, and the index of the columns with tokens, tags, ids and parts of speech.

    The width is 0 if a token has any number of tags after it.
    """

    separator: str
    width: int
    tokens: int
    entities: tuple[int, ...]
    pos: int | None = None
    numbers: int | None = None

    def split(self, line: str) -> list[str]:
        return _split(line, self.separator)

    def is_word(self, row: Sequence[str]) -> bool:
        """Whether a row is a word, not a multi-word token or an empty node of CoNLL-U."""
        return self.numbers is None or len(row) != self.width or not NO_WORD.fullmatch(row[self.numbers])

    def is_comment(self, line: str) -> bool:
        """Whether a line before the first token of a sentence is a comment, not a token that begins with #."""
        if not line.startswith("#"):
            return False
        row = self.split(line)
        return not self.fits(row) or not all(map(TAG.fullmatch, self.tags(row)))

    def fits(self, row: Sequence[str]) -> bool:
        return len(row) == self.width if self.width else len(row) > 1

    def tags(self, row: Sequence[str]) -> Sequence[str]:
        return [row[column] for column in self.entities] if self.width else row[1:]

    def ignored(self) -> list[int]:
        return sorted({*range(self.width)} - {self.tokens, self.pos, self.numbers, *self.entities})


def read_iob2(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Document]:
    """Reads the documents one by one. I- tags that begin an entity are read as B- and counted.

    Args:
        columns: {"tokens": 0, "entities": [1, 2], "pos": 3}, indices from 0; None detects them.

    Raises:
        ValueError: `columns` has another form, or there is no such column.
    """
    head = read_head(path)
    layout = _layout(head, columns)
    if layout is None and head.startswith("#FORMAT=WebAnno"):
        problem = "WebAnno's TSV is not read"
        raise check.error("", problem, "Import it into INCEpTION, and export UIMA CAS in JSON or XMI")
    if layout is None:
        problem = "there are no columns of tags (O, B-type, I-type) in its first lines"
        remedy = "Remove a line of column names, or give columns={'tokens': 0, 'entities': [1, 2]}, counted from 0"
        lines = [line for line in head.splitlines() if not line.startswith(("#", "-DOCSTART-"))]
        if len({"\t" in line for line in lines if len(line.split()) > 1}) == 2:
            problem += ", some of which are separated by tabs, others only by spaces"
            remedy = "Separate the columns of all lines by tabs"
        raise check.error("", problem, f"{remedy}. {OF_TABLES}")
    for doc_id, sentences in groupby(_sentences(path, layout, check), key=lambda sentence: sentence.fields["doc_id"]):
        yield document_of_words(str(doc_id), sentences)


def _sentences(path: Path, layout: Layout, check: RecordChecker) -> Iterator[Sentence]:
    ids = SentenceIds(document_name(path, check), check.is_document)
    for paragraph in numbered_paragraphs(path, check):
        rows: list[tuple[int, list[str]]] = []
        for number, line in paragraph:
            if not rows and layout.is_comment(line):
                ids.read_comment(line)
            elif not rows and DOCUMENT_START.match(line):
                ids.start()
            else:
                rows.append((number, layout.split(line)))
        rows = [(number, row) for number, row in rows if layout.is_word(row)]
        if rows:
            yield Sentence({**ids.next_sentence(), **_sentence(rows, layout, check)}, f"line {rows[0][0]}")


def _sentence(rows: Sequence[tuple[int, list[str]]], layout: Layout, check: RecordChecker) -> dict[str, Any]:
    for number, row in rows:
        if not layout.fits(row):
            problem = f"there are {len(row)} columns, {layout.width or '2 or more'} in the lines before"
            remedy = "Give every token all columns, separated in the same way"
            raise check.error(f"line {number}", problem, remedy)
        for column, tag in zip(layout.entities or range(1, len(row)), layout.tags(row), strict=True):
            if not TAG.fullmatch(tag):
                problem = f"column {column} is {tag!r}, which is not a tag"
                raise check.error(f"line {number}", problem, f"{RULE}; name the columns of tags with columns=…")
    for column in layout.ignored():
        check.note(f"values of column {column} ignored", len(rows))
    by_column = list(zip(*(row[: layout.width or 1] for _, row in rows), strict=True))
    pos = [] if layout.pos is None else list(by_column[layout.pos])
    levels = [[BETWEEN_TAGS.split(row[column]) for _, row in rows] for column in layout.entities]
    levels = levels or [[row[1:] for _, row in rows]]
    entities = [entity for tags_of_words in levels for entity in decode_tags(tags_of_words, check)]
    return {
        "tokens": list(by_column[layout.tokens]),
        "pos": [] if set(pos) == {"_"} else pos,
        "entities": sorted(entities, key=lambda entity: (entity["start"], -entity["end"])),
    }


def decode_tags(tags_of_words: Iterable[Sequence[str]], check: RecordChecker) -> Iterator[Entity]:
    """The entities of words with any number of tags each; a tag continues the earliest of the entities of its type.

    A tag that continues no entity begins one and is counted.
    """
    going_on: list[tuple[int, str]] = []
    for position, tags in enumerate([*tags_of_words, ()]):
        tagged: list[tuple[int, str]] = []
        finished: list[tuple[int, str]] = []
        for prefix, _, kind in (tag.partition("-") for tag in tags if tag != "O"):
            continues = prefix in INSIDE + LAST
            known = min((entity for entity in going_on if continues and entity[1] == kind), default=None)
            if known is not None:
                going_on.remove(known)
            elif continues:
                check.note(f"tags {prefix}- that begin an entity read as {'B' if prefix in INSIDE else 'S'}-")
            (finished if prefix in LAST + SINGLE else tagged).append(known or (position, kind))
        yield from (Entity(start=start, end=position, type=kind) for start, kind in going_on)
        yield from (Entity(start=start, end=position + 1, type=kind) for start, kind in finished)
        going_on = tagged


def _split(line: str, separator: str) -> list[str]:
    return line.rstrip("\t ").split("\t") if separator == "\t" else re.split(" +", line.strip(" "))


def _layout(head: str, columns: Mapping[str, Any] | None) -> Layout | None:
    """The layout as named by the caller or the file, otherwise detected from the values."""
    lines = [line.rstrip("\r") for line in head.split("\n")]
    if len(head) > HEAD_SIZE // 4:  # the file may continue, and the last line be incomplete
        lines = lines[:-1]
    tokens = [line for line in lines if line.strip() and not line.startswith("#") and not DOCUMENT_START.match(line)]
    separator = "\t" if any("\t" in line for line in tokens) else " "
    if columns is not None:
        return _layout_given(columns, separator, len(_split(tokens[0], separator))) if tokens else None
    comments = dict(comment_field(line) for line in lines if line.startswith("#"))
    named = _layout_named(comments.get("global.columns", "").split())
    return named or _layout_detected([_split(line, separator) for line in tokens], separator)


def _layout_given(columns: Mapping[str, Any], separator: str, width: int) -> Layout:
    rule = f"There are {width}; name them as in {{'tokens': 0, 'entities': [1, 2], 'pos': 3}}; pos is optional."
    if not {"tokens", "entities"} <= columns.keys() <= {"tokens", "entities", "pos"}:
        raise ValueError(f"`columns` names {sorted(columns)}. {rule}")
    entities = columns["entities"]
    entities = tuple(entities) if isinstance(entities, (list, tuple)) else (entities,)
    numbers = [columns["tokens"], *entities, *([columns["pos"]] if "pos" in columns else [])]
    if (
        not entities
        or not all(isinstance(n, int) and 0 <= n < width for n in numbers)
        or len({*numbers}) < len(numbers)
    ):
        raise ValueError(f"`columns` is {dict(columns)!r}, but columns are distinct indices from 0. {rule}")
    return Layout(separator, width, columns["tokens"], entities, columns.get("pos"))


def _layout_named(names: Sequence[str]) -> Layout | None:
    """The layout in the comment `global.columns`, if that names tokens and tags."""
    entities = tuple(column for column, name in enumerate(names) if name.partition(":")[0] == TAGS_NAME)
    if TOKENS_NAME not in names or not entities:
        return None
    pos, numbers = (names.index(name) if name in names else None for name in (POS_NAME, NUMBERS_NAME))
    return Layout("\t", len(names), names.index(TOKENS_NAME), entities, pos, numbers)


def _layout_detected(rows: Sequence[Sequence[str]], separator: str) -> Layout | None:
    """The layout whose tag columns are the last adjacent ones with nothing but tags, after one other column or more."""
    width = len(rows[0]) if rows else 0
    if len(set(map(len, rows))) > 1 and all(_has_tags_of_its_own(row) for row in rows):
        return Layout(separator, width=0, tokens=0, entities=())
    by_column = list(zip(*(row for row in rows if len(row) == width), strict=True))
    has_tags = [all(map(TAG.fullmatch, column)) for column in by_column]
    first = stop = max((column + 1 for column in range(1, width) if has_tags[column]), default=0)
    while first > 1 and has_tags[first - 1]:
        first -= 1
    ids = by_column[0] if first > 1 else ()
    numbers = 0 if "1" in ids[:2] and all(map(NODE.fullmatch, ids)) else None
    types = {column: {tag[2:] for tag in by_column[column]} - {""} for column in range(first, stop)}
    entities = tuple(column for column in types if not types[column] or not types[column] <= CHUNKS)
    if not entities:
        return None
    return Layout(separator, width, tokens=0 if numbers is None else 1, entities=entities, numbers=numbers)


def _has_tags_of_its_own(row: Sequence[str]) -> bool:
    """Whether a row is a token and the tags of the entities around it: O alone, or any number of others."""
    return len(row) > 1 and all(map(TAG.fullmatch, row[1:])) and (len(row) == 2 or "O" not in row[1:])


IOB2 = CorpusFormat(
    name="iob2",
    description="columns of IOB2, BIOES or BILOU tags, one for each level of nesting",
    read=read_iob2,
    keeps_text=False,
    marks_sentences=True,
    has_own_words=True,
    suffixes=(".conll", ".iob", ".iob2", ".bio", ".tsv"),
    recognizes=lambda head: bool(re.search(r"[\t ][BISU]-", head)) and _layout(head, None) is not None,
    columns="the columns, counted from 0: {'tokens': 0, 'entities': [1, 2], 'pos': 3}",
    tools="CoNLL columns: CoNLL-2003, GermEval 2014, DaN+, Wojood",
    example="Orsk\tI-Person\tB-City",
)
