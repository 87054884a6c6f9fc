"""Data sets → corpora on disk: JSON lines, columns of IOB2 tags, and the forms of texts (`writing_texts.py`).

Texts are written as they are; sentences of words are joined to texts for these forms. Reading what was written gives
the same records. If a format cannot represent a record, that is an error where it would be read as a different one (a
tab in a token of tab-separated columns), and counted otherwise (brat has no tags).
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset

from ..files import new_folder
from .alignment import join_tokens
from .features import FEATURES
from .formats.layout import DOCUMENT_START, POS_NAME, TAGS_NAME, TOKENS_NAME
from .formats.tags import BETWEEN_TAGS, OUTSIDE
from .offsets import BYTE_ORDER_MARK
from .record_checker import RecordChecker
from .schema import CONTEXT_FIELDS, Entity
from .writing_texts import (
    LINE_ENDS,
    TextDocument,
    representable,
    write_bioc_json,
    write_bioc_xml,
    write_brat,
    write_pubtator,
    write_text_spans,
)

NOT_ONE_WORD = re.compile(rf"\s|^{BYTE_ORDER_MARK}")
"""In a token: what changes or splits it when the text is split at white space."""

Records = Iterable[Mapping[str, Any]]
"""Sentences in the form of the schema, as a `Dataset` gives them."""


class Writer(NamedTuple):
    """How a split is written: the suffix of its file, and the function for its sentences, or for its texts.

    The function returns what is not in the file, in words, with how often.
    """

    suffix: str
    write: Callable[[Iterable[Any], Path], Counter[str]]
    of_texts: bool = False

    def write_words(self, records: Records, path: Path) -> Counter[str]:
        """Writes sentences of words, in a form of texts one per line, with words separated by spaces."""
        return write_joined(records, path, self.write) if self.of_texts else self.write(records, path)


def write_nested_ner(
    splits: Mapping[str, Records], folder: str | os.PathLike[str], format: str
) -> dict[str, Counter[str]]:
    """Writes a corpus for `load_nested_ner(folder)`. The folder is atomic: it appears when all is written.

    Args:
        splits: split → sentences of words; a `DatasetDict` is such a mapping. Or split → texts, of [`load_texts`],
            which stay as they are, with all their offsets.
        folder: a new or empty folder.
        format: for words, "json_lines": `train.jsonl` …, or "iob2": `train.conll` …, with a column for every level of
            nesting and further columns for crossing entities. For texts, "text_spans": `train.jsonl` …; "brat": folders
            `train` … with a `.txt` and an `.ann` for every document; "pubtator": `train.pubtator` …, with line ends
            written as spaces; "bioc": `train.xml` …, or "bioc_json": `train.json` …. Of words, these make texts: words
            separated by spaces, one sentence per line. To get the same words and sentences again, read them with
            `word_splitter("whitespace")` and `sentence_splitter="lines"`.

    Returns:
        Split → what is not in the result (what the format cannot represent, duplicates, other fields), in words, → how
        often.

    Raises:
        TypeError: `splits` is not a mapping.
        ValueError: there is no such format, it cannot represent a record, or a record is not in the schema; the message
            names the record.
        FileExistsError: `folder` is not empty.

    Examples:
        >>> from modeling_triaffine.data import write_nested_ner
        >>> record = {"id": "1:0", "doc_id": "1", "sent_id": 0, "tokens": ["Orsk"], "pos": [], "left_tokens": [],
        ...           "right_tokens": [], "entities": [{"start": 0, "end": 1, "type": "City"}]}
        >>> _ = write_nested_ner({"train": [record]}, "columns", "iob2")
        >>> print(open("columns/train.conll", encoding="utf-8").read().split()[-2:])
        ['Orsk', 'B-City']
    """
    if format not in WRITERS:
        raise ValueError(f"There is no writer of {format!r}. Choose one of {', '.join(WRITERS)}.")
    if not isinstance(splits, Mapping):
        raise TypeError(
            f"write_nested_ner needs a mapping of splits to records, but the data is of type {type(splits).__name__}. "
            'Give {"train": data}.'
        )
    folder = Path(folder).expanduser()
    if folder.is_file():
        raise FileExistsError(f"{folder} is a file. Give the name of a new folder.")
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(
            f"{folder} is not empty. Give a new folder, so that this corpus is not mixed with another."
        )
    writer = WRITERS[format]
    lost = {}
    with new_folder(folder) as unfinished:
        for split, records in splits.items():
            records = records.with_format(None) if isinstance(records, Dataset) else records
            lost[split] = _write_split(records, unfinished / f"{split}{writer.suffix}", writer, f"split {split!r}")
    return lost


def _write_split(records: Records, path: Path, writer: Writer, name: str) -> Counter[str]:
    check = RecordChecker(name)
    rows = iter(records)
    first = next(rows, None)
    rows = rows if first is None else chain([first], rows)
    if first is None or "text" not in first or "tokens" in first:
        checked = (check(record, f"sentence {number}") for number, record in enumerate(rows))
        return writer.write_words(checked, path) + check.counts
    if not writer.of_texts:
        of_texts = ", ".join(known for known, one in WRITERS.items() if one.of_texts)
        raise ValueError(f"{name} has texts, but the format has words. Choose one of {of_texts}, or give sentences.")
    texts = (_checked_text(text, f"text {number}", check) for number, text in enumerate(rows))
    return writer.write(texts, path) + check.counts


def _checked_text(row: Mapping[str, Any], where: str, check: RecordChecker) -> TextDocument:
    """Raises CorpusError unless the row is a `Text` whose entities are inside of it."""
    doc_id, text = check.typed(row, "doc_id", str, where), check.typed(row, "text", str, where)
    return TextDocument(
        doc_id, text, check.entities(row, len(text), where, "characters"), borders=row.get("borders") or ()
    )


def write_json_lines(records: Records, path: Path) -> Counter[str]:
    """Writes one record per line, with all its fields."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            fields = {name: record[name] for name in FEATURES if record[name] is not None}
            file.write(json.dumps(fields, ensure_ascii=False) + "\n")
    return Counter()


def write_iob2(records: Records, path: Path) -> Counter[str]:
    """Writes columns of tokens, part-of-speech tags if there are any, and IOB2 tags; ids are comments."""
    records = list(records)
    levels = [_levels(record) for record in records]
    num_levels = max([1, *map(len, levels)])
    has_pos = any(record["pos"] for record in records)
    names = [TOKENS_NAME, *([POS_NAME] if has_pos else []), *(f"{TAGS_NAME}:{n}" for n in range(1, num_levels + 1))]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"# global.columns = {' '.join(names)}\n")
        doc_id = None
        for record, tags in zip(representable(records, _not_in_columns, "iob2"), levels, strict=True):
            if record["doc_id"] != doc_id:
                doc_id = record["doc_id"]
                file.write(f"# newdoc id = {doc_id}\n")
            file.write(f"# sent_id = {record['id']}\n")
            nothing = ["O"] * len(record["tokens"])
            pos = [record["pos"] or ["_"] * len(record["tokens"])] if has_pos else []
            rows = zip(record["tokens"], *pos, *tags, *[nothing] * (num_levels - len(tags)), strict=True)
            file.write("".join("\t".join(row) + "\n" for row in rows) + "\n")
    lost = _lost_in_text(records)
    lost["sentences with tags that are all '_'"] = sum(set(record["pos"]) == {"_"} for record in records)
    return +lost


def write_joined(
    records: Records, path: Path, write: Callable[[Iterable[TextDocument], Path], Counter[str]]
) -> Counter[str]:
    """Writes documents in a form of texts: their sentences one per line, words separated by spaces."""
    documents: dict[str, list[Mapping[str, Any]]] = {}
    for record in representable(records, _not_on_a_line, "a text of one sentence per line"):
        documents.setdefault(record["doc_id"], []).append(record)
    lost = write((_text_document(doc_id, sentences) for doc_id, sentences in documents.items()), path)
    has_lines = lost.pop(LINE_ENDS, 0) == 0
    in_order = list(chain.from_iterable(documents.values()))
    for number, record in _numbered(in_order):
        lost["ids"] += record["id"] != f"{record['doc_id']}:{number}"
        lost["sentences with part-of-speech tags"] += bool(record["pos"])
        lost["tokens with white space in them"] += sum(1 for token in record["tokens"] if NOT_ONE_WORD.search(token))
        lost["ends of sentences"] += not has_lines and number > 1
    return +(lost + _lost_in_text(in_order))


def _text_document(doc_id: str, sentences: Sequence[Mapping[str, Any]]) -> TextDocument:
    lines: list[str] = []
    entities: list[Entity] = []
    first = 0  # of the characters of a line
    for sentence in sentences:
        line, inside = join_tokens(sentence["tokens"], sentence["entities"])
        entities += [Entity(start=first + e["start"], end=first + e["end"], type=e["type"]) for e in inside]
        lines.append(line)
        first += len(line) + 1
    return TextDocument(doc_id, "\n".join(lines), entities)


def _not_on_a_line(sentence: Mapping[str, Any]) -> str:
    return "a token with a line end in it" if any("\n" in token for token in sentence["tokens"]) else ""


def _lost_in_text(records: Records) -> Counter[str]:
    """What neither texts nor columns can represent."""
    lost = Counter[str]()
    for number, record in _numbered(records):
        lost["numbers of sentences"] += record["sent_id"] != number
        lost["sentences with their own context"] += any(record[side] is not None for side in CONTEXT_FIELDS)
    return lost


def _numbered(records: Records) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Every record with its number in its document, or in a contiguous part of its document."""
    for _, sentences in groupby(records, key=lambda record: record["doc_id"]):
        yield from enumerate(sentences)


def _levels(record: Mapping[str, Any]) -> list[list[str]]:
    """The tags of a sentence, one list per level: each entity, outer ones first, is in the first level with room."""
    levels: list[list[str]] = []
    for entity in sorted(record["entities"], key=lambda entity: (entity["start"], -entity["end"], entity["type"])):
        inside = slice(entity["start"], entity["end"])
        tags = next((tags for tags in levels if set(tags[inside]) == {"O"}), None)
        if tags is None:
            tags = ["O"] * len(record["tokens"])
            levels.append(tags)
        kind = entity["type"]
        tags[inside] = [f"B-{kind}"] + [f"I-{kind}"] * (entity["end"] - entity["start"] - 1)
    return levels


def _not_in_columns(record: Mapping[str, Any]) -> str:
    for field in ("doc_id", "id"):
        if not (value := record[field]) or value != value.strip() or re.search("[\t\r\n]", value):
            return f"the {field} {value!r}, which is empty or has white space around it, a tab or a line end"
    if DOCUMENT_START.match(record["tokens"][0]):
        return f"{record['tokens'][0]} as its first token, which would begin a document"
    types = [entity["type"] for entity in record["entities"]]
    for kind in types:
        if kind == OUTSIDE:
            return f"the type {kind!r}, which would be no type"
        if BETWEEN_TAGS.search(kind):
            return f"the type {kind!r}, which would be several tags"
    broken = (value for value in (*record["tokens"], *record["pos"], *types) if re.search(r"[\t\r\n]", value))
    return next((f"{value!r}, with a tab or a line end" for value in broken), "")


WRITERS = {
    "json_lines": Writer(".jsonl", write_json_lines),
    "iob2": Writer(".conll", write_iob2),
    "text_spans": Writer(".jsonl", write_text_spans, of_texts=True),
    "brat": Writer("", write_brat, of_texts=True),
    "pubtator": Writer(".pubtator", write_pubtator, of_texts=True),
    "bioc": Writer(".xml", write_bioc_xml, of_texts=True),
    "bioc_json": Writer(".json", write_bioc_json, of_texts=True),
}
"""Format → how it is written.

Examples:
    >>> from modeling_triaffine.data import WRITERS
    >>> list(WRITERS)
    ['json_lines', 'iob2', 'text_spans', 'brat', 'pubtator', 'bioc', 'bioc_json']
"""
