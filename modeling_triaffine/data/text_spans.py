"""JSON of texts with spans by characters: what Doccano, Prodigy and Label Studio (JSON-MIN) export, and most scripts.

    {"text": "the mayor of Orsk", "label": [[0, 17, "Person"], [13, 17, "City"]]}
    {"text": "the mayor of Orsk", "entities": [{"start": 13, "end": 17, "label": "City"}]}

As JSON lines or as one list. The spans stand in one of `entities`, `spans`, `label` or `labels`; a span is a list
[start, end, type], or an object with `start` (`start_offset`), `end` (`end_offset`) and `label` (`type`, `labels`: one
entity for each), and perhaps the `text` it spans, which is then checked. The end is exclusive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .alignment import WordSplitter
from .documents import DEFAULT_SENTENCE_SPLITTER, AnnotatedText, Annotation, sentences_of
from .reading import CorpusFormat, json_values, record_keys
from .schema import Record, RecordChecker

SPANS = ("entities", "spans", "label", "labels")
START, END, TYPE = ("start", "start_offset"), ("end", "end_offset"), ("label", "type", "labels")
BOOKKEEPING = {"id", "token_start", "token_end", "input_hash", "source"}
"""What tools note of a span for themselves."""
REJECTED = ("reject", "ignore")
"""Prodigy's `answer` to what is not to be used."""


def read_text_spans(
    path: Path,
    check: RecordChecker,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> Iterator[Record]:
    """The sentences of all texts; JSON lines are read line by line.

    Args:
        path: JSON lines or a JSON list, plain or gzipped.
        check: counts what is dropped or ignored.
        word_splitter, sentence_splitter: see `sentences_of`.

    Raises:
        CorpusError: names the line and the field of what cannot be read; offsets outside the text, or on other text
            than the span brings.
    """
    name = path.name.partition(".")[0]
    for number, (raw, where) in enumerate(json_values(path, check)):
        fields = check.mapping(raw, where, "the record", "A record has the fields text and entities")
        if fields.get("answer") in REJECTED:
            check.note(f"texts with the answer {fields['answer']!r} ignored")
        else:
            document = annotated_text(fields, f"{name}:{number}", where, check)
            yield from sentences_of(document, check, word_splitter, sentence_splitter)


def annotated_text(fields: Mapping[str, Any], default_id: str, where: str, check: RecordChecker) -> AnnotatedText:
    """The document of one record with its spans; `default_id` is its name where it has no `id`."""
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
        raise check.error(where, problem, "Keep them in one of them")
    key = given[0] if given else SPANS[0]
    for name in fields.keys() - {"id", "text", "answer", key}:
        if fields[name] not in (None, [], {}) and not name.startswith("_"):
            check.note(f"field '{name}' ignored")
    for index, span in enumerate(check.typed(fields, key, list, where)):
        yield from _entities_of(span, f"{key}[{index}]", where, check)


def _entities_of(span: object, name: str, where: str, check: RecordChecker) -> Iterator[Annotation]:
    """One entity for every type of the span."""
    if isinstance(span, list):
        if len(span) != 3:
            raise check.error(where, f"field '{name}' has {len(span)} values", "It must have three: start, end, type")
        span = dict(zip(("start", "end", "label"), span, strict=True))
    fields = check.mapping(span, where, f"field '{name}'", "A span has start, end and label")
    start, end, kind = (_first_of(names, fields) for names in (START, END, TYPE))
    for ignored in fields.keys() - BOOKKEEPING - {start, end, kind, "text"}:
        check.note(f"span field '{ignored}' ignored")
    types = fields[kind] if isinstance(fields.get(kind), list) else [check.typed(fields, kind, str, where, name)]
    if not types:
        check.drop("spans without a type dropped", example=f"{where}: {name}")
    offsets = check.typed(fields, start, int, where, name), check.typed(fields, end, int, where, name)
    spelled = check.typed(fields, "text", str, where, name) if fields.get("text") else None
    for one_type in types:
        yield Annotation(name=name, fragments=(offsets,), type=one_type, spelled=spelled, where=where)


def _first_of(names: Sequence[str], fields: Mapping[str, Any]) -> str:
    return next((name for name in names if name in fields), names[0])


def _recognizes(head: str) -> bool:
    """A text, in a record that is not a sentence of words with a text added."""
    keys = record_keys(head) if head.startswith(("{", "[")) else set()
    return "text" in keys and not keys & {"sent_id", "ltokens"}


TEXT_SPANS = CorpusFormat(
    name="text_spans",
    description="JSON of texts with spans by characters, as Doccano exports it",
    suffixes=(".jsonl", ".ndjson", ".json"),
    recognizes=_recognizes,
    read=read_text_spans,
    options=("word_splitter", "sentence_splitter"),
)
