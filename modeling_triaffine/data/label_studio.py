"""Label Studio's JSON export: tasks with the text in `data` and labelled regions in `annotations`.

    [{"id": 1, "data": {"text": "the mayor of Orsk"}, "annotations": [{"result": [
        {"type": "labels", "value": {"start": 13, "end": 17, "text": "Orsk", "labels": ["City"]}}]}]}]

Of several annotations of a task the one marked as ground truth is taken, else the last made; the others, tasks that
nobody annotated, cancelled annotations, predictions and what is no labelled region of text are ignored and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .alignment import WordSplitter
from .documents import DEFAULT_SENTENCE_SPLITTER, AnnotatedText, Annotation, sentences_of
from .reading import CorpusFormat, json_values, record_keys
from .schema import Record, RecordChecker


def read_label_studio(
    path: Path,
    check: RecordChecker,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> Iterator[Record]:
    """The sentences of all annotated tasks.

    Args:
        path: a JSON list, plain or gzipped, or JSON lines.
        check: counts what is dropped or ignored.
        word_splitter, sentence_splitter: see `sentences_of`.

    Raises:
        CorpusError: names task and field of what cannot be read; offsets outside the text, or on other text than the
            region brings.
    """
    for number, (raw, place) in enumerate(json_values(path, check)):
        task = check.mapping(raw, place, "the task", "A task has the fields data and annotations")
        identifier = task.get("id", number)
        where = f"{place} (task {identifier})"
        annotation = _annotation_of(task, where, check)
        if annotation is None:
            continue
        document = AnnotatedText(
            doc_id=str(identifier),
            text=_text_of(task, where, check),
            annotations=list(_regions(annotation, where, check)),
            where=where,
        )
        yield from sentences_of(document, check, word_splitter, sentence_splitter)


def _text_of(task: Mapping[str, Any], where: str, check: RecordChecker) -> str:
    """The labelled text: the field `text` of the data, or the only one that is a string."""
    data = check.mapping(task.get("data"), where, "field 'data'", "It must hold the text")
    texts = [name for name, value in data.items() if isinstance(value, str)]
    if "text" in texts:
        return check.typed(data, "text", str, where, "data")
    if len(texts) != 1:
        found = f"several strings, {', '.join(map(repr, texts))}" if texts else "no string in it"
        raise check.error(where, f"field 'data' has {found}", "Name the one that was labelled 'text'")
    return check.typed(data, texts[0], str, where, "data")


def _annotation_of(task: Mapping[str, Any], where: str, check: RecordChecker) -> Mapping[str, Any] | None:
    """The one annotation of a task that counts, if any."""
    if task.get("predictions"):
        check.note("predictions ignored", len(check.typed(task, "predictions", list, where)))
    remedy = "Export the tasks as JSON, with what was annotated"
    annotations = [
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
        check.note("annotations of a task besides the one taken ignored", len(made) - 1, where)
    return max(reversed(made), key=lambda one: (bool(one.get("ground_truth")), str(one.get("created_at", ""))))


def _regions(annotation: Mapping[str, Any], where: str, check: RecordChecker) -> Iterator[Annotation]:
    """The labelled regions of text, one entity for every label."""
    for index, raw in enumerate(check.typed(annotation, "result", list, where)):
        name = f"result[{index}]"
        region = check.mapping(raw, where, f"field '{name}'", "A result is an object")
        if region.get("type") != "labels":
            check.note(f"results of type {region.get('type')!r} ignored")
            continue
        value = check.mapping(region.get("value"), where, f"field '{name}.value'", "A region has a value")
        start, end = (check.typed(value, side, int, where, f"{name}.value") for side in ("start", "end"))
        spelled = check.typed(value, "text", str, where, f"{name}.value") if value.get("text") else None
        labels = check.typed(value, "labels", list, where, f"{name}.value")
        if not labels:
            check.drop("regions without a label dropped", example=f"{where}: {name}")
        for label in labels:
            yield Annotation(name=name, fragments=((start, end),), type=label, spelled=spelled, where=where)


LABEL_STUDIO = CorpusFormat(
    name="label_studio",
    description="Label Studio's JSON export",
    suffixes=(".json", ".jsonl"),
    recognizes=lambda head: head.startswith(("{", "[")) and "annotations" in record_keys(head),
    read=read_label_studio,
    options=("word_splitter", "sentence_splitter"),
)
