"""Finds the input files, and splits each into chunks of rows with a text."""

import dataclasses
import glob
import json
import logging
import os
from collections.abc import Iterable, Iterator
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..files import paths_below
from ..parsing import JSON_SUFFIXES, DataError, check_is_line, decode_object, decode_text

logger = logging.getLogger(__name__)

PARQUET, TEXT = ".parquet", ".txt"
SUFFIXES = {PARQUET, TEXT, *JSON_SUFFIXES}
# Outputs of documents that are files of their own, with their numbers.
TEXTS = "texts-{}.jsonl"
FILES_TO_CHECK = 100

Inputs = dict[str, dict[str, str]]
"""Name of an output → its input files, by name: their paths. Only files of texts share an output."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """The way input files are read.

    Args:
        text_column, entities_column: The column or field with the text, and the one to add.
        max_characters: Longer texts are rejected.
        chunk_size: Number of rows that an actor processes at a time.
    """

    text_column: str = "text"
    entities_column: str = "entities"
    max_characters: int = 100_000
    chunk_size: int = 256

    def reason_against(self, text: Any) -> str | None:
        """The reason why a value of the text column cannot be tagged, or None."""
        if not isinstance(text, str):
            found = "null" if text is None else f"not a string but {type(text).__name__}"
            return f"{self.text_column!r} is {found}"
        if len(text) > self.max_characters:
            return f"{self.text_column!r} has more than {self.max_characters} characters"
        return None


@dataclasses.dataclass
class Chunk:
    """Rows of one output.

    Args:
        output: The name of the output.
        rows: A table of Parquet, or records of JSON; of what is no record, the text of its line.
        places: The file of each row, and its number in it, from 1.
        texts: The text of each row, if it has one.
        reasons: Why a row cannot be tagged, or None.
        failure: Why the rest of the file cannot be read; the chunk is then the last one of its output.
    """

    output: str
    rows: Any
    places: list[tuple[str, int]]
    texts: list[Any]
    reasons: list[str | None]
    failure: str | None = None


def find_files(inputs: Iterable[str], output_dir: Path) -> dict[str, str]:
    """Returns name → absolute path of all input files, sorted by name.

    A folder stands for all files in it, named by their relative paths, unless a part of the path begins with "." or
    "_". A pattern stands for the files that it matches. Files of other kinds are logged as one warning. Files in the
    output folder are not inputs.

    Raises:
        ValueError: There is no file of a kind that can be read, or two files have one name.
    """
    found: dict[str, str] = {}
    outputs = output_dir.resolve()
    for given in inputs:
        matches = [(name, path) for name, path in _matches(given) if not path.resolve().is_relative_to(outputs)]
        if others := sorted(name for name, path in matches if path.suffix not in SUFFIXES):
            logger.warning("%s: files left out: %d (%s).", given, len(others), ", ".join(others[:10]))
        if len(others) == len(matches):
            raise ValueError(f"{given}: there is no {', '.join(sorted(SUFFIXES))} file outside of {output_dir}.")
        for name, path in matches:
            place = os.path.abspath(path)  # with the suffix, which what a link leads to may lack
            if path.suffix in SUFFIXES and not os.path.samefile(found.setdefault(name, place), place):
                raise ValueError(f"{found[name]} and {place} would have the same output. Tag them into two folders.")
    return dict(sorted(found.items()))


def _matches(given: str) -> list[tuple[str, Path]]:
    folder = Path(given)
    if folder.is_dir():
        names = (path.relative_to(folder) for path in paths_below(folder) if path.is_file())
        return [(name.as_posix(), folder / name) for name in names if not any(part[0] in "._" for part in name.parts)]
    paths = [folder] if folder.is_file() else [Path(match) for match in glob.glob(given, recursive=True)]
    return [(path.name, path) for path in paths if path.is_file()]


def remaining_inputs(files: dict[str, str], output_dir: Path, size: int) -> Inputs:
    """The inputs without output yet. Documents that are files of their own share outputs, `size` each."""
    of_rows = {name: path for name, path in files.items() if not name.endswith(TEXT)}
    inputs = {name: {name: path} for name, path in of_rows.items() if not (output_dir / name).is_file()}
    outputs = sorted(output_dir.glob(TEXTS.format("*")))
    done = {json.loads(line)["id"] for output in outputs for line in output.read_bytes().splitlines()}
    left = iter([name for name in files if name.endswith(TEXT) and name not in done])
    numbers = count(int(outputs[-1].stem.rpartition("-")[2]) + 1 if outputs else 0)
    while names := list(islice(left, size)):
        inputs[TEXTS.format(f"{next(numbers):05}")] = {name: files[name] for name in names}
    return inputs


def check_columns(files: dict[str, str], reading: Reading) -> None:
    """Raises ValueError if there are rows in the first files, and all are rejected."""
    problem = None
    for name, path in islice(files.items(), FILES_TO_CHECK):
        for chunk in read_chunks("" if name.endswith(TEXT) else name, {name: path}, reading):
            if None in chunk.reasons:
                return
            reasons = [reason for reason in (*chunk.reasons, chunk.failure) if reason]
            problem = problem or (reasons and f"{name}: {reasons[0]}")
    if problem:
        raise ValueError(f"No row can be tagged; {problem}.")


def count_rows(inputs: Inputs) -> int | None:
    """The number of rows; None if a file cannot be read."""
    total = 0
    try:
        for path in (path for files in inputs.values() for path in files.values()):
            is_table, is_text = path.endswith(PARQUET), path.endswith(TEXT)
            with open(path, "rb") as file:
                total += pq.read_metadata(file).num_rows if is_table else 1 if is_text else sum(1 for _ in file)
    except (OSError, pa.ArrowException):
        return None
    return total


def read_chunks(output: str, files: dict[str, str], reading: Reading) -> Iterator[Chunk]:
    """The chunks of an output in order, at least one; an error in a file is in the last."""
    if output not in files:
        yield read_texts(output, files, reading)
        return
    read = read_parquet if output.endswith(PARQUET) else read_json_lines
    try:
        yield from read(output, files[output], reading)
    except (OSError, ValueError, pa.ArrowException) as error:
        yield Chunk(output, [], [], [], [], failure=" ".join(str(error).split()))


def read_texts(output: str, files: dict[str, str], reading: Reading) -> Chunk:
    """Reads documents that are files of their own; those that cannot be read are rejected."""
    chunk = Chunk(output, [], [(name, 1) for name in files], [], [])
    for name, path in files.items():
        text = None
        try:
            text = decode_text(Path(path).read_bytes())
            chunk.reasons.append(reading.reason_against(text))
        except (OSError, DataError) as error:
            chunk.reasons.append(" ".join(str(error).split()))
        chunk.texts.append(text)
        chunk.rows.append({"id": name, reading.text_column: text})
    return chunk


def read_parquet(file: str, path: str, reading: Reading) -> Iterator[Chunk]:
    with pq.ParquetFile(path) as parquet:
        names = parquet.schema_arrow.names
        if names.count(reading.text_column) != 1 or reading.entities_column in names:
            missing = f"one column {reading.text_column!r} and none {reading.entities_column!r}"
            raise ValueError(f"there must be {missing}; its columns are {', '.join(names)}")
        numbers = count(1)
        batches = ([batch] for batch in parquet.iter_batches(reading.chunk_size))
        for rows in batches if parquet.metadata.num_rows else [[]]:
            table = pa.Table.from_batches(rows, parquet.schema_arrow)
            texts = table[reading.text_column].to_pylist()
            places = [(file, next(numbers)) for _ in texts]
            yield Chunk(file, table, places, texts, [*map(reading.reason_against, texts)])


def read_json_lines(file: str, path: str, reading: Reading) -> Iterator[Chunk]:
    """The rows of a file of JSON lines, without blank ones; those that are no record with a text are rejected."""
    with open(path, "rb") as opened:
        check_is_line(next((line for line in opened if line.strip()), b""))
        opened.seek(0)
        lines = ((row, line.rstrip(b"\r\n")) for row, line in enumerate(opened, 1) if line.strip())
        batches = iter(lambda: [*islice(lines, reading.chunk_size)], [])
        for batch in chain([next(batches, [])], batches):
            chunk = Chunk(file, [], [(file, row) for row, _ in batch], [], [])
            for _, line in batch:
                record: Any = line.decode("utf-8", "backslashreplace")
                try:
                    record, text = _decode(line, reading)
                    chunk.reasons.append(reading.reason_against(text))
                except DataError as error:
                    text = None
                    chunk.reasons.append(error.problem)
                chunk.rows.append(record)
                chunk.texts.append(text)
            yield chunk


def _decode(line: bytes, reading: Reading) -> tuple[dict[str, Any], Any]:
    """The record of a line, and its text."""
    record = decode_object(line)
    if reading.text_column not in record:
        raise DataError(f"there is no field {reading.text_column!r}, but {', '.join(record) or 'none'}", "Add it")
    if reading.entities_column in record:
        raise DataError(f"there is a field {reading.entities_column!r} already", "Choose another name")
    return record, record[reading.text_column]
