"""Reads JSON of texts with spans by characters, as Doccano, Prodigy, PubAnnotation and many scripts write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from ...model.text_triaffine import Offsets
from ..reading import JsonObject, json_reader, json_values, layers_of
from ..schema import WITHOUT_SPANS, Entity, RecordChecker, Text, annotated, same_but_for_space
from . import CorpusFormat, check_columns

TEXTS = ("text", "sentence", "full_text", "content", "data")
SPANS = ("entities", "spans", "label", "labels", "denotations", "annotations")
QUOTES = ("text", "word", "entity_text", "mention", "mention_text", "span_text", "covered_text", "surface", "quote")
"""The covered text, with which the offsets are compared."""
LAST = "end_idx"
"""The offset of a span's last character, in data sets of CBLUE (CMeEE). In some of their versions it is the offset
after it, as the length of the quote then shows."""
FORM: Mapping[str, Any] = {
    "text": TEXTS,
    "entities": SPANS,
    "start": ("start", "start_offset", "start_idx", "start_position", "begin", "span.begin", "span.start", "span.0"),
    "end": ("end", "end_offset", LAST, "end_position", "span.end", "span.1"),
    # entity_group: of the pipeline and `predict`.
    "type": ("label", "type", "labels", "obj", "entity_group", "entity_type", "name"),
    "quote": (*QUOTES, "value", "entity", "entity_value"),
    "id": ("id",),
    "inclusive_end": None,
}
"""The fields of records with the text and its spans; each has one of the names given, or paths as "data.text".

`start`, `end`, `type` and `quote` are those of a span that is an object; a list is [start, end, type]. With
`inclusive_end` the end is the offset of the last character; None: only in `LAST`.
"""
OF_SPAN = ("start", "end", "type", "inclusive_end")
"""The fields of spans that `columns` may name."""
BOOKKEEPING = {"id", "token_start", "token_end", "input_hash", "source", "score"}
"""Fields of a span that only matter to the tool that wrote it."""
REJECTED = ("reject", "ignore")
"""Values of Prodigy's `answer` for texts that should not be used."""
PAIRS = re.compile(r'\[\s*(?:\[\s*)?"(?:[^"\\]|\\.)*"\s*,\s*\{')
"""Texts and their annotations, as for spaCy 2; ner-annotator has such pairs under `annotations`."""


def text_form(columns: Mapping[str, Any]) -> Mapping[str, Any]:
    """The form that `columns` names; what it does not is as in other texts."""
    check_columns(columns, ("text", "entities"), ("id", *OF_SPAN))
    for name, field in columns.items():
        if not isinstance(field, bool if name == "inclusive_end" else str):
            raise ValueError(f"`columns`: {name} is {field!r}. Give names or paths of fields, inclusive_end as a bool.")
    return span_form(columns)


def span_form(columns: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**FORM, **{name: (field,) if isinstance(field, str) else field for name, field in columns.items()}}


def _records(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The records of a file with their places, pairs of a text and its annotations as records."""
    for raw, where in json_values(path, check):
        fields = raw if isinstance(raw, dict) else {}
        pairs = [] if any(isinstance(fields.get(name), str) for name in TEXTS) else fields.get("annotations")
        if not isinstance(pairs, list) or not pairs or any(p is not None and _of_pair(p) is p for p in pairs):
            yield _of_pair(raw), where
            continue
        for number, pair in enumerate(pairs):
            if pair is None:
                check.note("texts without an annotation ignored", example=f"{where}, annotations[{number}]")
            else:
                yield _of_pair(pair), f"{where}, annotations[{number}]"


def _of_pair(raw: object) -> object:
    """A pair of a text and its annotations as a record; anything else as it is."""
    is_pair = isinstance(raw, list) and list(map(type, raw)) == [str, dict]
    return {"text": raw[0], **raw[1]} if is_pair else raw  # type: ignore[index]


def annotated_text(record: JsonObject, default_id: str, columns: Mapping[str, Any] | None = None) -> Text | None:
    """The text of one record with its spans by characters; `default_id` names it if it has no id. None if rejected.

    A span is a list [start, end, type] or an object with start, end and type (a list of types: one entity each), and
    perhaps the covered text, which is checked. `columns` names the fields, see [`text_form`]; None takes `FORM`.
    """
    form = FORM if columns is None else text_form(columns)
    if (answer := record.fields.get("answer")) in REJECTED:
        record.check.note(f"texts with the answer {answer!r} ignored")
        return None
    identifier = record.get(form["id"][0])
    named = next((name for name in form["text"] if isinstance(record.get(name), str)), form["text"][0])
    text = record.value(named, str)
    layers = layers_of(record, text)
    doc_id = default_id if identifier in (None, "") else str(identifier)
    made = annotated(doc_id, text, _entities(record, text, named, form, {*layers}), record.where)
    made.update(layers)  # type: ignore[typeddict-item]
    return made


def _entities(
    record: JsonObject, text: str, named: str, form: Mapping[str, Any], layers: Set[str]
) -> Iterator[Entity | None]:
    present = [name for name in form["entities"] if name != named and record.get(name) is not None]
    filled = [name for name in present if (found := record.get(name)) and isinstance(found, list)]
    if len(filled) > 1:
        problem = f"there are spans in the fields {' and '.join(map(repr, filled))}"
        raise record.check.error(record.where, problem, "Put them into one of them")
    key = next(iter(filled or present), None)
    known = _first_keys(named, form["id"][0], "answer", *layers, *([key] if key else []))
    for name in record.fields.keys() - known:
        if record.fields[name] not in (None, [], {}) and not name.startswith("_"):
            record.check.note(f"field '{name}' ignored")
    if key is None:
        record.check.note(WITHOUT_SPANS, example=record.where)
        return
    for index, raw in enumerate(record.value(key, list)):
        span, fragment, kind, quote = read_span(raw, record, f"{key}[{index}]", form)
        found = span.get(kind)
        types = found if isinstance(found, list) else [span.value(kind, str)]
        yield from entity_of_each_type(span, text, fragment, types, quote)


def read_span(
    raw: object, record: JsonObject, name: str, form: Mapping[str, Any]
) -> tuple[JsonObject, Offsets, str, str]:
    """The object of a span, its positions, end exclusive, and its fields with the type and the covered text."""
    if isinstance(raw, list):
        names = (form["start"][0], form["end"][0], form["type"][0], *map(str, range(3, len(raw))))
        raw = dict(zip(names, raw, strict=False))
    span = JsonObject(raw, record.where, record.check, name, "A span has start, end and label")
    first, last, kind = (span.first_of(form[field]) for field in ("start", "end", "type"))
    start, end = span.value(first, int), span.value(last, int)
    quote = next((name for name in form["quote"] if name != kind and isinstance(span.fields.get(name), str)), QUOTES[0])
    inclusive = form["inclusive_end"]
    if inclusive is None:
        inclusive = last == LAST and len(str(span.get(quote) or "")) != end - start
    span.check.note_other_fields(span.fields, BOOKKEEPING | _first_keys(first, last, kind, quote), "span field")
    return span, (start, end + inclusive), kind, quote


def _first_keys(*paths: str) -> set[str]:
    return {path.partition(".")[0] for path in paths}


def entity_of_each_type(
    span: JsonObject, text: str, fragment: Offsets, types: Sequence[Any], quote: str = "text"
) -> Iterator[Entity | None]:
    """One entity for every type of a span; `quote` is its field with the covered text."""
    if not types:
        span.check.drop("entities without a type dropped", example=f"{span.where}: {span.name}")
    covered = span.value(quote, str) if span.get(quote) else None
    for kind in types:
        yield span.check.entity(text, [fragment], kind, covered, span.where, span.name)


def word_entity(raw: object, record: JsonObject, name: str, form: Mapping[str, Any], tokens: list[Any]) -> Entity:
    """The entity of a span that counts words, with which a covered text is compared."""
    span, (start, end), kind, quote = read_span(raw, record, name, form)
    words = " ".join(map(str, tokens[start:end])) if 0 <= start < end <= len(tokens) else ""
    if words and (said := span.get(quote)) and not same_but_for_space(str(said), words):
        remedy = "Count words from 0, with an exclusive end (or inclusive_end in columns=)"
        raise span.error(quote, f"is {said!r}, but the words {start} to {end} are {words!r}", remedy)
    return Entity(start=start, end=end, type=span.value(kind, str))


TEXT_SPANS = CorpusFormat(
    name="text_spans",
    description="JSON of texts with spans by characters, as exported by Doccano",
    read=json_reader(annotated_text, "text and entities", values=_records),
    keys=(
        "text",
        "full_text",
        *(f"{text} {spans}" for text in ("content", "data") for spans in SPANS[:5]),
        "sentence annotations",
        "sentence entities",
        "classes annotations",
    ),
    recognizes=lambda head: PAIRS.match(head) is not None,
    columns="the fields: {'text': …, 'entities': …, 'start': …, 'end': …, 'type': …, 'inclusive_end': True}",
)
