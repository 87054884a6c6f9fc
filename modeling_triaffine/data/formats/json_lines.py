"""Reads sentences of words with spans by words: this project's JSON lines, and the published experiments' lists.

- `JSON_LINES`, this project's own form: one sentence a line with the fields of `features.FEATURES`, of which only
  `tokens` and `entities` are required. A file without ids is one document, its sentences in order.
- `PUBLISHED_JSON`: one list of records with `tokens`, `pos`, `entities`, `ltokens` and `rtokens`, the form of ACE, KBP
  and GENIA in the triaffine experiments and in related work (locate-and-label and its successors). A record has its own
  context but no dependable id: ids are made from the file name and the record's index, each record is a document.
"""

from collections.abc import Iterator
from pathlib import Path

from ..corpus_format import IN_LIST, CorpusFormat, Keys
from ..documents import Document, Sentence, document_of_words
from ..json_records import JsonObject, json_values
from ..reading import document_name
from ..schema import RecordChecker

CONTEXT_NAMES = {"ltokens": "left_tokens", "rtokens": "right_tokens"}
NOT_FOR_NER = ("relations", "org_id", "orig_id")
"""Fields of the published form that say nothing about entities. `orig_id` numbers sentences in one corpus and documents
in another, so it is not used as a document's name."""

NEEDED = ("tokens", "entities")
NOT_OF_WORDS = (
    "A text with spans by characters has it under 'text'; with other columns, use adapt_dataset: see docs/corpora.md"
)


def read_json_lines(path: Path, check: RecordChecker) -> Iterator[Document]:
    """Reads this project's own form line by line, or from one list; a CorpusError names the place and the field."""
    for number, (raw, where) in enumerate(json_values(path, check)):
        with check.record():
            record = JsonObject(raw, where, check, remedy="A record has the fields tokens and entities")
            record.require(NEEDED, "a sentence of words", NOT_OF_WORDS)
            inside = check.folder is not None and check.folder in path.parents
            name = path.relative_to(check.folder or "").as_posix() if inside else path.name
            names = {"id": f"{name}:{where}", "doc_id": name, "sent_id": number}
            yield document_of_words(name, [Sentence({**names, **record.fields}, where)])


def read_published_json(path: Path, check: RecordChecker) -> Iterator[Document]:
    """Reads the published experiments' form; a CorpusError names the record (counted from 0) and the field."""
    for number, (raw, where) in enumerate(json_values(path, check)):
        with check.record():
            record = JsonObject(raw, where, check, remedy="A record has the fields tokens and entities")
            record.require(NEEDED, "a sentence of words", NOT_OF_WORDS)
            kept = {
                CONTEXT_NAMES.get(key, key): value for key, value in record.fields.items() if key not in NOT_FOR_NER
            }
            name = f"{document_name(path, check)}:{number}"
            yield document_of_words(name, [Sentence({**kept, "id": name, "doc_id": name, "sent_id": 0}, where)])


JSON_LINES = CorpusFormat(
    name="json_lines",
    description="JSON lines of this project, one sentence of words each",
    read=read_json_lines,
    keeps_text=False,
    marks_sentences=True,
    has_own_words=True,
    suffixes=(".jsonl", ".ndjson", ".json"),
    keys=(Keys.of("tokens entities", forbidden=IN_LIST), Keys.of("tokens entities doc_id")),
    tools="this project",
    example='{"tokens": ["The", "mayor"], "entities": [{"start": 0, "end": 2, "type": "Person"}]}',
)
PUBLISHED_JSON = CorpusFormat(
    name="published_json",
    description="one JSON list of records with `ltokens` and `rtokens`, as in the published experiments",
    read=read_published_json,
    keeps_text=False,
    marks_sentences=True,
    has_own_words=True,
    suffixes=(".json",),
    keys=(Keys.of(f"tokens entities {IN_LIST}", forbidden="doc_id"), Keys.of("tokens entities ltokens rtokens")),
    tools="the triaffine experiments, locate-and-label and its successors",
    example='[{"tokens": ["The"], "entities": [], "ltokens": ["It", "rained", "."], "rtokens": []}]',
)
