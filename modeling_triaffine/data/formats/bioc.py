"""Reads documents in passages with annotations at their offsets in the document: BioC, in XML or JSON, and bigbio's.

A file of BioC is one collection, a list of collections or documents, or JSON lines of documents, as PubTator's service
answers. An entity with several locations is discontinuous. Relations, events and coreferences are ignored and counted.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from ...files import JSON_SUFFIXES
from ...model.text_triaffine import Offsets
from ..reading import JsonObject, Pair, json_reader, json_values, read_head, xml_elements
from ..schema import RecordChecker, Text, annotated, positions
from . import CorpusFormat

WRAPPERS = ("documents", "PubTator3")
"""Fields under which a JSON object has a list of documents."""
MAX_GAP = 100_000
"""Characters between two passages: a larger offset is a mistake, and not filled with spaces."""


Passage = tuple[int, str, str]
"""The offset of its first character in the document, its text, and its name for messages."""
Annotation = tuple[JsonObject, list[Offsets], str, str | None]
"""An entity's object in the file, and what is read of it: fragments, type and quote."""


def _text(record: JsonObject, doc_id: str, passages: list[Passage], annotations: Iterable[Annotation]) -> Text:
    """The text of passages, in any order, which stand at their offsets; no sentence crosses their borders."""
    check, text, end = record.check, "", 0
    borders: list[int] = []
    for offset, passage, name in sorted(passages):
        gap = offset - end
        if not 0 <= gap <= MAX_GAP:
            problem = f"field '{name}' begins at {offset}, but the passage before it ends at {end}"
            raise check.error(record.where, problem, "Offsets count characters from the beginning of the document")
        borders += [len(text), len(text) + gap]
        text += " " * gap + passage
        end = offset + positions(passage, check.offsets)[-1]
    entities = []
    for found, fragments, kind, quote in annotations:
        if fragments:
            entities.append(check.entity(text, fragments, kind, quote, found.where, found.name))
        else:  # of the whole document, or of something outside of it
            check.drop("entities without offsets dropped", 1, f"{found.where}: {found.name}")
    return annotated(doc_id, text, entities, record.where, borders)


# ---- BioC ----


def _bioc_text(document: JsonObject, default_id: str) -> Text:
    """The document with the annotations of all its parts; its text is that of its passages, or of their sentences."""
    doc_id = str(document.fields.get("id") or default_id)
    document.where += f" (document {doc_id})"
    parts, passages = [document], []
    for passage in document.objects("passages"):
        sentences = list(passage.objects("sentences", optional=True))
        parts += [passage, *sentences]
        for part in [passage] if passage.fields.get("text") else sentences:
            passages.append((part.value("offset", int), part.value("text", str), part.name))
    annotations: list[Annotation] = []
    for part in parts:
        if relations := list(part.objects("relations", optional=True)):
            document.check.note("relations ignored", len(relations))
        for found in part.objects("annotations", optional=True):
            kind = found.object("infons", "It must have the key 'type'").value("type", str)
            places = found.objects("locations", optional=True)
            spans = [(place.value("offset", int), place.value("length", int)) for place in places]
            quote = found.value("text", str) if found.fields.get("text") else None
            annotations.append((found, [(offset, offset + length) for offset, length in spans], kind, quote))
    return _text(document, doc_id, passages, annotations)


def _bioc_documents(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The documents with their places; those of XML have the names and values that they have in JSON."""
    if read_head(path).startswith("<"):
        number = 0
        for element in xml_elements(path, check):
            if element.tag == "document":
                yield _fields(element), f"document {number}"
                element.clear()
                number += 1
        if not number:
            raise check.error("", "it has no <document>", "Give BioC's XML or JSON")
        return
    for value, where in json_values(path, check):
        fields = value if isinstance(value, Mapping) else {}
        wrapper = next((name for name in WRAPPERS if name in fields), None)
        if wrapper is None:
            yield value, where
        else:
            for index, document in enumerate(check.valid(fields[wrapper], list, where, wrapper)):
                yield document, f"{where}, {wrapper}[{index}]"


def _fields(element: Element) -> dict[str, Any]:
    """An element with the names and values that it has in JSON; `offset` and `length` are numbers where they can be."""
    fields: dict[str, Any] = {name: element.get(name) for name in ("id", "offset", "length")}
    fields.update((child.tag, (child.text or "").strip()) for child in element if child.tag in ("id", "offset"))
    fields["text"] = element.findtext("text")
    for name in ("offset", "length"):
        if re.fullmatch("[0-9]{1,15}", fields[name] or ""):
            fields[name] = int(fields[name])
    fields["infons"] = {infon.get("key"): infon.text or "" for infon in element.findall("infon")}
    for part in ("passage", "sentence", "annotation", "location", "relation"):
        fields[f"{part}s"] = [_fields(child) for child in element.findall(part)]
    return {name: value for name, value in fields.items() if value is not None}


BIOC = CorpusFormat(
    name="bioc",
    description="BioC, in XML or JSON",
    read=json_reader(_bioc_text, "id and passages", values=_bioc_documents),
    suffixes=(".xml", *JSON_SUFFIXES),
    keys=(*WRAPPERS, "passages"),
    recognizes=lambda head: "<collection" in head,
)


# ---- bigbio ----


def bigbio_text(record: JsonObject, default_id: str) -> Text:
    """The text of one record; `default_id` names it if it has neither `document_id` nor `id`."""
    for name in ("events", "coreferences", "relations"):
        if ignored := record.fields.get(name):
            record.check.note(f"{name} ignored", len(ignored))
    passages: list[Passage] = []
    annotations: list[Annotation] = []
    for passage in record.objects("passages"):
        offsets = passage.value("offsets", list[Pair])
        if len(offsets) != 1:
            raise passage.error("offsets", f"has {len(offsets)} pairs", "A passage has one: [[start, end]]")
        passages.append((offsets[0][0], _joined(passage), passage.name))
    for found in record.objects("entities"):
        places = found.value("offsets", list[Pair], "It has pairs [start, end]")
        annotations.append((found, places, found.value("type", str), _joined(found) or None))
    doc_id = str(record.fields.get("document_id") or record.fields.get("id") or default_id)
    return _text(record, doc_id, passages, annotations)


def _joined(part: JsonObject) -> str:
    """The strings of `text`, a list or in some corpora one string, joined; empty if there are none."""
    given = part.fields.get("text") or []
    return given if isinstance(given, str) else " ".join(part.value("text", list[str]) if given else [])


BIGBIO_KB = CorpusFormat(
    name="bigbio_kb",
    description="bigbio's records of passages and entities",
    read=json_reader(bigbio_text, "passages and entities"),
    # `entities` may follow after the part of a long document that is looked at.
    keys=("passages document_id", "passages entities"),
)
