"""Texts → corpora on disk (JSON lines, brat), and predictions → files that annotation tools import.

A text that a form would change is an error, which names it; fields that a form has no place for are counted.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

from datasets import Dataset

from ..files import SURROGATES, new_folder
from .formats.extras import make_cas
from .formats.standoff import ANNOTATION_SUFFIX, TEXT_SUFFIX
from .reading import LAYERS, JsonObject
from .schema import CONTEXT_FIELDS, Entity, RecordChecker, Text
from .texts import moved, text_of_words

SOURCE = "triaffine-ner"
WRITERS = ("json_lines", "brat")  # the formats that are written


def write_nested_ner(
    splits: Mapping[str, Iterable[Mapping[str, Any]]], folder: str | os.PathLike[str], format: str = "json_lines"
) -> dict[str, Counter[str]]:
    """Writes a corpus for `load_nested_ner(folder)`. The folder is atomic: it appears when all is written.

    Returns for each split how often something was left out, by reason.

    Args:
        splits: split → texts, of [`load_texts`], or split → sentences of words, as in a `DatasetDict`.
        folder: a new or empty folder.
        format: "json_lines": `train.jsonl` …, a text a line, with all its offsets, words and sentences; "brat": folders
            `train` … with a `.txt` and an `.ann` for every document.

    Raises:
        ValueError: there is no such format, it cannot represent a text, or a row (named) is not in the schema.
        FileExistsError: `folder` is not empty.

    Examples:
        >>> from modeling_triaffine.data import write_nested_ner
        >>> record = {"id": "1:0", "doc_id": "1", "sent_id": 0, "tokens": ["Orsk"],
        ...           "entities": [{"start": 0, "end": 1, "type": "City"}]}
        >>> _ = write_nested_ner({"train": [record]}, "written", "brat")
        >>> open("written/train/1.ann", encoding="utf-8").read()
        'T1\\tCity 0 4\\tOrsk\\n'
    """
    if format not in WRITERS:
        raise ValueError(f"There is no writer of {format!r}. Choose one of {', '.join(WRITERS)}.")
    if not isinstance(splits, Mapping):
        raise TypeError(f'`splits` is of type {type(splits).__name__}. Give {{"train": data}}.')
    folder = Path(folder).expanduser()
    if folder.is_file() or (folder.exists() and any(folder.iterdir())):
        raise FileExistsError(f"{folder} is not empty, or a file. Give a new folder.")
    lost = {}
    with new_folder(folder) as unfinished:
        for split, rows in splits.items():
            check = RecordChecker(f"split {split!r}")
            rows = rows.with_format(None) if isinstance(rows, Dataset) else rows
            texts = (_as_text(row, f"row {number}", check) for number, row in enumerate(rows))
            if format == "brat":
                write_brat(texts, unfinished / split, check)
            else:
                with (unfinished / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
                    file.writelines(json.dumps(json_of_text(text), ensure_ascii=False) + "\n" for text in texts)
            lost[split] = check.counts
    return lost


def _as_text(row: Mapping[str, Any], where: str, check: RecordChecker) -> Text:
    """A row of words as a text, or a row that is a text, checked."""
    if "text" not in row or "tokens" in row:
        return text_of_words(row, where, check)
    record = JsonObject(row, where, check)
    _, size = record.value("doc_id", str), len(record.value("text", str))
    for entity in record.value("entities", list[Entity]):
        if not 0 <= entity["start"] < entity["end"] <= size:
            raise check.error(where, f"the entity {dict(entity)} is outside of its text", "Correct its offsets")
    return Text(**{name: value for name, value in row.items() if value is not None})  # type: ignore[typeddict-item]


def json_of_text(text: Text) -> dict[str, Any]:
    """The text as a JSON object; [`layers_of`] reads its optional fields."""
    spans = [{"start": entity["start"], "end": entity["end"], "label": entity["type"]} for entity in text["entities"]]
    layers = {name: value for name, value in text.items() if name in LAYERS and value is not None}
    return {"id": text["doc_id"], "text": text["text"], "entities": spans, **layers}


# ---- brat ----


def _documents(texts: Iterable[Text], check: RecordChecker) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Name, text and entities of each document; line ends join texts that are parts of one, such as sentences."""
    documents: dict[Any, list[Text]] = {}
    for number, text in enumerate(texts):
        for name in ("borders", "pos", *CONTEXT_FIELDS):
            check.note(f"values of {name}", bool(text.get(name)))
        documents.setdefault(text["doc_id"] if "sentence_ids" in text else number, []).append(text)
    for parts in documents.values():
        start, entities = 0, []
        for part in parts:
            entities += [{**entity, **moved(entity, start)} for entity in part["entities"]]
            start += len(part["text"]) + 1
        yield parts[0]["doc_id"], "\n".join(part["text"] for part in parts), entities


def write_brat(texts: Iterable[Any], folder: Path, check: RecordChecker) -> None:
    """Writes a `.txt` and an `.ann` for every document; the score of a prediction is a note on its entity."""
    folder.mkdir(exist_ok=True)
    for doc_id, text, entities in _documents(texts, check):
        name, lines = check_file_name(doc_id, "brat"), []
        for number, entity in enumerate(entities, start=1):
            start, end, kind = entity["start"], entity["end"], entity["type"]
            # A line end ends a fragment; in the quote it is a space.
            pieces = [(start + part.start(), start + part.end()) for part in re.finditer(r"[^\r\n]+", text[start:end])]
            if re.search(r"\s", kind) or not pieces:
                problem = f"an entity of line ends alone, or white space in the type {kind!r}"
                raise ValueError(f"{name!r} has {problem}, which brat cannot represent. Change it.")
            check.note("line ends at the boundaries of entities", (pieces[0][0], pieces[-1][1]) != (start, end))
            offsets = ";".join(f"{first} {last}" for first, last in pieces)
            quote = " ".join(text[first:last] for first, last in pieces)
            lines.append(f"T{number}\t{kind} {offsets}\t{quote}\n")
            if "score" in entity:
                lines.append(f"#{number}\tAnnotatorNotes T{number}\tscore {entity['score']:.4f}\n")
        write_new(folder / f"{name}{TEXT_SUFFIX}", text)
        write_new(folder / f"{name}{ANNOTATION_SUFFIX}", "".join(lines))


def check_file_name(name: str, form: str) -> str:
    """Returns the name of a document; ValueError unless it can be that of a file inside a folder."""
    path = PurePosixPath(name)
    is_hidden = any(part.startswith(".") for part in path.parts)  # also of "..", which leads out of the folder
    if is_hidden or str(path) != name or not path.name or path.is_absolute() or "\0" in name:
        raise ValueError(f"{name!r} is not a valid file name, which {form} needs for its documents. Change the id.")
    return name


def write_new(file: Path, content: str) -> None:
    """Writes a file of a document; FileExistsError if another has its name, perhaps in another case."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8", newline="") as opened:
        opened.write(content)


# ---- Predictions for annotation tools: Label Studio, brat, Doccano, INCEpTION ----

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
    tasks = []
    for text in texts:
        data = {"text": text["text"], "doc_id": text["doc_id"], **text["fields"]}
        tasks.append({"data": data, "predictions": [label_studio_prediction(text["text"], text["entities"])]})
    with path.open("w", encoding="utf-8", errors=SURROGATES, newline="\n") as file:
        json.dump(tasks, file, ensure_ascii=False, indent=1)


def label_studio_config(labels: Iterable[str]) -> str:
    """Returns the labeling configuration of a project for these labels, on one line."""
    view = ElementTree.Element("View")
    choices = ElementTree.SubElement(view, "Labels", name=FROM_NAME, toName=TO_NAME)
    for label in labels:
        ElementTree.SubElement(choices, "Label", value=label)
    ElementTree.SubElement(view, "Text", name=TO_NAME, value="$text")
    return ElementTree.tostring(view, encoding="unicode")


def label_studio_prediction(
    text: str, entities: Sequence[Mapping[str, Any]], from_name: str = FROM_NAME, to_name: str = TO_NAME
) -> dict[str, Any]:
    """A prediction of Label Studio for its tags with these names; the score is that of the least sure entity, or 1."""
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
