"""Reads ACE as distributed by LDC: a source text (`.sgm`) and its annotations (`.apf.xml`) for every document.

Entities are the extents of the entity mentions with the type of their entity; values, times, relations and events are
ignored and counted. Offsets count the characters of the source without its tags (an escape like `&amp;` as written) and
are checked against the text that the annotation quotes. Sentences end at every tag. Whatever is outside of `<TEXT>`
(ids, dates, most headlines) is not read, unless a mention is annotated there.

The splits are lists of documents (`ldc.py`), as published ones are: `nw/adj/AFP_ENG_20030401.0476`, or the name alone.
If a document exists in several stages of annotation and the list does not name one, the last stage is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from .documents import AnnotatedText, Annotation, Offsets, format_of_texts
from .ldc import TAG, AnnotationFiles, entity_mentions, overlaps, read_source, unescape
from .schema import RecordChecker

SOURCE_SUFFIX, ANNOTATION_SUFFIX = ".sgm", ".apf.xml"
# ACE 2005 has the same documents in several stages of annotation, here from the first to the last.
FILES = AnnotationFiles((ANNOTATION_SUFFIX,), SOURCE_SUFFIX, stages=("fp1", "fp2", "adj", "timex2norm"))
OTHER_MENTIONS = {
    "value_mention": "values",
    "timex2_mention": "times",
    "relation_mention": "relations",
    "event_mention": "events",
}


def read_ace(path: Path, check: RecordChecker) -> Iterator[AnnotatedText]:
    """Reads all documents in the order of their names or of the list.

    Args:
        path: a folder, searched recursively; a list of documents in or above their folders; one `.apf.xml`.
        check: counts what is ignored.

    Raises:
        CorpusError: a listed document or a source is missing, or the XML is invalid; the message names file and place.
    """
    folder = path if path.is_dir() else path.parent
    for file in FILES.find(path, check):
        name = file.relative_to(folder).as_posix()
        yield _read_document(file, name, check)


def ace_documents(path: Path) -> list[Path]:
    """The sources and annotations in a folder, of a list or of one document, the list itself included."""
    return FILES.with_sources(path, lambda annotations: [file] if (file := _source(annotations)).is_file() else [])


def _source(annotations: Path) -> Path:
    return annotations.with_name(FILES.document(annotations) + SOURCE_SUFFIX)


def _read_document(file: Path, name: str, check: RecordChecker) -> AnnotatedText:
    """One `.apf.xml` with its source beside it; `name` is its path in the corpus."""
    source = _source(file)
    if not source.is_file():
        raise check.error(name, f"the text that it annotates, {source.name}, is not in its folder", "Add it")
    mentions = list(_mentions(file, name, check))
    text, pieces = _text(read_source(source, check, name.removesuffix(file.name) + source.name))
    kept = [piece for piece, is_text in pieces if is_text or any(overlaps(mention, piece) for mention in mentions)]
    blanked = list(" " * len(text))
    for start, end in kept:
        blanked[start:end] = text[start:end]
    return AnnotatedText(
        doc_id=FILES.document(file),
        text="".join(blanked),
        annotations=mentions,
        where=name,
        borders=sorted({border for piece in kept for border in piece}),
    )


def _mentions(file: Path, name: str, check: RecordChecker) -> Iterator[Annotation]:
    for entity, mention, where in entity_mentions(file, name, check, OTHER_MENTIONS):
        kind = check.typed(entity.attrib, "TYPE", str, where)
        yield _mention(mention.find("extent/charseq"), kind, where, check)


def _mention(extent: Element | None, kind: str, where: str, check: RecordChecker) -> Annotation:
    offsets = [] if extent is None else [extent.get("START", ""), extent.get("END", "")]
    if extent is None or not all(re.fullmatch("[0-9]{1,15}", offset) for offset in offsets):
        raise check.error(where, "it has no extent with START and END", "Give the file as distributed by LDC")
    start, last = map(int, offsets)
    return Annotation(name="extent", fragments=((start, last + 1),), type=kind, quote=extent.text or None, where=where)


def _text(source: str) -> tuple[str, list[tuple[Offsets, bool]]]:
    """The source without its tags, and the pieces between them: their offsets and whether they are inside `<TEXT>`."""
    parts: list[str] = []
    pieces: list[tuple[Offsets, bool]] = []
    length, position, inside = 0, 0, False
    for tag in (*TAG.finditer(source), None):
        part = unescape(source[position : tag.start() if tag else len(source)])
        parts.append(part)
        pieces.append(((length, length + len(part)), inside))
        length += len(part)
        if tag:
            position = tag.end()
            inside = tag.group().upper() == "<TEXT>" or (inside and tag.group().upper() != "</TEXT>")
    return "".join(parts), pieces


ACE = format_of_texts(
    read_ace,
    name="ace",
    description="ACE as distributed by LDC, a folder of .sgm and .apf.xml",
    suffixes=(ANNOTATION_SUFFIX,),
    recognizes=lambda head: head.startswith("<") and "<source_file" in head,
    documents=ace_documents,
    lists=FILES.lists,
)
