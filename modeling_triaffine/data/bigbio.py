"""Reads bigbio's `bigbio_kb` records, into which its loaders bring more than a hundred biomedical corpora.

    {"id": "1", "document_id": "227508",
     "passages": [{"id": "2", "type": "title", "text": ["Naloxone in rats."], "offsets": [[0, 17]]}],
     "entities": [{"id": "3", "type": "Chemical", "text": ["Naloxone"], "offsets": [[0, 8]], "normalized": []}],
     "events": [], "coreferences": [], "relations": []}

Offsets count characters of the document; an entity with several is discontinuous. Events, coreferences, relations and
the identifiers of entities in knowledge bases are ignored, the first three counted. Records come as JSON lines, as one
JSON list, or as rows of a data set (`adapt_dataset(rows, "bigbio_kb")`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..parsing import shown
from .documents import AnnotatedText, Annotation, Offsets, format_of_texts
from .json_forms import json_values, record_keys
from .passages import Passage, check_fields, document_of_passages, objects
from .schema import RecordChecker

NEEDED = ("passages", "entities")
IGNORED = ("events", "coreferences", "relations")


def read_bigbio(path: Path, check: RecordChecker) -> Iterator[AnnotatedText]:
    """Reads one document a record; a CorpusError names the line or record and the field."""
    for number, (raw, where) in enumerate(json_values(path, check)):
        yield bigbio_document(raw, f"{path.name.partition('.')[0]}:{number}", where, check)


def bigbio_document(raw: object, default_id: str, where: str, check: RecordChecker) -> AnnotatedText:
    """The document of one record; `default_id` names it if it has neither `document_id` nor `id`."""
    fields = check.mapping(raw, where, "the record", f"A record has the fields {', '.join(NEEDED)}")
    check_fields(fields, NEEDED, "a bigbio_kb record", where, check)
    for name in IGNORED:
        if fields.get(name):
            check.note(f"{name} ignored", len(check.typed(fields, name, list, where)))
    passages = [_passage(passage, name, where, check) for passage, name in objects(fields, "passages", where, check)]
    entities = [_entity(entity, name, where, check) for entity, name in objects(fields, "entities", where, check)]
    doc_id = str(fields.get("document_id") or fields.get("id") or default_id)
    return document_of_passages(doc_id, passages, entities, where, check)


def _passage(passage: Mapping[str, Any], name: str, where: str, check: RecordChecker) -> Passage:
    offsets = _offsets(passage, name, where, check)
    if len(offsets) != 1:
        raise check.error(
            where, f"field '{name}.offsets' has {len(offsets)} pairs", "A passage has one: [[start, end]]"
        )
    return Passage(offsets[0][0], " ".join(_texts(passage, name, where, check)), name)


def _entity(entity: Mapping[str, Any], name: str, where: str, check: RecordChecker) -> Annotation:
    kind = check.typed(entity, "type", str, where, name)
    fragments = tuple(_offsets(entity, name, where, check))
    quote = " ".join(_texts(entity, name, where, check)) or None
    return Annotation(name=name, fragments=fragments, type=kind, quote=quote, where=where)


def _texts(fields: Mapping[str, Any], name: str, where: str, check: RecordChecker) -> list[str]:
    """The value of `text`: a list of strings, in some corpora one string."""
    given = fields.get("text") or []
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise check.error(where, f"field '{name}.text' is {shown(given)}", "It must be a list of strings")
    return texts


def _offsets(fields: Mapping[str, Any], name: str, where: str, check: RecordChecker) -> list[Offsets]:
    pairs = check.typed(fields, "offsets", list, where, name)
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or [type(offset) for offset in pair] != [int, int]:
            raise check.error(where, f"field '{name}.offsets' has {shown(pair)}", "It must have pairs [start, end]")
    return [(start, end) for start, end in pairs]


BIGBIO = format_of_texts(
    read_bigbio,
    name="bigbio_kb",
    description="bigbio's records of passages and entities",
    suffixes=(".jsonl", ".ndjson", ".json"),
    recognizes=lambda head: set(NEEDED) <= record_keys(head),
)
