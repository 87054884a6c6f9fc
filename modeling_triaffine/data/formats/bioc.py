"""Reads BioC, in XML or JSON: documents in passages, with annotations at their offsets in the document.

A file is one collection, a list of collections or documents, or JSON lines of documents, as PubTator's service answers.
The type of an annotation is its infon "type":

    <collection><document><id>1</id><passage><offset>0</offset><text>Naloxone in rats.</text>
      <annotation id="T1"><infon key="type">Chemical</infon><location offset="0" length="8"/><text>Naloxone</text>
      </annotation></passage></document></collection>

An entity with several locations is discontinuous. Relations are ignored and counted.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from ...parsing import JSON_SUFFIXES
from ..corpus_format import CorpusFormat, Keys
from ..documents import Annotation, Document, Passage, document_of_passages
from ..json_records import JsonObject, json_reader, json_values
from ..reading import read_head, xml_elements
from ..record_checker import RecordChecker

TYPE = "type"
WRAPPERS = ("documents", "PubTator3")
"""Fields under which a JSON object has a list of documents."""


def _bioc_document(document: JsonObject, default_id: str) -> Document:
    """The document with the annotations of all its parts; its text is that of its passages, or of their sentences."""
    doc_id = str(document.fields.get("id") or default_id)
    document.where += f" (document {doc_id})"
    document.require(["passages"], "a document of BioC")
    parts = [document]
    with_text = []
    for passage in document.objects("passages", optional=True):
        sentences = list(passage.objects("sentences", optional=True))
        parts += [passage, *sentences]
        with_text += [passage] if passage.fields.get("text") else sentences
    passages = [Passage(part.value("offset", int), part.value("text", str), part.name) for part in with_text]
    annotations = []
    for part in parts:
        if relations := list(part.objects("relations", optional=True)):
            document.check.note("relations ignored", len(relations))
        annotations += [_bioc_annotation(found) for found in part.objects("annotations", optional=True)]
    return document_of_passages(doc_id, passages, annotations, document.where, document.check)


def _bioc_annotation(annotation: JsonObject) -> Annotation:
    infons = annotation.object("infons", f"It must have the key '{TYPE}'")
    infons.require([TYPE], "an annotation of an entity")
    fragments = []
    for location in annotation.objects("locations", optional=True):
        offset, length = location.value("offset", int), location.value("length", int)
        fragments.append((offset, offset + length))
    return annotation.annotation(fragments, infons.value(TYPE, str))


def _documents(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    return (_xml_documents if read_head(path).startswith("<") else _json_documents)(path, check)


def _json_documents(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    for value, where in json_values(path, check):
        fields = value if isinstance(value, Mapping) else {}
        wrapper = next((name for name in WRAPPERS if name in fields), None)
        if wrapper is None:
            yield value, where
        else:
            for index, document in enumerate(check.typed(fields, wrapper, list, where)):
                yield document, f"{where}, {wrapper}[{index}]".lstrip(", ")


def _xml_documents(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The documents with the names and values that they have in JSON."""
    number = 0
    element = None
    for element in xml_elements(path, check):
        if element.tag == "document":
            yield _fields(element), f"document {number}"
            element.clear()
            number += 1
    if element is not None and element.tag not in ("collection", "document"):
        raise check.error("", f"its root element is <{element.tag}>, not <collection>", "Give BioC's XML or JSON")


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
    read=json_reader(_bioc_document, "id and passages", values=_documents),
    suffixes=(".xml", *JSON_SUFFIXES),
    keys=(*map(Keys.of, WRAPPERS), Keys.of("passages")),
    recognizes=lambda head: "<collection" in head,
    tools="PubTator's service, PubMed Central, TeamTat, shared tasks",
    example='{"documents": [{"id": "1", "passages": [{"offset": 0, "text": "…", "annotations": […]}]}]}',
)
