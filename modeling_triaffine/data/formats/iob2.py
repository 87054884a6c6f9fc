"""Reads columns of tags, one for every level of nesting, as in GermEval 2014 and DaN+.

    the	B-Person	O
    mayor	I-Person	O
    of	I-Person	O
    Orsk	I-Person	B-City

One token per line, blank lines between sentences, columns separated by tabs, or by spaces if there are no tabs. The tag
columns are the last adjacent columns that contain nothing but tags of one scheme (`tags.py`); the tokens are in the
first column, or in the second if the first one numbers them; multi-word tokens (1-2) and empty nodes (1.1) are then
left out. A line of column names is left out and counted, and so are lines without a token. A comment
`# global.columns = ID FORM UPOS NER:1 NER:2`, as in CoNLL-U Plus, or the option `columns` overrides this. Other columns
are ignored and reported, also columns of chunks (CoNLL-2003's third). A word has a tag for every entity around it where
lines have different numbers of tags and O stands alone, as in Wojood, or tags are joined, as in `B-Person|B-City`: I-
continues an entity of its type. Comments come before the tokens of a sentence. Documents begin at `-DOCSTART-` or
`# newdoc id = …`; without either, every sentence is a document of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, groupby
from pathlib import Path
from typing import Any

from ...model.text_triaffine import INVISIBLE_SPACES
from ..corpus_format import CorpusFormat, check_columns
from ..documents import Document, Sentence, document_of_sentences, document_of_words
from ..reading import HEAD_SIZE, document_name, numbered_paragraphs, read_head
from ..record_checker import RecordChecker
from ..schema import OF_TABLES, CorpusError, Entity
from .tags import OUTSIDE, RULE, STANDARD, WITH_PREFIXES, WITHOUT_PREFIXES, TagScheme, decode_tags, scheme_of
from .written_words import NO_SPACE, Row, written_text

NODE = re.compile(r"[0-9]{1,9}(?:[-.][0-9]{1,9})?")
"""The id of a word, of a multi-word token (1-2) or of an empty node (1.1)."""
NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
"""The id of a multi-word token (1-2) or of an empty node (1.1)."""
DOCUMENT_START = re.compile(r"-DOCSTART-(?!\S)")
NUMBERS_NAME, TOKENS_NAME, POS_NAME, TAGS_NAME = "ID", "FORM", "UPOS", "NER"
CHUNKS = frozenset({"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "NC", "VC", "PC"})
"""The chunk types of CoNLL-2000 and of German CoNLL-2003, whose tags look like those of entities."""
NAMES_OF_TOKENS = frozenset({"form", "text", "token", "tokens", "word", "words"})
NAMES_OF_TAGS = frozenset({"bio", "entity", "iob", "label", "labels", "ner", "ner_tag", "ner_tags", "tag", "tags"})
"""What a line of column names, if there is one, calls its first and last column."""
TEXT_COMMENT = "text"
SHOWN_VALUES = 5


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

    Args:
        width: the number of columns.
        schemes: how the tags of each column of `entities` are written.
        types: the values of those columns in the first lines.
        names: the line of column names, if there is one.
        joins: a token has any number of tags after it, which are read as one column of joined tags.
    """

    separator: str
    width: int
    tokens: int
    entities: tuple[int, ...]
    pos: int | None = None
    numbers: int | None = None
    schemes: tuple[TagScheme, ...] = (STANDARD,)
    types: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    joins: bool = False

    def split(self, line: str) -> list[str]:
        return self.joined(_split(line, self.separator))

    def joined(self, row: list[str]) -> list[str]:
        """The row with its tags in one column, if this `joins` them: all of them, or the first cell that is no tag."""
        if not self.joins or len(row) < 2:
            return row
        token, *tags = row
        wrong = [tag for tag in tags if not STANDARD.fits(tag)]
        return [token, wrong[0] if wrong else "|".join(tags)]

    def is_word(self, row: Sequence[str]) -> bool:
        """Whether a row is a word, not a multi-word token or an empty node of CoNLL-U."""
        return self.numbers is None or len(row) != self.width or not NO_WORD.fullmatch(row[self.numbers])

    def is_comment(self, line: str) -> bool:
        """Whether a line before the first token of a sentence is a comment, not a token that begins with #."""
        if not line.startswith("#"):
            return False
        row = self.split(line)
        return not self.fits(row) or not all(map(self.is_likely, self.schemes, self.tags(row)))

    def is_likely(self, scheme: TagScheme, cell: str) -> bool:
        """Whether a cell is a tag; where any word could be one, one that occurred."""
        return scheme.fits(cell) and (scheme is not WITHOUT_PREFIXES or cell in self.types)

    def fits(self, row: Sequence[str]) -> bool:
        return len(row) == self.width

    def tags(self, row: Sequence[str]) -> list[str]:
        return [row[column] for column in self.entities]

    def has_token(self, line: str) -> bool:
        """Whether a line has a token before its tags, or is none of these columns but has something to be seen."""
        row = self.split(line)
        if self.fits(row):
            return bool(row[self.tokens])
        without_first = self.separator == " " and len(row) == self.width - 1 and line.startswith(" ")
        return bool(line.translate(INVISIBLE_SPACES).strip()) and not without_first

    def written(self, rows: Iterable[Sequence[str]]) -> list[Row]:
        """What the lines of a sentence say of its text."""
        return [
            Row(
                row[self.numbers] if self.numbers is not None else str(number),
                row[self.tokens],
                any(NO_SPACE in cell.split("|") for cell in row[self.tokens + 1 :]),
            )
            for number, row in enumerate(rows, start=1)
        ]

    def problem(self, row: Sequence[str]) -> tuple[str, str] | None:
        """What is wrong with a row, and what to do, if anything is."""
        if not self.fits(row):
            problem = f"there are {len(row)} columns, {self.width} in the lines before"
            return problem, "Give every token all columns, separated in the same way"
        if self.numbers is not None and not NODE.fullmatch(row[self.numbers]):
            problem = f"column {self.numbers} is {row[self.numbers]!r}, which does not number a word"
            return problem, "Number the words of each sentence from 1"
        for column, scheme, tag in zip(self.entities, self.schemes, self.tags(row), strict=True):
            if not scheme.fits(tag):
                problem = f"column {column} is {tag!r}, which is not a tag as those before"
                return problem, f"{RULE}; name the columns of tags with columns=…"
        return None

    def ignored(self) -> list[int]:
        return sorted({*range(self.width)} - {self.tokens, self.pos, self.numbers, *self.entities})


def read_iob2(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Document]:
    """Reads the documents one by one. I- tags that begin an entity are read as B- and counted.

    Args:
        columns: {"tokens": 0, "entities": [1, 2], "pos": 3}, indices from 0; None detects them.
    """
    for doc_id, sentences in _documents(path, check, columns):
        yield document_of_words(doc_id, [sentence for _, _, sentence in sentences])


def read_iob2_text(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Document]:
    """The same with the text of each sentence, joined by spaces: its comment `# text`, or what `SpaceAfter=No` says."""
    for doc_id, sentences in _documents(path, check, columns):
        yield document_of_sentences(doc_id, sentences)


def _documents(
    path: Path, check: RecordChecker, columns: Mapping[str, Any] | None
) -> Iterator[tuple[str, Iterator[tuple[str, str, Sentence]]]]:
    layout = _layout(read_head(path), columns)
    if layout is None:
        raise _without_tags(read_head(path), check)
    for doc_id, sentences in groupby(_sentences(path, layout, check), key=lambda found: found[2].fields["doc_id"]):
        yield str(doc_id), sentences


def _without_tags(head: str, check: RecordChecker) -> CorpusError:
    """The error for a file without columns of tags, which says what it has in their place."""
    if head.startswith("#FORMAT=WebAnno"):
        problem = "WebAnno's TSV is not read"
        return check.error("", problem, "Import it into INCEpTION, and export UIMA CAS in JSON or XMI")
    problem = "there are no columns of tags (O, B-type, I-type) in its first lines"
    remedy = f"{RULE}. Name the columns with columns={{'tokens': 0, 'entities': [1, 2]}}, counted from 0"
    lines = [line for line in head.splitlines() if not line.startswith(("#", "-DOCSTART-")) and line.strip()]
    if len({"\t" in line for line in lines if len(line.split()) > 1}) == 2:
        problem += ", some of which are separated by tabs, others only by spaces"
        remedy = "Separate the columns of all lines by tabs"
    elif lines:
        last = dict.fromkeys(line.split()[-1] for line in lines)
        shown = ", ".join(repr(value[:20]) for value in [*last][:SHOWN_VALUES])
        problem += f", whose last column has {shown}{', …' if len(last) > SHOWN_VALUES else ''}"
    return check.error("", problem, f"{remedy}. {OF_TABLES}")


def _sentences(path: Path, layout: Layout, check: RecordChecker) -> Iterator[tuple[str, str, Sentence]]:
    """What separates each sentence from the one before, its text, and its words."""
    ids = SentenceIds(document_name(path, check), check.is_document)
    comment, names = "", layout.names
    for paragraph in numbered_paragraphs(path, check):
        rows: list[tuple[int, list[str]]] = []
        for number, line in paragraph:
            if not rows and layout.is_comment(line):
                name, value = ids.read_comment(line)
                comment = value if name == TEXT_COMMENT else comment
            elif not rows and DOCUMENT_START.match(line):
                ids.start()
            elif names and tuple(layout.split(line)) == names:
                names = ()
                check.note("lines of column names left out", example=f"line {number}")
            elif not layout.has_token(line):
                check.note("lines without a token dropped", example=f"line {number}")
            else:
                rows.append((number, layout.split(line)))
        words = [(number, row) for number, row in rows if layout.is_word(row)]
        if words:
            of_sentence, comment = comment, ""
            with check.record():
                fields = {**ids.next_sentence(), **_sentence(words, layout, check)}
                text, offsets = written_text(layout.written(row for _, row in rows), of_sentence)
                yield " ", text, Sentence(fields, f"line {words[0][0]}", offsets)


def _sentence(rows: Sequence[tuple[int, list[str]]], layout: Layout, check: RecordChecker) -> dict[str, Any]:
    for number, row in rows:
        if wrong := layout.problem(row):
            raise check.error(f"line {number}", *wrong)
    if ignored := layout.ignored():
        check.note(f"values of the columns {', '.join(map(str, ignored))} ignored", len(rows))
    by_column = list(zip(*(row for _, row in rows), strict=True))
    pos = [] if layout.pos is None else list(by_column[layout.pos])
    entities: list[Entity] = []
    for column, scheme in zip(layout.entities, layout.schemes, strict=True):
        entities += decode_tags((scheme.read(tag) or () for tag in by_column[column]), check, scheme.note)
    return {
        "tokens": list(by_column[layout.tokens]),
        "pos": [] if set(pos) == {"_"} else pos,
        "entities": sorted(entities, key=lambda entity: (entity["start"], -entity["end"])),
    }


def _split(line: str, separator: str) -> list[str]:
    return line.rstrip("\t ").split("\t") if separator == "\t" else re.split(" +", line.strip(" "))


def _layout(head: str, columns: Mapping[str, Any] | None) -> Layout | None:
    """The layout as named by the caller or the file, otherwise detected from the values."""
    lines = [line.rstrip("\r") for line in head.split("\n")]
    if len(head) > HEAD_SIZE // 4:  # the file may continue, and the last line be incomplete
        lines = lines[:-1]
    tokens = [line for line in lines if line.strip() and not line.startswith("#") and not DOCUMENT_START.match(line)]
    separator = "\t" if any("\t" in line for line in tokens) else " "
    rows = [_split(line, separator) for line in tokens]
    names: list[str] = []
    if len(rows) > 1 and rows[0][0].lower() in NAMES_OF_TOKENS and rows[0][-1].lower() in NAMES_OF_TAGS:
        names, *rows = rows
    if columns is not None:
        layout = _layout_given(columns, separator, len(rows[0])) if rows else None
    else:
        comments = dict(comment_field(line) for line in lines if line.startswith("#"))
        named = _layout_named(comments.get("global.columns", "").split())
        layout = named or _layout_detected(rows, separator)
    if layout is None:
        return None
    schemes, types = _schemes(layout, [layout.joined(row) for row in rows])
    return replace(layout, schemes=schemes, types=types, names=tuple(layout.joined(names)))


def _schemes(layout: Layout, rows: Sequence[Sequence[str]]) -> tuple[tuple[TagScheme, ...], frozenset[str]]:
    """The schemes of the columns with tags, and the values that occur in them."""
    cells = [layout.tags(row) for row in rows if layout.fits(row) and layout.is_word(row)]
    columns = [set(column) for column in zip(*cells, strict=True)] or [set[str]() for _ in layout.entities]
    found = [None if column == {OUTSIDE} else scheme_of(column) for column in columns]
    used = next(filter(None, found), STANDARD)  # elsewhere in the file, a column of O alone may have tags
    return tuple(scheme or used for scheme in found), frozenset().union(*columns)


def _layout_given(columns: Mapping[str, Any], separator: str, width: int) -> Layout:
    check_columns(columns, ("tokens", "entities"), ("pos",))
    entities = columns["entities"]
    entities = tuple(entities) if isinstance(entities, (list, tuple)) else (entities,)
    numbers = [columns["tokens"], *entities, *([columns["pos"]] if "pos" in columns else [])]
    are_columns = bool(entities) and all(isinstance(n, int) and 0 <= n < width for n in numbers)
    if not are_columns or len({*numbers}) < len(numbers):
        raise ValueError(
            f"`columns` is {dict(columns)!r}, but columns are distinct indices from 0, and there are {width}. Name "
            "them as in {'tokens': 0, 'entities': [1, 2], 'pos': 3}; pos is optional."
        )
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
        return Layout(separator, width=2, tokens=0, entities=(1,), joins=True)
    by_column = list(zip(*(row for row in rows if len(row) == width), strict=True))
    schemes = [scheme_of(column) for column in by_column]
    if any(
        scheme in WITH_PREFIXES and {*column} > {OUTSIDE} for scheme, column in zip(schemes, by_column, strict=True)
    ):
        schemes = [None if scheme is WITHOUT_PREFIXES else scheme for scheme in schemes]
    first = stop = max((column + 1 for column in range(1, width) if schemes[column]), default=0)
    while first > 1 and schemes[first - 1]:
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
    return len(row) > 1 and all(map(STANDARD.fits, row[1:])) and (len(row) == 2 or "O" not in row[1:])


def _recognizes(head: str, with_text: bool) -> bool:
    """Whether the first lines have columns with a tag other than O; and the text of sentences, or not."""
    if _has_text(head) is not with_text:
        return False
    layout = _layout(head, None)
    if layout is None or layout.types <= {OUTSIDE}:
        return False
    lines = [line for line in head.split("\n") if line.strip() and not line.startswith("#")]
    fitting = sum(layout.fits(layout.split(line)) or bool(DOCUMENT_START.match(line)) for line in lines)
    return fitting > len(lines) / 2  # not running text, in whose first line a word could be a tag: "NF-kappa B"


def _has_text(head: str) -> bool:
    return bool(re.search(rf"(?m)^# *{TEXT_COMMENT} *=|[\t |]{NO_SPACE}", head))


IOB2 = CorpusFormat(
    name="iob2",
    description="columns of tags (IOB2, BIOES, BILOU, or types alone), one for each level of nesting",
    read=read_iob2,
    keeps_text=False,
    marks_sentences=True,
    has_own_words=True,
    suffixes=(".conll", ".iob", ".iob2", ".bio", ".tsv"),
    recognizes=partial(_recognizes, with_text=False),
    columns="the columns, counted from 0: {'tokens': 0, 'entities': [1, 2], 'pos': 3}",
    tools="CoNLL columns: CoNLL-2003, GermEval 2014, DaN+, Wojood, Few-NERD, KIND",
    example="Orsk\tI-Person\tB-City",
)
IOB2_TEXT = replace(
    IOB2,
    name="iob2_text",
    description="columns of tags with the text, in comments `# text =` or by `SpaceAfter=No`",
    read=read_iob2_text,
    keeps_text=True,
    suffixes=(),
    recognizes=partial(_recognizes, with_text=True),
    tools="CoNLL-U Plus",
    example="# text = Orsk slept.",
)
