"""Reads a word a line: columns of tags, one for every level of nesting, and CoNLL-U with brackets or tags in MISC.

    the	B-Person	O              1	the	the	DET	…	Entity=(1-person-new
    Orsk	I-Person	B-City      2	Orsk	Orsk	PROPN	…	Entity=(2-place-new)1)

The tag columns are the last adjacent columns that contain nothing but tags of one scheme (`tags.py`); the tokens are in
the first column, or in the second if the first one numbers them. The option `columns` overrides this. A word has a tag
for every entity around it where lines have different numbers of tags and O stands alone, as in Wojood, or tags are
joined, as in `B-Person|B-City`: I- continues an entity of its type.
"""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, count, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from ...model.text_triaffine import Offsets
from ..reading import HEAD_SIZE, document_name, numbered_lines, numbered_paragraphs, read_head, record_keys
from ..schema import DISCONTINUOUS, LOST_ACROSS_SENTENCES, OF_TABLES, Entity, RecordChecker, Text
from ..texts import WrittenSentence, text_of_sentences
from . import CorpusFormat, check_columns
from .tags import NO_VALUE, RULE, STANDARD, TagScheme, decode_tags, has_all_its_tags, is_header, schemes_of, tag_columns

# The id of a word, of a multi-word token (1-2) or of an empty node (1.1).
NODE = re.compile(r"[0-9]{1,9}(?:[-.][0-9]{1,9})?")
NO_WORD = re.compile("[0-9]+[-.][0-9]+")
ID = re.compile(r".*\d.*|\W*")  # of words, sentences or documents: 001, 1.1, s1_w1, doc1a
DOCUMENT_START = re.compile(r"-DOCSTART-?(?!\S)")  # CoNLL-2003; without the last hyphen: CLARIN-PL's Liner2
CONLL_2012 = "#begin document"  # begins its files, which all have the same columns but for predicates at the end
OTHER_FORMAT = "#FORMAT="  # begins a file that names its format, which is another than this
NAMED_COLUMNS = re.compile(r"(?m)^#\s*global\.columns\s*=(.*)$")  # of CoNLL-U Plus; FORM and UPOS are read
NO_SPACE = ("SpaceAfter=No", "NoSpaceAfter")  # of CoNLL-U, of HIPE
COMMENT = re.compile(r"# ?\S+ = ")  # between the words of a sentence, as in HIPE 2020
NAME_COLUMNS = "Name the columns, counted from 0: convert --columns 'tokens=0 entities=1,2' (columns={'tokens': 0, …})"
# Says how the words of a file are written: a comment with the text of a sentence, or words without a space after.
TEXT_OF_WORDS = re.compile(rf"(?m)^# *text *=|[\t |](?:{'|'.join(NO_SPACE)})")

Paragraph = list[tuple[int, str]]
Rows = Sequence[tuple[int, list[str]]]  # the cells of each line, with its number


@dataclass
class Layout:
    """The way a line is split into columns, and the index of the columns with tokens, tags and parts of speech."""

    separator: str
    width: int
    tokens: int
    tags: dict[int, TagScheme] = field(default_factory=dict)  # column → how its tags are written
    pos: int | None = None
    numbered: bool = False  # the first column numbers the words
    joins: bool = False  # a token has any number of tags after it, which are read as one column of joined tags
    doubt: str = ""  # what speaks against the column of tokens that was detected
    has_text: bool = False  # comments or fields say how a sentence is written

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
        """What is wrong with a row; empty if nothing is."""
        if len(row) != self.width:
            return row[0] if row == [OPEN_QUOTE] else f"{len(row)} in place of {self.width} columns"
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


class Conll2012(Layout):
    """Columns of CoNLL-2012: entities are brackets around words, `(City*`, `*)`, `(City)`; later ones are not read."""

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
    """The cells of a line, without spaces around them; empty cells at its end are kept up to this width only."""
    if separator != "\t":
        return re.split(" +", line.strip(" "))
    row = [cell.strip(" ") for cell in line.split("\t")]
    while len(row) > width and not row[-1]:
        row.pop()
    return row


# ---- The layout of a file ----


def find_layout(head: str, columns: Mapping[str, Any] | None = None) -> Layout | None:
    """The layout as named by the caller, otherwise detected from the values of the first lines."""
    if columns is None and head.startswith((CONLL_2012, OTHER_FORMAT)):
        return Conll2012(" ", 11, tokens=3, pos=4) if head.startswith(CONLL_2012) else None
    rows, separator = rows_of(head)
    if not rows:
        return None
    fitting = [row for row in rows if has_all_its_tags(row)]
    several = sum(len(row) > 2 for row in fitting)  # outnumber the slips, such as O beside a tag
    if columns is None and len({*map(len, rows)}) > 1 and several > len(rows) - len(fitting):
        return Layout(separator, width=2, tokens=0, tags={1: STANDARD}, joins=True)
    width = len(rows[0])
    values = list(zip(*(row for row in rows if len(row) == width), strict=True))
    if columns is not None:
        return _layout_given(columns, separator, schemes_of(values))
    tags = tag_columns(values)
    if not tags:
        return None
    ids = values[0] if min(tags) > 1 else ()
    numbered = bool({"0", "1"} & {*ids[:2]}) and all(map(NODE.fullmatch, ids))
    places = {name: place for place, name in enumerate(" ".join(NAMED_COLUMNS.findall(head)).split())}
    layout = Layout(separator, width, places.get("FORM", int(numbered)), tags, places.get("UPOS"), numbered)
    # Another column may have the words if this one looks like ids, or if there are tags before the last tags.
    other_tags = {column for column, scheme in tag_columns(values[: min(tags)]).items() if scheme is STANDARD}
    others = [column for column in range(layout.tokens + 1, min(tags)) if column not in other_tags]
    words = [column for column in others if not _are_ids(values[column])]
    looks_like_ids = others and all(map(ID.fullmatch, values[layout.tokens]))  # as a single word may
    if len(rows) > 1 and (looks_like_ids or (words and (other_tags or _are_ids(values[layout.tokens])))):
        layout.doubt = ", and ".join(f"column {n} has {values[n][0]!r}" for n in (layout.tokens, (words or others)[0]))
    return layout


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


# ---- Tables of sentences ----

TABLE = re.compile(r'([,;\t]?)"?sent(?:ence)?[ _]?(?:#|idx?|number)"?([,;\t])', re.IGNORECASE)
"""The beginning of a table whose first column, perhaps after that of an index, numbers or names sentences."""
OPEN_QUOTE = 'unclosed quote ("): in a table, the word " is written as """"'


def _table_rows(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """A key of the sentence of each row, which an empty cell repeats; the row's number and other cells, with tabs."""
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
    """The first lines of a file; of a table without the column of sentences, and with tabs between the others."""
    lines = [line.rstrip("\r") for line in head.split("\n")[:-1]]
    return "\n".join(row for _, (_, row) in _table_rows(enumerate(lines))) if TABLE.match(head) else head


# ---- Sentences ----


def _texts(paragraphs: Iterable[Paragraph], path: Path, layout: Layout, check: RecordChecker) -> Iterator[Text]:
    """The documents one by one. In a text as written, spaces join sentences, and empty lines join paragraphs."""
    sentences = _sentences(paragraphs, path, layout, check)
    for _, ((where, first), *others) in groupby(sentences, key=lambda found: found[1].record["doc_id"]):
        yield text_of_sentences([first, *(sentence for _, sentence in others)], where)


def _sentences(
    paragraphs: Iterable[Paragraph], path: Path, layout: Layout, check: RecordChecker
) -> Iterator[tuple[str, WrittenSentence]]:
    """The sentences, each with its place. Ids that are numbers, which may begin anew in each document, follow its name.

    Before the first document begins, every sentence is a document of its own, unless the file is one.
    """
    stem = document_name(path, check)
    unnamed = (f"{stem}:{number}" for number in count())
    ignored = {*range(int(layout.numbered), layout.width)} - {layout.tokens, layout.pos, *layout.tags}
    doc_id, sent_id = stem if check.is_document else "", 0
    comments: dict[str, str] = {}  # name → value, since the last sentence
    for paragraph in paragraphs:
        rows: list[tuple[int, list[str]]] = []
        for number, line in paragraph:
            row = layout.split(line)
            # A token may begin with #, too.
            if line.startswith("#") and (not rows or COMMENT.match(line)) and layout.problem(row):
                name, _, value = line.removeprefix("#").partition("=")
                name, value = " ".join(name.split()), value.strip()
                if name.rpartition(":")[2] in ("newdoc", "newdoc id", "document_id") or line.startswith(CONLL_2012):
                    doc_id, sent_id = value or next(unnamed), 0
                comments[name] = value
                layout.read_comment(name, value, f"line {number}", check)
            elif not rows and DOCUMENT_START.match(line):
                doc_id, sent_id = next(unnamed), 0
            elif not rows and layout.tags and is_header(row):
                check.note("lines of column names left out", example=f"line {number}")
            elif len(row) == layout.width and not row[layout.tokens]:
                check.note("lines without a token dropped", example=f"line {number}")
            else:
                rows.append((number, row))
        words = [(number, row) for number, row in rows if layout.is_word(row)]
        if not words:
            continue
        where, document = f"line {words[0][0]}", doc_id or next(unnamed)
        own_id, comment = comments.get("sent_id"), comments.get("text", "")
        identifier = own_id if own_id and not own_id.isdecimal() else f"{document}:{own_id or sent_id}"
        names = {"id": identifier, "doc_id": document, "sent_id": sent_id}
        gap = "\n\n" if {"newpar", "newpar id"} & comments.keys() else " "
        sent_id, comments = sent_id + bool(doc_id), {}
        with check.record():
            for number, row in words:
                if problem := layout.problem(row):
                    raise check.error(f"line {number}", problem, f"Correct it, or: {NAME_COLUMNS}. {RULE}")
            if ignored and layout.tags:  # other layouts know what is in all columns
                check.note(f"values of the columns {', '.join(map(str, sorted(ignored)))} ignored", len(words))
            pos = [] if layout.pos is None else [row[layout.pos] for _, row in words]
            fields = {"tokens": [row[layout.tokens] for _, row in words], "pos": [] if {*pos} == {NO_VALUE} else pos}
            record = check({**names, **fields, "entities": layout.entities_of(rows, check)}, where)
            written = (*_written(rows, layout, comment, check, where), gap) if layout.has_text else ()
            yield where, WrittenSentence(record, *written)


def _written(rows: Rows, layout: Layout, comment: str, check: RecordChecker, where: str) -> tuple[str, list[Offsets]]:
    """A sentence as written, by the `comment` or else by its forms, and the characters of each of its words.

    The words of a multi-word token have its characters in common, unless their forms joined are the token's.
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
            has_space = {*NO_SPACE}.isdisjoint("|".join(row[layout.tokens + 1 :]).split("|"))
            surfaces.append((form, " " * has_space, [] if last else [form]))
    starts = _places([form for form, _, _ in surfaces], comment)
    if starts is None:
        if comment:
            check.note("texts that differ from their words, made of the words", example=where)
        comment = "".join(form + space for form, space, _ in surfaces).removesuffix(surfaces[-1][1])
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


# ---- Columns of tags: the format ----


def read_iob2(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads the documents one by one. I- tags that begin an entity are read as B- and counted."""
    head = _in_columns(read_head(path))
    layout = find_layout(head, columns)
    if layout is None:
        last = (row[-1] for row in rows_of(head)[0])
        wrong = next((f"; {value[:20]!r} in the last column is none" for value in last if not STANDARD.fits(value)), "")
        problem = f"no columns of tags (O, B-type, I-type) are in its first lines, {head[:30]!r}…{wrong}"
        raise check.error("", problem, f"{NAME_COLUMNS}. {RULE}. {OF_TABLES}. In WebAnno, export UIMA CAS")
    if layout.doubt:
        raise check.error("", f"nobody says which column has the words: {layout.doubt}", NAME_COLUMNS)
    layout.has_text = TEXT_OF_WORDS.search(head) is not None
    if TABLE.match(read_head(path)):
        by_sentence = groupby(_table_rows(numbered_lines(path, check)), key=itemgetter(0))
        paragraphs: Iterable[Paragraph] = ([row for _, row in rows] for _, rows in by_sentence)
    else:
        paragraphs = chain.from_iterable(map(_cut_at_ends, numbered_paragraphs(path, check)))
    yield from _texts(paragraphs, path, layout, check)


def _cut_at_ends(paragraph: Paragraph) -> Iterator[Paragraph]:
    """The sentences of a document of HIPE 2022, whose ends have flags: in OCR also wrong ones, inside of entities."""
    words = [(number, line) for number, (_, line) in enumerate(paragraph) if not COMMENT.match(line)]
    ends = [number for (_, line), (number, after) in pairwise(words) if "EndOfSentence" in line and "\tI-" not in after]
    return (paragraph[first:last] for first, last in pairwise([0, *ends, len(paragraph)]))


def _are_columns(head: str) -> bool:
    """True if most of the first lines have columns of tags; of running text, a few may end like one ("NF-kappa B").

    Where spaces separate columns, there must be O, or I-X after B-X. The reader names a value that is no tag.
    """
    head = _in_columns(head)
    layout = find_layout(head)
    rows, separator = rows_of(head)
    if layout is None:
        words = [row for row in rows if len(row) > 1 and STANDARD.fits(row[-1])]
    else:
        words = [row for row in rows if layout.joins or len(row) == layout.width]
    outside = any(STANDARD.read(cell) == [] for row in rows for cell in row) and (len(rows) > 1 or len(rows[0]) == 2)
    tags = [row[-1] for row in rows]
    inside = any(tag[0] == "B" and after[0] in "IMEL" and tag[1:] == after[1:] for tag, after in pairwise(tags))
    return (separator == "\t" or outside or inside) and len(words) > len(rows) / 2


IOB2 = CorpusFormat(
    name="iob2",
    description="columns of tags (IOB2, BIOES, BILOU, or types alone), one for each level of nesting",
    read=read_iob2,
    suffixes=(".conll", ".iob", ".iob2", ".bio", ".tsv"),
    recognizes=lambda head: head.startswith(CONLL_2012) or (not record_keys(head) and _are_columns(head)),
    columns="the columns, counted from 0: {'tokens': 0, 'entities': [1, 2], 'pos': 3}",
)

# ---- CoNLL-U ----

MISC, WIDTH = 9, 10
BRACKET = re.compile(r"(\()?([^()]+)(\))?")
TAG_IN_MISC = re.compile(r"\b(?:name|NER|ner|NE)=([BIELSU]-[^|\n]+)")  # docs/corpora.md says in which corpora
PART_OF_SEVERAL = re.compile(r"\[([0-9]+)/[0-9]+\]$")  # ends the name of a part of a discontinuous entity: [1/2]


@dataclass
class Conllu(Layout):
    """The ten columns of CoNLL-U, and what is known of its brackets across sentences."""

    type_part: int = 1  # of the parts in a bracket: the one called `etype` in `global.Entity`, by default the second
    left_open: Counter[str] = field(default_factory=Counter)  # names of entities that began in earlier sentences

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
        """The entities of a sentence, by words: of tags, and those whose brackets both stand in it."""
        tags = (STANDARD.read("".join(TAG_IN_MISC.findall(row[MISC]))) or () for _, row in rows if self.is_word(row))
        entities = [*decode_tags(tags, check)]
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
                    if part := PART_OF_SEVERAL.search(name):
                        if part[1] == "1":
                            check.drop(DISCONTINUOUS, example=f"{where}: {name}")
                    elif kind and start < num_words + of_word:
                        entities.append(Entity(start=start, end=num_words + of_word, type=kind))
                    else:
                        what = "words" if kind else "a type"
                        check.drop(f"entities without {what} dropped", example=f"{where}: {name}")
                elif closes and self.left_open[name]:
                    self.left_open[name] -= 1
                elif closes:
                    raise check.error(where, f"Entity closes {name!r}, which is not open", "Open it where it begins")
            num_words += of_word
        for name, unclosed in is_open.items():
            self.left_open[name] += len(unclosed)
            check.drop(LOST_ACROSS_SENTENCES, len(unclosed), f"line {rows[0][0]}: {name}")
        return entities


def _brackets(misc: str, where: str, check: RecordChecker) -> Sequence[tuple[str, str, str]]:
    """The brackets in MISC: each "(" if it opens an entity, the parts in it, and ")" if it closes one."""
    value = next((pair.partition("=")[2] for pair in misc.split("|") if pair.startswith("Entity=")), "")
    brackets = BRACKET.findall(value)
    if "".join(map("".join, brackets)) != value or not all(opens or closes for opens, _, closes in brackets):
        rule = "An entity opens as (name-type and closes as name), and its name contains no brackets"
        raise check.error(where, f"Entity is {value!r}, which cannot be parsed as brackets", rule)
    return brackets


def read_conllu(path: Path, check: RecordChecker) -> Iterator[Text]:
    """Reads the documents one by one. Mentions of all kinds are entities, in GUM even pronouns."""
    if not (TAG_IN_MISC.search(read_head(path)) or "Entity=" in read_head(path)):
        check.note("files without entities in the first lines (Entity=, NER=, NE=, name=)", example=path.name)
    layout = Conllu("\t", WIDTH, tokens=1, pos=3, numbered=True, has_text=True)
    yield from _texts(numbered_paragraphs(path, check), path, layout, check)


CONLLU = CorpusFormat(
    name="conllu",
    description="CoNLL-U with entities as brackets in MISC",
    read=read_conllu,
    suffixes=(".conllu",),
    recognizes=lambda head: bool(re.search(r"(?m)^1\t(?:[^\t\n]*\t){8}[^\t\n]*$", head)) and "Entity=(" in head,
)
