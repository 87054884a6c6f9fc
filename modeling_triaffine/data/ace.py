"""Reads ACE as distributed by LDC: a source text (`.sgm`) and its annotations (`.apf.xml`) for every document.

Entities are the extents of the entity mentions with the type of their entity; values, times, relations and events are
ignored and counted. Offsets count the characters of the source without its tags (an escape like `&amp;` as written) and
are checked against the text that the annotation quotes. Sentences end at every tag. Whatever is outside of `<TEXT>`
(ids, dates, most headlines) is not read, unless a mention is annotated there.

The splits are lists of documents (`ldc.py`), as published ones are: `nw/adj/AFP_ENG_20030401.0476`, or the name alone.
If a document exists in several stages of annotation and the list does not name one, the last stage is read.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..model.text_triaffine import Offsets
from .documents import AnnotatedText, Annotation
from .ldc import TAG, AnnotationFiles, entity_mentions, format_of_pairs, numbers, overlaps, read_source, unescape
from .schema import RecordChecker

# ACE 2005 has the same documents in several stages of annotation, here from the first to the last.
FILES = AnnotationFiles((".apf.xml",), ".sgm", "in its folder", stages=("fp1", "fp2", "adj", "timex2norm"))
OTHER_MENTIONS = {
    "value_mention": "values",
    "timex2_mention": "times",
    "relation_mention": "relations",
    "event_mention": "events",
}


def _sources(annotations: Sequence[Path]) -> dict[Path, list[Path]]:
    sources = {file: file.with_name(FILES.document(file) + FILES.source_suffix) for file in annotations}
    return {file: [source] if source.is_file() else [] for file, source in sources.items()}


def _read_document(file: Path, name: str, source_file: Path, check: RecordChecker) -> AnnotatedText:
    mentions = list(_mentions(file, name, check))
    source = read_source(source_file, check, name.removesuffix(file.name) + source_file.name)
    text = unescape(TAG.sub("", source))
    pieces = _pieces(source)
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
        extent = mention.find("extent/charseq")
        values = [None] if extent is None else [extent.get("START"), extent.get("END")]
        start, last = numbers(values, "extent with START and END", where, check)
        quote = mention.findtext("extent/charseq") or None
        yield Annotation("extent", ((start, last + 1),), type=kind, quote=quote, where=where)


def _pieces(source: str) -> Iterator[tuple[Offsets, bool]]:
    """The pieces between tags: their characters in the text without tags, and whether they are inside `<TEXT>`."""
    length, inside = 0, False
    for part in re.split(f"({TAG.pattern})", source):
        if TAG.fullmatch(part):
            inside = part.upper() == "<TEXT>" or (inside and part.upper() != "</TEXT>")
        else:
            yield (length, length + len(part)), inside
            length += len(part)


ACE = format_of_pairs(
    FILES,
    _sources,
    _read_document,
    name="ace",
    description="ACE as distributed by LDC, a folder of .sgm and .apf.xml",
    recognizes=lambda head: head.startswith("<") and "<source_file" in head,
)
