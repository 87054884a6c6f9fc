"""Reads ERE as distributed by LDC for TAC KBP: annotations (`.rich_ere.xml`) and the source text of every document.

Entities are the entity mentions, named and nominal ones and pronouns, with the type of their entity; fillers, relations
and events are ignored and counted. Offsets count the characters of the source file, its tags included, and are checked
against the text that the annotation quotes. Sentences end at every tag. Text that a post of a forum quotes from another
one (`<quote>`) is not annotated, and not read. Mentions in a tag (the author of a post) are dropped and counted.

A source has the name of the annotations and another suffix; it is in their folder or in `source` beside that. The
splits are lists of documents (`ldc.py`).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from .documents import AnnotatedText, Annotation
from .ldc import TAG, AnnotationFiles, entity_mentions, format_of_pairs, numbers, overlaps, read_source, unescape
from .schema import RecordChecker

FILES = AnnotationFiles(
    (".rich_ere.xml", ".light_ere.xml", ".ere.xml"),
    source_suffix=".xml",
    place="(with this or another suffix) in its folder or in `source` beside that",
)
QUOTE = re.compile(r"<quote\b.*?</quote\s*>", re.DOTALL | re.IGNORECASE)
IGNORED = {"filler": "fillers", "relation_mention": "relations", "event_mention": "events"}


def _sources(annotations: Sequence[Path]) -> dict[Path, list[Path]]:
    """The files that may be the text of each file of annotations: one, if the corpus is complete."""
    by_document: dict[Path, list[Path]] = defaultdict(list)  # path without suffix, wherever that begins → its files
    for folder in {folder for file in annotations for folder in _folders(file)}:
        for source in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not source.name.endswith(FILES.suffixes):
                for dot in re.finditer(r"\.", source.name):
                    by_document[folder / source.name[: dot.start()]].append(source)
    return {
        file: [source for folder in _folders(file) for source in by_document.get(folder / FILES.document(file), [])]
        for file in annotations
    }


def _folders(annotations: Path) -> list[Path]:
    return list(dict.fromkeys([annotations.parent, annotations.parent.parent / "source"]))


def _read_document(file: Path, name: str, source_file: Path, check: RecordChecker) -> AnnotatedText:
    source = read_source(source_file, check, source_file.name)
    tags = [match.span() for match in TAG.finditer(source)]
    mentions = []
    for mention in _mentions(file, name, check):
        if any(overlaps(mention, tag) for tag in tags):
            check.drop("mentions in tags dropped", example=f"{mention.where}: {mention.quote}")
        else:
            mentions.append(mention)
    quotes = [match.span() for match in QUOTE.finditer(source)]
    unread = [quote for quote in quotes if not any(overlaps(mention, quote) for mention in mentions)]
    text = list(unescape(source))
    for start, end in (*tags, *unread):
        text[start:end] = " " * (end - start)
    return AnnotatedText(
        doc_id=FILES.document(file),
        text="".join(text),
        annotations=mentions,
        where=name,
        borders=sorted({border for tag in tags for border in tag}),
    )


def _mentions(file: Path, name: str, check: RecordChecker) -> Iterator[Annotation]:
    for entity, mention, where in entity_mentions(file, name, check, IGNORED):
        kind = check.typed(entity.attrib, "type", str, where)
        values = [mention.get("offset"), mention.get("length")]
        start, length = numbers(values, "offset and length", where, check)
        quote = unescape(mention.findtext("mention_text", "")) or None
        yield Annotation("mention_text", ((start, start + length),), type=kind, quote=quote, where=where)


ERE = format_of_pairs(
    FILES,
    _sources,
    _read_document,
    name="ere",
    description="ERE as distributed by LDC, a folder of .rich_ere.xml and texts",
    recognizes=lambda head: "<deft_ere" in head,
)
