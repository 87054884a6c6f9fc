"""Reads columns of tags, one for every level of nesting, as in GermEval 2014 and DaN+.

    the	B-Person	O
    Orsk	I-Person	B-City

The tag columns are the last adjacent columns that contain nothing but tags of one scheme (`tags.py`); the tokens are in
the first column, or in the second if the first one numbers them (`columns.py`). A comment `# global.columns = ID FORM
UPOS NER:1 NER:2`, as in CoNLL-U Plus, or the option `columns` overrides this. A word has a tag for every entity around
it where lines have different numbers of tags and O stands alone, as in Wojood, or tags are joined, as in
`B-Person|B-City`: I- continues an entity of its type. Documents begin at `-DOCSTART-`, `#begin document` or
`# newdoc id = …`; without these, every sentence is a document of its own.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..corpus_format import CorpusFormat
from ..reading import numbered_lines, numbered_paragraphs, read_head
from ..record_checker import RecordChecker
from ..schema import OF_TABLES, CorpusError, Text
from .columns import (
    DOCUMENT_START,
    NAME_COLUMNS,
    NO_SPACE,
    TABLE,
    Layout,
    find_layout,
    paragraphs_of_table,
    read_columns,
    rows_of,
    rows_of_table,
)
from .tags import OUTSIDE, RULE, prefixes_of

SHOWN_VALUES = 5
TEXT_OF_WORDS = re.compile(rf"(?m)^# *text *=|[\t |]{NO_SPACE}")
"""Says how the words of a file are written: a comment with the text of a sentence, or words without a space after."""
OTHER_FORMAT = "#FORMAT="
"""How a file begins that names its format, which is another one."""


def read_iob2(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads the documents one by one. I- tags that begin an entity are read as B- and counted.

    Args:
        columns: {"tokens": 0, "entities": [1, 2], "pos": 3}, indices from 0; None detects them.
    """
    head = _in_columns(whole := read_head(path))
    layout = None if head.startswith(OTHER_FORMAT) and columns is None else find_layout(head, columns)
    if layout is None:
        raise _without_tags(head, check)
    if layout.doubt:
        raise check.error("", f"nobody says which column has the words: {layout.doubt}", NAME_COLUMNS)
    of_table = head is not whole
    paragraphs = paragraphs_of_table(numbered_lines(path, check)) if of_table else numbered_paragraphs(path, check)
    yield from read_columns(paragraphs, path, layout, check, with_text=TEXT_OF_WORDS.search(head) is not None)


def _in_columns(head: str) -> str:
    """The first lines of a file, those of a table without its first column, separated by tabs."""
    return "\n".join(rows_of_table(head.splitlines()[:-1])) if TABLE.match(head) else head


def _without_tags(head: str, check: RecordChecker) -> CorpusError:
    """The error for a file without columns of tags, which says what it has in their place."""
    if head.startswith(f"{OTHER_FORMAT}WebAnno"):
        problem = "WebAnno's TSV is not read"
        return check.error("", problem, "Import it into INCEpTION, and export UIMA CAS in JSON or XMI")
    problem, remedy = "there are no columns of tags (O, B-type, I-type) in its first lines", NAME_COLUMNS
    if len({"\t" in line for line in head.splitlines() if len(line.split()) > 1 and line[0] not in "#-"}) == 2:
        problem += ", some of which are separated by tabs, others only by spaces"
        return check.error("", problem, f"Separate the columns of all lines by tabs. {OF_TABLES}")
    last = list(dict.fromkeys(row[-1] for row in rows_of(head)[0] if len(row) > 1))
    wrong = [value for value in last if value != OUTSIDE and not prefixes_of(value)]
    if 0 < len(wrong) < len(last) / 2 or len(wrong) == 1 < len(last):
        problem, remedy = f"{wrong[0][:20]!r} in the last column is not a tag as the others", RULE
    elif last:
        shown = ", ".join(repr(value[:20]) for value in last[:SHOWN_VALUES])
        problem += f", whose last column has {shown}{', …' if last[SHOWN_VALUES:] else ''}"
    return check.error("", problem, f"{remedy}. {OF_TABLES}")


def _recognizes(head: str) -> bool:
    """The first lines have columns with a tag other than O."""
    layout = _layout_of(head)
    return layout is not None and layout.has_entities


def _layout_of(head: str) -> Layout | None:
    """The layout of the first lines, if most of them have these columns.

    Of running text, some line may end in what could be a tag: "NF-kappa B".
    """
    head = _in_columns(head)
    layout = None if head.startswith(OTHER_FORMAT) else find_layout(head, None)
    if layout is None:
        return None
    lines = [line for line in head.split("\n") if line.strip() and not line.startswith("#")]
    fitting = sum(len(layout.split(line)) == layout.width or bool(DOCUMENT_START.match(line)) for line in lines)
    is_one_word = len(lines) > 1 or layout.separator == "\t" or layout.width == 2
    return layout if fitting > len(lines) / 2 and is_one_word else None


IOB2 = CorpusFormat(
    name="iob2",
    description="columns of tags (IOB2, BIOES, BILOU, or types alone), one for each level of nesting",
    read=read_iob2,
    suffixes=(".conll", ".iob", ".iob2", ".bio", ".tsv"),
    recognizes=_recognizes,
    may_be=lambda head: _layout_of(head) is not None,
    columns="the columns, counted from 0: {'tokens': 0, 'entities': [1, 2], 'pos': 3}",
    tools="CoNLL columns: CoNLL-U Plus, CoNLL-2003, CoNLL-2012, GermEval 2014, DaN+, Wojood, Few-NERD, KIND",
    example="Orsk\tI-Person\tB-City",
)
