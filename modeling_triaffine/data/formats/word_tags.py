"""Reads JSON of words with tags or with entities by words, as data sets of the Hub are exported.

    {"tokens": ["the", "mayor", "of", "Orsk"], "ner_tags": ["O", "O", "O", "B-City"]}
    {"words": ["the", "mayor", "of", "Orsk"], "tags": ["O", "O", "O", "City"]}
    {"tokens": ["the", "mayor", "of", "Orsk"], "entity_mentions": [{"start": 3, "end": 4, "entity_type": "City"}]}

Tags are those of `tags.py`. Numbers need names, in the order of the numbers: `columns={"names": ["O", "B-City", …]}`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...parsing import shown
from ..corpus_format import CorpusFormat, Keys, check_columns
from ..documents import Document, Sentence, document_of_words
from ..json_records import JsonObject, json_values
from ..reading import document_name
from ..record_checker import RecordChecker
from ..schema import Entity
from .tags import RULE, STANDARD, TagScheme, decode_tags, scheme_of
from .text_spans import BOOKKEEPING, END, OF_SPAN, START, TYPE

WORDS = ("tokens", "words")
TAGS = ("ner_tags", "ner", "tags", "labels", "ner_labels")
MENTIONS = "entity_mentions"
HEAD = 1000
"""How many records show how tags are written."""
OF_MENTIONS = {"start": START, "end": END, "type": TYPE}
NUMBERS = (
    "Name them in the order of the numbers: triaffine-ner convert --columns names=O,B-City,… (columns={'names': […]} "
    "in Python), in a data set cast_column(column, List(ClassLabel(names=[…])))"
)
OPTIONAL = ("tokens", "entities", "names", *OF_SPAN)


def read_word_tags(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Document]:
    """Reads one sentence after the other; a CorpusError names the line or record and the field.

    Args:
        columns: {"tokens": field, "entities": field, "names": of tags that are numbers}, and for entities by words
            `start`, `end`, `type` and `inclusive_end`.
    """
    columns = columns or {}
    check_columns(columns, (), OPTIONAL)
    file_name = document_name(path, check)
    values = json_values(path, check)
    head = list(islice(values, HEAD))
    schemes: dict[str, TagScheme | None] = {MENTIONS: None}
    sent_ids: Counter[str] = Counter()
    for number, (raw, where) in enumerate(chain(head, values)):
        with check.record():
            record = JsonObject(raw, where, check, remedy="A record has the fields tokens and ner_tags")
            words = columns.get("tokens") or next((name for name in WORDS if name in record.fields), WORDS[0])
            found = columns.get("entities") or next(
                (name for name in (*TAGS, MENTIONS) if name in record.fields), TAGS[0]
            )
            if found not in schemes:
                rows = (raw.get(found) for raw, _ in head if isinstance(raw, Mapping))
                cells = chain.from_iterable(row for row in rows if isinstance(row, list))
                schemes[found] = scheme_of_cells(columns.get("names") or cells)
            tokens = record.value(words, list)
            entities = entities_in(record, found, schemes[found], len(tokens), columns)
            record.note_other_fields((words, found, "id", "doc_id"))
            name = f"{file_name}:{number}"
            doc_id = str(record.fields.get("doc_id") or name)
            fields = {"id": name, "doc_id": doc_id, "sent_id": sent_ids[doc_id], "tokens": tokens}
            sent_ids[doc_id] += 1
            yield document_of_words(doc_id, [Sentence({**fields, "entities": entities}, where)])


def scheme_of_cells(cells: Iterable[object]) -> TagScheme | None:
    """How the tags among these are written; None for objects with positions in words."""
    cells = list(cells)
    if any(isinstance(cell, Mapping) for cell in cells):
        return None
    return scheme_of(cell for cell in cells if isinstance(cell, str)) or STANDARD


def entities_in(
    record: JsonObject, field: str, scheme: TagScheme | None, num_tokens: int, columns: Mapping[str, Any]
) -> list[Entity]:
    """The entities in a field of tags, or of objects with positions in words.

    Args:
        scheme: how the tags are written, see [`scheme_of_cells`].
        columns: of [`read_word_tags`].
    """
    values = record.value(field, list, f"{RULE}; entities by words are objects with start, end and type")
    if scheme is None:
        return [_mention(mention, columns) for mention in record.objects(field)]
    if names := columns.get("names"):
        values = [names[value] if type(value) is int and 0 <= value < len(names) else value for value in values]
    numbers = [value for value in values if type(value) is int]
    wrong = [value for value in values if not isinstance(value, str) or not scheme.fits(value)]
    if numbers:
        raise record.error(field, f"has numbers, up to {max(numbers)}", NUMBERS)
    if wrong:
        raise record.error(field, f"has {shown(wrong[0])}", RULE)
    if len(values) != num_tokens:
        raise record.error(field, f"has {len(values)} tags for {num_tokens} tokens", "Give one tag for each token")
    return list(decode_tags((scheme.read(tag) or () for tag in values), record.check, scheme.note))


def _mention(mention: JsonObject, columns: Mapping[str, Any]) -> Entity:
    start, end, kind = (
        mention.first_of((columns[part],) if part in columns else names) for part, names in OF_MENTIONS.items()
    )
    mention.note_other_fields({*BOOKKEEPING, start, end, kind, "text", *TYPE}, "span field")
    last = mention.value(end, int) + bool(columns.get("inclusive_end"))
    return Entity(start=mention.value(start, int), end=last, type=mention.value(kind, str))


WORD_TAGS = CorpusFormat(
    name="word_tags",
    description="JSON of words with a list of tags, or with entities by words in `entity_mentions`",
    read=read_word_tags,
    keeps_text=False,
    suffixes=(".json", ".jsonl", ".ndjson"),
    keys=tuple(Keys.of(f"{words} {found}", forbidden="entities") for words in WORDS for found in (*TAGS, MENTIONS)),
    columns="the fields: {'tokens': 'words', 'entities': 'tags', 'names': ['O', 'B-City']}",
    tools="data sets of the Hub as JSON, OneIE",
    example='{"tokens": ["The", "mayor", "of", "Orsk"], "ner_tags": ["O", "O", "O", "B-City"]}',
)
