"""Texts → corpora on disk: JSON lines, columns of IOB2 tags, and brat. Sentences of words are texts of their own.

What a form would change into something else (a tab in a token of tab-separated columns) is an error that names the
text; what it has no place for is counted.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, groupby
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from datasets import Dataset

from ..files import new_folder
from .formats.brat import ANNOTATION_SUFFIX, TEXT_SUFFIX
from .formats.columns import DOCUMENT_START, POS_NAME, TAGS_NAME, TOKENS_NAME
from .formats.tags import BETWEEN_TAGS, OUTSIDE
from .record_checker import RecordChecker
from .schema import CONTEXT_FIELDS, Record, Text
from .texts import DEFAULT_SENTENCE_SPLITTER, WrittenSentence, json_of_text, moved, sentences_of, text_of_sentences

SOURCE = "triaffine-ner"
SEPARATORS = re.compile("[\t\r\n]")
Row = TypeVar("Row", bound=Mapping[str, Any])


def write_nested_ner(
    splits: Mapping[str, Iterable[Mapping[str, Any]]],
    folder: str | os.PathLike[str],
    format: str,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> dict[str, Counter[str]]:
    """Writes a corpus for `load_nested_ner(folder)`. The folder is atomic: it appears when all is written.

    Args:
        splits: split → texts, of [`load_texts`], or split → sentences of words; a `DatasetDict` is such a mapping. A
            sentence is a text of its words, joined by spaces.
        folder: a new or empty folder.
        format: "json_lines": `train.jsonl` …, a text a line, with all its offsets, words and sentences; "iob2":
            `train.conll` …, with a column for every level of nesting and further columns for crossing entities;
            "brat": folders `train` … with a `.txt` and an `.ann` for every document.
        sentence_splitter: for "iob2", of texts whose corpus marks no sentences: "punctuation", "lines" or "none".

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
        >>> _ = write_nested_ner({"train": [record]}, "columns", "iob2")
        >>> print(open("columns/train.conll", encoding="utf-8").read().split()[-2:])
        ['Orsk', 'B-City']
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
            if format == "iob2":
                cut = (record for text in texts for record in sentences_of(text, check, None, sentence_splitter))
                write_iob2(cut, unfinished / f"{split}.conll", check)
            elif format == "brat":
                write_brat(texts, unfinished / split, check)
            else:
                write_json_lines(texts, unfinished / f"{split}.jsonl")
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


def _with_counts(rows: Iterable[Row], fields: Iterable[str], check: RecordChecker) -> Iterator[Row]:
    """The rows; values of these fields, which a form has no place for, are counted."""
    for row in rows:
        for name in fields:
            check.note(f"values of {name}", bool(row.get(name)))
        yield row


def _unfit(form: str, name: str, problem: str) -> ValueError:
    return ValueError(f"{name!r} has {problem}, which {form} cannot represent. Change it, or write another form.")


def write_json_lines(texts: Iterable[Text], path: Path) -> None:
    """Writes one text per line, with all that it has."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(json_of_text(text), ensure_ascii=False) + "\n" for text in texts)


# ---- Columns ----


def write_iob2(sentences: Iterable[Record], path: Path, check: RecordChecker) -> None:
    """Writes columns of tokens, part-of-speech tags if there are any, and IOB2 tags; ids are comments."""
    records = list(_with_counts(sentences, CONTEXT_FIELDS, check))
    levels = [_levels(record) for record in records]
    num_levels = max([1, *map(len, levels)])
    has_pos = any(record["pos"] for record in records)
    names = [TOKENS_NAME, *([POS_NAME] if has_pos else []), *(f"{TAGS_NAME}:{n}" for n in range(1, num_levels + 1))]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"# global.columns = {' '.join(names)}\n")
        for doc_id, inside in groupby(zip(records, levels, strict=True), key=lambda pair: pair[0]["doc_id"]):
            file.write(f"# newdoc id = {doc_id}\n")
            for record, tags in inside:
                if problem := _not_in_columns(record):
                    raise _unfit("iob2", record["id"], problem)
                nothing = [OUTSIDE] * len(record["tokens"])
                pos = [record["pos"] or ["_"] * len(record["tokens"])] if has_pos else []
                rows = zip(record["tokens"], *pos, *tags, *[nothing] * (num_levels - len(tags)), strict=True)
                file.write(f"# sent_id = {record['id']}\n" + "".join("\t".join(row) + "\n" for row in rows) + "\n")


def _levels(record: Record) -> list[list[str]]:
    """The tags of a sentence, one list per level: each entity, outer ones first, is in the first level with room."""
    levels: list[list[str]] = []
    for entity in sorted(record["entities"], key=lambda entity: (entity["start"], -entity["end"], entity["type"])):
        inside = slice(entity["start"], entity["end"])
        tags = next((tags for tags in levels if set(tags[inside]) == {OUTSIDE}), None)
        if tags is None:
            tags = [OUTSIDE] * len(record["tokens"])
            levels.append(tags)
        kind = entity["type"]
        tags[inside] = [f"B-{kind}"] + [f"I-{kind}"] * (entity["end"] - entity["start"] - 1)
    return levels


def _not_in_columns(record: Record) -> str:
    names = [record["doc_id"], record["id"]]
    types = [entity["type"] for entity in record["entities"]]
    if any(not name or name != name.strip() for name in names):
        return "an id that is empty or has white space around it"
    if DOCUMENT_START.match(record["tokens"][0]):
        return f"{record['tokens'][0]} as its first token, which would begin a document"
    if wrong := next((kind for kind in types if kind == OUTSIDE or BETWEEN_TAGS.search(kind)), ""):
        return f"the type {wrong!r}, which would be no type, or several"
    values = (*names, *record["tokens"], *record["pos"], *types)
    return next((f"{value!r}, with a tab or a line end" for value in values if SEPARATORS.search(value)), "")


# ---- Texts ----


def _documents(texts: Iterable[Text]) -> Iterator[Any]:
    """The texts, those of a document that is given in parts, as sentences of words are, joined by line ends."""
    documents: dict[Any, list[Text]] = {}
    for number, text in enumerate(texts):
        documents.setdefault(text["doc_id"] if "sentence_ids" in text else number, []).append(text)
    for parts in documents.values():
        starts = accumulate((len(part["text"]) + 1 for part in parts), initial=0)
        yield Text(
            doc_id=parts[0]["doc_id"],
            text="\n".join(part["text"] for part in parts),
            entities=[moved(e, start) for start, part in zip(starts, parts, strict=False) for e in part["entities"]],
        )


def write_brat(texts: Iterable[Any], folder: Path, check: RecordChecker) -> None:
    """Writes a `.txt` and an `.ann` for every document; the score of a prediction is a note on its entity."""
    folder.mkdir(exist_ok=True)
    for document in _documents(_with_counts(texts, ("borders", "pos", *CONTEXT_FIELDS), check)):
        name, text = check_file_name(document["doc_id"], "brat"), document["text"]
        lines = []
        for number, entity in enumerate(document["entities"], start=1):
            start, end, kind = entity["start"], entity["end"], entity["type"]
            # A line end ends a fragment; in the quote it is a space.
            pieces = [(start + part.start(), start + part.end()) for part in re.finditer(r"[^\r\n]+", text[start:end])]
            if re.search(r"\s", kind) or not pieces:
                raise _unfit("brat", name, f"an entity of line ends alone, or white space in the type {kind!r}")
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
        raise _unfit(form, name, "a name that is not a valid file name")
    return name


def write_new(file: Path, content: str) -> None:
    """Writes a file of a document; FileExistsError if another has its name, perhaps in another case."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8", newline="") as opened:
        opened.write(content)


WRITERS = ("json_lines", "iob2", "brat")
"""The formats that are written.

Examples:
    >>> from modeling_triaffine.data import WRITERS
    >>> "brat" in WRITERS
    True
"""
