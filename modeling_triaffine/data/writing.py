"""Texts → corpora on disk: JSON lines, and brat. Sentences of words are texts of their own.

What a form would change into something else is an error that names the text; what it has no place for is counted.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any

from datasets import Dataset

from ..files import new_folder
from .formats.brat import ANNOTATION_SUFFIX, TEXT_SUFFIX
from .record_checker import RecordChecker
from .schema import CONTEXT_FIELDS, Text
from .texts import WrittenSentence, json_of_text, moved, text_of_sentences

SOURCE = "triaffine-ner"
WRITERS = ("json_lines", "brat")
"""The formats that are written.

Examples:
    >>> from modeling_triaffine.data import WRITERS
    >>> "brat" in WRITERS
    True
"""


def write_nested_ner(
    splits: Mapping[str, Iterable[Mapping[str, Any]]], folder: str | os.PathLike[str], format: str = "json_lines"
) -> dict[str, Counter[str]]:
    """Writes a corpus for `load_nested_ner(folder)`. The folder is atomic: it appears when all is written.

    Args:
        splits: split → texts, of [`load_texts`], or split → sentences of words; a `DatasetDict` is such a mapping. A
            sentence is a text of its words, joined by spaces.
        folder: a new or empty folder.
        format: "json_lines": `train.jsonl` …, a text a line, with all its offsets, words and sentences; "brat": folders
            `train` … with a `.txt` and an `.ann` for every document.

    Returns:
        Split → what is not in the result (what the format cannot represent, duplicates, other fields), in words, → how
        often.

    Raises:
        ValueError: there is no such format, it cannot represent a text, or a row is not in the schema; the message
            names the row.
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
            lost[split] = +check.counts
    return lost


def _as_text(row: Mapping[str, Any], where: str, check: RecordChecker) -> Text:
    """A row of words as a text; of a text, the entities are checked."""
    if "text" not in row or "tokens" in row:
        return text_of_sentences([WrittenSentence(check(row, where))], where)
    for entity in row["entities"]:
        if not 0 <= entity["start"] < entity["end"] <= len(row["text"]):
            raise check.error(where, f"the entity {dict(entity)} is outside of its text", "Correct its offsets")
    return Text(**{name: value for name, value in row.items() if value is not None})  # type: ignore[typeddict-item]


# ---- brat ----


def _documents(texts: Iterable[Text], check: RecordChecker) -> Iterator[dict[str, Any]]:
    """The texts, those of a document that is given in parts, as sentences of words are, joined by line ends.

    Values that brat has no place for are counted.
    """
    documents: dict[Any, list[Text]] = {}
    for number, text in enumerate(texts):
        for name in ("borders", "pos", *CONTEXT_FIELDS):
            check.note(f"values of {name}", bool(text.get(name)))
        documents.setdefault(text["doc_id"] if "sentence_ids" in text else number, []).append(text)
    for parts in documents.values():
        starts = accumulate((len(part["text"]) + 1 for part in parts), initial=0)
        placed = [(start, entity) for start, part in zip(starts, parts, strict=False) for entity in part["entities"]]
        yield {
            "doc_id": parts[0]["doc_id"],
            "text": "\n".join(part["text"] for part in parts),
            "entities": [{**entity, **moved(entity, start)} for start, entity in placed],
        }


def write_brat(texts: Iterable[Any], folder: Path, check: RecordChecker) -> None:
    """Writes a `.txt` and an `.ann` for every document; the score of a prediction is a note on its entity."""
    folder.mkdir(exist_ok=True)
    for document in _documents(texts, check):
        name, text = check_file_name(document["doc_id"], "brat"), document["text"]
        lines = []
        for number, entity in enumerate(document["entities"], start=1):
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
    """Returns the name of a document; ValueError if it is none of a file inside a folder."""
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
