"""Reads words with entities by words or with tags, in JSON and in lines, as data sets and other models have them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, cast

from ...files import shown
from ..reading import JsonObject, Triple, document_name, json_reader, json_values, name_in_corpus, numbered_paragraphs
from ..schema import DISCONTINUOUS, Entity, RecordChecker, Text
from ..texts import WrittenSentence, text_of_sentences, text_of_words
from . import IN_LIST, CorpusFormat, check_columns
from .tags import RULE, STANDARD, Tag, TagScheme, decode_tags, scheme_of
from .text_spans import FIELDS, OF_SPAN, QUOTES, named_fields, word_entity

# ---- Words with tags ----

TOKENS = ("tokens", "words")
TAGS = ("ner_tags", "ner", "tags", "labels", "ner_labels")
NESTED = "nested_ner_tags"  # the inner level of GermEval 2014 and FiNER, beside the first of these
MENTIONS = "entity_mentions"
HEAD = 1000  # records that show how tags are written
NUMBERS = "Name them in their order: convert --columns names=O,B-City,… (columns={'names': […]}), or as a ClassLabel"


def read_word_tags(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads one sentence after the other; `columns` as of [`tagged_sentences`]."""
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
    check_columns(columns, (), ("tokens", "entities", "names", "pos", "id", "doc_id", *OF_SPAN))
    named = columns.get("entities") or ()
    named = named.split(",") if isinstance(named, str) else named
    if not all(isinstance(field, str) for field in (columns.get("tokens", ""), *named)):
        raise ValueError(f"`columns` is {dict(columns)!r}. Name a field for tokens, and one or a list for entities.")
    values = iter(values)
    head = list(islice(values, HEAD))
    schemes: dict[str, TagScheme | None] = {}
    sent_ids = Counter[str]()
    for number, (raw, where) in enumerate(chain(head, values)):
        with check.record():
            record = JsonObject(raw, where, check, remedy="A record has the fields tokens and ner_tags")
            words = columns.get("tokens") or record.first_of(TOKENS)
            tokens = record.value(words, list)
            found = named or [record.first_of((*TAGS, MENTIONS))]
            if found == [TAGS[0]] and not named and record.fields.get(NESTED) is not None:
                found = [*found, NESTED]
            entities: list[Entity] = []
            for field in found:
                if field not in schemes:
                    schemes[field] = _scheme(field, head, columns.get("names"))
                entities += _entities_of(record, field, tokens, schemes[field], columns)
            ids = {field: columns.get(field, field) for field in ("id", "doc_id")}
            check.note_other_fields(record.fields, (words, *found, *ids.values(), columns.get("pos", "")))
            given = record.fields.get(ids["id"]) if "id" in columns else None
            identifier = f"{name}:{number}" if given is None else str(given)
            doc_id = record.fields.get(ids["doc_id"])
            doc_id = identifier if doc_id in (None, "") else str(doc_id)
            pos = record.fields[record.first_of([columns["pos"]])] if "pos" in columns else None
            names = {"id": identifier, "doc_id": doc_id, "sent_id": sent_ids[doc_id]}
            sent_ids[doc_id] += 1
            yield text_of_words({**names, "tokens": tokens, "pos": pos, "entities": entities}, where, check)


def _scheme(field: str, records: Iterable[tuple[object, str]], names: Sequence[str] | None) -> TagScheme | None:
    """The scheme of the tags in a field, as the first records or the names of numbers show; None if it has no tags."""
    rows = [row for raw, _ in records if isinstance(raw, Mapping) and isinstance(row := raw.get(field), list)]
    cells = [cell for row in rows for inner in row for cell in (inner if isinstance(inner, list) else [inner])]
    if not cells or any(isinstance(cell, Mapping) for cell in cells):
        return None
    return scheme_of(tag for tag in names or cells if isinstance(tag, str)) or STANDARD


def _entities_of(
    record: JsonObject, name: str, tokens: list[Any], scheme: TagScheme | None, columns: Mapping[str, Any]
) -> Iterator[Entity]:
    """The entities of a record in a field of spans by words, of tags, or of lists of tags, one for each level."""
    values = record.value(name, list, f"{RULE}; entities by words are objects with start, end and type")
    if scheme is None:
        names = named_fields({"quote": QUOTES, **{field: columns[field] for field in OF_SPAN if field in columns}})
        yield from (word_entity(raw, record, f"{name}[{index}]", names, tokens) for index, raw in enumerate(values))
        return
    for level in values if values and all(isinstance(value, list) for value in values) else [values]:
        if len(level) != len(tokens):
            remedy = "Give one tag for each token, several joined by |, or lists: one for each level of nesting"
            raise record.error(name, f"has {len(level)} tags for {len(tokens)} tokens", remedy)
        tags = [_read(tag, record, name, scheme, columns.get("names", ())) for tag in level]
        yield from decode_tags(tags, record.check, scheme.note)


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
    keys=tuple(f"{words} {found} -entities" for words in TOKENS for found in (*TAGS, MENTIONS)),
    columns="the fields: {'tokens': 'words', 'entities': ['outer', 'inner'], 'names': ['O', 'B-City']}",
)

# ---- Records of words and entities ----

CONTEXT_NAMES = {"ltokens": "left_tokens", "rtokens": "right_tokens"}
# Of the published form. `orig_id` numbers sentences in one corpus and documents in another, so it names no document.
NOT_FOR_NER = ("relations", "org_id", "orig_id")


def _own_record(record: JsonObject, default_id: str) -> Text:
    """The text of a sentence. A file without ids is one document, of which each record is the next sentence."""
    name, _, number = default_id.rpartition(":")
    return _text(record, {"id": f"{name}:{record.where}", "doc_id": name, "sent_id": int(number), **record.fields})


def _published_record(record: JsonObject, name: str) -> Text:
    """The text of a sentence that has its own context, but no reliable id, and so is a document of its own."""
    kept = {CONTEXT_NAMES.get(key, key): value for key, value in record.fields.items() if key not in NOT_FOR_NER}
    return _text(record, {**kept, "id": name, "doc_id": name, "sent_id": 0})


def _text(record: JsonObject, fields: dict[str, Any]) -> Text:
    remedy = "Give objects with start, end and type; tags: convert --columns 'tokens=tokens entities=entities'"
    entities, tokens = record.value("entities", list[dict[str, Any]], remedy), record.value("tokens", list)
    # As in Pyramid's data, and with the covered text.
    if any(not raw.keys().isdisjoint(("span", *QUOTES)) for raw in entities):
        names = FIELDS._replace(type=("type", *FIELDS.type), quote=QUOTES)
        fields["entities"] = [word_entity(e, record, f"entities[{n}]", names, tokens) for n, e in enumerate(entities)]
    return text_of_words(fields, record.where, record.check)


JSON_LINES = CorpusFormat(
    name="json_lines",
    description="JSON lines of this project, one sentence of words each",
    read=json_reader(_own_record, "tokens and entities", name_in_corpus),
    keys=(
        f"tokens entities -{IN_LIST}",
        "tokens entities doc_id",
        " -".join(("tokens doc_id sent_id", *TAGS, MENTIONS)),
    ),
)
PUBLISHED_JSON = CorpusFormat(
    name="published_json",
    description="one JSON list of records with `ltokens` and `rtokens`, as in the published experiments",
    read=json_reader(_published_record, "tokens and entities"),
    suffixes=(".json",),
    keys=(f"tokens entities {IN_LIST} -doc_id", "tokens entities ltokens rtokens"),
)

# ---- JSON with inclusive spans: a span has its last word, and so it has in questions and answers ----

WORDS = ("tokenized_text", "sentence", "sentences")  # of GLiNER, W2NER and documents


def _inclusive_spans(record: JsonObject, default_id: str) -> Text:
    """The text of a sentence or document. Spans in `ner` count the words of all of it, in `ners` of each sentence."""
    words = record.first_of(WORDS)
    name = "ners" if "ners" in record.fields else "ner"
    record.check.note_other_fields(record.fields, (words, name, "doc_key"))
    key = record.fields.get("doc_key")
    doc_id = default_id if key is None else str(key)
    remedy = f"Give a list of words; spans in a text are read by convert --columns 'text={words} entities={name} …'"
    sentences, spans_of_each, places = [record.value(words, list, remedy)], [record.value(name, list)], [name]
    if words == WORDS[2]:
        sentences, spans_of_each = record.value(words, list[list[str]]), record.value(name, list[list[Any]])
        places = [f"{name}[{number}]" for number in range(len(spans_of_each))]
    if len(sentences) != len(spans_of_each):
        problem = f"has {len(spans_of_each)} lists for {len(sentences)} sentences"
        raise record.error(name, problem, "Give one for each sentence")
    first, written = 0, []
    for number, (tokens, spans, place) in enumerate(zip(sentences, spans_of_each, places, strict=True)):
        entities = [*_entities(record, spans, place, first)]
        fields = {"id": f"{doc_id}:{number}", "doc_id": doc_id, "sent_id": number, "tokens": tokens}
        where = record.where if place == name else f"{record.where}, {words}[{number}]"
        written.append(WrittenSentence(record.check({**fields, "entities": entities}, where)))
        first += len(tokens) if name == "ner" else 0
    return text_of_sentences(written, record.where)


def _entities(record: JsonObject, spans: Iterable[Any], name: str, first: int) -> Iterator[Entity]:
    """The entities of a sentence whose first word has the number `first`; an entity of W2NER lists its words."""
    for index, span in enumerate(spans):
        place = f"{name}[{index}]"
        if isinstance(span, Mapping):
            listing = JsonObject(span, record.where, record.check, place)
            words, kind = listing.value("index", list[int]), listing.value("type", str)
            if not words or words != [*range(words[0], words[0] + len(words))]:
                record.check.drop(DISCONTINUOUS, 1, f"{record.where}: {place}")
                continue
            span = (words[0], words[-1], kind)
        remedy = "A span is the numbers of its first and last word, and its type"
        start, last, kind = record.check.valid(span, cast(Any, Triple), record.where, place, remedy)
        yield Entity(start=start - first, end=last - first + 1, type=kind)


INCLUSIVE_SPANS = CorpusFormat(
    name="inclusive_spans",
    description="JSON of words with inclusive spans in `ner`: GLiNER, W2NER, DyGIE++, PURE",
    read=json_reader(_inclusive_spans, f"{', '.join(WORDS)} and ner"),
    keys=(*(f"{words} ner" for words in WORDS), "doc_key sentences", "sentences ners"),
)

# ---- Questions and answers ----

QUESTION_FIELDS = ("context", "entity_label", "span_position")
# Fields that repeat these, or say nothing about entities.
OTHER_QUESTION_FIELDS = ("qas_id", "query", "impossible", "start_position", "end_position")
POSITIONS = re.compile("([0-9]{1,9});([0-9]{1,9})")


def read_mrc(path: Path, check: RecordChecker) -> Iterator[Text]:
    """Reads one sentence from the records of all its types."""
    file_name = document_name(path, check)
    for number, ((_, context), questions) in enumerate(groupby(_questions(path, check), key=lambda found: found[0])):
        records = [record for _, record in questions]
        with check.record():
            name = f"{file_name}:{number}"
            entities = [entity for record in records for entity in _answers(record)]
            fields = {"id": name, "doc_id": name, "sent_id": 0, "tokens": context.split(), "entities": entities}
            yield text_of_words(fields, records[0].where, check)


def _questions(path: Path, check: RecordChecker) -> Iterator[tuple[tuple[str, str], JsonObject]]:
    """The records, each with the key of its sentence: the number before a point in `qas_id`, and the words."""
    for raw, where in json_values(path, check):
        with check.record():
            record = JsonObject(raw, where, check)
            check.note_other_fields(record.fields, QUESTION_FIELDS + OTHER_QUESTION_FIELDS)
            number, point, _ = str(record.fields.get("qas_id")).partition(".")
            yield (number if point else "", record.value("context", str)), record


def _answers(record: JsonObject) -> Iterator[Entity]:
    kind = record.value("entity_label", str)
    for index, span in enumerate(record.value("span_position", list[str])):
        found = POSITIONS.fullmatch(span)
        if found is None:
            remedy = "A span is the numbers of its first and last word, such as 0;3"
            raise record.error(f"span_position[{index}]", f"is {span[:60]!r}", remedy)
        yield Entity(start=int(found[1]), end=int(found[2]) + 1, type=kind)


MRC = CorpusFormat(
    name="mrc",
    description="questions and answers of machine reading comprehension, one record for each type in a sentence",
    read=read_mrc,
    keys=("context query",),
)

# ---- Lines of words and spans ----

SPAN = re.compile(r"(\d{1,9}),(\d{1,9})(?:,(\d{1,9}),\d{1,9})* ([^\s|]+)")
SPANS = re.compile(rf"{SPAN.pattern}(?:\|{SPAN.pattern})*")
LINES = "A sentence is a line of words, perhaps one of parts of speech, and one of spans, such as 0,4 Person|3,4 City"


def read_span_lines(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads sentence by sentence. The end of a span is inclusive if the option says so, or a span such as 3,3."""
    check_columns(columns or {}, (), ("inclusive_end",))
    stem = document_name(path, check)
    paragraphs = list(numbered_paragraphs(path, check))
    spans = (span for lines in paragraphs for span in _spans_at_end([line for _, line in lines]))
    inclusive = (columns or {}).get("inclusive_end", any(start == end for start, end, *_ in spans))
    if inclusive and not columns:
        check.note("files with spans such as 3,3, whose last word is therefore part of every span")
    for number, lines in enumerate(paragraphs):
        doc_id, sent_id = (stem, number) if check.is_document else (f"{stem}:{number}", 0)
        names = {"id": f"{doc_id}:{sent_id}", "doc_id": doc_id, "sent_id": sent_id}
        with check.record():
            yield text_of_words({**names, **_of_lines(lines, inclusive, check)}, f"line {lines[0][0]}", check)


def _of_lines(lines: list[tuple[int, str]], inclusive: bool, check: RecordChecker) -> dict[str, Any]:
    """Words, parts of speech and entities of a sentence."""
    spans = _spans_at_end([line for _, line in lines])
    (_, words), *others = lines[:-1] if spans else lines
    last, tokens = f"line {lines[-1][0]}", words.split()
    whole = [span for span in spans if not span[2] or int(span[0]) <= int(span[2]) <= int(span[1])]
    check.drop(DISCONTINUOUS, len(spans) - len(whole), last)
    entities = [Entity(start=int(start), end=int(end) + inclusive, type=kind) for start, end, _, kind in whole]
    if wrong := next((e for e in entities if not e["start"] < e["end"] <= len(tokens)), None):
        problem = f"a span of the words {wrong['start']} to {wrong['end']} (exclusive), of {len(tokens)}"
        remedy = "Say whether the last word is part of a span: convert --columns inclusive_end=true (columns=)"
        raise check.error(last, problem, remedy)
    pos = others[0][1].split() if others else []
    if len(others) > 1 or (pos and len(pos) != len(tokens)):
        problem = f"{lines[-1][1][:60]!r} is neither spans nor one part of speech for each of {len(tokens)} words"
        raise check.error(last, problem, LINES)
    return {"tokens": tokens, "pos": pos, "entities": entities}


def _spans_at_end(lines: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Start, end, perhaps a second start (of a head inside or a fragment outside) and type of spans in a last line."""
    return SPAN.findall(lines[-1]) if len(lines) > 1 and SPANS.fullmatch(lines[-1].strip()) else []


def _are_span_lines(head: str) -> bool:
    """The first lines are sentences of at most three lines, one of which ends with spans."""
    sentences = [sentence.split("\n") for sentence in re.split(r"(?:\r?\n[ \t]*){2,}", head.strip())]
    types = [kind for lines in sentences for *_, kind in _spans_at_end(lines)]
    # Columns of tags may have a number such as 0,1 for a word.
    return all(len(lines) <= 3 for lines in sentences) and not all(map(STANDARD.fits, types))


SPAN_LINES = CorpusFormat(
    name="span_lines",
    description="a line of words and a line of spans, 0,4 Person|3,4 City, for each sentence",
    read=read_span_lines,
    recognizes=_are_span_lines,
    columns="whether the last word is part of a span: {'inclusive_end': True}",
)
