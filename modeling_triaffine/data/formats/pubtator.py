"""Reads PubTator's text files: the title and abstract of a document, then one entity a line, then an empty line.

    227508|t|Naloxone reverses the effect of clonidine.
    227508	0	8	Naloxone	Chemical	D009270

Offsets count characters of the title, one more, and the abstract.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ..reading import numbered_paragraphs
from ..schema import RecordChecker, Text, annotated
from . import CorpusFormat

TEXT_LINE = re.compile(r"([^|\t\n]+)\|([ta])\|(.*)")
ENTITY_LINE = re.compile(r"([^\t]+)\t([0-9]{1,15})\t([0-9]{1,15})\t([^\t]*)\t([^\t]+)(?:\t.*)?")
RELATION_LINE = re.compile(r"([^\t]+)\t(?![A-Z][0-9]+\t)[^\t0-9][^\t]*\t[^\t]+\t[^\t]+(?:\t.*)?")


def read_pubtator(path: Path, check: RecordChecker) -> Iterator[Text]:
    """Reads one document after the other; a CorpusError names the line."""
    for lines in numbered_paragraphs(path, check):
        with check.record():
            yield _document(lines, check)


def _document(lines: list[tuple[int, str]], check: RecordChecker) -> Text:
    texts: dict[str, str] = {}
    annotations: list[tuple[str, re.Match[str]]] = []
    doc_id = ""
    for number, line in lines:
        where = f"line {number}"
        text, entity, relation = (form.fullmatch(line) for form in (TEXT_LINE, ENTITY_LINE, RELATION_LINE))
        found = text or entity or relation
        doc_id = doc_id or (found[1] if found else "")
        if found and found[1] != doc_id:
            problem = f"the document {found[1]!r} begins within the document {doc_id!r}"
            raise check.error(where, problem, "Put an empty line between two documents")
        if text and not annotations and text[2] not in texts:
            texts[text[2]] = text[3]
        elif entity:
            annotations.append((where, entity))
        elif relation:
            check.note("relations ignored")
        else:
            remedy = "Lines are 'ID|t|title', 'ID|a|abstract', or ID, start, end, text, type"
            raise check.error(where, f"{line[:60]!r} is not a line of PubTator", remedy)
    first = f"line {lines[0][0]}"
    if "t" not in texts:
        raise check.error(first, f"the document {doc_id!r} has no title", f"Begin it with '{doc_id}|t|'")
    title, abstract = texts["t"], texts.get("a", "")
    whole = f"{title} {abstract}" if abstract else title
    entities = (
        check.entity(whole, [(int(fields[2]), int(fields[3]))], fields[5], fields[4] or None, where, where)
        for where, fields in annotations
    )
    return annotated(doc_id, whole, entities, f"{first} (document {doc_id})", (len(title), len(title) + 1))


PUBTATOR = CorpusFormat(
    name="pubtator",
    description="PubTator's text files",
    read=read_pubtator,
    suffixes=(".pubtator", ".pubtator.txt"),
    recognizes=lambda head: bool(re.match(r"[^|\t\n]+\|t\|", head)),
)
