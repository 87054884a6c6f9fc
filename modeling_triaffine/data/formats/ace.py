"""Reads ACE as LDC distributes it (`.sgm`, `.apf.xml`); see `ldc.py`.

Entities are the entity mentions, with the type of their entity; values, times, relations and events are ignored and
counted. Offsets count the characters of the source without its tags, an escape like `&amp;` as written. What is outside
of `<TEXT>` (ids, dates, most headlines) is not read, unless a mention is annotated there. If a document exists in
several stages of annotation and the list does not name one, the last stage is read.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...model.text_triaffine import Offsets
from ..documents import Annotation, Document
from ..record_checker import RecordChecker
from .ldc import TAG, AnnotationFiles, entity_mentions, format_of_pairs, numbers, overlaps, read_source, unescape

NOT_IN_ACE = {
    "value_mention": "values",
    "timex2_mention": "times",
    "relation_mention": "relations",
    "event_mention": "events",
}


def _ace_sources(annotations: Sequence[Path]) -> dict[Path, list[Path]]:
    sources = {file: file.with_name(ACE_FILES.document(file) + ACE_FILES.source_suffix) for file in annotations}
    return {file: [source] if source.is_file() else [] for file, source in sources.items()}


# ACE 2005 has the same documents in several stages of annotation, here from the first to the last.
STAGES = ("fp1", "fp2", "adj", "timex2norm")
ACE_FILES = AnnotationFiles((".apf.xml",), ".sgm", "in its folder", _ace_sources, STAGES)


def _read_ace(file: Path, name: str, source_file: Path, check: RecordChecker) -> Document:
    mentions = list(_ace_mentions(file, name, check))
    source = read_source(source_file, check, name.removesuffix(file.name) + source_file.name)
    text = unescape(TAG.sub("", source))
    pieces = _pieces(source)
    kept = [piece for piece, is_text in pieces if is_text or any(overlaps(mention, piece) for mention in mentions)]
    blanked = list(" " * len(text))
    for start, end in kept:
        blanked[start:end] = text[start:end]
    return Document(
        id=ACE_FILES.document(file),
        text="".join(blanked),
        annotations=mentions,
        where=name,
        borders=sorted({border for piece in kept for border in piece}),
    )


def _ace_mentions(file: Path, name: str, check: RecordChecker) -> Iterator[Annotation]:
    for entity, mention, where in entity_mentions(file, name, check, NOT_IN_ACE):
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
    ACE_FILES,
    _read_ace,
    name="ace",
    description="ACE as distributed by LDC, a folder of .sgm and .apf.xml",
    recognizes=lambda head: head.startswith("<") and "<source_file" in head,
    tools="LDC's ACE 2004 and 2005",
    example='<entity_mention ID="1-1"><extent><charseq START="13" END="16">Orsk</charseq></extent></entity_mention>',
)
