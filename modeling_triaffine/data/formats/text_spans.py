"""Reads texts with spans by characters in JSON, as annotation tools and scripts write them; BioC in XML, too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from ...files import JSON_SUFFIXES
from ...model.text_triaffine import Offsets
from ..reading import JsonObject, Pair, json_reader, json_values, layers_of, read_head, xml_elements
from ..schema import WITHOUT_SPANS, Entity, RecordChecker, Text, annotated, positions, same_but_for_space
from . import CorpusFormat, check_columns

SPANS = ("entities", "spans", "label", "labels", "denotations", "annotations")
# The covered text, with which the offsets are compared.
QUOTES = ("text", "word", "entity_text", "mention", "mention_text", "span_text", "covered_text", "surface", "quote")
LAST = "end_idx"
"""The offset of a span's last character, in data sets of CBLUE (CMeEE). In some of their versions it is the offset
after it, as the length of the quote then shows."""
Names = tuple[str, ...]


class FieldNames(NamedTuple):
    """The names that the fields of a record with a text and its spans may have, or paths as "data.text".

    `start`, `end`, `type` and `quote` are those of a span that is an object; a list is [start, end, type].
    """

    text: Names = ("text", "sentence", "full_text", "content", "data")
    entities: Names = SPANS
    start: Names = (
        *("start", "start_offset", "start_idx", "start_position", "begin"),
        *("span.begin", "span.start", "span.0"),
    )
    end: Names = ("end", "end_offset", LAST, "end_position", "span.end", "span.1")
    # entity_group: of the pipeline and `predict`.
    type: Names = ("label", "type", "labels", "obj", "entity_group", "entity_type", "name")
    quote: Names = (*QUOTES, "value", "entity", "entity_value")
    id: Names = ("id",)
    inclusive_end: bool | None = None  # the end is the offset of the last character; None: only in `LAST`


FIELDS = FieldNames()
OF_SPAN = ("start", "end", "type", "quote", "inclusive_end")  # that `columns` may name
# Fields of a span that only matter to the tool that wrote it.
BOOKKEEPING = {"id", "token_start", "token_end", "input_hash", "source", "score"}
REJECTED = ("reject", "ignore")  # values of Prodigy's `answer` for texts that should not be used
# Texts and their annotations, as for spaCy 2; ner-annotator has such pairs under `annotations`.
PAIRS = re.compile(r'\[\s*(?:\[\s*)?"(?:[^"\\]|\\.)*"\s*,\s*\{')


def annotated_text(record: JsonObject, default_id: str, columns: Mapping[str, Any] | None = None) -> Text | None:
    """The text of one record with its spans by characters; `default_id` names it if it has no id. None if rejected.

    A span is a list [start, end, type] or an object with start, end and type (a list of types: one entity each), and
    perhaps the covered text, which is checked. `columns` names fields; those that it does not are as in `FIELDS`.
    """
    names = FIELDS if columns is None else _checked_fields(columns)
    if (answer := record.fields.get("answer")) in REJECTED:
        record.check.note(f"texts with the answer {answer!r} ignored")
        return None
    identifier = record.get(names.id[0])
    of_text = next((name for name in names.text if isinstance(record.get(name), str)), names.text[0])
    text = record.value(of_text, str, f"Give a string; a list of words is read by convert --columns tokens={of_text}")
    layers = layers_of(record, text)
    doc_id = default_id if identifier in (None, "") else str(identifier)
    entities = _entities(record, text, of_text, names, {*layers})
    made = annotated(doc_id, text, entities, record.where, layers.pop("borders", None))
    made.update(layers)  # type: ignore[typeddict-item]
    return made


def _checked_fields(columns: Mapping[str, Any]) -> FieldNames:
    check_columns(columns, ("text", "entities"), ("id", *OF_SPAN))
    for name, field in columns.items():
        if type(field) not in ((bool,) if name == "inclusive_end" else (str, int)):  # a number: of a list
            raise ValueError(f"`columns`: {name} is {field!r}. Give names or paths of fields, inclusive_end as a bool.")
    return named_fields({name: str(field) if type(field) is int else field for name, field in columns.items()})


def named_fields(columns: Mapping[str, Any]) -> FieldNames:
    given: dict[str, Any] = {name: (field,) if isinstance(field, str) else field for name, field in columns.items()}
    return FIELDS._replace(**given)


def _entities(
    record: JsonObject, text: str, of_text: str, names: FieldNames, layers: Set[str]
) -> Iterator[Entity | None]:
    """The entities of a record, whose text is in the field `of_text`; counts the fields that are not read."""
    present = [name for name in names.entities if name != of_text and record.get(name) is not None]
    filled = [name for name in present if (found := record.get(name)) and isinstance(found, list)]
    if len(filled) > 1:
        problem = f"there are spans in the fields {' and '.join(map(repr, filled))}"
        raise record.check.error(record.where, problem, "Put them into one of them")
    key = next(iter(filled or present), None)
    known = _first_keys(of_text, names.id[0], "answer", *layers, key or of_text)
    given = [name for name, value in record.fields.items() if value not in (None, [], {}) and not name.startswith("_")]
    record.check.note_other_fields(given, known)
    if key is None:
        record.check.note(WITHOUT_SPANS, example=record.where)
        return
    for index, raw in enumerate(record.value(key, list)):
        span, fragment, kind, quote = read_span(raw, record, f"{key}[{index}]", names)
        found = span.get(kind)
        types = found if isinstance(found, list) else [span.value(kind, str)]
        yield from _entity_of_each_type(span, text, fragment, types, quote)


def read_span(raw: object, record: JsonObject, place: str, names: FieldNames) -> tuple[JsonObject, Offsets, str, str]:
    """The object of a span, its positions, end exclusive, and its fields with the type and the covered text."""
    if isinstance(raw, list):
        keys = (names.start[0], names.end[0], names.type[0], *map(str, range(3, len(raw))))
        raw = dict(zip(keys, raw, strict=False))
    span = JsonObject(raw, record.where, record.check, place, "A span has start, end and label")
    first, last, kind = map(span.first_of, (names.start, names.end, names.type))
    start, end = span.value(first, int), span.value(last, int)
    quote = next((name for name in names.quote if name != kind and isinstance(span.fields.get(name), str)), QUOTES[0])
    inclusive = names.inclusive_end
    if inclusive is None:
        inclusive = last == LAST and len(str(span.get(quote) or "")) != end - start
    span.check.note_other_fields(span.fields, BOOKKEEPING | _first_keys(first, last, kind, quote), "span field")
    return span, (start, end + inclusive), kind, quote


def _first_keys(*paths: str) -> set[str]:
    return {path.partition(".")[0] for path in paths}


def _entity_of_each_type(
    span: JsonObject, text: str, fragment: Offsets, types: Sequence[Any], quote: str
) -> Iterator[Entity | None]:
    """One entity for every type of a span; `quote` is its field with the covered text."""
    if not types:
        span.check.drop("entities without a type dropped", example=f"{span.where}: {span.name}")
    covered = span.value(quote, str) if span.get(quote) else None
    for kind in types:
        yield span.check.entity(text, [fragment], kind, covered, span.where, span.name)


def word_entity(raw: object, record: JsonObject, place: str, names: FieldNames, tokens: list[Any]) -> Entity:
    """The entity of a span that counts words; CorpusError if these words differ from the quote of the span."""
    span, (start, end), kind, quote = read_span(raw, record, place, names)
    words = " ".join(map(str, tokens[start:end])) if 0 <= start < end <= len(tokens) else ""
    if words and (said := span.get(quote)) and not same_but_for_space(str(said), words):
        remedy = "Count words from 0, with an exclusive end (or inclusive_end in columns=)"
        raise span.error(quote, f"is {said!r}, but the words {start} to {end} are {words!r}", remedy)
    return Entity(start=start, end=end, type=span.value(kind, str))


def _records(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The records of a file with their places, pairs of a text and its annotations as records."""
    for raw, where in json_values(path, check):
        pairs = raw.get("annotations") if isinstance(raw, dict) else None
        if not isinstance(pairs, list) or all(_as_record(pair) is pair for pair in pairs):
            yield _as_record(raw), where
            continue
        for number, pair in enumerate(pairs):
            if pair is None:
                check.note("texts without an annotation ignored", example=f"{where}, annotations[{number}]")
            else:
                yield _as_record(pair), f"{where}, annotations[{number}]"


def _as_record(raw: object) -> object:
    """A pair of a text and its annotations as a record; anything else as it is."""
    match raw:
        case [str(text), dict(annotations)]:
            return {"text": text, **annotations}
    return raw


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

# ---- Label Studio ----

PLAIN, HYPERTEXT = "labels", "hypertextlabels"


def _text_of_task(task: JsonObject, default_id: str) -> Text | None:
    """The text of a task, in its data as `text` or as the only string, and the labelled regions of one annotation."""
    identifier = default_id if task.fields.get("id") is None else task.fields["id"]
    task.where += f" (task {identifier})"
    note = task.check.note
    note("predictions ignored", len([*task.objects("predictions", optional=True)]))
    annotations = list(task.objects("annotations"))
    made = [annotation for annotation in annotations if not annotation.fields.get("was_cancelled")]
    note("cancelled annotations ignored", len(annotations) - len(made))
    if not made:
        note("tasks without an annotation ignored", example=task.where)
        return None
    note("further annotations of a task ignored", len(made) - 1, task.where)
    # The ground truth, or else the latest one, of equal ones the last.
    made.sort(key=lambda item: (bool(item.fields.get("ground_truth")), str(item.fields.get("created_at", ""))))
    data = task.object("data", "It must contain the text")
    texts = [name for name, value in data.fields.items() if isinstance(value, str)]
    if "text" not in texts and len(texts) != 1:
        problem = f"has {len(texts)} strings, {', '.join(map(repr, texts)) or 'none'}"
        raise task.error("data", problem, "Name the one that was labelled 'text'")
    text = data.value("text" if "text" in texts else texts[0], str)
    return annotated(str(identifier), text, _regions(made[-1], text), task.where)


def _regions(annotation: JsonObject, text: str) -> Iterator[Entity | None]:
    for region in annotation.objects("result"):
        kind = region.fields.get("type")
        if kind not in (PLAIN, HYPERTEXT):
            annotation.check.note(f"results of type {kind!r} ignored")
            continue
        value = region.object("value", "A region has a value")
        offsets = value if kind == PLAIN else value.object("globalOffsets", "HyperText needs offsets in its text")
        fragment = (offsets.value("start", int), offsets.value("end", int))
        types = value.value(kind, list) if kind in value.fields else []
        yield from _entity_of_each_type(value, text, fragment, types, "text")


LABEL_STUDIO = CorpusFormat(
    name="label_studio",
    description="Label Studio's JSON export",
    read=json_reader(_text_of_task, "data and annotations"),
    # `data` may follow after the part of a long task that is looked at.
    keys=("data annotations", "data predictions", "id annotations -text -sentence -tokens -passages"),
)

# ---- BioC and bigbio: documents in passages, with annotations at their offsets in the document ----

WRAPPERS = ("documents", "PubTator3")  # fields under which a JSON object has a list of documents
MAX_GAP = 100_000  # characters between two passages: a larger offset is a mistake, and not filled with spaces

Passage = tuple[int, str, str]  # offset of its first character in the document, text, and its name for messages
Annotation = tuple[JsonObject, list[Offsets], str, str | None]  # an entity's object; its fragments, type and quote


def _text_of(record: JsonObject, doc_id: str, passages: list[Passage], annotations: list[Annotation]) -> Text:
    """The text of passages, in any order, which stand at their offsets; no sentence crosses their borders."""
    check, text, end = record.check, "", 0
    borders: list[int] = []
    for offset, passage, name in sorted(passages):
        gap = offset - end
        if not 0 <= gap <= MAX_GAP:
            problem = f"field '{name}' begins at {offset}, but the passage before it ends at {end}"
            raise check.error(record.where, problem, "Offsets count characters from the beginning of the document")
        borders += [len(text), len(text) + gap]
        text += " " * gap + passage
        end = offset + positions(passage, check.offsets)[-1]
    entities = []
    for found, fragments, kind, quote in annotations:
        if fragments:
            entities.append(check.entity(text, fragments, kind, quote, found.where, found.name))
        else:  # of the whole document, or of something outside of it
            check.drop("entities without offsets dropped", 1, f"{found.where}: {found.name}")
    return annotated(doc_id, text, entities, record.where, borders)


def _bioc_text(document: JsonObject, default_id: str) -> Text:
    """The document with the annotations of all its parts; its text is that of its passages, or of their sentences."""
    doc_id = str(document.fields.get("id") or default_id)
    document.where += f" (document {doc_id})"
    parts, passages = [document], []
    for passage in document.objects("passages"):
        sentences = list(passage.objects("sentences", optional=True))
        parts += [passage, *sentences]
        for part in [passage] if passage.fields.get("text") else sentences:
            passages.append((part.value("offset", int), part.value("text", str), part.name))
    annotations: list[Annotation] = []
    for part in parts:
        document.check.note("relations ignored", len([*part.objects("relations", optional=True)]))
        for found in part.objects("annotations", optional=True):
            kind = found.object("infons", "It must have the key 'type'").value("type", str)
            places = found.objects("locations", optional=True)
            spans = [(place.value("offset", int), place.value("length", int)) for place in places]
            quote = found.value("text", str) if found.fields.get("text") else None
            annotations.append((found, [(offset, offset + length) for offset, length in spans], kind, quote))
    return _text_of(document, doc_id, passages, annotations)


def _bioc_documents(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The documents with their places; those of XML have the names and values that they have in JSON."""
    if read_head(path).startswith("<"):
        number = 0
        for element in xml_elements(path, check):
            if element.tag == "document":
                yield _fields(element), f"document {number}"
                element.clear()
                number += 1
        if not number:
            raise check.error("", "it has no <document>", "Give BioC's XML or JSON")
        return
    for value, where in json_values(path, check):
        fields = value if isinstance(value, Mapping) else {}
        wrapper = next((name for name in WRAPPERS if name in fields), None)
        if wrapper is None:
            yield value, where
        else:
            for index, document in enumerate(check.valid(fields[wrapper], list, where, wrapper)):
                yield document, f"{where}, {wrapper}[{index}]"


def _fields(element: Element) -> dict[str, Any]:
    """An element with the names and values that it has in JSON; `offset` and `length` are numbers where they can be."""
    fields: dict[str, Any] = {name: element.get(name) for name in ("id", "offset", "length")}
    fields.update((child.tag, (child.text or "").strip()) for child in element if child.tag in ("id", "offset"))
    fields["text"] = element.findtext("text")
    for name in ("offset", "length"):
        if re.fullmatch("[0-9]{1,15}", fields[name] or ""):
            fields[name] = int(fields[name])
    fields["infons"] = {infon.get("key"): infon.text or "" for infon in element.findall("infon")}
    for part in ("passage", "sentence", "annotation", "location", "relation"):
        fields[f"{part}s"] = [_fields(child) for child in element.findall(part)]
    return {name: value for name, value in fields.items() if value is not None}


BIOC = CorpusFormat(
    name="bioc",
    description="BioC, in XML or JSON",
    read=json_reader(_bioc_text, "id and passages", values=_bioc_documents),
    suffixes=(".xml", *JSON_SUFFIXES),
    keys=(*WRAPPERS, "passages"),
    recognizes=lambda head: "<collection" in head,
)


def bigbio_text(record: JsonObject, default_id: str) -> Text:
    """The text of one record; `default_id` names it if it has neither `document_id` nor `id`."""
    for name in ("events", "coreferences", "relations"):
        record.check.note(f"{name} ignored", len([*record.objects(name, optional=True)]))
    passages: list[Passage] = []
    for passage in record.objects("passages"):
        offsets = passage.value("offsets", list[Pair])
        if len(offsets) != 1:
            raise passage.error("offsets", f"has {len(offsets)} pairs", "A passage has one: [[start, end]]")
        passages.append((offsets[0][0], _joined(passage), passage.name))
    annotations: list[Annotation] = []
    for found in record.objects("entities"):
        places = found.value("offsets", list[Pair], "It has pairs [start, end]")
        annotations.append((found, places, found.value("type", str), _joined(found) or None))
    doc_id = str(record.fields.get("document_id") or record.fields.get("id") or default_id)
    return _text_of(record, doc_id, passages, annotations)


def _joined(part: JsonObject) -> str:
    """The strings of `text`, a list or in some corpora one string, joined; empty if there are none."""
    given = part.fields.get("text") or []
    return given if isinstance(given, str) else " ".join(part.value("text", list[str]) if given else [])


BIGBIO_KB = CorpusFormat(
    name="bigbio_kb",
    description="bigbio's records of passages and entities",
    read=json_reader(bigbio_text, "passages and entities"),
    # `entities` may follow after the part of a long document that is looked at.
    keys=("passages document_id", "passages entities"),
)
