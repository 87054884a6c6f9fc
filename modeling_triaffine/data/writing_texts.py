"""Writes texts with their entities, and scores if these are predictions: brat, PubTator, BioC, annotation tools' forms.

A text that a form cannot represent (a tab in a document's name, white space in a type) is an error that names the
document; what the form changes or leaves out is counted. Offsets count characters.
"""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar
from xml.etree import ElementTree

from ..files import SURROGATES
from ..model.text_triaffine import Offsets
from .formats.brat import ANNOTATION_SUFFIX, TEXT_SUFFIX
from .formats.cas import make_cas

SOURCE = "triaffine-ner"
FROM_NAME, TO_NAME = "label", "text"
"""Names of Label Studio's tags `<Labels>` and `<Text>`, as its templates have them."""
XML_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>'
NOT_IN_XML = re.compile("[^\t\r\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

LINE_ENDS = "line ends (written as spaces)"
LINE_ENDS_OF_ENTITIES = "line ends at the boundaries of entities"
PASSAGES = "borders of passages"


class TextDocument(NamedTuple):
    """A text to be written; `sentences` (their words) and further `fields` are for forms that have room for them.

    entities: {"start", "end" (exclusive, in characters), "type", and, of predictions, "score"}.
    borders: positions that no sentence crosses.
    """

    doc_id: str
    text: str
    entities: Sequence[Mapping[str, Any]]
    sentences: Sequence[Sequence[Offsets]] = ()
    fields: Mapping[str, Any] = {}
    borders: Sequence[int] = ()

    def passages(self) -> list[Offsets]:
        """What is between the borders, without the spaces between two passages; at least one."""
        parts = list(pairwise((0, *self.borders, len(self.text))))
        last = parts.pop()
        return [*((start, end) for start, end in parts if self.text[start:end].strip(" ")), last]


Documents = Iterable[TextDocument]
Row = TypeVar("Row", TextDocument, Mapping[str, Any])


def representable(rows: Iterable[Row], problem_of: Callable[[Row], str], form: str) -> Iterator[Row]:
    """The rows; ValueError, which names the row, for one of which the form cannot represent something.

    Args:
        problem_of: what that is, in words; empty if there is nothing.
    """
    for row in rows:
        if problem := problem_of(row):
            name = f"Document {row.doc_id!r}" if isinstance(row, TextDocument) else f"Sentence {row['id']!r}"
            raise ValueError(f"{name} has {problem}, which {form} cannot represent. Change it, or write another form.")
        yield row


def _without_name(document: TextDocument) -> str:
    return "" if document.doc_id else "no name"


# ---- Forms of corpora: what one cannot hold of a text is returned, in words, with how often ----


def write_text_spans(documents: Documents, path: Path) -> Counter[str]:
    """Writes one object a line, which holds everything."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for document in representable(documents, _without_name, "text_spans"):
            spans = [{"start": e["start"], "end": e["end"], "label": e["type"]} for e in document.entities]
            fields = {"id": document.doc_id, "text": document.text, "entities": spans}
            borders = {"borders": list(document.borders)} if document.borders else {}
            file.write(json.dumps({**fields, **borders}, ensure_ascii=False) + "\n")
    return Counter()


def write_brat(documents: Documents, folder: Path) -> Counter[str]:
    """Writes a `.txt` and an `.ann` for every document; a score is a note on its entity."""
    folder.mkdir(exist_ok=True)
    lost = Counter[str]()
    for document in representable(documents, _not_in_brat, "brat"):
        text = document.text
        lost[PASSAGES] += len(document.passages()) - 1
        lines = []
        for number, entity in enumerate(document.entities, start=1):
            start, end = entity["start"], entity["end"]
            # A line end ends a fragment; in the quote it is a space.
            lines_inside = re.finditer(r"[^\r\n]+", text[start:end])
            pieces = [(start + piece.start(), start + piece.end()) for piece in lines_inside]
            lost[LINE_ENDS_OF_ENTITIES] += (pieces[0][0], pieces[-1][1]) != (start, end)
            offsets = ";".join(f"{first} {last}" for first, last in pieces)
            quote = " ".join(text[first:last] for first, last in pieces)
            lines.append(f"T{number}\t{entity['type']} {offsets}\t{quote}\n")
            if "score" in entity:
                lines.append(f"#{number}\tAnnotatorNotes T{number}\tscore {entity['score']:.4f}\n")
        _write_new(folder / f"{document.doc_id}{TEXT_SUFFIX}", text)
        _write_new(folder / f"{document.doc_id}{ANNOTATION_SUFFIX}", "".join(lines))
    return +lost


def _not_in_brat(document: TextDocument) -> str:
    for entity in document.entities:
        if re.search(r"\s", entity["type"]):
            return (
                f"the type {entity['type']!r}, with white space (for instance {brat_type(entity['type'])!r} has none)"
            )
        if not document.text[entity["start"] : entity["end"]].strip("\r\n"):
            return f"an entity of line ends alone, at {entity['start']} to {entity['end']}"
    return _no_file_name(document)


def brat_type(label: str) -> str:
    """The label as a type of brat, which has no white space."""
    return "_".join(label.split())


def write_pubtator(documents: Documents, path: Path) -> Counter[str]:
    """Writes title and abstract, which are separated by the first border of passages or line end, as one line each."""
    lost = Counter[str]()
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for document in representable(documents, _not_in_pubtator, "pubtator"):
            doc_id = document.doc_id
            text, changed = re.subn(r"[\r\n]", " ", document.text)
            begin = _abstract_of(document)
            lost[LINE_ENDS] += changed
            lost[PASSAGES] += max(0, len(document.passages()) - 1 - (begin in document.borders))
            title, abstract = (text[: begin - 1], text[begin:]) if begin else (text, "")
            file.write(f"{doc_id}|t|{title}\n{doc_id}|a|{abstract}\n")
            for entity in document.entities:
                start, end = entity["start"], entity["end"]
                quote = text[start:end].replace("\t", " ")
                file.write(f"{doc_id}\t{start}\t{end}\t{quote}\t{entity['type']}\n")
            file.write("\n")
    return +lost


def _not_in_pubtator(document: TextDocument) -> str:
    for name in (document.doc_id, *(entity["type"] for entity in document.entities)):
        if re.search("[\t\r\n]", name):
            return f"a tab or a line end in {name!r}"
    return "'|' in its name" if "|" in document.doc_id else _without_name(document)


def _abstract_of(document: TextDocument) -> int:
    """Where the abstract begins, after one character of white space; 0 without one."""
    text = document.text
    borders = [border for border in document.borders if text[border - 1] in " \r\n" and border < len(text)]
    if borders:
        return borders[0]
    line_end = re.search(r"\r?\n(?=.)", text, re.DOTALL)
    return line_end.end() if line_end else 0


def write_bioc_json(documents: Documents, path: Path) -> Counter[str]:
    """Writes one collection, every document with its passages."""
    named = representable(documents, _without_name, "bioc_json")
    collection = {"source": SOURCE, "date": "", "key": "", "infons": {}, "documents": [*map(_bioc, named)]}
    with path.open("w", encoding="utf-8", newline="\n") as file:
        json.dump(collection, file, ensure_ascii=False, indent=1)
    return Counter()


def write_bioc_xml(documents: Documents, path: Path) -> Counter[str]:
    """Writes one collection, every document with its passages."""
    collection = ElementTree.Element("collection")
    for tag, text in (("source", SOURCE), ("date", ""), ("key", "")):
        ElementTree.SubElement(collection, tag).text = text
    for document in representable(documents, _not_in_xml, "bioc, unlike bioc_json,"):
        collection.append(_bioc_element("document", _bioc(document)))
    content = ElementTree.tostring(collection, encoding="unicode").replace("\r", "&#13;")  # else read as a line feed
    path.write_text(f"{XML_DECLARATION}\n{content}", encoding="utf-8", newline="")
    return Counter()


def _not_in_xml(document: TextDocument) -> str:
    types = "".join(entity["type"] for entity in document.entities)
    if found := NOT_IN_XML.search(document.doc_id + document.text + types):
        return repr(found[0])
    return "white space around its name" if document.doc_id != document.doc_id.strip() else _without_name(document)


def _bioc(document: TextDocument) -> dict[str, Any]:
    """A document of BioC as JSON has it."""
    passages: list[dict[str, Any]] = [
        {"infons": {}, "offset": start, "text": document.text[start:end], "sentences": [], "annotations": []}
        for start, end in document.passages()
    ]
    starts = [passage["offset"] for passage in passages]
    for number, entity in enumerate(document.entities, start=1):
        score = {"score": f"{entity['score']:.4f}"} if "score" in entity else {}
        annotation = {
            "id": f"T{number}",
            "infons": {"type": entity["type"], **score},
            "locations": [{"offset": entity["start"], "length": entity["end"] - entity["start"]}],
            "text": document.text[entity["start"] : entity["end"]],
        }
        passages[max(0, bisect_right(starts, entity["start"]) - 1)]["annotations"].append(annotation)
    passages = [{**passage, "relations": []} for passage in passages]
    return {"id": document.doc_id, "infons": {}, "passages": passages, "relations": []}


def _bioc_element(tag: str, fields: Mapping[str, Any]) -> ElementTree.Element:
    """The element of an object of BioC's JSON: its lists are elements, and so are its values but for attributes."""
    element = ElementTree.Element(tag)
    as_attributes = {"location": ("offset", "length"), "annotation": ("id",)}.get(tag, ())
    for name, value in fields.items():
        if name in as_attributes:
            element.set(name, str(value))
        elif name == "infons":
            for key, infon in value.items():
                ElementTree.SubElement(element, "infon", key=key).text = infon
        elif isinstance(value, list):
            element.extend(_bioc_element(name.removesuffix("s"), one) for one in value)
        else:
            ElementTree.SubElement(element, name).text = str(value)
    return element


# ---- Predictions for annotation tools ----


def write_brat_predictions(documents: Documents, folder: Path) -> None:
    """Writes brat's files with line ends of one character, which programs that translate line ends count alike."""
    write_brat((one._replace(text=one.text.replace("\r\n", " \n").replace("\r", "\n")) for one in documents), folder)


def write_label_studio(documents: Documents, path: Path) -> None:
    """Writes one list of tasks with predictions; further fields are data of the task."""
    tasks: list[dict[str, Any]] = [
        {
            "data": {"text": document.text, "doc_id": document.doc_id, **document.fields},
            "predictions": [label_studio_prediction(document.text, document.entities)],
        }
        for document in documents
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
    regions = [
        {
            "id": f"T{number}",
            "from_name": from_name,
            "to_name": to_name,
            "type": "labels",
            "value": {
                "start": entity["start"],
                "end": entity["end"],
                "text": text[entity["start"] : entity["end"]],
                "labels": [entity["type"]],
            },
            "score": entity["score"],
        }
        for number, entity in enumerate(entities, start=1)
    ]
    score = min((entity["score"] for entity in entities), default=1.0)
    return {"model_version": SOURCE, "score": score, "result": regions}


def write_doccano(documents: Documents, path: Path) -> None:
    """Writes one object a line; the scores and further fields become Doccano's meta data."""
    with path.open("w", encoding="utf-8", errors=SURROGATES, newline="\n") as file:
        for document in documents:
            spans = [[entity["start"], entity["end"], entity["type"]] for entity in document.entities]
            scores = [entity["score"] for entity in document.entities]
            fields = {"text": document.text, "label": spans, "doc_id": document.doc_id, "scores": scores}
            file.write(json.dumps({**fields, **document.fields}, ensure_ascii=False) + "\n")


def write_inception(documents: Documents, folder: Path) -> None:
    """Writes a UIMA CAS in JSON for every document. Needs the extra `cas`."""
    folder.mkdir(exist_ok=True)
    for document in representable(documents, _no_file_name, "inception"):
        cas = make_cas(document.text, document.sentences, document.entities)
        _write_new(folder / f"{document.doc_id}.json", cas.to_json())


def _no_file_name(document: TextDocument) -> str:
    """The problem of a name that is none of a file inside the folder, or would be read as another name."""
    name = document.doc_id
    path = PurePosixPath(name)
    is_hidden = any(part.startswith(".") for part in path.parts)  # also of "..", which leads out of the folder
    is_other = str(path) != name or not path.name or path.is_absolute()
    return "a name that is not a valid file name" if is_hidden or is_other or "\0" in name else ""


def check_file_names(names: Iterable[str], form: str) -> None:
    """Raises ValueError for the name of a document that would be none of a file, of which `form` has one for each."""
    for _ in representable((TextDocument(name, "", ()) for name in names), _no_file_name, form):
        pass


def _write_new(file: Path, content: str) -> None:
    """Writes a file of a document; FileExistsError if another has its name, perhaps in another case."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8", newline="") as opened:
        opened.write(content)


PREDICTION_WRITERS: dict[str, Callable[[Documents, Path], None]] = {
    "label_studio": write_label_studio,
    "brat": write_brat_predictions,
    "doccano": write_doccano,
    "inception": write_inception,
}
"""Annotation tool → how predictions are written for it: to a file, for brat and INCEpTION to a folder."""
