"""The layout of columns of tags: which of them have the tokens, the tags and other fields, and how it is found."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...model.text_triaffine import INVISIBLE_SPACES
from ..corpus_format import check_columns
from ..reading import HEAD_SIZE
from .sentence_ids import comment_field
from .tags import OUTSIDE, STANDARD, WITH_PREFIXES, WITHOUT_PREFIXES, TagScheme, prefixes_of, scheme_of

NODE = re.compile(r"[0-9]{1,9}(?:[-.][0-9]{1,9})?")
"""The id of a word, of a multi-word token (1-2) or of an empty node (1.1)."""
NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
"""The id of a multi-word token (1-2) or of an empty node (1.1)."""
ID = re.compile(r".*\d\W*|\W*")
"""What numbers words, sentences or documents: 001, 1.1, s1_w1, doc1, "Sentence: 1"."""
DOCUMENT_START = re.compile(r"-DOCSTART-(?!\S)")
CONLL_2012 = "#begin document"
"""How files of CoNLL-2012 begin, whose columns are always the same, but for those of predicates behind the entities."""
NUMBERS_NAME, TOKENS_NAME, POS_NAME, TAGS_NAME = "ID", "FORM", "UPOS", "NER"
NO_VALUE = "_"
CHUNKS = {"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "NC", "VC", "PC"}
"""Types of chunks in CoNLL-2003 (English, German), whose tags look like those of entities."""
NAMES_OF_TOKENS = {"form", "text", "token", "tokens", "word", "words"}
"""What a line of column names, if there is one, calls its first column."""
COMMENT_ALONE = re.compile(r"# ?\S+ = [^\t]*\t*")
"""A comment between the words of a document, as in HIPE 2020, which cannot be a token: it has no other cells."""
NAME_COLUMNS = "Name the columns, counted from 0: columns={'tokens': 0, 'entities': [1, 2]}, convert --columns"


@dataclass(frozen=True)
class Layout:
    """How a line is split into columns, and the index of the columns with tokens, tags, ids and parts of speech.

    Args:
        width: the number of columns.
        schemes: how the tags of each column of `entities` are written.
        types: the values of those columns in the first lines.
        names: the line of column names, if there is one.
        joins: a token has any number of tags after it, which are read as one column of joined tags.
        brackets: the entities are brackets around words, and there may be further columns.
        doubt: what speaks against this layout, which was guessed.
    """

    separator: str
    width: int
    tokens: int
    entities: tuple[int, ...]
    pos: int | None = None
    numbers: int | None = None
    schemes: tuple[TagScheme, ...] = ()
    types: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    joins: bool = False
    brackets: bool = False
    doubt: str = ""

    def split(self, line: str) -> list[str]:
        """The cells of a line; if this `joins` tags, the token and all tags, or the first cell that is no tag."""
        row = _split(line, self.separator, self.width)
        if not self.joins or len(row) < 2:
            return row[: self.width] if self.brackets else row
        wrong = [tag for tag in row[1:] if not STANDARD.fits(tag)]
        return [row[0], wrong[0] if wrong else "|".join(row[1:])]

    def is_word(self, row: Sequence[str]) -> bool:
        """A row is a word, not a multi-word token or an empty node of CoNLL-U."""
        return self.numbers is None or len(row) != self.width or not NO_WORD.fullmatch(row[self.numbers])

    def is_comment(self, line: str) -> bool:
        """A line before the first token of a sentence is a comment, not a token that begins with #."""
        if not line.startswith("#"):
            return False
        row = self.split(line)
        return len(row) != self.width or not all(map(self._is_likely, self.schemes, self.tags(row)))

    def _is_likely(self, scheme: TagScheme, cell: str) -> bool:
        """A cell is a tag; where any word could be one, one that occurred."""
        return scheme.fits(cell) and (scheme is not WITHOUT_PREFIXES or cell in self.types)

    def tags(self, row: Sequence[str]) -> list[str]:
        return [row[column] for column in self.entities]

    def has_token(self, line: str) -> bool:
        """A line has a token before its tags, or is none of these columns but has something to be seen."""
        if self.separator == "\t" and COMMENT_ALONE.fullmatch(line):
            return False
        row = self.split(line)
        if len(row) == self.width:
            return bool(row[self.tokens])
        is_visible = bool(line.translate(INVISIBLE_SPACES).strip())
        without_first = self.separator == " " and len(row) == self.width - 1 and line.startswith(" ")
        return is_visible and (self.joins or not without_first)

    def problem(self, row: Sequence[str]) -> str:
        """What is wrong with a row; empty if nothing is."""
        if len(row) != self.width:
            width = f"{self.width} or more" if self.joins else self.width
            return f"there are {len(row)} columns, {width} in the lines before"
        if self.numbers is not None and not NODE.fullmatch(row[self.numbers]):
            return f"column {self.numbers} is {row[self.numbers]!r}, which does not number a word"
        for column, scheme, tag in zip(self.entities, self.schemes, self.tags(row), strict=False):
            if not scheme.fits(tag):
                return f"column {column} is {tag!r}, which is not a tag as those before"
        return ""

    def ignored(self) -> list[int]:
        """The columns that are not read."""
        return sorted({*range(self.width)} - {self.tokens, self.pos, self.numbers, *self.entities})


def _split(line: str, separator: str, width: int = 0) -> list[str]:
    """The cells of a line; empty ones at its end, behind a tab each, count up to this width alone."""
    if separator != "\t":
        return re.split(" +", line.strip(" "))
    row = line.rstrip("\t ").split("\t")
    return row + line.split("\t")[len(row) : width]


def find_layout(head: str, columns: Mapping[str, Any] | None) -> Layout | None:
    """The layout as named by the caller or the file, otherwise detected from the values."""
    if head.startswith(CONLL_2012) and columns is None:
        return Layout(" ", width=11, tokens=3, entities=(10,), pos=4, brackets=True)
    rows, names, comments, separator = rows_of(head)
    if columns is not None:
        layout = _layout_given(columns, separator, len(rows[0])) if rows else None
    else:
        layout = _layout_named(comments.get("global.columns", "").split()) or _layout_detected(rows, separator)
    if layout is None:
        return None
    split = [layout.split(separator.join(row)) for row in rows]
    cells = [layout.tags(row) for row in split if len(row) == layout.width and layout.is_word(row)]
    by_column = [set(column) for column in zip(*cells, strict=True)] or [set[str]() for _ in layout.entities]
    found = [None if column == {OUTSIDE} else scheme_of(column) for column in by_column]
    used = next(filter(None, found), STANDARD)  # elsewhere in the file, a column of O alone may have tags
    schemes = tuple(scheme or used for scheme in found)
    return replace(layout, schemes=schemes, types=frozenset().union(*by_column), names=tuple(names))


def rows_of(head: str) -> tuple[list[list[str]], list[str], dict[str, str], str]:
    """The rows of the first lines, the names of their columns, if a line has them, the comments, and the separator."""
    lines = [line.rstrip("\r") for line in head.split("\n")]
    if len(head) > HEAD_SIZE // 4:  # the file may continue, and the last line be incomplete
        lines = lines[:-1]
    tokens = [line for line in lines if line.strip() and not line.startswith("#") and not DOCUMENT_START.match(line)]
    separator = "\t" if any("\t" in line for line in tokens) else " "
    rows = [_split(line, separator) for line in tokens]
    comments = dict(comment_field(line) for line in lines if line.startswith("#"))
    if not _begins_with_names(rows):
        return rows, [], comments, separator
    return [_split(line, separator, len(rows[0])) for line in tokens[1:]], rows[0], comments, separator


def _begins_with_names(rows: Sequence[Sequence[str]]) -> bool:
    """The first row names the columns: the tokens first, and nothing that is a tag or a value of the others."""
    if len(rows) < 2 or rows[0][0].lower() not in NAMES_OF_TOKENS:
        return False
    values = {cell for row in rows[1:] for cell in row[1:]}
    return not any(name in values or any(scheme.fits(name) for scheme in WITH_PREFIXES) for name in rows[0][1:])


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

    Columns without any value are no columns between them, and those of chunks are left out. Tokens are in the first
    column, or in the second if the first one numbers them.
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
    entities = tuple(column for column in tagged if not _are_chunks(by_column[column]))
    if not entities:
        return None
    ids = by_column[0] if tagged[0] > 1 else ()
    numbers = 0 if {"0", "1"} & {*ids[:2]} and all(map(NODE.fullmatch, ids)) else None
    tokens = 0 if numbers is None else 1
    words = [column for column in range(tokens + 1, tagged[0]) if not _are_ids(by_column[column])]
    doubt = ""
    if words and _are_ids(by_column[tokens]):
        doubt = f"column {tokens} has {by_column[tokens][0]!r}, and column {words[0]} {by_column[words[0]][0]!r}"
    return Layout(separator, width, tokens, entities, numbers=numbers, doubt=doubt)


def _are_ids(values: Sequence[str]) -> bool:
    """The values are no words: they number something, or are all the same."""
    return all(map(ID.fullmatch, values)) or len(values) > 1 == len({*values})


def _are_chunks(tags: Sequence[str]) -> bool:
    types = {tag[2:] for tag in tags} - {""}
    return bool(types & {"NP", "NC"}) and types <= CHUNKS


def _has_tags_of_its_own(row: Sequence[str]) -> bool:
    """A row is a token and the tags of the entities around it: O alone, or any number of others."""
    return len(row) > 1 and all(map(STANDARD.fits, row[1:])) and (len(row) == 2 or "O" not in row[1:])


def wrong_tag(rows: Sequence[Sequence[str]]) -> str:
    """Of rows without columns of tags, the value of the last one that is no tag, if most of it are tags."""
    last = dict.fromkeys(row[-1] for row in rows if len(row) > 1)
    wrong = [value for value in last if value != OUTSIDE and not prefixes_of(value)]
    return wrong[0] if 0 < len(wrong) < len(last) / 2 or len(wrong) == 1 < len(last) else ""
