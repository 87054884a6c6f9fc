"""Reads JSON of texts with spans by characters, as Doccano, Prodigy, PubAnnotation and many scripts write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...model.text_triaffine import Offsets
from ..corpus_format import CorpusFormat, Keys, check_columns
from ..json_records import JsonObject, Pair, json_values
from ..reading import document_name
from ..record_checker import WITHOUT_SPANS, RecordChecker
from ..schema import Entity, Text

SPANS = ("entities", "spans", "label", "labels", "denotations")
LAST = "end_idx"
"""The offset of a span's last character, in data sets of CBLUE (CMeEE), which quote the span as `entity` or `text`. In
some of their versions it is the offset after it, as the length of the quote then shows."""
START = ("start", "start_offset", "start_idx", "start_position", "begin", "span.begin", "span.start")
END = ("end", "end_offset", LAST, "end_position", "span.end")
TYPE = ("label", "type", "labels", "obj", "entity_group", "entity_type", "name")  # entity_group: pipeline and predict
LISTED = ("span", "points")
"""A list with [start, end], or with several fragments, as of PubAnnotation's discontinuous entities."""
QUOTES = ("text", "points.0.text", "word", "entity_text", "mention", "value", "entity", "entity_value")
"""The covered text, with which the offsets are compared."""
BY_LABEL = ("label", "labels")
"""May be a dictionary: label → spans, or as in CLUENER label → text → spans, where the end is the last character."""
BOOKKEEPING = {"id", "token_start", "token_end", "input_hash", "source"}
"""Fields of a span that only matter to the tool that wrote it."""
BORDERS = "borders"
"""Positions that no sentence crosses, of `load_texts` and `convert`."""
OF_SPAN = ("start", "end", "type", "inclusive_end")
"""What `columns` may say of spans."""
OF_TEXT = Keys.of("text")
RESPONSES = "responses"
"""Of Argilla 2: question → one response for each annotator."""
FURTHER_ANNOTATIONS = "further annotations of a task ignored"
REJECTED = ("reject", "ignore")
"""Values of Prodigy's `answer` for texts that should not be used."""


@dataclass(frozen=True)
class TextForm:
    """Where records of one form have their text and its spans; each has one of the names given.

    A name may be a path: "data.text", "points.0.start".

    Args:
        keys: the keys by which records of this form are recognized.
        text: the field of the text.
        spans: the list of spans.
        start, end, type: of a span that is an object; a list is [start, end, type].
        inclusive_end: whether the end is the offset of the last character; None: only in `LAST`.
        id: the name of the text.
    """

    keys: Keys = OF_TEXT
    text: str = "text"
    spans: tuple[str, ...] = SPANS
    start: tuple[str, ...] = START
    end: tuple[str, ...] = END
    type: tuple[str, ...] = TYPE
    inclusive_end: bool | None = None
    id: str = "id"

    @classmethod
    def named(cls, columns: Mapping[str, Any]) -> TextForm:
        """The form that `columns` names; what it does not is as in other texts."""
        check_columns(columns, ("text", "entities"), ("id", *OF_SPAN))
        for name in ("text", "entities", "id", "start", "end", "type"):
            if not isinstance(field := columns.get(name, ""), str):
                raise ValueError(
                    f"`columns`: {name} is {field!r}; give the name of a field of the records, or its path."
                )
        of_span: dict[str, Any] = {name: (columns[name],) for name in ("start", "end", "type") if name in columns}
        kept = {name: columns[name] for name in ("text", "id", "inclusive_end") if name in columns}
        return cls(spans=(columns["entities"],), **kept, **of_span)


ARGILLA = TextForm(Keys.of(f"fields {RESPONSES}"), text="fields.text", spans=(RESPONSES,))
TEXT_FORMS = (
    TextForm(),
    TextForm(Keys.of("sentence annotations"), text="sentence", spans=("annotations",)),
    TextForm(Keys.of("sentence entities"), text="sentence", spans=("entities",)),
    TextForm(Keys.of("full_text"), text="full_text"),
    *(TextForm(Keys.of(f"{text} {spans}"), text=text) for text in ("content", "data") for spans in SPANS),
    TextForm(Keys.of("content annotation"), text="content", spans=("annotation",), inclusive_end=True),  # Dataturks
    ARGILLA,
)
"""The forms of texts with spans; a record is of the one that requires most of its keys."""


def read_text_spans(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads texts with spans by characters; a CorpusError names the line or record and the field.

    The names of the fields are those of `TEXT_FORMS`. A span is a list [start, end, type] or an object with start, end
    and type (a list of types: one entity each), and perhaps the covered `text`, which is checked.

    Args:
        columns: the names of the fields, see [`TextForm.named`]; None takes those of `TEXT_FORMS`.
    """
    named = None if columns is None else TextForm.named(columns)
    file_name = document_name(path, check)
    hashes: set[str] = set()  # Prodigy's, the same in every annotator's copy of a text
    for number, (raw, where) in enumerate(latest_annotations(json_values(path, check), check)):
        with check.record():
            record = JsonObject(raw, where, check, remedy="A record has the fields text and entities")
            if (answer := record.fields.get("answer")) in REJECTED:
                check.note(f"texts with the answer {answer!r} ignored")
                continue
            if (text_hash := record.fields.get("_input_hash")) not in (None, ""):
                if str(text_hash) in hashes:
                    check.note("repeated texts read, with the _input_hash of an earlier text", example=where)
                hashes.add(str(text_hash))
            form = named or form_of(record)
            if form is not ARGILLA:
                yield annotated_text(record, f"{file_name}:{number}", form)
            elif path_of_spans := _first_response(record):
                form = replace(ARGILLA, spans=(path_of_spans,))
                yield annotated_text(record, f"{file_name}:{number}", form)


def _first_response(record: JsonObject) -> str | None:
    """The path of the spans in the first response of Argilla to the question of spans; None if nobody answered it."""
    questions = record.object(RESPONSES, "It has the responses to each question")
    answered = {
        question: [
            n for n, one in enumerate(questions.objects(question, optional=True)) if _has_spans(one.fields.get("value"))
        ]
        for question in questions.fields
    }
    answered = {question: responses for question, responses in answered.items() if responses}
    if len(answered) > 1:
        raise record.error(RESPONSES, f"has spans of {' and '.join(map(repr, answered))}", "Export one question")
    for question, (first, *others) in answered.items():
        if others:
            record.check.note(FURTHER_ANNOTATIONS, len(others), record.where)
        return f"{RESPONSES}.{question}.{first}.value"
    record.check.note("texts without a response ignored", example=record.where)
    return None


def _has_spans(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def latest_annotations(values: Iterable[tuple[object, str]], check: RecordChecker) -> Iterator[tuple[object, str]]:
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


def form_of(record: JsonObject) -> TextForm:
    """The form of a record by its keys; the first form of all if it has the keys of none."""
    keys = frozenset(record.fields)
    fitting = [form for form in TEXT_FORMS if form.keys.fit(keys)] or TEXT_FORMS[:1]
    return max(fitting, key=lambda form: len(form.keys.required))


def annotated_text(record: JsonObject, default_id: str, form: TextForm) -> Text:
    """The text of one record with its spans; `default_id` names it if it has no id."""
    identifier, text = record.get(form.id), record.value(form.text, str)
    found = Text(
        doc_id=default_id if identifier in (None, "") else str(identifier),
        text=text,
        entities=[entity for entity in _entities(record, text, form) if entity],
        where=record.where,
    )
    if record.fields.get(BORDERS):
        found["borders"] = sorted(border for border in record.value(BORDERS, list[int]) if 0 < border < len(text))
    return found


def _entities(record: JsonObject, text: str, form: TextForm) -> Iterator[Entity | None]:
    present = [name for name in form.spans if record.get(name) is not None]
    filled = [name for name in present if (found := record.get(name)) and isinstance(found, list)]
    if len(filled) > 1:
        problem = f"there are spans in the fields {' and '.join(map(repr, filled))}"
        raise record.check.error(record.where, problem, "Put them into one of them")
    key = next(iter(filled or present), None)
    known = _first_keys(form.text, form.id, "answer", BORDERS, *([key] if key else []))
    for name in record.fields.keys() - known:
        if record.fields[name] not in (None, [], {}) and not name.startswith("_"):
            record.check.note(f"field '{name}' ignored")
    if key is None:
        record.check.note(WITHOUT_SPANS, example=record.where)
        return
    if key in BY_LABEL and isinstance(record.get(key), Mapping):
        yield from _by_label(record.object(key, "It has the spans of each label"), text, bool(form.inclusive_end))
        return
    for index, raw in enumerate(record.value(key, list)):
        if isinstance(raw, list):
            names = (form.start[0], form.end[0], form.type[0], *map(str, range(3, len(raw))))
            raw = dict(zip(names, raw, strict=False))
        span = JsonObject(raw, record.where, record.check, f"{key}[{index}]", "A span has start, end and label")
        yield from _entities_of_span(span, text, form)


def _entities_of_span(span: JsonObject, text: str, form: TextForm) -> Iterator[Entity | None]:
    kind = span.first_of(form.type)
    listed = next((name for name in LISTED if isinstance(span.fields.get(name), list)), None)
    if listed:
        fragments, used = _listed_offsets(span, listed, bool(form.inclusive_end)), [listed]
    else:
        used = [span.first_of(names) for names in (form.start, form.end)]
        start, end = (span.value(name, int) for name in used)
        fragments = [(start, end + bool(form.inclusive_end))]
    quote = next((name for name in QUOTES if name != kind and isinstance(span.get(name), str)), "text")
    if form.inclusive_end is None and LAST in used and len(str(span.get(quote) or "")) != end - start:
        fragments = [(start, end + 1)]
    span.note_other_fields(BOOKKEEPING | _first_keys(*used, kind, quote), "span field")
    found = span.get(kind)
    types = found if isinstance(found, list) else [span.value(kind, str)]
    yield from entity_of_each_type(span, text, fragments, types, quote)


def _by_label(labels: JsonObject, text: str, inclusive_end: bool) -> Iterator[Entity | None]:
    """The entities in a dictionary: label → spans, or label → text → spans with inclusive ends."""
    for kind, found in labels.fields.items():
        places: list[tuple[JsonObject, str, str | None]] = [(labels, kind, None)]  # object and field of spans, quote
        if isinstance(found, Mapping):
            of_label = labels.object(kind, "")
            places = [(of_label, quote, quote) for quote in of_label.fields]
        for owner, field, quote in places:
            for start, end in owner.value(field, list[Pair], "A span is [start, end]"):
                fragment = start, end + (inclusive_end or quote is not None)
                yield labels.check.entity(text, [fragment], str(kind), quote, labels.where, owner.name_of(field))


def _listed_offsets(span: JsonObject, name: str, inclusive_end: bool) -> list[Offsets]:
    """The offsets in a list: [start, end], or one fragment each, as [start, end] or an object with these."""
    listed = span.value(name, list)
    fragments = []
    for index, pair in enumerate([listed] if all(type(one) is int for one in listed) else listed):
        fields = dict(zip(("start", "end"), pair, strict=False)) if isinstance(pair, list) else pair
        part = JsonObject(fields, span.where, span.check, f"{span.name_of(name)}[{index}]")
        start, end = (part.value(part.first_of(names), int) for names in (START, END))
        fragments.append((start, end + inclusive_end))
    return fragments


def _first_keys(*paths: str) -> set[str]:
    return {path.partition(".")[0] for path in paths}


def entity_of_each_type(
    span: JsonObject, text: str, fragments: Sequence[Offsets], types: Sequence[str], quote: str = "text"
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
    keys=tuple(form.keys for form in TEXT_FORMS),
    columns="the fields: {'text': …, 'entities': …, 'start': …, 'end': …, 'type': …, 'inclusive_end': True}",
    tools="Doccano, Prodigy, PubAnnotation, Label Studio (JSON-MIN), Dataturks, Argilla, scripts",
    example='{"text": "The mayor of Orsk", "entities": [{"start": 13, "end": 17, "label": "City"}]}',
)
