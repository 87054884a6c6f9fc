"""Reads bigbio's `bigbio_kb` records of passages and entities.

They come as JSON lines, as one JSON list, or as rows of a data set (`adapt_dataset(rows, "bigbio_kb")`):

    {"id": "1", "document_id": "227508",
     "passages": [{"id": "2", "type": "title", "text": ["Naloxone in rats."], "offsets": [[0, 17]]}],
     "entities": [{"id": "3", "type": "Chemical", "text": ["Naloxone"], "offsets": [[0, 8]], "normalized": []}],
     "events": [], "coreferences": [], "relations": []}

An entity with several offsets is discontinuous. Identifiers of entities are ignored; relations, events and
coreferences are ignored and counted.
"""

from ..corpus_format import CorpusFormat, Keys
from ..documents import Annotation, Document, Passage, document_of_passages
from ..json_records import JsonObject, Pair, json_reader

NEEDED = ("passages", "entities")
IGNORED = ("events", "coreferences", "relations")


def bigbio_document(record: JsonObject, default_id: str) -> Document:
    """The document of one record; `default_id` names it if it has neither `document_id` nor `id`."""
    record.require(NEEDED, "a bigbio_kb record")
    for name in IGNORED:
        if record.fields.get(name):
            record.check.note(f"{name} ignored", len(record.value(name, list)))
    passages = [_passage(passage) for passage in record.objects("passages", optional=True)]
    entities = [_entity(entity) for entity in record.objects("entities", optional=True)]
    doc_id = str(record.fields.get("document_id") or record.fields.get("id") or default_id)
    return document_of_passages(doc_id, passages, entities, record.where, record.check)


def _passage(passage: JsonObject) -> Passage:
    offsets = passage.value("offsets", list[Pair])
    if len(offsets) != 1:
        raise passage.error("offsets", f"has {len(offsets)} pairs", "A passage has one: [[start, end]]")
    return Passage(offsets[0][0], _text(passage), passage.name)


def _entity(entity: JsonObject) -> Annotation:
    kind, fragments = entity.value("type", str), entity.value("offsets", list[Pair], "It must have pairs [start, end]")
    return Annotation(entity.name, tuple(fragments), kind, quote=_text(entity) or None, where=entity.where)


def _text(part: JsonObject) -> str:
    """The strings of `text`, a list or in some corpora one string, joined; empty if there are none."""
    given = part.fields.get("text") or []
    return given if isinstance(given, str) else " ".join(part.value("text", list[str]) if given else [])


BIGBIO = CorpusFormat(
    name="bigbio_kb",
    description="bigbio's records of passages and entities",
    read=json_reader(bigbio_document, " and ".join(NEEDED)),
    # `entities` may follow after the part of a long document that is looked at.
    keys=(Keys.of("passages document_id"), Keys.of("passages entities")),
    tools="bigbio's loaders of more than a hundred biomedical corpora",
    example='{"document_id": "1", "passages": [{"text": ["Orsk"], "offsets": [[0, 4]]}], "entities": […]}',
)
