"""Reads sentences as a line of words and a line of spans by words, as models for nested entities are trained on.

    The mayor of Orsk
    DT NN IN NNP
    0,4 Person|3,4 City

The second line, with parts of speech, may be missing, and so may that of the spans in a sentence without entities; a
blank line ends a sentence. A mention may also have the span of its head, `0,4,1,2 Person`. Ends are exclusive, or the
last word is part of a span: the spans of the whole file tell which, or the option `columns` does.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..corpus_format import CorpusFormat, check_columns
from ..documents import Document, Sentence, document_of_words
from ..reading import document_name, numbered_paragraphs
from ..record_checker import RecordChecker
from ..schema import Entity
from .sentence_ids import SentenceIds
from .tags import STANDARD_TAG

SPAN = re.compile(r"(\d{1,9}),(\d{1,9})(,\d{1,9},\d{1,9})? ([^\s|]+)")
SPANS = re.compile(rf"{SPAN.pattern}(?:\|{SPAN.pattern})*")
MAX_LINES = 3
ENOUGH = 20
"""Spans of which, in any corpus, some are of one word."""
SAY_IT = (
    "Say it, after a look at one-word spans in the other files of the corpus, such as 3,3 (inclusive) or 3,4, with "
    "columns={'inclusive_end': True} or False (convert --columns inclusive_end=true)"
)
RULE = "A sentence is a line of words, perhaps one of parts of speech, and one of spans, such as 0,4 Person|3,4 City"

Lines = list[tuple[int, str]]


def read_span_lines(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Document]:
    """Reads sentence by sentence; a CorpusError names the line.

    Args:
        columns: {"inclusive_end": True} if the last word is part of a span, else False; None: the file, which is then
            read twice, tells.
    """
    inclusive = _ends_are_inclusive(path, check) if columns is None else _inclusive_end(columns)
    ids = SentenceIds(document_name(path, check), check.is_document)
    for lines in numbered_paragraphs(path, check):
        names = ids.next_sentence()
        with check.record():
            yield document_of_words(names["doc_id"], [_sentence(lines, names, inclusive, check)])


def _sentence(lines: Lines, names: dict[str, object], inclusive: bool, check: RecordChecker) -> Sentence:
    (first, words), *others = lines
    tokens, where = words.split(), f"line {first}"
    entities: list[Entity] = []
    if spans := _spans_at_end([line for _, line in lines]):
        number, _ = others.pop()
        for start, end, head, kind in spans:
            if head:
                check.note("heads of mentions ignored")
            entity = Entity(start=int(start), end=int(end) + inclusive, type=kind)
            if not 0 <= entity["start"] < entity["end"] <= len(tokens):
                problem = f"the span {start},{end} {kind} is not within the {len(tokens)} words of line {first}"
                how = "the last word is part of a span" if inclusive else "the end is exclusive"
                raise check.error(f"line {number}", problem, f"Words count from 0, and here {how}")
            entities.append(entity)
    pos: list[str] = others.pop()[1].split() if others else []
    if others or (pos and len(pos) != len(tokens)):
        where = f"line {lines[-1][0]}"
        problem = f"{lines[-1][1][:60]!r} is neither spans nor one part of speech for each of {len(tokens)} words"
        raise check.error(where, problem, RULE)
    return Sentence({**names, "tokens": tokens, "pos": pos, "entities": entities}, where)


def _spans_at_end(lines: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Start, end, head and type of each span in the last line of a sentence, if it is one of spans."""
    return SPAN.findall(lines[-1]) if len(lines) > 1 and SPANS.fullmatch(lines[-1].strip()) else []


def _inclusive_end(columns: Mapping[str, Any]) -> bool:
    check_columns(columns, ("inclusive_end",))
    inclusive = columns["inclusive_end"]
    if not isinstance(inclusive, bool):
        raise ValueError(f"`columns`: inclusive_end is {inclusive!r}. Give True or False.")
    return inclusive


def _ends_are_inclusive(path: Path, check: RecordChecker) -> bool:
    """Whether the last word is part of a span: then spans of one word have two equal numbers, which no other has.

    An end after the last word of a sentence tells the contrary, as do `ENOUGH` spans of which none is of one word. If
    the spans do not tell, nobody can: CorpusError.
    """
    uncounted = RecordChecker(path, max_bad_records=sys.maxsize)
    found: dict[str, tuple[int, str]] = {}  # what ends are → the first span that shows it, with its line
    count = 0
    for lines in numbered_paragraphs(path, uncounted):
        num_words = len(lines[0][1].split())
        spans = _spans_at_end([line for _, line in lines])
        count += len(spans)
        for start, end, _, kind in spans:
            ends = "inclusive" if start == end else "exclusive" if int(end) == num_words else "unknown"
            found.setdefault(ends, (lines[-1][0], f"word {end} may be in {start},{end} {kind}, or not"))
    if "inclusive" in found:
        check.note("files with spans such as 3,3, whose last word is therefore part of every span")
    elif found.keys() == {"unknown"} and count < ENOUGH:
        number, example = found["unknown"]
        raise check.error(f"line {number}", f"no span of the file tells whether ends are inclusive: {example}", SAY_IT)
    return "inclusive" in found


def _recognizes(head: str) -> bool:
    """Whether the first lines are sentences of at most three lines, one of which ends with spans."""
    sentences = [sentence.split("\n") for sentence in re.split(r"(?:\r?\n[ \t]*){2,}", head.strip())]
    if not all(len(lines) <= MAX_LINES for lines in sentences):
        return False
    types = [kind for lines in sentences for *_, kind in _spans_at_end(lines)]
    return not all(map(STANDARD_TAG.fullmatch, types))  # as in columns of tags with a number such as 0,1 for a word


SPAN_LINES = CorpusFormat(
    name="span_lines",
    description="a line of words and a line of spans, 0,4 Person|3,4 City, for each sentence",
    read=read_span_lines,
    keeps_text=False,
    recognizes=_recognizes,
    columns="whether the last word is part of a span: {'inclusive_end': True}",
    tools="research code for nested entities",
    example="0,4 Person|3,4 City",
)
