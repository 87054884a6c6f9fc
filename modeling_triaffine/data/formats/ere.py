"""Reads ERE of TAC KBP as LDC distributes it (`.rich_ere.xml` and texts); see `ldc.py`.

Entities are the entity mentions, also nominal ones and pronouns, with the type of their entity; fillers, relations and
events are ignored and counted. Offsets count the characters of the source file, its tags included. Text that a post of
a forum quotes from another one (`<quote>`) is not annotated, and not read. Mentions in a tag (the author of a post) are
dropped and counted. A source has the name of the annotations and another suffix.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..documents import Annotation, Document
from ..record_checker import RecordChecker
from .ldc import TAG, AnnotationFiles, entity_mentions, format_of_pairs, numbers, overlaps, read_source, unescape

QUOTE = re.compile(r"<quote\b.*?</quote\s*>", re.DOTALL | re.IGNORECASE)
NOT_IN_ERE = {"filler": "fillers", "relation_mention": "relations", "event_mention": "events"}


def _ere_sources(annotations: Sequence[Path]) -> dict[Path, list[Path]]:
    """The files that may be the text of each file of annotations: one, if the corpus is complete."""
    by_document: dict[Path, list[Path]] = defaultdict(list)  # where a source may be, without its suffix → annotations
    for file in annotations:
        for folder in dict.fromkeys([file.parent, file.parent.parent / "source"]):
            by_document[folder / ERE_FILES.document(file)].append(file)
    sources: dict[Path, list[Path]] = {file: [] for file in annotations}
    for folder in sorted({document.parent for document in by_document}):
        for source in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not source.name.endswith(ERE_FILES.suffixes):
                dots = [dot.start() for dot in re.finditer(r"\.", source.name)]
                names = (folder / source.name[:dot] for dot in reversed(dots))  # of NEWS and NEWS.1, the longer one
                for file in next((by_document[name] for name in names if name in by_document), []):
                    sources[file].append(source)
    return sources


ERE_FILES = AnnotationFiles(
    (".rich_ere.xml", ".light_ere.xml", ".ere.xml"),
    source_suffix=".xml",
    place="(with this or another suffix) in its folder or in the folder `source` beside it",
    sources_of=_ere_sources,
)


def _read_ere(file: Path, name: str, source_file: Path, check: RecordChecker) -> Document:
    source = read_source(source_file, check, source_file.name)
    tags = [match.span() for match in TAG.finditer(source)]
    mentions = []
    for mention in _ere_mentions(file, name, check):
        if any(overlaps(mention, tag) for tag in tags):
            check.drop("mentions inside tags dropped", example=f"{mention.where}: {mention.quote}")
        else:
            mentions.append(mention)
    quotes = [match.span() for match in QUOTE.finditer(source)]
    unread = [quote for quote in quotes if not any(overlaps(mention, quote) for mention in mentions)]
    text = list(unescape(source))
    for start, end in (*tags, *unread):
        text[start:end] = " " * (end - start)
    return Document(
        id=ERE_FILES.document(file),
        text="".join(text),
        annotations=mentions,
        where=name,
        borders=sorted({border for tag in tags for border in tag}),
    )


def _ere_mentions(file: Path, name: str, check: RecordChecker) -> Iterator[Annotation]:
    for entity, mention, where in entity_mentions(file, name, check, NOT_IN_ERE):
        kind = check.typed(entity.attrib, "type", str, where)
        values = [mention.get("offset"), mention.get("length")]
        start, length = numbers(values, "offset and length", where, check)
        quote = unescape(mention.findtext("mention_text", "")) or None
        yield Annotation("mention_text", ((start, start + length),), type=kind, quote=quote, where=where)


ERE = format_of_pairs(
    ERE_FILES,
    _read_ere,
    name="ere",
    description="ERE as distributed by LDC, a folder of .rich_ere.xml and texts",
    recognizes=lambda head: "<deft_ere" in head,
    tools="LDC's TAC KBP and DEFT ERE",
    example='<entity_mention id="m-1" offset="13" length="4"><mention_text>Orsk</mention_text></entity_mention>',
)
