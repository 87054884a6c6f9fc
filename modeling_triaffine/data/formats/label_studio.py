"""Reads Label Studio's full export: tasks with the text in `data` and labelled regions in `annotations`."""

from collections.abc import Iterator

from ..reading import JsonObject, json_reader
from ..schema import Entity, Text, annotated
from . import CorpusFormat
from .text_spans import entity_of_each_type

PLAIN, HYPERTEXT = "labels", "hypertextlabels"


def _text_of_task(task: JsonObject, _: str) -> Text | None:
    """The text of an annotated task with its labelled regions; it is `text`, or else the only string in the data."""
    identifier = task.number if task.fields.get("id") is None else task.fields["id"]
    task.where += f" (task {identifier})"
    note = task.check.note
    if predictions := task.fields.get("predictions"):
        note("predictions ignored", len(predictions))
    annotations = list(task.objects("annotations"))
    made = [annotation for annotation in reversed(annotations) if not annotation.fields.get("was_cancelled")]
    if len(made) < len(annotations):
        note("cancelled annotations ignored", len(annotations) - len(made))
    if not made:
        note("tasks without an annotation ignored", example=task.where)
        return None
    if len(made) > 1:
        note("further annotations of a task ignored", len(made) - 1, task.where)
    # The ground truth, or else the last one: of several maxima, max() returns the first.
    last = max(made, key=lambda item: (bool(item.fields.get("ground_truth")), str(item.fields.get("created_at", ""))))
    data = task.object("data", "It must contain the text")
    texts = [name for name, value in data.fields.items() if isinstance(value, str)]
    if "text" not in texts and len(texts) != 1:
        problem = f"has {len(texts)} strings, {', '.join(map(repr, texts)) or 'none'}"
        raise task.error("data", problem, "Name the one that was labelled 'text'")
    name = "text" if "text" in texts else texts[0]
    text = data.value(name, str)
    return annotated(str(identifier), text, _entities(last, text), task.where)


def _entities(annotation: JsonObject, text: str) -> Iterator[Entity | None]:
    for region in annotation.objects("result"):
        kind = region.fields.get("type")
        if kind not in (PLAIN, HYPERTEXT):
            annotation.check.note(f"results of type {kind!r} ignored")
            continue
        value = region.object("value", "A region has a value")
        offsets = value if kind == PLAIN else value.object("globalOffsets", "HyperText needs offsets in its text")
        fragment = (offsets.value("start", int), offsets.value("end", int))
        types = value.value(kind, list) if kind in value.fields else []
        yield from entity_of_each_type(value, text, fragment, types)


LABEL_STUDIO = CorpusFormat(
    name="label_studio",
    description="Label Studio's JSON export",
    read=json_reader(_text_of_task, "data and annotations"),
    # `data` may follow after the part of a long task that is looked at.
    keys=("data annotations", "data predictions", "id annotations -text -sentence -tokens -passages"),
)
