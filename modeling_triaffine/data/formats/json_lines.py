"""Reads sentences of words with spans by words: this project's JSON lines, and the published experiments' lists.

- `JSON_LINES`, this project's own form: one sentence a line with the fields of `features.FEATURES`, of which only
  `tokens` and `entities` are required. A file without ids is one document, its sentences in order.
- `PUBLISHED_JSON`: one list of records with `tokens`, `pos`, `entities`, `ltokens` and `rtokens`, the form of ACE, KBP
  and GENIA in the triaffine experiments and in related work (locate-and-label and its successors). A record has its own
  context but no dependable id: ids are made from the file name and the record's index, each record is a document.
"""

from pathlib import Path
from typing import Any

from ..corpus_format import IN_LIST, CorpusFormat, Keys
from ..json_records import JsonObject, json_reader
from ..reading import name_in_corpus
from ..record_checker import RecordChecker
from ..schema import Text
from ..texts import WrittenSentence, text_of_sentences
from .word_tags import MENTIONS, TAGS, word_entity

CONTEXT_NAMES = {"ltokens": "left_tokens", "rtokens": "right_tokens"}
NOT_FOR_NER = ("relations", "org_id", "orig_id")
"""Fields of the published form that say nothing about entities. `orig_id` numbers sentences in one corpus and documents
in another, so it is not used as a document's name."""

NEEDED = ("tokens", "entities")
FIELDS = " and ".join(NEEDED)
NOT_OF_WORDS = (
    "A text with spans by characters has it under 'text'; with other columns, use adapt_dataset: see docs/corpora.md"
)


def _file_name(path: Path, check: RecordChecker) -> str:
    return name_in_corpus(path, check.folder or path)


def _own_record(record: JsonObject, default_id: str) -> Text:
    name, _, _ = default_id.rpartition(":")
    return _text(record, {"id": f"{name}:{record.where}", "doc_id": name, "sent_id": record.number, **record.fields})


def _published_record(record: JsonObject, name: str) -> Text:
    kept = {CONTEXT_NAMES.get(key, key): value for key, value in record.fields.items() if key not in NOT_FOR_NER}
    return _text(record, {**kept, "id": name, "doc_id": name, "sent_id": 0})


def _text(record: JsonObject, fields: dict[str, Any]) -> Text:
    record.require(NEEDED, "a sentence of words", NOT_OF_WORDS)
    if any(isinstance(one, dict) and "span" in one for one in record.value("entities", list)):  # as in Pyramid's data
        fields["entities"] = [word_entity(one, {}) for one in record.objects("entities")]
    return text_of_sentences([WrittenSentence(record.check(fields, record.where))], record.where)


JSON_LINES = CorpusFormat(
    name="json_lines",
    description="JSON lines of this project, one sentence of words each",
    read=json_reader(_own_record, FIELDS, _file_name),
    keys=(
        Keys.of("tokens entities", forbidden=IN_LIST),
        Keys.of("tokens entities doc_id"),
        Keys.of("tokens doc_id sent_id", forbidden=" ".join((*TAGS, MENTIONS))),
    ),
    tools="this project",
    example='{"tokens": ["The", "mayor"], "entities": [{"start": 0, "end": 2, "type": "Person"}]}',
)
PUBLISHED_JSON = CorpusFormat(
    name="published_json",
    description="one JSON list of records with `ltokens` and `rtokens`, as in the published experiments",
    read=json_reader(_published_record, FIELDS),
    suffixes=(".json",),
    keys=(Keys.of(f"tokens entities {IN_LIST}", forbidden="doc_id"), Keys.of("tokens entities ltokens rtokens")),
    tools="the triaffine experiments, locate-and-label and its successors",
    example='[{"tokens": ["The"], "entities": [], "ltokens": ["It", "rained", "."], "rtokens": []}]',
)
