"""Reads JSON of words with tags or with entities by words, as data sets of the Hub are exported.

Tags are those of `tags.py`. Numbers need names, in the order of the numbers: `columns={"names": ["O", "B-City", …]}`.
Levels of nesting are fields of their own (`nested_ner_tags` of GermEval 2014 and FiNER, or several `entities`), or
lists in one field, each with a tag for every token; or that field has a list of tags for every token.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...parsing import shown
from ..corpus_format import CorpusFormat, Keys, check_columns
from ..json_records import JsonObject, json_values
from ..reading import document_name
from ..record_checker import RecordChecker
from ..schema import Entity, Text
from ..texts import WrittenSentence, text_of_sentences
from .tags import RULE, STANDARD, TagScheme, decode_tags, scheme_of
from .text_spans import BOOKKEEPING, FORM, OF_SPAN, TYPE, fragments_of

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
ONE_EACH = "Give one tag for each token, or lists: one for each token, or one for each level, with a tag for each token"
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
    fields_of_tags: dict[str, TagField] = {}
    sent_ids = Counter[str]()
    for number, (raw, where) in enumerate(chain(head, values)):
        with check.record():
            record = JsonObject(raw, where, check, remedy="A record has the fields tokens and ner_tags")
            words = columns.get("tokens") or next((name for name in WORDS if name in record.fields), WORDS[0])
            tokens = record.value(words, list)
            entities: list[Entity] = []
            found = named or _fields_of_entities(record.fields)
            for field in found:
                if field not in fields_of_tags:
                    rows = ((raw.get(words), raw.get(field)) for raw, _ in head if isinstance(raw, Mapping))
                    fields_of_tags[field] = TagField(field, rows, columns)
                entities += fields_of_tags[field].entities_in(record, len(tokens))
            ids = {field: columns.get(field, field) for field in ("id", "doc_id")}
            record.note_other_fields((words, *found, *ids.values(), columns.get("pos", "")))
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


class TagField:
    """A field of tags, or of objects with positions in words.

    Args:
        rows: the tokens and this field of the first records.
        columns: of [`tagged_sentences`].
    """

    def __init__(self, name: str, rows: Iterable[tuple[object, object]], columns: Mapping[str, Any]):
        self.name, self.columns = name, columns
        lists = [(row, len(tokens)) for tokens, row in rows if isinstance(tokens, list) and isinstance(row, list)]
        cells = [cell for row, _ in lists for inner in row for cell in _tags_of(inner)]
        self.scheme: TagScheme | None = None  # of objects
        if cells and not any(isinstance(cell, Mapping) for cell in cells):
            tags = columns.get("names") or cells
            self.scheme = scheme_of(tag for tag in tags if isinstance(tag, str)) or STANDARD
        # Some record shows whether lists are of levels, with a tag for every token, or of tokens, with all tags of one.
        nested = [(row, size) for row, size in lists if any(isinstance(inner, list) for inner in row)]
        self.of_levels = any(_are_levels(row, size) and len(row) != size for row, size in nested)
        self.of_tokens = any(len(row) == size and not _are_levels(row, size) for row, size in nested)

    def entities_in(self, record: JsonObject, num_tokens: int) -> list[Entity]:
        """The entities of a record."""
        name, scheme = self.name, self.scheme
        values = record.value(name, list, f"{RULE}; entities by words are objects with start, end and type")
        if scheme is None:
            return [word_entity(mention, self.columns) for mention in record.objects(name)]
        names = self.columns.get("names", ())
        levels = [
            [
                [names[tag] if type(tag) is int and 0 <= tag < len(names) else tag for tag in _tags_of(cell)]
                for cell in level
            ]
            for level in self._levels(record, values, num_tokens)
        ]
        tags = [tag for level in levels for cell in level for tag in cell]
        numbers = [tag for tag in tags if type(tag) is int]
        wrong = [tag for tag in tags if type(tag) is not int and not (isinstance(tag, str) and scheme.fits(tag))]
        if wrong:
            raise record.error(name, f"has {shown(wrong[0])}", RULE)
        if numbers and names:
            problem = f"has the number {numbers[0]}, but the {len(names)} names given are for 0 to {len(names) - 1}"
            raise record.error(name, problem, "Name all tags, or leave out the tokens without one (-100)")
        if numbers:
            raise record.error(name, f"has numbers, up to {max(numbers)}", NUMBERS)
        entities: list[Entity] = []
        for level in levels:
            cells = ([part for tag in cell for part in scheme.read(tag) or ()] for cell in level)
            entities += decode_tags(cells, record.check, scheme.note)
        return entities

    def _levels(self, record: JsonObject, values: list[Any], num_tokens: int) -> list[list[Any]]:
        """The cells of each level, one for each token: a tag, or a list of its tags."""
        are_levels, are_tokens = bool(values) and _are_levels(values, num_tokens), len(values) == num_tokens
        if not are_levels and not are_tokens:
            what = next((f"lists, such as {shown(value)}," for value in values if isinstance(value, list)), "tags")
            raise record.error(self.name, f"has {len(values)} {what} for {num_tokens} tokens", ONE_EACH)
        is_unclear = are_levels and are_tokens and not self.of_levels | self.of_tokens
        if is_unclear and values != [list(tags) for tags in zip(*values, strict=True)]:
            problem = f"has {num_tokens} lists of {num_tokens} tags, which may be those of levels or those of tokens"
            raise record.error(self.name, problem, "Give each level a field of its own, or join the tags by |")
        return values if are_levels and not (are_tokens and self.of_tokens) else [values]


def _tags_of(cell: object) -> list[Any]:
    return cell if isinstance(cell, list) else [cell]


def _are_levels(values: Sequence[object], num_tokens: int) -> bool:
    """True if these can be the tags of each level, one for every token."""
    return all(isinstance(value, list) and len(value) == num_tokens for value in values)


def word_entity(mention: JsonObject, columns: Mapping[str, Any]) -> Entity:
    """The entity of an object with the positions of its words, in two fields or in a list."""
    form = {**FORM, **{name: (columns[name],) for name in ("start", "end", "type") if name in columns}}
    fragments, used = fragments_of(mention, form, bool(columns.get("inclusive_end")))
    if len(fragments) != 1:
        raise mention.error(used[0], f"has {len(fragments)} parts", "An entity of words is one: [start, end]")
    kind = mention.first_of(form["type"])
    mention.note_other_fields({*BOOKKEEPING, *used, kind, "text", *TYPE}, "span field")
    return Entity(start=fragments[0][0], end=fragments[0][1], type=mention.value(kind, str))


WORD_TAGS = CorpusFormat(
    name="word_tags",
    description="JSON of words with a list of tags, or with entities by words in `entity_mentions`",
    read=read_word_tags,
    keys=tuple(Keys.of(f"{words} {found}", forbidden="entities") for words in WORDS for found in (*TAGS, MENTIONS)),
    columns="the fields: {'tokens': 'words', 'entities': ['outer', 'inner'], 'names': ['O', 'B-City']}",
    tools="data sets of the Hub as JSON, OneIE",
    example='{"tokens": ["The", "mayor", "of", "Orsk"], "ner_tags": ["O", "O", "O", "B-City"]}',
)
