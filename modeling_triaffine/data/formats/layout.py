"""The layout of columns of tags: which of them have the tokens, the tags and other fields, and how it is found."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from ...model.text_triaffine import INVISIBLE_SPACES
from ..corpus_format import check_columns
from ..reading import HEAD_SIZE
from .sentence_ids import comment_field
from .tags import OUTSIDE, RULE, STANDARD, WITH_PREFIXES, WITHOUT_PREFIXES, TagScheme, scheme_of
from .written_words import NO_SPACE, Row

NODE = re.compile(r"[0-9]{1,9}(?:[-.][0-9]{1,9})?")
"""The id of a word, of a multi-word token (1-2) or of an empty node (1.1)."""
NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
"""The id of a multi-word token (1-2) or of an empty node (1.1)."""
DOCUMENT_START = re.compile(r"-DOCSTART-(?!\S)")
NUMBERS_NAME, TOKENS_NAME, POS_NAME, TAGS_NAME = "ID", "FORM", "UPOS", "NER"
NO_VALUE = "_"
NOUN_CHUNKS = frozenset({"NP", "NC"})
OTHER_CHUNKS = frozenset(
    {"VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "VC", "PC", "AP", "QP", "RP", "MP"}
)
"""Types of chunks in CoNLL-2000, in German CoNLL-2003 and in VLSP 2016, whose tags look like those of entities."""
NAMES_OF_TOKENS = frozenset({"form", "text", "token", "tokens", "word", "words"})
"""What a line of column names, if there is one, calls its first column."""
COMMENT_ALONE = re.compile(r"# ?\S+ = [^\t]*\t*")
"""A comment between the words of a document, as in HIPE 2020, which cannot be a token: it has no other cells."""


@dataclass(frozen=True)
class Layout:
    """How a line is split into columns, and the index of the columns with tokens, tags, ids and parts of speech.

    Args:
        width: the number of columns.
        schemes: how the tags of each column of `entities` are written.
        types: the values of those columns in the first lines.
        names: the line of column names, if there is one.
        chunks: the columns left out because their tags are those of chunks.
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
    chunks: tuple[int, ...] = ()
    joins: bool = False

    def split(self, line: str) -> list[str]:
        return self.joined(_split(line, self.separator, self.width))

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
        if self.separator == "\t" and COMMENT_ALONE.fullmatch(line):
            return False
        row = self.split(line)
        if self.fits(row):
            return bool(row[self.tokens])
        is_visible = bool(line.translate(INVISIBLE_SPACES).strip())
        without_first = self.separator == " " and len(row) == self.width - 1 and line.startswith(" ")
        return is_visible and (self.joins or not without_first)

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
            width = f"{self.width} or more" if self.joins else self.width
            problem = f"there are {len(row)} columns, {width} in the lines before"
            return problem, "Give every token all columns, separated in the same way"
        if self.numbers is not None and not NODE.fullmatch(row[self.numbers]):
            problem = f"column {self.numbers} is {row[self.numbers]!r}, which does not number a word"
            return problem, "Number the words of each sentence from 1"
        for column, scheme, tag in zip(self.entities, self.schemes, self.tags(row), strict=True):
            if not scheme.fits(tag):
                problem = f"column {column} is {tag!r}, which is not a tag as those before"
                return problem, f"{RULE}; name the columns of tags with columns=…"
        return None

    def ignored(self) -> list[str]:
        """The columns that are not read, in words."""
        columns = sorted({*range(self.width)} - {self.tokens, self.pos, self.numbers, *self.entities})
        return [f"{column} (chunks such as NP)" if column in self.chunks else str(column) for column in columns]


def _split(line: str, separator: str, width: int = 0) -> list[str]:
    """The cells of a line; empty ones at its end, behind a tab each, count up to this width alone."""
    if separator != "\t":
        return re.split(" +", line.strip(" "))
    row = line.rstrip("\t ").split("\t")
    return row + line.split("\t")[len(row) : width]


def find_layout(head: str, columns: Mapping[str, Any] | None) -> Layout | None:
    """The layout as named by the caller or the file, otherwise detected from the values."""
    lines = [line.rstrip("\r") for line in head.split("\n")]
    if len(head) > HEAD_SIZE // 4:  # the file may continue, and the last line be incomplete
        lines = lines[:-1]
    tokens = [line for line in lines if line.strip() and not line.startswith("#") and not DOCUMENT_START.match(line)]
    separator = "\t" if any("\t" in line for line in tokens) else " "
    rows = [_split(line, separator) for line in tokens]
    names: list[str] = []
    if _begins_with_names(rows):
        names, rows = rows[0], [_split(line, separator, len(rows[0])) for line in tokens[1:]]
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


def _begins_with_names(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: the tokens first, and nothing that is a tag or a value of the others."""
    if len(rows) < 2 or rows[0][0].lower() not in NAMES_OF_TOKENS:
        return False
    values = {cell for row in rows[1:] for cell in row[1:]}
    return not any(name in values or any(scheme.fits(name) for scheme in WITH_PREFIXES) for name in rows[0][1:])


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
    """The layout whose tag columns are the last adjacent ones with nothing but tags, after one other column or more.

    Columns without any value are no columns between them. Those of chunks are left out: of noun chunks, and perhaps
    others with them.
    """
    width = len(rows[0]) if rows else 0
    if len(set(map(len, rows))) > 1 and all(_has_tags_of_its_own(row) for row in rows):
        return Layout(separator, width=2, tokens=0, entities=(1,), joins=True)
    by_column = list(zip(*(row for row in rows if len(row) == width), strict=True))
    schemes = [scheme_of(column) for column in by_column]
    if any(
        scheme in WITH_PREFIXES and {*column} > {OUTSIDE} for scheme, column in zip(schemes, by_column, strict=True)
    ):
        schemes = [None if scheme is WITHOUT_PREFIXES else scheme for scheme in schemes]
    tagged: list[int] = []
    for column in range(width - 1, 0, -1):
        if schemes[column]:
            tagged.insert(0, column)
        elif tagged and {*by_column[column]} != {NO_VALUE}:
            break
    ids = by_column[0] if tagged and tagged[0] > 1 else ()
    numbers = 0 if "1" in ids[:2] and all(map(NODE.fullmatch, ids)) else None
    chunks = tuple(column for column in tagged if _are_chunks({tag[2:] for tag in by_column[column]} - {""}))
    entities = tuple(column for column in tagged if column not in chunks)
    if not entities:
        return None
    tokens = 0 if numbers is None else 1
    return Layout(separator, width, tokens, entities=entities, numbers=numbers, chunks=chunks)


def _are_chunks(types: Set[str]) -> bool:
    return bool(types & NOUN_CHUNKS) and (types <= NOUN_CHUNKS or bool(types & OTHER_CHUNKS))


def _has_tags_of_its_own(row: Sequence[str]) -> bool:
    """Whether a row is a token and the tags of the entities around it: O alone, or any number of others."""
    return len(row) > 1 and all(map(STANDARD.fits, row[1:])) and (len(row) == 2 or "O" not in row[1:])
