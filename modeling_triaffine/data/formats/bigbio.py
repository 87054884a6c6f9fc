"""Reads bigbio's `bigbio_kb` records of passages and entities.

They come as JSON lines, as one JSON list, or as rows of a data set (`adapt_dataset(rows, "bigbio_kb")`):

    {"id": "1", "document_id": "227508",
     "passages": [{"id": "2", "type": "title", "text": ["Naloxone in rats."], "offsets": [[0, 17]]}],
     "entities": [{"id": "3", "type": "Chemical", "text": ["Naloxone"], "offsets": [[0, 8]], "normalized": []}],
     "events": [], "coreferences": [], "relations": []}

An entity with several offsets is discontinuous. Identifiers of entities are ignored; relations, events and
coreferences are ignored and counted.
"""

from collections.abc import Iterator
from pathlib import Path

from ...model.text_triaffine import Offsets
from ...parsing import shown
from ..corpus_format import CorpusFormat, Keys
from ..documents import Annotation, Document
from ..json_records import JsonObject, json_values
from ..passages import Passage, document_of_passages
from ..reading import document_name
from ..schema import RecordChecker

NEEDED = ("passages", "entities")
IGNORED = ("events", "coreferences", "relations")


def read_bigbio(path: Path, check: RecordChecker) -> Iterator[Document]:
    """Reads one document a record; a CorpusError names the line or record and the field."""
    for number, (raw, where) in enumerate(json_values(path, check)):
        with check.record():
            yield bigbio_document(raw, f"{document_name(path, check)}:{number}", where, check)


def bigbio_document(raw: object, default_id: str, where: str, check: RecordChecker) -> Document:
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


BIGBIO = CorpusFormat(
    name="bigbio_kb",
    description="bigbio's records of passages and entities",
    read=read_bigbio,
    keeps_text=True,
    marks_sentences=False,
    has_own_words=False,
    suffixes=(".jsonl", ".ndjson", ".json"),
    # `entities` may follow after the part of a long document that is looked at.
    keys=(Keys.of("passages document_id"), Keys.of("passages entities")),
    tools="bigbio's loaders of more than a hundred biomedical corpora",
    example='{"document_id": "1", "passages": [{"text": ["Orsk"], "offsets": [[0, 4]]}], "entities": […]}',
)
