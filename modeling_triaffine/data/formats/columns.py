"""Reads columns of tags, one for every level of nesting, as in GermEval 2014 and DaN+.

    the	B-Person	O
    Orsk	I-Person	B-City

The tag columns are the last adjacent columns that contain nothing but tags of one scheme (`tags.py`); the tokens are in
the first column, or in the second if the first one numbers them. The option `columns` overrides this. A word has a tag
for every entity around it where lines have different numbers of tags and O stands alone, as in Wojood, or tags are
joined, as in `B-Person|B-City`: I- continues an entity of its type. Documents begin at `-DOCSTART-`, `#begin document`
or `# newdoc id = …`; without these, every sentence is a document of its own.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from ...model.text_triaffine import Offsets
from ..reading import HEAD_SIZE, document_name, numbered_lines, numbered_paragraphs, read_head
from ..schema import OF_TABLES, Entity, RecordChecker, Text
from ..texts import WrittenSentence, text_of_sentences
from . import CorpusFormat, check_columns
from .tags import INSIDE, LAST, OUTSIDE, RULE, STANDARD, WITHOUT_PREFIXES, TagScheme, decode_tags, scheme_of

NODE = re.compile(r"[0-9]{1,9}(?:[-.][0-9]{1,9})?")
"""The id of a word, of a multi-word token (1-2) or of an empty node (1.1)."""
NO_WORD = re.compile("[0-9]+[-.][0-9]+")
ID = re.compile(r".*\d.*|\W*")
"""The form of numbers of words, sentences or documents: 001, 1.1, s1_w1, doc1a."""
DOCUMENT_START = re.compile(r"-DOCSTART-(?!\S)")
CONLL_2012 = "#begin document"
"""The beginning of CoNLL-2012's files, which all have the same columns but for predicates behind the entities."""
OTHER_FORMAT = "#FORMAT="
"""The beginning of a file that names its format, which is another than this."""
NAMED_COLUMNS = re.compile(r"(?m)^#\s*global\.columns\s*=(.*)$")
"""The names of columns in CoNLL-U Plus, of which FORM and UPOS are read."""
NAMES_OF_TOKENS = {"form", "text", "token", "tokens", "word", "words"}
"""The names that the column of words may have in a line of column names."""
CHUNKS = ({"NP", "VP"}, {"NC", "VC"})
NO_VALUE = "_"
NO_SPACE = "SpaceAfter=No"
COMMENT = re.compile(r"# ?\S+ = ")
"""A comment between the words of a sentence, as in HIPE 2020."""
NAME_COLUMNS = (
    "Name the columns, counted from 0: convert --columns 'tokens=0 entities=1,2' (columns={'tokens': 0, …} in Python)"
)
TEXT_OF_WORDS = re.compile(rf"(?m)^# *text *=|[\t |]{NO_SPACE}")
"""Says how the words of a file are written: a comment with the text of a sentence, or words without a space after."""

Paragraph = list[tuple[int, str]]
Rows = Sequence[tuple[int, list[str]]]
"""The cells of each line, with its number."""


@dataclass
class Layout:
    """The way a line is split into columns, and the index of the columns with tokens, tags and parts of speech.

    Args:
        width: the number of columns.
        tags: column with tags → how they are written.
        numbered: the first column numbers the words.
        joins: a token has any number of tags after it, which are read as one column of joined tags.
        doubt: what speaks against the column of tokens that was detected.
    """

    separator: str
    width: int
    tokens: int
    tags: dict[int, TagScheme] = field(default_factory=dict)
    pos: int | None = None
    numbered: bool = False
    joins: bool = False
    doubt: str = ""

    def split(self, line: str) -> list[str]:
        """The cells of a line; if this `joins` tags, the token and all tags, or the first cell that is no tag."""
        row = split_row(line, self.separator, self.width)
        if not self.joins or len(row) < 2:
            return row
        wrong = (tag for tag in row[1:] if not STANDARD.fits(tag))
        return [row[0], next(wrong, "|".join(row[1:]))]

    def is_word(self, row: Sequence[str]) -> bool:
        """A row is a word, not a multi-word token or an empty node of CoNLL-U."""
        return not self.numbered or len(row) != self.width or not NO_WORD.fullmatch(row[0])

    def read_comment(self, name: str, value: str, where: str, check: RecordChecker) -> None:
        """Updates the layout by what a comment says of it."""

    def problem(self, row: Sequence[str]) -> str:
        """Says what is wrong with a row; empty if nothing is."""
        if len(row) != self.width:
            problem = f"there are {len(row)} columns, {self.width} in the lines before"
            return OPEN_QUOTE if row == [OPEN_QUOTE] else problem
        if self.numbered and not NODE.fullmatch(row[0]):
            return f"column 0 is {row[0][:20]!r}, which does not number a word"
        wrong = next((column for column, scheme in self.tags.items() if not scheme.fits(row[column])), None)
        return "" if wrong is None else f"column {wrong} is {row[wrong]!r}, which is not a tag as those before"

    def entities_of(self, rows: Rows, check: RecordChecker) -> list[Entity]:
        """The entities of a sentence, by words."""
        entities: list[Entity] = []
        for column, scheme in self.tags.items():
            tags = (scheme.read(row[column]) or () for _, row in rows if self.is_word(row))
            entities += decode_tags(tags, check, scheme.note)
        return sorted(entities, key=lambda entity: (entity["start"], -entity["end"]))

    def ignored(self) -> list[int]:
        """The columns that are not read, to be counted; none where the format says what the columns have."""
        read = {self.tokens, self.pos, *self.tags}
        return sorted({*range(int(self.numbered), self.width)} - read) if self.tags else []


class Conll2012(Layout):
    """The entities are brackets around words, `(City*`, `*)`, `(City)`; further columns may follow."""

    def split(self, line: str) -> list[str]:
        return line.split()[: self.width]

    def entities_of(self, rows: Rows, check: RecordChecker) -> list[Entity]:
        entities, is_open = [], []
        for number, (line, row) in enumerate(rows):
            is_open += [(kind, number) for kind in re.findall(r"\(([^()*|]+)", row[-1])]
            closing = row[-1].count(")")
            if closing > len(is_open) or (is_open[closing:] and number + 1 == len(rows)):
                problem = f"the brackets of entities, here {row[-1]!r}, do not match in this sentence"
                raise check.error(f"line {line}", problem, "Open and close every entity in the same sentence")
            for _ in range(closing):
                kind, start = is_open.pop()
                entities.append(Entity(start=start, end=number + 1, type=kind))
        return sorted(entities, key=lambda entity: (entity["start"], -entity["end"]))


def split_row(line: str, separator: str, width: int = 0) -> list[str]:
    """The cells of a line; empty ones at its end count up to this width alone."""
    if separator != "\t":
        return re.split(" +", line.strip(" "))
    row = line.split("\t")
    while len(row) > width and not row[-1].strip(" "):
        row.pop()
    return row


def is_header(row: Sequence[str]) -> bool:
    return any(cell.lower() in NAMES_OF_TOKENS for cell in row) and all(scheme_of([cell]) is None for cell in row)


# ---- The layout of a file ----


def find_layout(head: str, columns: Mapping[str, Any] | None = None) -> Layout | None:
    """The layout as named by the caller, otherwise detected from the values of the first lines."""
    if columns is None and head.startswith((CONLL_2012, OTHER_FORMAT)):
        return Conll2012(" ", 11, tokens=3, pos=4) if head.startswith(CONLL_2012) else None
    rows, separator = rows_of(head)
    if not rows:
        return None
    if columns is None and len({*map(len, rows)}) > 1 and all(map(_has_tags_of_its_own, rows)):
        return Layout(separator, width=2, tokens=0, tags={1: STANDARD}, joins=True)
    width = len(rows[0])
    values = list(zip(*(row for row in rows if len(row) == width), strict=True))
    schemes = _schemes_of(values)
    if columns is not None:
        return _layout_given(columns, separator, schemes)
    tags = _tag_columns(values, schemes)
    if not tags:
        return None
    ids = values[0] if min(tags) > 1 else ()
    numbered = bool({"0", "1"} & {*ids[:2]}) and all(map(NODE.fullmatch, ids))
    named = NAMED_COLUMNS.search(head)
    places = {name: place for place, name in enumerate(named[1].split() if named else ())}
    layout = Layout(separator, width, places.get("FORM", int(numbered)), tags, places.get("UPOS"), numbered)
    others = [column for column in range(layout.tokens + 1, min(tags)) if not _are_ids(values[column])]
    if others and _are_ids(values[layout.tokens]):
        first, other = values[layout.tokens][0], values[others[0]][0]
        layout.doubt = f"column {layout.tokens} has {first!r}, and column {others[0]} {other!r}"
    return layout


def _schemes_of(values: Sequence[Sequence[str]]) -> list[TagScheme | None]:
    """The scheme of the tags in each column. One of O alone has that of others: it may have tags later in the file."""
    schemes = [scheme_of(column) for column in values]
    outside = [{*column} == {OUTSIDE} for column in values]
    used = [scheme for scheme, is_outside in zip(schemes, outside, strict=True) if scheme and not is_outside]
    first = used[0] if used else STANDARD
    return [first if is_outside else scheme for scheme, is_outside in zip(schemes, outside, strict=True)]


def _tag_columns(values: Sequence[Sequence[str]], schemes: Sequence[TagScheme | None]) -> dict[int, TagScheme]:
    """The last adjacent columns with nothing but tags, after one other or more, and their schemes.

    Columns without any value are no columns between them. Those of chunks look like tags of entities, as in CoNLL-2003
    (English, German), and are left out. Types alone are tags only where no column has prefixes.
    """
    has_prefixes = any(scheme not in (None, WITHOUT_PREFIXES) for scheme in schemes)
    found: dict[int, TagScheme] = {}
    for column in range(len(values) - 1, 0, -1):
        scheme = schemes[column]
        if scheme is not None and not (has_prefixes and scheme is WITHOUT_PREFIXES):
            found[column] = scheme
        elif found and {*values[column]} != {NO_VALUE}:
            break
    types = {column: {tag[2:] for tag in values[column]} for column in found}
    return {column: found[column] for column in sorted(found) if not any(map(types[column].issuperset, CHUNKS))}


def rows_of(head: str) -> tuple[list[list[str]], str]:
    """The rows of words among the first lines of a file, and what separates their columns."""
    lines = [line.rstrip("\r") for line in head.split("\n")]
    if len(head) > HEAD_SIZE // 4:  # the file may continue, and the last line be incomplete
        lines = lines[:-1]
    lines = [line for line in lines if line.strip() and not line.startswith("#") and not DOCUMENT_START.match(line)]
    separator = "\t" if any("\t" in line for line in lines) else " "
    rows = [split_row(line, separator) for line in lines]
    # Multi-word tokens have other tags.
    rows = [row for row in rows if not NO_WORD.fullmatch(row[0]) and row != [OPEN_QUOTE]] or rows
    return rows[1:] if rows and is_header(rows[0]) else rows, separator


def _layout_given(columns: Mapping[str, Any], separator: str, schemes: Sequence[TagScheme | None]) -> Layout:
    check_columns(columns, ("tokens", "entities"), ("pos",))
    entities = columns["entities"]
    entities = entities if isinstance(entities, (list, tuple)) else (entities,)
    numbers = [columns["tokens"], *entities, *([columns["pos"]] if "pos" in columns else [])]
    if not entities or not {*numbers} <= {*range(len(schemes))} or len({*numbers}) < len(numbers):
        raise ValueError(
            f"`columns` is {dict(columns)!r}, but there are {len(schemes)}, and each is named once. {NAME_COLUMNS}; "
            f"in a table of sentences, only those behind the sentence's."
        )
    tags = {column: schemes[column] or STANDARD for column in entities}
    return Layout(separator, len(schemes), columns["tokens"], tags, columns.get("pos"))


def _are_ids(values: Sequence[str]) -> bool:
    """The values are no words: they number something, or are mostly those of the line before, as of a document."""
    repeated = sum(before == value for before, value in pairwise(values))
    return all(map(ID.fullmatch, values)) or 0 < len(values) - 1 <= 2 * repeated


def _has_tags_of_its_own(row: Sequence[str]) -> bool:
    """A row is a token and the tags of the entities around it: O alone, or any number of others."""
    return len(row) > 1 and all(map(STANDARD.fits, row[1:])) and (len(row) == 2 or OUTSIDE not in row[1:])


# ---- Tables of sentences ----

TABLE = re.compile(r'([,;\t]?)"?sent(?:ence)?[ _]?(?:#|idx?|number)"?([,;\t])', re.IGNORECASE)
"""The beginning of a table whose first column, perhaps after that of an index, numbers or names sentences."""
OPEN_QUOTE = 'unclosed quote ("): in a table, the word " is written as """"'


def paragraphs_of_table(path: Path, check: RecordChecker) -> Iterator[Paragraph]:
    """The sentences of a table without its first line."""
    for _, rows in groupby(_table_rows(numbered_lines(path, check)), key=itemgetter(0)):
        yield [row for _, row in rows]


def _table_rows(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """The sentence of each row, which a blank line ends and an empty cell repeats, and the other cells, with tabs."""
    sentence, index, separator, blank_lines = "", "", "", 0
    for number, line in lines:
        if not line.strip():
            blank_lines += 1
        elif not separator:
            ((index, separator), *_) = TABLE.findall(line)
        else:
            try:
                first, *cells = next(csv.reader([line], delimiter=separator, strict=True))[len(index) :] or [""]
            except csv.Error:
                first, cells = "", [OPEN_QUOTE]
            sentence = first or sentence
            yield (blank_lines, sentence), (number, "\t".join(cells))


def _in_columns(head: str) -> str:
    """The first lines of a file, those of a table without its first column, separated by tabs."""
    lines = [line.rstrip("\r") for line in head.split("\n")[:-1]]
    return "\n".join(row for _, (_, row) in _table_rows(enumerate(lines))) if TABLE.match(head) else head


# ---- Sentences ----


def read_columns(
    paragraphs: Iterable[Paragraph], path: Path, layout: Layout, check: RecordChecker, with_text: bool
) -> Iterator[Text]:
    """The documents one by one, sentences joined by spaces, paragraphs (`# newpar`) by an empty line.

    Args:
        with_text: also read the text of each sentence: its comment `# text`, or what `SpaceAfter=No` says.
    """
    sentences = _sentences(paragraphs, path, layout, check, with_text)
    for _, ((where, first), *others) in groupby(sentences, key=lambda found: found[1].record["doc_id"]):
        yield text_of_sentences([first, *(sentence for _, sentence in others)], where)


def _sentences(
    paragraphs: Iterable[Paragraph], path: Path, layout: Layout, check: RecordChecker, with_text: bool
) -> Iterator[tuple[str, WrittenSentence]]:
    """The sentences, each with its place. Ids that are numbers, which may begin anew in each document, follow its name.

    Before the first document begins, every sentence is a document of its own, unless the file is one.
    """
    stem = document_name(path, check)
    unnamed = (f"{stem}:{number}" for number in count())
    doc_id, sent_id = stem if check.is_document else "", 0
    own_id, comment, gap, is_first = "", "", " ", True
    for paragraph in paragraphs:
        rows: list[tuple[int, list[str]]] = []
        for number, line in paragraph:
            row = layout.split(line)
            # A token may begin with #, too.
            if line.startswith("#") and (not rows or COMMENT.match(line)) and layout.problem(row):
                name, _, value = line.removeprefix("#").partition("=")
                name, value = " ".join(name.split()), value.strip()
                if name in ("newdoc", "newdoc id") or line.startswith(CONLL_2012):
                    doc_id, sent_id = value or next(unnamed), 0
                own_id = value if name == "sent_id" else own_id
                comment = value if name == "text" else comment
                gap = "\n\n" if name in ("newpar", "newpar id") else gap
                layout.read_comment(name, value, f"line {number}", check)
            elif not rows and DOCUMENT_START.match(line):
                doc_id, sent_id = next(unnamed), 0
            elif is_first and is_header(row):
                check.note("lines of column names left out", example=f"line {number}")
                is_first = False
            elif len(row) == layout.width and not row[layout.tokens]:
                check.note("lines without a token dropped", example=f"line {number}")
            else:
                rows.append((number, row))
                is_first = False
        words = [(number, row) for number, row in rows if layout.is_word(row)]
        if not words:
            continue
        where, document = f"line {words[0][0]}", doc_id or next(unnamed)
        identifier = own_id if own_id and not own_id.isdecimal() else f"{document}:{own_id or sent_id}"
        names = {"id": identifier, "doc_id": document, "sent_id": sent_id}
        text, before = comment, gap
        sent_id, own_id, comment, gap = sent_id + bool(doc_id), "", "", " "
        with check.record():
            for number, row in words:
                if problem := layout.problem(row):
                    raise check.error(f"line {number}", problem, f"{NAME_COLUMNS}. {RULE}")
            if ignored := layout.ignored():
                check.note(f"values of the columns {', '.join(map(str, ignored))} ignored", len(words))
            pos = [] if layout.pos is None else [row[layout.pos] for _, row in words]
            fields = {"tokens": [row[layout.tokens] for _, row in words], "pos": [] if {*pos} == {NO_VALUE} else pos}
            record = check({**names, **fields, "entities": layout.entities_of(rows, check)}, where)
            written = (*written_text(rows, layout, text, check, where), before) if with_text else ()
            yield where, WrittenSentence(record, *written)


def written_text(
    rows: Rows, layout: Layout, comment: str, check: RecordChecker, where: str
) -> tuple[str, list[Offsets]]:
    """A sentence as written and the characters of each of its words, (start, end).

    The text is the `comment`, if the forms occur in it in their order with nothing but white space between them,
    otherwise, which is counted, the forms, with a space after each that has no `SpaceAfter=No`. The words of a
    multi-word token have its characters in common, unless their forms joined are the token's.
    """
    surfaces: list[tuple[str, str, list[str]]] = []  # form, space after it, forms of the words in it
    covered = -1
    for number, (_, row) in enumerate(rows, start=1):
        node, form = row[0] if layout.numbered else str(number), row[layout.tokens]
        if node.isdecimal() and int(node) <= covered:
            surfaces[-1][2].append(form)
        elif "." not in node:
            last = node.partition("-")[2]
            covered = int(last or covered)
            has_space = NO_SPACE not in "|".join(row[layout.tokens + 1 :]).split("|")
            surfaces.append((form, " " * has_space, [] if last else [form]))
    starts = _places([form for form, _, _ in surfaces], comment)
    if starts is None:
        if comment:
            check.note("texts that differ from their words, made of the words", example=where)
        comment = "".join(form + space for form, space, _ in surfaces).rstrip()
        *starts, _ = accumulate((len(form) + len(space) for form, space, _ in surfaces), initial=0)
    words: list[Offsets] = []
    for start, (form, _, inside) in zip(starts, surfaces, strict=True):
        apart = pairwise(accumulate(map(len, inside), initial=start))
        words += apart if "".join(inside) == form else [(start, start + len(form))] * len(inside)
    return comment, words


def _places(forms: Sequence[str], text: str) -> list[int] | None:
    """The places where the forms begin in the text; None if it has characters other than them and white space."""
    starts, end = [], 0
    for form in forms:
        starts.append(text.find(form, end))
        if starts[-1] < 0 or text[end : starts[-1]].strip():
            return None
        end = starts[-1] + len(form)
    return None if text[end:].strip() else starts


# ---- Columns of tags ----


def read_iob2(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads the documents one by one. I- tags that begin an entity are read as B- and counted.

    Args:
        columns: {"tokens": 0, "entities": [1, 2], "pos": 3}, indices from 0; None detects them.
    """
    head = _in_columns(read_head(path))
    layout = find_layout(head, columns)
    if layout is None:
        last = (row[-1] for row in rows_of(head)[0])
        wrong = next((f"; {value[:20]!r} in the last column is none" for value in last if not STANDARD.fits(value)), "")
        problem = f"there are no columns of tags (O, B-type, I-type) in its first lines{wrong}"
        raise check.error("", problem, f"{NAME_COLUMNS}. {RULE}. {OF_TABLES}")
    if layout.doubt:
        raise check.error("", f"nobody says which column has the words: {layout.doubt}", NAME_COLUMNS)
    paragraphs = paragraphs_of_table if TABLE.match(read_head(path)) else numbered_paragraphs
    yield from read_columns(paragraphs(path, check), path, layout, check, bool(TEXT_OF_WORDS.search(head)))


def _are_columns(head: str) -> bool:
    """Most of the first lines have columns of tags. Of running text, some may end in one: "NF-kappa B", "the B-side".

    Where spaces separate columns, there is O, or I-X after B-X. A value that is no tag is left to the reader to name.
    """
    head = _in_columns(head)
    layout = find_layout(head)
    rows, separator = rows_of(head)
    if layout is None:
        words = [row for row in rows if len(row) > 1 and STANDARD.fits(row[-1])]
    else:
        words = [row for row in rows if len(layout.split(separator.join(row))) == layout.width]
    outside = any(STANDARD.read(cell) == [] for row in rows for cell in row) and (len(rows) > 1 or len(rows[0]) == 2)
    tags = [row[-1] for row in rows]
    inside = any(tag[0] == "B" and after[0] in INSIDE + LAST and tag[1:] == after[1:] for tag, after in pairwise(tags))
    is_table = separator == "\t" or outside or inside or isinstance(layout, Conll2012)
    return is_table and len(words) > len(rows) / 2


IOB2 = CorpusFormat(
    name="iob2",
    description="columns of tags (IOB2, BIOES, BILOU, or types alone), one for each level of nesting",
    read=read_iob2,
    suffixes=(".conll", ".iob", ".iob2", ".bio", ".tsv"),
    recognizes=_are_columns,
    columns="the columns, counted from 0: {'tokens': 0, 'entities': [1, 2], 'pos': 3}",
)
