"""Reads JSON of texts with spans by characters, as Doccano, Prodigy, PubAnnotation and many scripts write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from ...model.text_triaffine import Offsets
from ..corpus_format import CorpusFormat, Keys, check_columns
from ..json_records import JsonObject, Pair, json_values
from ..reading import document_name
from ..record_checker import WITHOUT_SPANS, RecordChecker
from ..schema import Entity, Text
from ..texts import layers_of

TEXTS = ("text", "sentence", "full_text", "content", "data")
SPANS = ("entities", "spans", "label", "labels", "denotations", "annotations", "annotation")
DATATURKS = "annotation"
"""The field of Dataturks's spans, whose ends are the offsets of last characters."""
LAST = "end_idx"
"""The offset of a span's last character, in data sets of CBLUE (CMeEE). In some of their versions it is the offset
after it, as the length of the quote then shows."""
START = ("start", "start_offset", "start_idx", "start_position", "begin", "span.begin", "span.start")
END = ("end", "end_offset", LAST, "end_position", "span.end")
TYPE = ("label", "type", "labels", "obj", "entity_group", "entity_type", "name")  # entity_group: pipeline and predict
LISTED = ("span", "points")
"""A list with [start, end], or with several fragments, as of PubAnnotation's discontinuous entities."""
QUOTES = ("text", "points.0.text", "word", "entity_text", "mention", "value", "entity", "entity_value")
"""The covered text, with which the offsets are compared."""
BOOKKEEPING = {"id", "token_start", "token_end", "input_hash", "source", "score"}
"""Fields of a span that only matter to the tool that wrote it."""
OF_SPAN = ("start", "end", "type", "inclusive_end")
"""The fields of spans that `columns` may name."""
RESPONSES = "responses"
"""The field of Argilla 2's records: question → one response for each annotator."""
FURTHER_ANNOTATIONS = "further annotations of a task ignored"
REJECTED = ("reject", "ignore")
"""Values of Prodigy's `answer` for texts that should not be used."""
PAIRS = re.compile(r'\[\s*(?:\[\s*)?"(?:[^"\\]|\\.)*"\s*,\s*\{')
"""Texts and their annotations, as for spaCy 2; ner-annotator has such pairs under `annotations`."""


FORM: Mapping[str, Any] = {
    "text": TEXTS,
    "entities": SPANS,
    "start": START,
    "end": END,
    "type": TYPE,
    "id": ("id",),
    "inclusive_end": None,
}
"""The fields of records with the text and its spans; each has one of the names given, or paths as "data.text".

`start`, `end` and `type` are those of a span that is an object; a list is [start, end, type]. With `inclusive_end` the
end is the offset of the last character; None: only in `LAST`, and of Dataturks.
"""


def text_form(columns: Mapping[str, Any]) -> Mapping[str, Any]:
    """The form that `columns` names; what it does not is as in other texts."""
    check_columns(columns, ("text", "entities"), ("id", *OF_SPAN))
    for name, field in columns.items():
        if not isinstance(field, bool if name == "inclusive_end" else str):
            what = "true or false" if name == "inclusive_end" else "the name of a field, or its path"
            raise ValueError(f"`columns`: {name} is {field!r}. Give {what}.")
    return {**FORM, **{name: (field,) if isinstance(field, str) else field for name, field in columns.items()}}


def read_text_spans(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads texts with spans by characters; a CorpusError names the line or record and the field.

    A span is a list [start, end, type] or an object with start, end and type (a list of types: one entity each), and
    perhaps the covered text, which is checked.

    Args:
        columns: the names of the fields, see [`text_form`]; None takes those of `FORM`.
    """
    form = FORM if columns is None else text_form(columns)
    file_name = document_name(path, check)
    for number, (raw, where) in enumerate(_latest(_plain(json_values(path, check), check), check)):
        with check.record():
            record = JsonObject(raw, where, check, remedy="A record has the fields text and entities")
            if (answer := record.fields.get("answer")) in REJECTED:
                check.note(f"texts with the answer {answer!r} ignored")
                continue
            yield annotated_text(record, f"{file_name}:{number}", form)


# ---- Exports that are brought to the form of a text with its spans ----


def _plain(values: Iterable[tuple[object, str]], check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values, pairs of text and annotations as records, of Argilla's the first response with spans."""
    for raw, where in values:
        pairs = raw.get("annotations") if isinstance(raw, dict) and "text" not in raw else [raw]
        if isinstance(pairs, list) and pairs and all(map(_is_pair, pairs)):
            for number, (text, annotations) in enumerate(pairs):
                place = where if pairs == [raw] else f"{where}, annotations[{number}]"
                yield {"text": text, **annotations}, place
        elif isinstance(raw, dict) and isinstance(raw.get("fields"), dict) and isinstance(raw.get(RESPONSES), dict):
            with check.record():
                if (spans := _first_response(raw[RESPONSES], where, check)) is not None:
                    yield {"id": raw.get("id"), **raw["fields"], "spans": spans}, where
        else:
            yield raw, where


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and list(map(type, value)) == [str, dict]


def _first_response(responses: Mapping[str, Any], where: str, check: RecordChecker) -> list[Any] | None:
    """The spans in the first response to the question of spans; None if nobody answered it."""
    found = [
        (question, reply["value"])
        for question, given in responses.items()
        for reply in (given if isinstance(given, list) else ())
        if isinstance(reply, Mapping) and isinstance(reply.get("value"), list) and all(map(_is_object, reply["value"]))
    ]
    if len(questions := dict(found)) > 1:
        problem = f"field {RESPONSES!r} has spans of {' and '.join(map(repr, questions))}"
        raise check.error(where, problem, "Export one question")
    if not found:
        check.note("texts without a response ignored", example=where)
        return None
    if len(found) > 1:
        check.note(FURTHER_ANNOTATIONS, len(found) - 1, where)
    return found[0][1]


def _latest(values: Iterable[tuple[object, str]], check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values, of Label Studio's JSON-MIN only the latest annotation of each task; the others are counted.

    JSON-MIN has a record for every annotation, with the id of its task. Such records come last.
    """
    latest: dict[str, tuple[dict[str, object], str]] = {}
    for raw, where in values:
        if not isinstance(raw, dict) or "annotation_id" not in raw or raw.get("id") is None:
            yield raw, where
            continue
        task = str(raw["id"])
        if task in latest:
            check.note(FURTHER_ANNOTATIONS, example=where)
        if task not in latest or str(raw.get("created_at", "")) > str(latest[task][0].get("created_at", "")):
            latest[task] = raw, where
    yield from latest.values()


# ---- A text with its spans ----


def annotated_text(record: JsonObject, default_id: str, form: Mapping[str, Any]) -> Text:
    """The text of one record with its spans; `default_id` names it if it has no id."""
    identifier = record.get(form["id"][0])
    named = next((name for name in form["text"] if isinstance(record.get(name), str)), form["text"][0])
    text = record.value(named, str)
    layers = layers_of(record, text)
    found = Text(
        doc_id=default_id if identifier in (None, "") else str(identifier),
        text=text,
        entities=[entity for entity in _entities(record, text, named, form, {*layers}) if entity],
        where=record.where,
    )
    found.update(layers)  # type: ignore[typeddict-item]
    return found


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
    elif isinstance(record.get(key), Mapping):
        yield from _by_label(record.object(key, "It has the spans of each label"), text, bool(form["inclusive_end"]))
    else:
        inclusive = key == DATATURKS if form["inclusive_end"] is None else form["inclusive_end"]
        for index, raw in enumerate(record.value(key, list)):
            if isinstance(raw, list):
                names = (form["start"][0], form["end"][0], form["type"][0], *map(str, range(3, len(raw))))
                raw = dict(zip(names, raw, strict=False))
            span = JsonObject(raw, record.where, record.check, f"{key}[{index}]", "A span has start, end and label")
            yield from _entities_of_span(span, text, form, inclusive)


def _by_label(labels: JsonObject, text: str, inclusive_end: bool) -> Iterator[Entity | None]:
    """The entities in a dictionary: label → spans, or as in CLUENER label → text → spans with inclusive ends."""
    for kind, found in labels.fields.items():
        places: list[tuple[JsonObject, str, str | None]] = [(labels, kind, None)]  # object and field of spans, quote
        if isinstance(found, Mapping):
            of_label = labels.object(kind, "")
            places = [(of_label, quote, quote) for quote in of_label.fields]
        for owner, field, quote in places:
            for start, end in owner.value(field, list[Pair], "A span is [start, end]"):
                fragment = start, end + (inclusive_end or quote is not None)
                yield labels.check.entity(text, [fragment], kind, quote, labels.where, owner.name_of(field))


def _entities_of_span(
    span: JsonObject, text: str, form: Mapping[str, Any], inclusive_end: bool
) -> Iterator[Entity | None]:
    kind = span.first_of(form["type"])
    quote = next((name for name in QUOTES if name != kind and isinstance(span.get(name), str)), "text")
    fragments, used = fragments_of(span, form, inclusive_end)
    if form["inclusive_end"] is None and LAST in used:
        ((start, end),) = fragments
        fragments = [(start, end + (len(str(span.get(quote) or "")) != end - start))]
    span.note_other_fields(BOOKKEEPING | _first_keys(*used, kind, quote), "span field")
    found = span.get(kind)
    types = found if isinstance(found, list) else [span.value(kind, str)]
    yield from entity_of_each_type(span, text, fragments, types, quote)


def fragments_of(span: JsonObject, form: Mapping[str, Any], inclusive_end: bool) -> tuple[list[Offsets], list[str]]:
    """The positions of a span, in two fields or in a list, [start, end] or one fragment each; and these fields."""
    listed = next((name for name in LISTED if isinstance(span.fields.get(name), list)), None)
    if listed is None or form["start"] is not START:
        used = [span.first_of(form[name]) for name in ("start", "end")]
        start, end = (span.value(name, int) for name in used)
        return [(start, end + inclusive_end)], used
    found = span.value(listed, list)
    fragments = []
    for index, pair in enumerate([found] if all(type(offset) is int for offset in found) else found):
        fields = dict(zip(("start", "end"), pair, strict=False)) if isinstance(pair, list) else pair
        part = JsonObject(fields, span.where, span.check, f"{span.name_of(listed)}[{index}]")
        start, end = (part.value(part.first_of(names), int) for names in (START, END))
        fragments.append((start, end + inclusive_end))
    return fragments, [listed]


def _first_keys(*paths: str) -> set[str]:
    return {path.partition(".")[0] for path in paths}


def entity_of_each_type(
    span: JsonObject, text: str, fragments: Sequence[Offsets], types: Sequence[Any], quote: str = "text"
) -> Iterator[Entity | None]:
    """One entity for every type of a span; `quote` is its field with the covered text."""
    if not types:
        span.check.drop("entities without a type dropped", example=f"{span.where}: {span.name}")
    for kind in types:
        yield span.entity(text, fragments, kind, quote)


TEXT_SPANS = CorpusFormat(
    name="text_spans",
    description="JSON of texts with spans by characters, as exported by Doccano",
    read=read_text_spans,
    keys=(
        Keys.of("text"),
        Keys.of("full_text"),
        *(Keys.of(f"{text} {spans}") for text in ("content", "data") for spans in SPANS[:5]),
        Keys.of("content annotation"),
        Keys.of("sentence annotations"),
        Keys.of("sentence entities"),
        Keys.of(f"fields {RESPONSES}"),
        Keys.of("classes annotations"),
    ),
    recognizes=lambda head: PAIRS.match(head) is not None,
    columns="the fields: {'text': …, 'entities': …, 'start': …, 'end': …, 'type': …, 'inclusive_end': True}",
    tools="Doccano, Prodigy, PubAnnotation, Label Studio (JSON-MIN), Dataturks, Argilla, spaCy 2, scripts",
    example='{"text": "The mayor of Orsk", "entities": [{"start": 13, "end": 17, "label": "City"}]}',
)
