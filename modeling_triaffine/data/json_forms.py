"""Readers of JSON: this project's JSON lines, the published experiments' lists, and exports of annotation tools.

`JSON_LINES`, this project's own form, has one sentence a line with the fields of `schema.FEATURES`, of which only
`tokens` and `entities` are required (a file without ids is one document, its sentences in order):

    {"id": "a:0", "doc_id": "a", "sent_id": 0, "tokens": ["IL-2", "gene"], "pos": [],
     "entities": [{"start": 0, "end": 2, "type": "DNA"}]}

`PUBLISHED_JSON` is one list of records with `tokens`, `pos`, `entities`, `ltokens` and `rtokens`, the form of ACE, KBP
and GENIA in the triaffine experiments and in related work (locate-and-label and its successors). A record has its own
context but no dependable id: ids are made from the file name and the record's index, each record is a document.

`TEXT_SPANS` are texts with spans by characters, as Doccano, Prodigy and Label Studio (JSON-MIN) export them:

    {"text": "the mayor of Orsk", "label": [[0, 17, "Person"], [13, 17, "City"]]}
    {"text": "the mayor of Orsk", "entities": [{"start": 13, "end": 17, "label": "City"}]}

The spans are in one of `entities`, `spans`, `label` or `labels`. A span is a list [start, end, type] or an object with
`start` (`start_offset`), `end` (`end_offset`), `label` (`type`, `labels`: one entity each) and perhaps the covered
`text`, which is then checked. The end is exclusive.

`LABEL_STUDIO` is Label Studio's full export, tasks with the text in `data` and labelled regions in `annotations`:

    [{"id": 1, "data": {"text": "the mayor of Orsk"}, "annotations": [{"result": [
        {"type": "labels", "value": {"start": 13, "end": 17, "text": "Orsk", "labels": ["City"]}}]}]}]

Of several annotations of a task, the one marked as ground truth is read, otherwise the last one made. The others,
tasks without annotations, cancelled annotations, predictions and results that are not labelled regions are ignored and
counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .corpus_format import CorpusFormat
from .documents import AnnotatedText, Annotation, format_of_texts
from .reading import open_corpus, parse_json, read_head
from .schema import Record, RecordChecker

CONTEXT_NAMES = {"ltokens": "left_tokens", "rtokens": "right_tokens"}
NOT_FOR_NER = ("relations", "org_id", "orig_id")
"""Fields of the published form that say nothing about entities. `orig_id` numbers sentences in one corpus and documents
in another, so it is not used as a document's name."""

SPANS = ("entities", "spans", "label", "labels")
START, END, TYPE = ("start", "start_offset"), ("end", "end_offset"), ("label", "type", "labels")
BOOKKEEPING = {"id", "token_start", "token_end", "input_hash", "source"}
"""Fields of a span that only matter to the tool that wrote it."""
REJECTED = ("reject", "ignore")
"""Values of Prodigy's `answer` for texts that should not be used."""

JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]:]', re.DOTALL)
"""Strings (the last one may be truncated), brackets and colons: enough to find the keys of a JSON object."""


def json_lines(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values of JSON lines, each with its place in the file; blank lines are skipped."""
    with open_corpus(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield parse_json(line.rstrip(b"\r\n"), check, f"line {number}"), f"line {number}"


def json_list(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values of one JSON list, each with its index. The list is parsed as a whole: memory grows with the file."""
    with open_corpus(path) as file:
        values = parse_json(file.read(), check, "")
    if not isinstance(values, list):
        raise check.error("", "expected one list of records", "Wrap the records in [ ], or use JSON lines")
    for number, value in enumerate(values):
        yield value, f"record {number}"


def json_values(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values of JSON lines, read one by one, or of one JSON list; each with its place in the file."""
    read = json_list if read_head(path).startswith("[") else json_lines
    return read(path, check)


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


# ---- Sentences of words ----


def read_json_lines(path: Path, check: RecordChecker) -> Iterator[Record]:
    """Reads this project's own form line by line; a CorpusError names the line and the field."""
    for number, (raw, where) in enumerate(json_lines(path, check)):
        if isinstance(raw, dict):
            raw = {"id": f"{path.name}:{where}", "doc_id": path.name, "sent_id": number, **raw}
        yield check(raw, where)


def read_published_json(path: Path, check: RecordChecker) -> Iterator[Record]:
    """Reads the published experiments' form; a CorpusError names the record (counted from 0) and the field."""
    name = path.name.partition(".")[0]
    for number, (raw, where) in enumerate(json_list(path, check)):
        identifier = f"{name}:{number}"
        if isinstance(raw, dict):
            kept = {CONTEXT_NAMES.get(key, key): value for key, value in raw.items() if key not in NOT_FOR_NER}
            raw = {**kept, "id": identifier, "doc_id": identifier, "sent_id": 0}
        yield check(raw, where)


# ---- Texts with spans ----


def read_text_spans(path: Path, check: RecordChecker) -> Iterator[AnnotatedText]:
    """Reads texts with spans by characters; a CorpusError names the line or record and the field."""
    name = path.name.partition(".")[0]
    for number, (raw, where) in enumerate(json_values(path, check)):
        fields = check.mapping(raw, where, "the record", "A record has the fields text and entities")
        if fields.get("answer") in REJECTED:
            check.note(f"texts with the answer {fields['answer']!r} ignored")
        else:
            yield annotated_text(fields, f"{name}:{number}", where, check)


def annotated_text(fields: Mapping[str, Any], default_id: str, where: str, check: RecordChecker) -> AnnotatedText:
    """The text of one record with its spans; `default_id` names it if it has no `id`."""
    identifier = fields.get("id")
    return AnnotatedText(
        doc_id=default_id if identifier is None else str(identifier),
        text=check.typed(fields, "text", str, where),
        annotations=list(_annotations(fields, where, check)),
        where=where,
    )


def _annotations(fields: Mapping[str, Any], where: str, check: RecordChecker) -> Iterator[Annotation]:
    given = [name for name in SPANS if isinstance(fields.get(name), list)]
    if len(given) > 1:
        problem = f"there are spans in the fields {' and '.join(map(repr, given))}"
        raise check.error(where, problem, "Put them into one of them")
    key = given[0] if given else SPANS[0]
    for name in fields.keys() - {"id", "text", "answer", key}:
        if fields[name] not in (None, [], {}) and not name.startswith("_"):
            check.note(f"field '{name}' ignored")
    for index, span in enumerate(check.typed(fields, key, list, where)):
        yield from _entities_of_span(span, f"{key}[{index}]", where, check)


def _entities_of_span(span: object, name: str, where: str, check: RecordChecker) -> Iterator[Annotation]:
    if isinstance(span, list):
        if len(span) != 3:
            raise check.error(where, f"field '{name}' has {len(span)} values", "It needs three: start, end, type")
        span = dict(zip(("start", "end", "label"), span, strict=True))
    fields = check.mapping(span, where, f"field '{name}'", "A span has start, end and label")
    start, end, kind = (_first_of(names, fields) for names in (START, END, TYPE))
    for ignored in fields.keys() - BOOKKEEPING - {start, end, kind, "text"}:
        check.note(f"span field '{ignored}' ignored")
    types = fields[kind] if isinstance(fields.get(kind), list) else [check.typed(fields, kind, str, where, name)]
    yield from _entity_of_each_type(fields, (start, end), types, name, where, check)


def _first_of(names: Sequence[str], fields: Mapping[str, Any]) -> str:
    return next((name for name in names if name in fields), names[0])


def _entity_of_each_type(
    fields: Mapping[str, Any], sides: tuple[str, str], types: Sequence[str], name: str, where: str, check: RecordChecker
) -> Iterator[Annotation]:
    """One entity for every type of a span, whose offsets are the fields `sides`."""
    if not types:
        check.drop("spans without a type dropped", example=f"{where}: {name}")
    start, end = (check.typed(fields, side, int, where, name) for side in sides)
    quote = check.typed(fields, "text", str, where, name) if fields.get("text") else None
    for kind in types:
        yield Annotation(name=name, fragments=((start, end),), type=kind, quote=quote, where=where)


# ---- Label Studio ----


def read_label_studio(path: Path, check: RecordChecker) -> Iterator[AnnotatedText]:
    """Reads annotated tasks; a CorpusError names the task and the field."""
    for number, (raw, place) in enumerate(json_values(path, check)):
        task = check.mapping(raw, place, "the task", "A task has the fields data and annotations")
        identifier = task.get("id", number)
        where = f"{place} (task {identifier})"
        annotation = _annotation_of(task, where, check)
        if annotation is not None:
            yield AnnotatedText(
                doc_id=str(identifier),
                text=_text_of(task, where, check),
                annotations=list(_regions(annotation, where, check)),
                where=where,
            )


def _text_of(task: Mapping[str, Any], where: str, check: RecordChecker) -> str:
    """The labelled text: the field `text` of the data, otherwise its only string."""
    data = check.mapping(task.get("data"), where, "field 'data'", "It must contain the text")
    texts = [name for name, value in data.items() if isinstance(value, str)]
    if "text" not in texts and len(texts) != 1:
        found = f"several strings, {', '.join(map(repr, texts))}" if texts else "no string"
        raise check.error(where, f"field 'data' has {found}", "Name the one that was labelled 'text'")
    name = "text" if "text" in texts else texts[0]
    return check.typed(data, name, str, where, "data")


def _annotation_of(task: Mapping[str, Any], where: str, check: RecordChecker) -> Mapping[str, Any] | None:
    """The annotation of a task to be read, if there is one."""
    if task.get("predictions"):
        check.note("predictions ignored", len(check.typed(task, "predictions", list, where)))
    remedy = "Export the tasks as JSON, together with their annotations"
    annotations: list[Mapping[str, Any]] = [
        check.mapping(raw, where, f"field 'annotations[{index}]'", remedy)
        for index, raw in enumerate(check.typed(task, "annotations", list, where))
    ]
    made = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    if len(made) < len(annotations):
        check.note("cancelled annotations ignored", len(annotations) - len(made))
    if not made:
        check.note("tasks without an annotation ignored", example=where)
        return None
    if len(made) > 1:
        check.note("further annotations of a task ignored", len(made) - 1, where)
    made.reverse()  # of several maxima, max() returns the first
    return max(made, key=lambda one: (bool(one.get("ground_truth")), str(one.get("created_at", ""))))


def _regions(annotation: Mapping[str, Any], where: str, check: RecordChecker) -> Iterator[Annotation]:
    """The labelled regions of text, one entity for every label."""
    for index, raw in enumerate(check.typed(annotation, "result", list, where)):
        name = f"result[{index}]"
        region = check.mapping(raw, where, f"field '{name}'", "A result is an object")
        if region.get("type") != "labels":
            check.note(f"results of type {region.get('type')!r} ignored")
            continue
        value = check.mapping(region.get("value"), where, f"field '{name}.value'", "A region has a value")
        labels = check.typed(value, "labels", list, where, f"{name}.value")
        yield from _entity_of_each_type(value, ("start", "end"), labels, f"{name}.value", where, check)


JSON_LINES = CorpusFormat(
    name="json_lines",
    description="one JSON object a line",
    suffixes=(".jsonl", ".ndjson", ".json"),
    recognizes=lambda head: head.startswith("{"),
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
    # Sentences of words may have a text besides.
    recognizes=lambda head: "text" in (keys := record_keys(head)) and not keys & {"sent_id", "ltokens"},
)
LABEL_STUDIO = format_of_texts(
    read_label_studio,
    name="label_studio",
    description="Label Studio's JSON export",
    suffixes=(".json", ".jsonl"),
    recognizes=lambda head: "annotations" in record_keys(head),
)
