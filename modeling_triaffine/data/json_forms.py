"""Readers of JSON: this project's JSON lines, the published experiments' lists, and exports of annotation tools.

Examples of each form are in docs/corpora.md.

- `JSON_LINES`, this project's own form: one sentence a line with the fields of `schema.FEATURES`, of which only
  `tokens` and `entities` are required. A file without ids is one document, its sentences in order.
- `PUBLISHED_JSON`: one list of records with `tokens`, `pos`, `entities`, `ltokens` and `rtokens`, the form of ACE, KBP
  and GENIA in the triaffine experiments and in related work (locate-and-label and its successors). A record has its own
  context but no dependable id: ids are made from the file name and the record's index, each record is a document.
- `TEXT_SPANS`: texts with spans by characters, as Doccano, Prodigy, PubAnnotation, Label Studio (JSON-MIN) write them.
- `LABEL_STUDIO`: Label Studio's full export, tasks with the text in `data` and labelled regions in `annotations`.

All readers of JSON use `json_values`, the values of a file, and `JsonObject`, which names the field in errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..model.text_triaffine import Offsets
from .corpus_format import CorpusFormat
from .documents import AnnotatedText, Annotation, format_of_texts
from .reading import open_corpus, parse_json, read_head, stem
from .schema import CorpusError, Kind, Record, RecordChecker, names_of

CONTEXT_NAMES = {"ltokens": "left_tokens", "rtokens": "right_tokens"}
NOT_FOR_NER = ("relations", "org_id", "orig_id")
"""Fields of the published form that say nothing about entities. `orig_id` numbers sentences in one corpus and documents
in another, so it is not used as a document's name."""

NOT_OF_WORDS = (
    "A text with spans by characters has it under 'text'; with other columns, use adapt_dataset: see docs/corpora.md"
)

SPANS = ("entities", "spans", "label", "labels", "denotations")
LAST = "end_idx"
"""The offset of a span's last character, in data sets of CBLUE (CMeEE), which quote the span as `entity` or `text`."""
START, END = ("start", "start_offset", "start_idx", "begin"), ("end", "end_offset", LAST)
TYPE = ("label", "type", "labels", "obj", "entity_group")  # the last is of the pipeline, and of predict
BOOKKEEPING = {"id", "token_start", "token_end", "input_hash", "source"}
"""Fields of a span that only matter to the tool that wrote it."""
WITHOUT_SPANS = "texts without a field of spans read as without entities"
FURTHER_ANNOTATIONS = "further annotations of a task ignored"
REJECTED = ("reject", "ignore")
"""Values of Prodigy's `answer` for texts that should not be used."""

JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]:]', re.DOTALL)
"""Strings (the last one may be truncated), brackets and colons: enough to find the keys of a JSON object."""


def json_values(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values of JSON lines, of one JSON list, or one value of several lines; each with its place in the file.

    Lines are read one by one; a list is parsed as a whole, so that memory grows with the file.
    """
    head = read_head(path)
    first, continues, _ = head.partition("\n")
    with open_corpus(path) as file:
        if not head.startswith("[") and not (continues and _is_open(first)):
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield parse_json(line.rstrip(b"\r\n"), check, f"line {number}"), f"line {number}"
            return
        value = parse_json(file.read(), check, "")
    yield from ((one, f"record {number}") for number, one in enumerate(value if isinstance(value, list) else [value]))


def _is_open(line: str) -> bool:
    """Whether brackets of JSON are still open at the end of a line."""
    tokens = [match.group() for match in JSON_TOKEN.finditer(line)]
    return sum(token in ("{", "[") for token in tokens) > sum(token in ("}", "]") for token in tokens)


def record_keys(head: str) -> set[str]:
    """The keys of the first object in JSON lines or a JSON list, as far as `head` reaches; empty for anything else.

    >>> sorted(record_keys('[{"text": "a {", "label": [{"start": 0, "end": 1}], "me'))
    ['label', 'text']
    """
    keys: set[str] = set()
    if not head.startswith(("{", "[")):
        return keys
    depth, last = 0, ""
    for match in JSON_TOKEN.finditer(head):
        token = match.group()
        if token == ":" and depth == 1:
            keys.add(last.strip('"'))
        elif token in "{[" and (depth or token == "{"):
            depth += 1
        elif token in "}]" and depth:
            depth -= 1
            if not depth:
                break
        last = token
    return keys


class JsonObject:
    """Reads the fields of an object, and names object and field in errors.

    Args:
        raw: what was found; CorpusError, with the `remedy`, unless it is an object.
        where: its place in the file: "line 3".
        name: of the object in that place: "passages[0].annotations[2]"; empty for the record itself.
    """

    def __init__(
        self, raw: object, where: str, check: RecordChecker, name: str = "", remedy: str = "See docs/corpora.md"
    ):
        self.fields = check.mapping(raw, where, f"field '{name}'" if name else "the record", remedy)
        self.where, self.check, self.name = where, check, name

    def name_of(self, field: str) -> str:
        return f"{self.name}.{field}" if self.name else field

    def value(self, field: str, kind: type[Kind]) -> Kind:
        """The value of a required field of type str, int or list."""
        return self.check.typed(self.fields, field, kind, self.where, self.name)

    def object(self, field: str, remedy: str) -> JsonObject:
        return JsonObject(self.fields.get(field), self.where, self.check, self.name_of(field), remedy)

    def objects(self, field: str, remedy: str = "See docs/corpora.md") -> Iterator[JsonObject]:
        """The objects in a required list."""
        for index, raw in enumerate(self.value(field, list)):
            yield JsonObject(raw, self.where, self.check, f"{self.name_of(field)}[{index}]", remedy)

    def optional_objects(self, field: str) -> Iterator[JsonObject]:
        """The objects in a list; none if it is missing or null."""
        return self.objects(field) if self.fields.get(field) is not None else iter(())

    def require(
        self, fields: Sequence[str], form: str, remedy: str = "Give files of this form, or name another format"
    ) -> None:
        """Raises CorpusError, which names the fields there are, unless all these are among them."""
        if missing := [field for field in fields if field not in self.fields]:
            problem = f"field '{missing[0]}' is missing, so this is not {form}; its fields are {names_of(self.fields)}"
            raise self.check.error(self.where, problem, remedy)

    def note_other_fields(self, *known: str) -> None:
        for field in self.fields.keys() - {*known}:
            self.check.note(f"field '{field}' ignored")

    def error(self, field: str, problem: str, remedy: str) -> CorpusError:
        """The error for a field; the `problem` is said of it: "has 2 values"."""
        return self.check.error(self.where, f"field '{self.name_of(field)}' {problem}", remedy)

    def annotation(self, fragments: Sequence[Offsets], kind: str, quoted: str = "text") -> Annotation:
        """The entity that this object describes; the quote is its field `quoted`, if it has one."""
        quote = self.value(quoted, str) if self.fields.get(quoted) else None
        return Annotation(self.name, tuple(fragments), kind, quote, self.where)


# ---- Sentences of words ----


def read_json_lines(path: Path, check: RecordChecker) -> Iterator[Record]:
    """Reads this project's own form line by line, or from one list; a CorpusError names the place and the field."""
    for number, (raw, where) in enumerate(json_values(path, check)):
        if isinstance(raw, dict):
            JsonObject(raw, where, check).require(("tokens", "entities"), "a sentence of words", NOT_OF_WORDS)
            raw = {"id": f"{path.name}:{where}", "doc_id": path.name, "sent_id": number, **raw}
        yield check(raw, where)


def read_published_json(path: Path, check: RecordChecker) -> Iterator[Record]:
    """Reads the published experiments' form; a CorpusError names the record (counted from 0) and the field."""
    for number, (raw, where) in enumerate(json_values(path, check)):
        identifier = f"{stem(path)}:{number}"
        if isinstance(raw, dict):
            JsonObject(raw, where, check).require(("tokens", "entities"), "a sentence of words", NOT_OF_WORDS)
            kept = {CONTEXT_NAMES.get(key, key): value for key, value in raw.items() if key not in NOT_FOR_NER}
            raw = {**kept, "id": identifier, "doc_id": identifier, "sent_id": 0}
        yield check(raw, where)


# ---- Texts with spans ----


def read_text_spans(path: Path, check: RecordChecker) -> Iterator[AnnotatedText]:
    """Reads texts with spans by characters; a CorpusError names the line or record and the field.

    The spans are in one of the fields `SPANS`. A span is a list [start, end, type] or an object with one field each of
    `START`, `END` (exclusive but for `LAST`) and `TYPE` (`labels`: one entity each), and perhaps the covered `text`,
    which is checked.
    """
    texts, without_before = 0, check.counts[WITHOUT_SPANS]  # of other files of the split
    hashes: set[str] = set()
    for number, (raw, where) in enumerate(latest_annotations(json_values(path, check), check)):
        record = JsonObject(raw, where, check, remedy="A record has the fields text and entities")
        if record.fields.get("answer") in REJECTED:
            check.note(f"texts with the answer {record.fields['answer']!r} ignored")
        else:
            texts += 1
            if text_hash := str(record.fields.get("_input_hash", "")):  # Prodigy's, the same in every annotator's copy
                if text_hash in hashes:
                    check.note("texts read again, with the _input_hash of one before", example=where)
                hashes.add(text_hash)
            yield annotated_text(record, f"{stem(path)}:{number}")
    if texts and check.counts[WITHOUT_SPANS] - without_before == texts:
        problem = f"no text has spans, in none of the fields {', '.join(map(repr, SPANS))}"
        remedy = "Give the spans one of these names; move a file without gold entities, of a test, out of the corpus"
        raise check.error("", problem, remedy)


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


def annotated_text(
    record: JsonObject, default_id: str, text: str = "text", spans: Sequence[str] = SPANS, id: str = "id"
) -> AnnotatedText:
    """The text of one record with its spans, in the fields of these names; `default_id` names it if it has no id."""
    identifier = record.fields.get(id)
    return AnnotatedText(
        doc_id=default_id if identifier in (None, "") else str(identifier),
        text=record.value(text, str),
        annotations=list(_annotations(record, spans, {text, id})),
        where=record.where,
    )


def _annotations(record: JsonObject, spans: Sequence[str], others: set[str]) -> Iterator[Annotation]:
    present = [name for name in spans if record.fields.get(name) is not None]
    filled = [name for name in present if record.fields[name] and isinstance(record.fields[name], list)]
    if len(filled) > 1:
        problem = f"there are spans in the fields {' and '.join(map(repr, filled))}"
        raise record.check.error(record.where, problem, "Put them into one of them")
    key = next(iter(filled or present), None)
    for name in record.fields.keys() - {*others, "answer", key}:
        if record.fields[name] not in (None, [], {}) and not name.startswith("_"):
            record.check.note(f"field '{name}' ignored")
    if key is None:
        record.check.note(WITHOUT_SPANS, example=record.where)
        return
    for index, raw in enumerate(record.value(key, list)):
        name = f"{key}[{index}]"
        if isinstance(raw, list):
            if len(raw) != 3:
                raise record.error(name, f"has {len(raw)} values", "It needs three: start, end, type")
            raw = dict(zip(("start", "end", "label"), raw, strict=True))
        elif isinstance(raw, dict) and isinstance(raw.get("span"), dict):  # of PubAnnotation
            raw = {**{field: value for field, value in raw.items() if field != "span"}, **raw["span"]}
        span = JsonObject(raw, record.where, record.check, name, remedy="A span has start, end and label")
        yield from _entities_of_span(span)


def _entities_of_span(span: JsonObject) -> Iterator[Annotation]:
    start, end, kind = (_name_among(names, span) for names in (START, END, TYPE))
    for ignored in span.fields.keys() - BOOKKEEPING - {start, end, kind, _quote_of(span, end)}:
        span.check.note(f"span field '{ignored}' ignored")
    types = span.fields[kind] if isinstance(span.fields.get(kind), list) else [span.value(kind, str)]
    yield from _entity_of_each_type(span, start, end, types)


def _name_among(names: Sequence[str], span: JsonObject) -> str:
    if found := [name for name in names if name in span.fields]:
        return found[0]
    problem = f"is missing; the fields are {names_of(span.fields)}"
    raise span.error(names[0], problem, f"Name it {' or '.join(names)}")


def _entity_of_each_type(span: JsonObject, start: str, end: str, types: Sequence[str]) -> Iterator[Annotation]:
    """One entity for every type of a span, whose offsets are the fields `start` and `end`."""
    if not types:
        span.check.drop("spans without a type dropped", example=f"{span.where}: {span.name}")
    offsets = span.value(start, int), span.value(end, int) + (end == LAST)
    for kind in types:
        yield span.annotation([offsets], kind, _quote_of(span, end))


def _quote_of(span: JsonObject, end: str) -> str:
    """The field that quotes the text of a span, whose last offset is the field `end`."""
    return "entity" if end == LAST and "entity" in span.fields else "text"


# ---- Label Studio ----


def read_label_studio(path: Path, check: RecordChecker) -> Iterator[AnnotatedText]:
    """Reads annotated tasks; a CorpusError names the task and the field."""
    for number, (raw, place) in enumerate(json_values(path, check)):
        task = JsonObject(raw, place, check, remedy="A task has the fields data and annotations")
        identifier = number if task.fields.get("id") is None else task.fields["id"]
        task.where = f"{place} (task {identifier})"
        annotation = _annotation_of(task)
        if annotation is not None:
            text, regions = _text_of(task), list(_regions(annotation))
            yield AnnotatedText(doc_id=str(identifier), text=text, annotations=regions, where=task.where)


def _text_of(task: JsonObject) -> str:
    """The labelled text: the field `text` of the data, otherwise its only string."""
    data = task.object("data", "It must contain the text")
    texts = [name for name, value in data.fields.items() if isinstance(value, str)]
    if "text" not in texts and len(texts) != 1:
        found = f"several strings, {', '.join(map(repr, texts))}" if texts else "no string"
        raise task.error("data", f"has {found}", "Name the one that was labelled 'text'")
    return data.value("text" if "text" in texts else texts[0], str)


def _annotation_of(task: JsonObject) -> JsonObject | None:
    note = task.check.note
    if task.fields.get("predictions"):
        note("predictions ignored", len(task.value("predictions", list)))
    remedy = "Export the tasks as JSON, together with their annotations"
    task.require(["annotations"], "an exported task", remedy)
    annotations = list(task.objects("annotations", remedy))
    made = [annotation for annotation in annotations if not annotation.fields.get("was_cancelled")]
    if len(made) < len(annotations):
        note("cancelled annotations ignored", len(annotations) - len(made))
    if not made:
        note("tasks without an annotation ignored", example=task.where)
        return None
    if len(made) > 1:
        note(FURTHER_ANNOTATIONS, len(made) - 1, task.where)
    made.reverse()  # of several maxima, max() returns the first
    return max(made, key=lambda one: (bool(one.fields.get("ground_truth")), str(one.fields.get("created_at", ""))))


def _regions(annotation: JsonObject) -> Iterator[Annotation]:
    for region in annotation.objects("result", "A result is an object"):
        kind = region.fields.get("type")
        if kind == "labels":
            value = region.object("value", "A region has a value")
            yield from _entity_of_each_type(value, "start", "end", value.value("labels", list))
        else:
            annotation.check.note(f"results of type {kind!r} ignored")


JSON_LINES = CorpusFormat(
    name="json_lines",
    description="one JSON object a line",
    suffixes=(".jsonl", ".ndjson", ".json"),
    recognizes=lambda head: head.startswith("{") or {"tokens", "doc_id"} <= record_keys(head),
    read=read_json_lines,
)
PUBLISHED_JSON = CorpusFormat(
    name="published_json",
    description="one JSON list of records with `ltokens` and `rtokens`, as in the published experiments",
    suffixes=(".json",),
    recognizes=lambda head: head.startswith("["),
    read=read_published_json,
)
TEXT_SPANS = format_of_texts(
    read_text_spans,
    name="text_spans",
    description="JSON of texts with spans by characters, as exported by Doccano",
    suffixes=(".jsonl", ".ndjson", ".json"),
    # Sentences of words may have a text besides, and Prodigy's texts have tokens, but no `entities`.
    recognizes=lambda head: "text" in (keys := record_keys(head)) and not {"tokens", "entities"} <= keys,
)
LABEL_STUDIO = format_of_texts(
    read_label_studio,
    name="label_studio",
    description="Label Studio's JSON export",
    suffixes=(".json", ".jsonl"),
    recognizes=lambda head: "annotations" in (keys := record_keys(head)) or {"data", "predictions"} <= keys,
)
