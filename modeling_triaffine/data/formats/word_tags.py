"""Reads JSON of words with tags or with entities by words, as data sets of the Hub are exported.

Tags are those of `tags.py`. Numbers need names, in the order of the numbers: `columns={"names": ["O", "B-City", …]}`.
Levels of nesting are fields of their own (`nested_ner_tags` of GermEval 2014 and FiNER, or several `entities`), or
lists in one field, each with a tag for every token.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...parsing import shown
from ..json_records import JsonObject, json_values
from ..reading import document_name
from ..record_checker import RecordChecker
from ..schema import Entity, Text
from ..texts import WrittenSentence, text_of_sentences
from . import CorpusFormat, check_columns
from .tags import RULE, STANDARD, Tag, TagScheme, decode_tags, scheme_of
from .text_spans import OF_SPAN, span_form, word_entity

WORDS = ("tokens", "words")
TAGS = ("ner_tags", "ner", "tags", "labels", "ner_labels")
NESTED = "nested_ner_tags"
"""The inner level, where it stands beside the first of `TAGS`."""
MENTIONS = "entity_mentions"
HEAD = 1000
"""The number of records that show how tags are written."""
NUMBERS = (
    "Name them in the order of the numbers: triaffine-ner convert --columns names=O,B-City,… (columns={'names': […]} "
    "in Python), in a data set cast_column(column, List(ClassLabel(names=[…])))"
)
OPTIONAL = ("tokens", "entities", "names", "pos", "id", "doc_id", *OF_SPAN)


def text_of_words(fields: Mapping[str, Any], where: str, check: RecordChecker) -> Text:
    """The text of one sentence in the words of the corpus, with the fields that the checker takes."""
    return text_of_sentences([WrittenSentence(check(fields, where))], where)


def read_word_tags(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads one sentence after the other; a CorpusError names the line or record and the field.

    Args:
        columns: of [`tagged_sentences`].
    """
    yield from tagged_sentences(json_values(path, check), columns or {}, document_name(path, check), check)


def tagged_sentences(
    values: Iterable[tuple[object, str]], columns: Mapping[str, Any], name: str, check: RecordChecker
) -> Iterator[Text]:
    """The sentences in records of words with tags, or with entities by words.

    Args:
        values: the records, each with its place.
        columns: {"tokens": field, "entities": one or several fields, "names": of tags that are numbers}, perhaps "pos",
            "id" and "doc_id", and for entities by words `start`, `end`, `type` and `inclusive_end`.
        name: with which the ids of sentences without one begin.
    """
    check_columns(columns, (), OPTIONAL)
    named = columns.get("entities")
    named = named.split(",") if isinstance(named, str) else named
    if not all(isinstance(field, str) for field in (columns.get("tokens", ""), *(named or ()))):
        raise ValueError(f"`columns` is {dict(columns)!r}. Name a field for tokens, and one or a list for entities.")
    values = iter(values)
    head = list(islice(values, HEAD))
    schemes: dict[str, TagScheme | None] = {}
    sent_ids = Counter[str]()
    for number, (raw, where) in enumerate(chain(head, values)):
        with check.record():
            record = JsonObject(raw, where, check, remedy="A record has the fields tokens and ner_tags")
            words = columns.get("tokens") or next((name for name in WORDS if name in record.fields), WORDS[0])
            tokens = record.value(words, list)
            entities: list[Entity] = []
            found = named or _fields_of_entities(record.fields)
            for field in found:
                if field not in schemes:
                    schemes[field] = _scheme(field, head, columns.get("names"))
                entities += _entities(record, field, len(tokens), schemes[field], columns)
            ids = {field: columns.get(field, field) for field in ("id", "doc_id")}
            record.check.note_other_fields(record.fields, (words, *found, *ids.values(), columns.get("pos", "")))
            given = record.fields.get(ids["id"]) if "id" in columns else None
            identifier = f"{name}:{number}" if given is None else str(given)
            doc_id = record.fields.get(ids["doc_id"])
            doc_id = identifier if doc_id in (None, "") else str(doc_id)
            fields = {"id": identifier, "doc_id": doc_id, "sent_id": sent_ids[doc_id], "tokens": tokens}
            fields["pos"] = record.fields[columns["pos"]] if "pos" in columns else None
            sent_ids[doc_id] += 1
            yield text_of_words({**fields, "entities": entities}, where, check)


def _fields_of_entities(fields: Mapping[str, Any]) -> Sequence[str]:
    """The fields with the entities of a record that are named as usual."""
    found = next((name for name in (*TAGS, MENTIONS) if name in fields), TAGS[0])
    return [found, NESTED] if found == TAGS[0] and fields.get(NESTED) is not None else [found]


def _scheme(field: str, records: Iterable[tuple[object, str]], names: Sequence[str] | None) -> TagScheme | None:
    """The scheme of the tags in a field, as the first records or the names of numbers show; None if it has no tags."""
    rows = [row for raw, _ in records if isinstance(raw, Mapping) and isinstance(row := raw.get(field), list)]
    cells = [cell for row in rows for inner in row for cell in (inner if isinstance(inner, list) else [inner])]
    if not cells or any(isinstance(cell, Mapping) for cell in cells):
        return None
    return scheme_of(tag for tag in names or cells if isinstance(tag, str)) or STANDARD


def _entities(
    record: JsonObject, name: str, num_tokens: int, scheme: TagScheme | None, columns: Mapping[str, Any]
) -> Iterator[Entity]:
    """The entities of a record in a field of spans by words, of tags, or of lists of tags, one for each level."""
    values = record.value(name, list, f"{RULE}; entities by words are objects with start, end and type")
    if scheme is None:
        form = span_form({field: column for field, column in columns.items() if field in OF_SPAN})
        yield from (word_entity(raw, record, f"{name}[{index}]", form) for index, raw in enumerate(values))
        return
    for level in values if values and all(isinstance(value, list) for value in values) else [values]:
        if len(level) != num_tokens:
            problem = f"has {len(level)} tags for {num_tokens} tokens"
            remedy = "Give one tag for each token, several joined by |, or lists: one for each level of nesting"
            raise record.error(name, problem, remedy)
        names = columns.get("names", ())
        yield from decode_tags([_read(tag, record, name, scheme, names) for tag in level], record.check, scheme.note)


def _read(tag: object, record: JsonObject, name: str, scheme: TagScheme, names: Sequence[str]) -> list[Tag]:
    """The tags in a cell, which may be a number with a name."""
    if type(tag) is int:
        if not 0 <= tag < len(names):
            raise record.error(name, f"has the number {tag}", NUMBERS)
        tag = names[tag]
    found = scheme.read(tag) if isinstance(tag, str) else None
    if found is None:
        raise record.error(name, f"has {shown(tag)}", RULE)
    return found


WORD_TAGS = CorpusFormat(
    name="word_tags",
    description="JSON of words with a list of tags, or with entities by words in `entity_mentions`",
    read=read_word_tags,
    keys=tuple(f"{words} {found} -entities" for words in WORDS for found in (*TAGS, MENTIONS)),
    columns="the fields: {'tokens': 'words', 'entities': ['outer', 'inner'], 'names': ['O', 'B-City']}",
)
