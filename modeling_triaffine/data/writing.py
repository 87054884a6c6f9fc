"""Data sets → corpora on disk: JSON lines, columns of IOB2 tags, and brat.

Texts are written as they are, with all offsets; sentences of words are joined to texts for the forms of texts. What a
form would change into something else (a tab in a token of tab-separated columns) is an error that names the row; what
it has no place for is counted.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, groupby
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from datasets import Dataset

from ..files import new_folder
from .features import FEATURES
from .formats.brat import ANNOTATION_SUFFIX, TEXT_SUFFIX
from .formats.layout import DOCUMENT_START, POS_NAME, TAGS_NAME, TOKENS_NAME
from .formats.tags import BETWEEN_TAGS, OUTSIDE
from .record_checker import RecordChecker
from .schema import CONTEXT_FIELDS, Text
from .texts import WrittenSentence, text_of_sentences

SOURCE = "triaffine-ner"
SEPARATORS = re.compile("[\t\r\n]")
Row = Mapping[str, Any]
"""A sentence in the form of the schema, or a [`Text`]."""


class Writer(NamedTuple):
    """How a split is written: the suffix of its file, what a row is, and the function for the rows.

    `rows` is "texts" for forms of texts, "sentences" for columns, and "any" for JSON, which holds both. The function
    returns what is not in the file, in words, with how often.
    """

    suffix: str
    rows: str
    write: Callable[[Iterable[Row], Path], Counter[str]]


def write_nested_ner(
    splits: Mapping[str, Iterable[Row]], folder: str | os.PathLike[str], format: str
) -> dict[str, Counter[str]]:
    """Writes a corpus for `load_nested_ner(folder)`. The folder is atomic: it appears when all is written.

    Args:
        splits: split → sentences of words; a `DatasetDict` is such a mapping. Or split → texts, of [`load_texts`],
            which stay as they are, with all their offsets.
        folder: a new or empty folder.
        format: "json_lines": `train.jsonl` …, with a sentence or a text a line. For sentences, "iob2": `train.conll` …,
            with a column for every level of nesting and further columns for crossing entities. For texts, "brat":
            folders `train` … with a `.txt` and an `.ann` for every document. Sentences become texts there: words joined
            by spaces, one sentence per line. To get the same words and sentences again, read them with
            `word_splitter("whitespace")` and `sentence_splitter="lines"`.

    Returns:
        Split → what is not in the result (what the format cannot represent, duplicates, other fields), in words, → how
        often.

    Raises:
        ValueError: there is no such format, it cannot represent a row, or a row is not in the schema; the message
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
            rows = rows.with_format(None) if isinstance(rows, Dataset) else rows
            lost[split] = _write_split(rows, unfinished / f"{split}{WRITERS[format].suffix}", format, split)
    return lost


def _write_split(rows: Iterable[Row], path: Path, format: str, split: str) -> Counter[str]:
    _, taken, write = WRITERS[format]
    check = RecordChecker(f"split {split!r}")
    rows = iter(rows)
    head = [first for first in [next(rows, None)] if first is not None]
    rows = chain(head, rows)
    if head and "text" in head[0] and ("words" in head[0] or "tokens" not in head[0]):
        if taken == "sentences":
            raise ValueError(
                f"Split {split!r} has texts, but {format} has words. Give sentences, or choose json_lines."
            )
        return write(map(_checked_text, rows), path)
    sentences: Iterable[Any] = (check(record, f"sentence {number}") for number, record in enumerate(rows))
    if taken != "texts":
        return write(sentences, path) + check.counts
    sentences = list(sentences)
    return (
        write(texts_of_sentences(sentences), path) + _without_place(sentences, ("pos", *CONTEXT_FIELDS)) + check.counts
    )


def _checked_text(text: Row) -> Row:
    for entity in text["entities"]:
        if not 0 <= entity["start"] < entity["end"] <= len(text["text"]):
            raise ValueError(
                f"Document {text['doc_id']!r} has the entity {dict(entity)}, which is outside of its text."
            )
    return text


def texts_of_sentences(sentences: Iterable[Row]) -> Iterator[Text]:
    """The documents of sentences: their words separated by spaces, one sentence per line."""
    documents: dict[str, list[Any]] = {}
    for sentence in sentences:
        documents.setdefault(sentence["doc_id"], []).append(sentence)
    for doc_id, inside in documents.items():
        if any("\n" in token for sentence in inside for token in sentence["tokens"]):
            raise _unfit("a text of one sentence per line", doc_id, "a token with a line end in it")
        yield text_of_sentences(map(WrittenSentence, inside))


def _without_place(rows: Iterable[Row], fields: Iterable[str]) -> Counter[str]:
    """How many rows have a value of these fields, which a form has no place for."""
    return +Counter({f"values of {name}": sum(bool(row.get(name)) for row in rows) for name in fields})


def _unfit(form: str, name: str, problem: str) -> ValueError:
    return ValueError(f"{name!r} has {problem}, which {form} cannot represent. Change it, or write another form.")


# ---- One row a line ----


def write_json_lines(rows: Iterable[Row], path: Path) -> Counter[str]:
    """Writes one sentence per line, with all its fields, or one text."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            if "text" not in row:
                fields = {name: row[name] for name in FEATURES if row[name] is not None}
            else:
                spans = [{"start": e["start"], "end": e["end"], "label": e["type"]} for e in row["entities"]]
                fields = {"id": row["doc_id"], "text": row["text"], "entities": spans}
                fields |= {"borders": row["borders"]} if row.get("borders") else {}
            file.write(json.dumps(fields, ensure_ascii=False) + "\n")
    return Counter()


# ---- Columns ----


def write_iob2(records: Iterable[Row], path: Path) -> Counter[str]:
    """Writes columns of tokens, part-of-speech tags if there are any, and IOB2 tags; ids are comments."""
    records = list(records)
    levels = [_levels(record) for record in records]
    num_levels = max([1, *map(len, levels)])
    has_pos = any(record["pos"] for record in records)
    names = [TOKENS_NAME, *([POS_NAME] if has_pos else []), *(f"{TAGS_NAME}:{n}" for n in range(1, num_levels + 1))]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"# global.columns = {' '.join(names)}\n")
        for doc_id, sentences in groupby(zip(records, levels, strict=True), key=lambda pair: pair[0]["doc_id"]):
            file.write(f"# newdoc id = {doc_id}\n")
            for record, tags in sentences:
                if problem := _not_in_columns(record):
                    raise _unfit("iob2", record["id"], problem)
                nothing = [OUTSIDE] * len(record["tokens"])
                pos = [record["pos"] or ["_"] * len(record["tokens"])] if has_pos else []
                rows = zip(record["tokens"], *pos, *tags, *[nothing] * (num_levels - len(tags)), strict=True)
                file.write(f"# sent_id = {record['id']}\n" + "".join("\t".join(row) + "\n" for row in rows) + "\n")
    return _without_place(records, CONTEXT_FIELDS)


def _levels(record: Row) -> list[list[str]]:
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


def _not_in_columns(record: Row) -> str:
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


def write_brat(texts: Iterable[Row], folder: Path) -> Counter[str]:
    """Writes a `.txt` and an `.ann` for every document; the score of a prediction is a note on its entity."""
    folder.mkdir(exist_ok=True)
    lost = Counter[str]()
    for document in texts:
        name, text = check_file_name(document["doc_id"], "brat"), document["text"]
        lost["texts with borders of passages"] += bool(document.get("borders"))
        lines = []
        for number, entity in enumerate(document["entities"], start=1):
            start, end, kind = entity["start"], entity["end"], entity["type"]
            # A line end ends a fragment; in the quote it is a space.
            pieces = [(start + one.start(), start + one.end()) for one in re.finditer(r"[^\r\n]+", text[start:end])]
            if re.search(r"\s", kind) or not pieces:
                raise _unfit("brat", name, f"an entity of line ends alone, or white space in the type {kind!r}")
            lost["line ends at the boundaries of entities"] += (pieces[0][0], pieces[-1][1]) != (start, end)
            offsets = ";".join(f"{first} {last}" for first, last in pieces)
            quote = " ".join(text[first:last] for first, last in pieces)
            lines.append(f"T{number}\t{kind} {offsets}\t{quote}\n")
            if "score" in entity:
                lines.append(f"#{number}\tAnnotatorNotes T{number}\tscore {entity['score']:.4f}\n")
        write_new(folder / f"{name}{TEXT_SUFFIX}", text)
        write_new(folder / f"{name}{ANNOTATION_SUFFIX}", "".join(lines))
    return +lost


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


WRITERS = {
    "json_lines": Writer(".jsonl", "any", write_json_lines),
    "iob2": Writer(".conll", "sentences", write_iob2),
    "brat": Writer("", "texts", write_brat),
}
"""Format → how it is written.

Examples:
    >>> from modeling_triaffine.data import WRITERS
    >>> list(WRITERS)
    ['json_lines', 'iob2', 'brat']
"""
