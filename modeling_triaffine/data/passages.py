"""Reads biomedical corpora of documents in passages: BioC, bigbio's records and PubTator's text files.

BioC, in XML or JSON, is a file of one collection, a list of collections or documents, or JSON lines of documents, as
PubTator's service answers. The type of an annotation is its infon "type":

    <collection><document><id>1</id><passage><offset>0</offset><text>Naloxone in rats.</text>
      <annotation id="T1"><infon key="type">Chemical</infon><location offset="0" length="8"/><text>Naloxone</text>
      </annotation></passage></document></collection>

bigbio's `bigbio_kb` records come as JSON lines, as one JSON list, or as rows of a data set (`adapt_dataset(rows,
"bigbio_kb")`):

    {"id": "1", "document_id": "227508",
     "passages": [{"id": "2", "type": "title", "text": ["Naloxone in rats."], "offsets": [[0, 17]]}],
     "entities": [{"id": "3", "type": "Chemical", "text": ["Naloxone"], "offsets": [[0, 8]], "normalized": []}],
     "events": [], "coreferences": [], "relations": []}

PubTator has the title and abstract of a document, then one entity a line, then an empty line:

    227508|t|Naloxone reverses the effect of clonidine.
    227508|a|In rats the decrease was inhibited by naloxone.
    227508	0	8	Naloxone	Chemical	D009270

Offsets count characters of the document, in PubTator of the title, one more, and the abstract. An entity with several
locations is discontinuous. What lies between two passages is not given, and is filled with spaces, so that every offset
stays valid. No sentence crosses the border of a passage. Identifiers of entities are ignored; relations, events and
coreferences are ignored and counted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from ..model.text_triaffine import Offsets
from ..parsing import shown
from .documents import AnnotatedText, Annotation, format_of_texts
from .json_forms import JsonObject, json_values, record_keys
from .reading import numbered_paragraphs, read_head, stem, xml_elements
from .schema import RecordChecker

MAX_GAP = 100_000
"""Characters between two passages: a larger offset is a mistake, and not filled with spaces."""


class Passage(NamedTuple):
    """A part of a document: the offset of its first character in the document, its text, and its name for messages."""

    offset: int
    text: str
    name: str


def document_of_passages(
    doc_id: str, passages: Sequence[Passage], annotations: Sequence[Annotation], where: str, check: RecordChecker
) -> AnnotatedText:
    """The document whose passages are these, in any order. Annotations without offsets, of the whole document or of
    something outside of it, are dropped and counted.

    Raises:
        CorpusError: passages overlap, or are far apart; the message names the passage.
    """
    for annotation in annotations:
        if not annotation.fragments:
            check.drop("entities without offsets dropped", example=f"{annotation.where}: {annotation.name}")
    placed = [annotation for annotation in annotations if annotation.fragments]
    text = ""
    borders = []
    for passage in sorted(passages):
        gap = passage.offset - len(text)
        if not 0 <= gap <= MAX_GAP:
            problem = (
                f"field '{passage.name}' begins at {passage.offset}, but the passage before it ends at {len(text)}"
            )
            raise check.error(where, problem, "Offsets count characters from the beginning of the document")
        borders += [len(text), passage.offset]
        text += " " * gap + passage.text
    return AnnotatedText(doc_id=doc_id, text=text, annotations=placed, where=where, borders=sorted({*borders}))


# ---- BioC ----

TYPE = "type"
WRAPPERS = ("documents", "PubTator3")
"""Fields under which a JSON object has a list of documents."""


def read_bioc(path: Path, check: RecordChecker) -> Iterator[AnnotatedText]:
    """Reads one document after the other; a CorpusError names the document and the field."""
    documents = _xml_documents if read_head(path).startswith("<") else _json_documents
    for number, (raw, place) in enumerate(documents(path, check)):
        document = JsonObject(raw, place, check, remedy="A document has the fields id and passages")
        doc_id = str(document.fields.get("id") or f"{stem(path)}:{number}")
        document.where = f"{place} (document {doc_id})"
        yield _bioc_document(document, doc_id)


def _bioc_document(document: JsonObject, doc_id: str) -> AnnotatedText:
    """The document with the annotations of all its parts; its text is that of its passages, or of their sentences."""
    document.require(["passages"], "a document of BioC")
    parts = [document]
    with_text = []
    for passage in document.optional_objects("passages"):
        sentences = list(passage.optional_objects("sentences"))
        parts += [passage, *sentences]
        with_text += [passage] if passage.fields.get("text") else sentences
    passages = [Passage(part.value("offset", int), part.value("text", str), part.name) for part in with_text]
    annotations = []
    for part in parts:
        if relations := list(part.optional_objects("relations")):
            document.check.note("relations ignored", len(relations))
        annotations += [_bioc_annotation(found) for found in part.optional_objects("annotations")]
    return document_of_passages(doc_id, passages, annotations, document.where, document.check)


def _bioc_annotation(annotation: JsonObject) -> Annotation:
    infons = annotation.object("infons", f"It must have the key '{TYPE}'")
    infons.require([TYPE], f"an annotation of an entity ({infons.name})")
    fragments = []
    for location in annotation.optional_objects("locations"):
        offset, length = location.value("offset", int), location.value("length", int)
        fragments.append((offset, offset + length))
    return annotation.annotation(fragments, infons.value(TYPE, str))


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


BIOC = format_of_texts(
    read_bioc,
    name="bioc",
    description="BioC, in XML or JSON",
    suffixes=(".xml", ".json", ".jsonl"),
    recognizes=lambda head: "<collection" in head or bool(record_keys(head) & {*WRAPPERS, "passages"}),
)


# ---- bigbio ----

NEEDED = ("passages", "entities")
IGNORED = ("events", "coreferences", "relations")


def read_bigbio(path: Path, check: RecordChecker) -> Iterator[AnnotatedText]:
    """Reads one document a record; a CorpusError names the line or record and the field."""
    for number, (raw, where) in enumerate(json_values(path, check)):
        yield bigbio_document(raw, f"{stem(path)}:{number}", where, check)


def bigbio_document(raw: object, default_id: str, where: str, check: RecordChecker) -> AnnotatedText:
    """The document of one record; `default_id` names it if it has neither `document_id` nor `id`."""
    record = JsonObject(raw, where, check, remedy=f"A record has the fields {', '.join(NEEDED)}")
    record.require(NEEDED, "a bigbio_kb record")
    for name in IGNORED:
        if record.fields.get(name):
            check.note(f"{name} ignored", len(record.value(name, list)))
    passages = [_bigbio_passage(passage) for passage in record.optional_objects("passages")]
    entities = [_bigbio_entity(entity) for entity in record.optional_objects("entities")]
    doc_id = str(record.fields.get("document_id") or record.fields.get("id") or default_id)
    return document_of_passages(doc_id, passages, entities, where, check)


def _bigbio_passage(passage: JsonObject) -> Passage:
    offsets = _offsets(passage)
    if len(offsets) != 1:
        raise passage.error("offsets", f"has {len(offsets)} pairs", "A passage has one: [[start, end]]")
    return Passage(offsets[0][0], " ".join(_texts(passage)), passage.name)


def _bigbio_entity(entity: JsonObject) -> Annotation:
    kind, fragments = entity.value("type", str), tuple(_offsets(entity))
    return Annotation(entity.name, fragments, kind, quote=" ".join(_texts(entity)) or None, where=entity.where)


def _texts(part: JsonObject) -> list[str]:
    """The value of `text`: a list of strings, in some corpora one string."""
    given = part.fields.get("text") or []
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise part.error("text", f"is {shown(given)}", "It must be a list of strings")
    return texts


def _offsets(part: JsonObject) -> list[Offsets]:
    pairs = part.value("offsets", list)
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or [type(offset) for offset in pair] != [int, int]:
            raise part.error("offsets", f"has {shown(pair)}", "It must have pairs [start, end]")
    return [(start, end) for start, end in pairs]


BIGBIO = format_of_texts(
    read_bigbio,
    name="bigbio_kb",
    description="bigbio's records of passages and entities",
    suffixes=(".jsonl", ".ndjson", ".json"),
    # `entities` may follow after the part of a long document that is looked at.
    recognizes=lambda head: "passages" in (keys := record_keys(head)) and bool(keys & {"document_id", "entities"}),
)


# ---- PubTator ----

TEXT_LINE = re.compile(r"([^|\t\n]+)\|([ta])\|(.*)")
ENTITY_LINE = re.compile(r"([^\t]+)\t([0-9]{1,15})\t([0-9]{1,15})\t([^\t]*)\t([^\t]+)(?:\t.*)?")
RELATION_LINE = re.compile(r"([^\t]+)\t[^\t0-9][^\t]*\t[^\t]+\t[^\t]+(?:\t.*)?")


def read_pubtator(path: Path, check: RecordChecker) -> Iterator[AnnotatedText]:
    """Reads one document after the other; a CorpusError names the line."""
    for lines in numbered_paragraphs(path, check):
        yield _pubtator_document(lines, check)


def _pubtator_document(lines: list[tuple[int, str]], check: RecordChecker) -> AnnotatedText:
    texts: dict[str, str] = {}
    annotations: list[Annotation] = []
    doc_id = ""
    for number, line in lines:
        where = f"line {number}"
        text, entity, relation = (form.fullmatch(line) for form in (TEXT_LINE, ENTITY_LINE, RELATION_LINE))
        if found := text or entity or relation:
            doc_id = doc_id or found[1]
            if found[1] != doc_id:
                problem = f"the document {found[1]!r} begins within the document {doc_id!r}"
                raise check.error(where, problem, "Put an empty line between two documents")
        if text and not annotations and text[2] not in texts:
            texts[text[2]] = text[3]
        elif entity:
            name, fragments = f"line {number}", ((int(entity[2]), int(entity[3])),)
            annotations.append(Annotation(name, fragments, type=entity[5], quote=entity[4] or None, where=where))
        elif relation:
            check.note("relations ignored")
        else:
            problem = f"{line[:60]!r} is not a line of PubTator"
            raise check.error(where, problem, "Lines are 'ID|t|title', 'ID|a|abstract', or ID, start, end, text, type")
    first = f"line {lines[0][0]}"
    if "t" not in texts:
        raise check.error(first, f"the document {doc_id!r} has no title", f"Begin it with '{doc_id}|t|'")
    where = f"{first} (document {doc_id})"
    title, abstract = texts["t"], texts.get("a", "")
    return AnnotatedText(doc_id, f"{title} {abstract}", annotations, where, borders=[len(title) + 1])


PUBTATOR = format_of_texts(
    read_pubtator,
    name="pubtator",
    description="PubTator's text files",
    suffixes=(".pubtator", ".pubtator.txt"),
    recognizes=lambda head: bool(re.match(r"[^|\t\n]+\|t\|", head)),
)
