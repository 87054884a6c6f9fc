"""Writes predictions as annotation tools import them: Label Studio, brat, Doccano, INCEpTION."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ..files import SURROGATES
from .formats.cas import make_cas
from .record_checker import RecordChecker
from .writing import SOURCE, check_file_name, write_brat, write_new

FROM_NAME, TO_NAME = "label", "text"
"""Names of Label Studio's tags `<Labels>` and `<Text>`, as its templates have them."""

Predicted = Iterable[Mapping[str, Any]]
"""Texts with `doc_id`, `text`, `entities` (by characters, with a score), their `words` by sentence, and `fields`."""


def write_brat_predictions(texts: Predicted, folder: Path) -> None:
    """Writes brat's files: types without white space, line ends of one character, which all programs count alike."""
    written = []
    for text in texts:
        entities = [{**entity, "type": "_".join(entity["type"].split())} for entity in text["entities"]]
        written.append({**text, "text": text["text"].replace("\r\n", " \n").replace("\r", "\n"), "entities": entities})
    write_brat(written, folder, RecordChecker(folder))


def write_label_studio(texts: Predicted, path: Path) -> None:
    """Writes one list of tasks with predictions; further fields are data of the task."""
    tasks: list[dict[str, Any]] = [
        {
            "data": {"text": text["text"], "doc_id": text["doc_id"], **text["fields"]},
            "predictions": [label_studio_prediction(text["text"], text["entities"])],
        }
        for text in texts
    ]
    with path.open("w", encoding="utf-8", errors=SURROGATES, newline="\n") as file:
        json.dump(tasks, file, ensure_ascii=False, indent=1)


def label_studio_config(labels: Iterable[str]) -> str:
    """The labelling configuration of a project for these labels, on one line."""
    view = ElementTree.Element("View")
    choices = ElementTree.SubElement(view, "Labels", name=FROM_NAME, toName=TO_NAME)
    for label in labels:
        ElementTree.SubElement(choices, "Label", value=label)
    ElementTree.SubElement(view, "Text", name=TO_NAME, value="$text")
    return ElementTree.tostring(view, encoding="unicode")


def label_studio_prediction(
    text: str, entities: Sequence[Mapping[str, Any]], from_name: str = FROM_NAME, to_name: str = TO_NAME
) -> dict[str, Any]:
    """A prediction of Label Studio for the tags `<Labels>` and `<Text>` with these names.

    Its score is that of the least sure entity, 1 without any.
    """
    tags = {"from_name": from_name, "to_name": to_name, "type": "labels"}
    regions = []
    for number, entity in enumerate(entities, start=1):
        start, end = entity["start"], entity["end"]
        value = {"start": start, "end": end, "text": text[start:end], "labels": [entity["type"]]}
        regions.append({"id": f"T{number}", **tags, "value": value, "score": entity["score"]})
    score = min((entity["score"] for entity in entities), default=1.0)
    return {"model_version": SOURCE, "score": score, "result": regions}


def write_doccano(texts: Predicted, path: Path) -> None:
    """Writes one object a line; the scores and further fields become Doccano's meta data."""
    with path.open("w", encoding="utf-8", errors=SURROGATES, newline="\n") as file:
        for text in texts:
            spans = [[entity["start"], entity["end"], entity["type"]] for entity in text["entities"]]
            scores = [entity["score"] for entity in text["entities"]]
            fields = {"text": text["text"], "label": spans, "doc_id": text["doc_id"], "scores": scores}
            file.write(json.dumps({**fields, **text["fields"]}, ensure_ascii=False) + "\n")


def write_inception(texts: Predicted, folder: Path) -> None:
    """Writes a UIMA CAS in JSON for every document. Needs the extra `cas`."""
    folder.mkdir(exist_ok=True)
    for text in texts:
        name = check_file_name(text["doc_id"], "inception")
        write_new(folder / f"{name}.json", make_cas(text["text"], text["words"], text["entities"]).to_json())


PREDICTION_WRITERS: dict[str, Callable[[Predicted, Path], None]] = {
    "label_studio": write_label_studio,
    "brat": write_brat_predictions,
    "doccano": write_doccano,
    "inception": write_inception,
}
"""Annotation tool → how predictions are written for it: to a file, for brat and INCEpTION to a folder."""
