"""Reads JSON of words with tags or with entities by words, as data sets of the Hub are exported.

    {"tokens": ["the", "mayor", "of", "Orsk"], "ner_tags": ["O", "O", "O", "B-City"]}
    {"words": ["the", "mayor", "of", "Orsk"], "tags": ["O", "O", "O", "City"]}
    {"tokens": ["the", "mayor", "of", "Orsk"], "entity_mentions": [{"start": 3, "end": 4, "entity_type": "City"}]}

Tags are those of `tags.py`. Numbers need names, in the order of the numbers: `columns={"names": ["O", "B-City", …]}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...parsing import shown
from ..corpus_format import CorpusFormat, Keys
from ..documents import Document, Sentence, document_of_words
from ..json_records import JsonObject, json_values
from ..reading import document_name
from ..schema import Entity, RecordChecker
from .tags import RULE, STANDARD, TagScheme, decode_tags, scheme_of
from .text_spans import END, START, TYPE, name_among

WORDS = ("tokens", "words")
TAGS = ("ner_tags", "ner", "tags", "labels", "ner_labels")
MENTIONS = "entity_mentions"
HEAD = 1000
"""Records from which it is seen how tags are written."""
FIELDS = frozenset({"tokens", "entities", "names", "start", "end", "type", "inclusive_end"})


def read_word_tags(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Document]:
    """Reads one sentence after the other; a CorpusError names the line or record and the field.

    Args:
        columns: {"tokens": field, "entities": field, "names": of tags that are numbers}, and for entities by words
            `start`, `end`, `type` and `inclusive_end`.
    """
    columns = columns or {}
    if not columns.keys() <= FIELDS:
        raise ValueError(f"`columns` names {sorted(columns)}. For JSON of words, name {', '.join(sorted(FIELDS))}.")
    values = json_values(path, check)
    head = list(islice(values, HEAD))
    scheme: TagScheme | None = None
    for number, (raw, where) in enumerate(chain(head, values)):
        with check.record():
            record = JsonObject(raw, where, check, remedy="A record has the fields tokens and ner_tags")
            words = columns.get("tokens") or next((name for name in WORDS if name in record.fields), WORDS[0])
            found = columns.get("entities") or next(
                (name for name in (*TAGS, MENTIONS) if name in record.fields), TAGS[0]
            )
            tokens, tags = record.value(words, list), record.value(found, list)
            if all(isinstance(one, Mapping) for one in tags) and (tags or found == MENTIONS):
                entities = list(_mentions(record, found, columns))
            else:
                scheme = scheme or scheme_of(_tags_in(head, found, columns.get("names"))) or STANDARD
                entities = list(_tagged(record, found, scheme, len(tokens), columns.get("names")))
            record.note_other_fields(words, found, "id", "doc_id")
            name = f"{document_name(path, check)}:{number}"
            yield document_of_words(name, [Sentence({"tokens": tokens, "entities": entities}, where)])


def _tags_in(head: Iterable[tuple[object, str]], field: str, names: Sequence[str] | None) -> set[str]:
    if names:
        return {*names}
    rows = (raw.get(field) for raw, _ in head if isinstance(raw, Mapping))
    return {tag for row in rows if isinstance(row, list) for tag in row if isinstance(tag, str)}


def _tagged(
    record: JsonObject, field: str, scheme: TagScheme, num_tokens: int, names: Sequence[str] | None
) -> Iterator[Entity]:
    tags = record.value(field, list)
    if names:
        tags = [names[tag] if type(tag) is int and 0 <= tag < len(names) else tag for tag in tags]
    elif any(type(tag) is int for tag in tags):
        remedy = "Name them in the order of the numbers, with --columns names=O,B-City,… (columns={'names': […]})"
        raise record.error(field, f"has numbers, up to {max(tag for tag in tags if type(tag) is int)}", remedy)
    for tag in tags:
        if not isinstance(tag, str) or not scheme.fits(tag):
            raise record.error(field, f"has {shown(tag)}", RULE)
    if len(tags) != num_tokens:
        raise record.error(field, f"has {len(tags)} tags for {num_tokens} tokens", "Give one tag for each token")
    return decode_tags((scheme.read(tag) or () for tag in tags), record.check, scheme.note)


def _mentions(record: JsonObject, field: str, columns: Mapping[str, Any]) -> Iterator[Entity]:
    named = {"start": START, "end": END, "type": TYPE}
    for mention in record.objects(field):
        start, end, kind = (
            name_among((columns[part],) if part in columns else names, mention) for part, names in named.items()
        )
        last = mention.value(end, int) + bool(columns.get("inclusive_end"))
        yield Entity(start=mention.value(start, int), end=last, type=mention.value(kind, str))


WORD_TAGS = CorpusFormat(
    name="word_tags",
    description="JSON of words with a list of tags, or with entities by words in `entity_mentions`",
    read=read_word_tags,
    keeps_text=False,
    marks_sentences=True,
    has_own_words=True,
    suffixes=(".json", ".jsonl", ".ndjson"),
    keys=tuple(Keys.of(f"{words} {found}", forbidden="entities") for words in WORDS for found in (*TAGS, MENTIONS)),
    columns="the fields: {'tokens': 'words', 'entities': 'tags', 'names': ['O', 'B-City']}",
    tools="data sets of the Hub as JSON, OneIE",
    example='{"tokens": ["The", "mayor", "of", "Orsk"], "ner_tags": ["O", "O", "O", "B-City"]}',
)
