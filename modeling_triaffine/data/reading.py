"""What readers share: the description of a format, and access to plain or gzipped files, to text and to JSON in them.

Holds no format of its own and does not know which ones there are (`formats.py` does).
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from .schema import CorpusError, Record, RecordChecker, shown

GZIP_MAGIC = b"\x1f\x8b"
HEAD_SIZE = 1 << 16

JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]:]', re.DOTALL)
"""What tells the keys of a JSON object from everything else in it; a string may be cut off."""


@dataclass(frozen=True)
class CorpusFormat:
    """A file format, as its reader's module describes it to `formats.FORMATS`.

    Args:
        name: what `load_nested_ner(format=…)` calls it.
        description: a few words for error messages.
        suffixes: endings of its files' names, without `.gz`.
        recognizes: whether the first characters of a file look like this format.
        read: `read(path, check) → records`, a generator that passes each sentence through `check` (a `RecordChecker`)
            and tells it what is dropped (`check.drop`) or ignored (`check.note`).
        split_starts: split → number of its first sentence, for a format whose file holds several splits.
        options: the keywords that `read` takes: "word_splitter" where the format has the text as written,
            "sentence_splitter" where it does not say what the sentences are, "columns" where it does not say what its
            columns hold.
        documents: for a format of many small files, `documents(path) → files`: all files of this format that make up
            the folder, or the document, `path`; none where it is no such folder. `path` is then what `read` is given.
        lists: endings of files that name the documents of a split; they are `path`s for `documents` and `read` as well.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    recognizes: Callable[[str], bool]
    read: Callable[..., Iterator[Record]]
    split_starts: Mapping[str, int] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    documents: Callable[[Path], list[Path]] | None = None
    lists: tuple[str, ...] = ()

    @property
    def keeps_text(self) -> bool:
        """Whether the text as written is there, to be cut into words by any splitter."""
        return "word_splitter" in self.options

    def splits(self, num_sentences: int) -> dict[str, range]:
        """Which of a file's sentences belong to which of its own splits; splits past its end are left out."""
        starts = list(self.split_starts.values())
        stops = [*starts[1:], num_sentences]
        return {
            name: range(start, min(stop, num_sentences))
            for name, start, stop in zip(self.split_starts, starts, stops, strict=True)
            if start < num_sentences
        }


class DataError(ValueError):
    """Bytes are not what they should be: what is wrong with them, wherever they are from, and what to do."""

    def __init__(self, problem: str, remedy: str):
        super().__init__(f"{problem}. {remedy}.")
        self.problem, self.remedy = problem, remedy


@contextmanager
def open_corpus(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked where it is gzipped (told by its content); damaged gzip data raises CorpusError."""
    with path.open("rb") as plain:
        gzipped = plain.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    try:
        with gzip.open(path) if gzipped else path.open("rb") as file:
            yield file  # type: ignore[misc]  # GzipFile offers what is used of BinaryIO
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        problem = f"the gzip data is damaged or cut off ({error})"
        raise CorpusError.at(path, "", problem, "Fetch or pack the file again") from None


def read_head(path: Path) -> str:
    """The first characters of a file, by which formats are told apart.

    Raises:
        CorpusError: the file is empty.
    """
    with open_corpus(path) as file:
        head = file.read(HEAD_SIZE).decode("utf-8-sig", errors="replace").lstrip()
    if not head:
        raise CorpusError.at(path, "", "the file is empty", "Give a file with at least one sentence")
    return head


def read_text(path: Path, check: RecordChecker, where: str) -> str:
    """A whole file as text, line ends and byte order mark as they are.

    Raises:
        CorpusError: it is not UTF-8.
    """
    with open_corpus(path) as file:
        return decode(file.read(), check, where)


def decode(data: bytes, check: RecordChecker, where: str) -> str:
    """UTF-8 → text; what is no UTF-8 becomes a CorpusError that names the byte."""
    try:
        return decode_text(data)
    except DataError as error:
        raise check.error(where, error.problem, error.remedy) from None


def json_values(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values of JSON lines, one by one, or of one JSON list, parsed as a whole; each with its place in the file.

    Raises:
        CorpusError: names the line, or the place in the list, of what is broken.
    """
    if read_head(path).startswith("["):
        yield from json_list(path, check)
    else:
        yield from json_lines(path, check)


def json_lines(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values of JSON lines with their places; blank lines separate nothing and are passed over."""
    with open_corpus(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield parse_json(line.rstrip(b"\r\n"), check, f"line {number}"), f"line {number}"


def json_list(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values of one JSON list with their places, counted from 0. Memory grows with the file."""
    with open_corpus(path) as file:
        values = parse_json(file.read(), check, "")
    if not isinstance(values, list):
        raise check.error("", "expected one list of records", "Wrap the records in [ ], or use JSON lines")
    for number, value in enumerate(values):
        yield value, f"record {number}"


def record_keys(head: str) -> set[str]:
    """The keys of the first object in JSON lines or a JSON list, as far as `head` reaches.

    >>> sorted(record_keys('[{"text": "a {", "label": [{"start": 0, "end": 1}], "me'))
    ['label', 'text']
    """
    keys: set[str] = set()
    depth, last = 0, ""
    for match in JSON_TOKEN.finditer(head):
        token = match.group()
        if token == ":" and depth == 1:
            keys.add(last.strip('"'))
        elif token in "{[" and (depth or token == "{"):
            depth += 1
        elif token in "}]" and depth:
            depth -= 1
            if not depth:
                break
        last = token
    return keys


def parse_json(data: bytes, check: RecordChecker, where: str) -> object:
    """The JSON value in `data`; what is broken becomes a CorpusError that names the place in it."""
    try:
        return decode_json(data)
    except DataError as error:
        raise check.error(where, error.problem, error.remedy) from None


def decode_text(data: bytes) -> str:
    """The text in `data`, or a DataError that names the byte where it is no UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_decoded(error) from None


def decode_object(data: bytes) -> dict[str, Any]:
    """The JSON object in `data`, or a DataError that says why there is none."""
    value = decode_json(data)
    if not isinstance(value, dict):
        raise DataError(f"no JSON object, but {shown(value)}", "Give one JSON object, with its fields in { }")
    return value


def decode_json(data: bytes) -> object:
    """The JSON value in `data`, or a DataError that names the place where it is broken."""
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"character {error.colno}"
        problem = f"broken JSON, {error.msg.removesuffix(' at')} at {place}"
        remedy = "Correct it, or see whether the file was cut off"
    except UnicodeDecodeError as error:
        raise _not_decoded(error) from None
    except RecursionError:
        problem, remedy = "JSON nested too deeply", "A record holds lists and objects of a few levels"
    except ValueError:  # Python's limit for digits, the only other thing that its parser refuses
        problem, remedy = "a number of thousands of digits", "Correct it"
    raise DataError(problem, remedy)


def _not_decoded(error: UnicodeDecodeError) -> DataError:
    return DataError(f"byte {error.start + 1} is not {error.encoding}", "Save the file as UTF-8")
