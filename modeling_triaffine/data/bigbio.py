"""Reads bigbio's `bigbio_kb` records, into which its loaders bring more than a hundred biomedical corpora.

    {"id": "1", "document_id": "227508",
     "passages": [{"id": "2", "type": "title", "text": ["Naloxone in rats."], "offsets": [[0, 17]]}],
     "entities": [{"id": "3", "type": "Chemical", "text": ["Naloxone"], "offsets": [[0, 8]], "normalized": []}],
     "events": [], "coreferences": [], "relations": []}

Offsets count characters of the document; an entity with several is discontinuous. Events, coreferences, relations and
the identifiers of entities in knowledge bases are ignored, the first three counted. Records come as JSON lines, as one
JSON list, or as rows of a data set (`adapt_dataset(rows, "bigbio_kb")`).
"""

from collections.abc import Iterator
from pathlib import Path

from ..model.text_triaffine import Offsets
from ..parsing import shown
from .documents import AnnotatedText, Annotation, format_of_texts
from .json_forms import json_values, record_keys
from .json_objects import JsonObject
from .passages import Passage, document_of_passages
from .reading import stem
from .schema import RecordChecker

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
    passages = [_passage(passage) for passage in record.optional_objects("passages")]
    entities = [_entity(entity) for entity in record.optional_objects("entities")]
    doc_id = str(record.fields.get("document_id") or record.fields.get("id") or default_id)
    return document_of_passages(doc_id, passages, entities, where, check)


def _passage(passage: JsonObject) -> Passage:
    offsets = _offsets(passage)
    if len(offsets) != 1:
        raise passage.error("offsets", f"has {len(offsets)} pairs", "A passage has one: [[start, end]]")
    return Passage(offsets[0][0], " ".join(_texts(passage)), passage.name)


def _entity(entity: JsonObject) -> Annotation:
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
