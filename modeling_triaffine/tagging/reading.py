"""Finds the input files, and splits each into chunks of rows with a text."""

import dataclasses
import glob
import json
import logging
import os
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..files import paths_below
from ..parsing import JSON_SUFFIXES, DataError, check_is_line, decode_object, decode_text
from .chunks import Chunk, Place, Rejection, rejection

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
    """How input files are read.

    Args:
        text_column: column or field with the text.
        entities_column: column to add.
        max_characters: longer texts are rejected.
        chunk_size: number of rows that an actor processes at a time.
        files_at_once: number of files read at the same time. Since outputs are written in order, the chunks of all but
            one wait in Ray's object store.
    """

    text_column: str = "text"
    entities_column: str = "entities"
    max_characters: int = 100_000
    chunk_size: int = 256
    files_at_once: int = 1


def find_files(inputs: Iterable[str], output_dir: Path) -> dict[str, str]:
    """Returns name → absolute path of all input files, sorted by name.

    A folder stands for all files in it, named by their relative paths, unless a part of the path begins with "." or
    "_". A pattern stands for the files that it matches. Files of other kinds are logged as one warning. Files in the
    output folder are not inputs.

    Raises:
        ValueError: there is no file of a kind that can be read, or two files have one name.
    """
    found: dict[str, str] = {}
    outputs = output_dir.resolve()
    for given in inputs:
        matches = [(name, path) for name, path in _matches(given) if not path.resolve().is_relative_to(outputs)]
        paths = [(name, path) for name, path in matches if path.suffix in SUFFIXES]
        if others := sorted(name for name, path in matches if path.suffix not in SUFFIXES):
            logger.warning("%s: files left out: %d (%s).", given, len(others), ", ".join(others[:10]))
        if not paths:
            kinds = ", ".join(sorted(SUFFIXES))
            raise ValueError(
                f"{given}: there is no {kinds} file outside of {output_dir}. Give a file, folder or pattern."
            )
        for name, path in paths:
            place = os.path.abspath(path)  # with the suffix, which what a link leads to may lack
            if os.path.realpath(found.setdefault(name, place)) != os.path.realpath(place):
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
    inputs = {
        name: {name: path}
        for name, path in files.items()
        if not name.endswith(TEXT) and not (output_dir / name).is_file()
    }
    outputs = sorted(output_dir.glob(TEXTS.format("*")))
    done = {json.loads(line)["id"] for output in outputs for line in output.read_bytes().splitlines()}
    left = iter([name for name in files if name.endswith(TEXT) and name not in done])
    numbers = count(int(outputs[-1].stem.rpartition("-")[2]) + 1 if outputs else 0)
    while names := list(islice(left, size)):
        inputs[TEXTS.format(f"{next(numbers):05}")] = {name: files[name] for name in names}
    return inputs


def check_columns(paths: Iterable[str], reading: Reading) -> None:
    """Raises ValueError if no file has a column of texts, or the first one has one of entities."""
    with_columns = (path for path in paths if not path.endswith(TEXT))
    columns = [found for found in map(_columns, islice(with_columns, FILES_TO_CHECK)) if found]
    if columns and not any(reading.text_column in found for found in columns):
        raise ValueError(
            f"There is no column {reading.text_column!r}, but {', '.join(columns[0])}. Give --text-column."
        )
    if columns and reading.entities_column in columns[0]:
        raise ValueError(f"There is a column {reading.entities_column!r} already. Give another --entities-column.")


def _columns(path: str) -> list[str]:
    """The columns of a file, by its first row; none of one that cannot be read."""
    try:
        if path.endswith(PARQUET):
            return list(pq.read_schema(path).names)
        with open(path, "rb") as file:
            return list(decode_object(next(line for line in file if line.strip())))
    except (OSError, ValueError, StopIteration, pa.ArrowException):
        return []


def count_rows(inputs: Inputs) -> int:
    """The number of rows, of files that can be read."""
    total = 0
    for path in (path for files in inputs.values() for path in files.values()):
        try:
            if path.endswith(PARQUET):
                total += pq.read_metadata(path).num_rows
            elif path.endswith(TEXT):
                total += 1
            else:
                with open(path, "rb") as file:
                    total += sum(1 for line in file if line.strip())
        except (OSError, pa.ArrowException):
            continue
    return total


def read_chunks(output: str, files: dict[str, str], reading: Reading) -> Iterator[Chunk]:
    """The chunks of an output in order, at least one; an error in a file becomes the `failure` of the last."""
    if output not in files:
        yield read_texts(output, files, reading)
        return
    read = read_parquet if output.endswith(PARQUET) else read_json_lines
    try:
        for chunk in read(output, files[output], reading):
            yield chunk.reject([reason_against(text, reading) for text in chunk.texts(reading.text_column)])
    except (OSError, ValueError, pa.ArrowException) as error:
        yield Chunk(output, [], failure=" ".join(str(error).split()))


def read_texts(output: str, files: dict[str, str], reading: Reading) -> Chunk:
    """Documents that are files of their own; those that cannot be read are rejected."""
    chunk = Chunk(output, [], [(name, 1) for name in files])
    reasons: list[str | None] = []
    for name, path in files.items():
        try:
            text = decode_text(Path(path).read_bytes())
            reasons.append(reason_against(text, reading))
        except (OSError, DataError) as error:
            text = None
            reasons.append(" ".join(str(error).split()))
        chunk.rows.append({"id": name, reading.text_column: text})
    return chunk.reject(reasons)


def read_parquet(file: str, path: str, reading: Reading) -> Iterator[Chunk]:
    with pq.ParquetFile(path) as parquet:
        names = parquet.schema_arrow.names
        if names.count(reading.text_column) != 1 or reading.entities_column in names:
            missing = f"one column {reading.text_column!r} and none {reading.entities_column!r}"
            raise ValueError(f"there must be {missing}; its columns are {', '.join(names)}")
        before = 0
        batches = ([batch] for batch in parquet.iter_batches(reading.chunk_size))
        for rows in batches if parquet.metadata.num_rows else [[]]:
            table = pa.Table.from_batches(rows, parquet.schema_arrow)
            yield Chunk(file, table, [(file, before + row) for row in range(1, len(table) + 1)])
            before += len(table)


def read_json_lines(file: str, path: str, reading: Reading) -> Iterator[Chunk]:
    """The rows of a file of JSON lines, without blank ones; those that are no record with a text are rejected."""
    with open(path, "rb") as opened:
        check_is_line(next((line for line in opened if line.strip()), b""))
        opened.seek(0)
        lines = ((row, line.rstrip(b"\r\n")) for row, line in enumerate(opened, 1) if line.strip())
        is_first = True
        while (batch := list(islice(lines, reading.chunk_size))) or is_first:
            is_first = False
            records: list[dict[str, Any]] = []
            places: list[Place] = []
            rejected: list[Rejection] = []
            for row, line in batch:
                try:
                    records.append(_decode(line, reading))
                    places.append((file, row))
                except DataError as error:
                    rejected.append(rejection(file, row, error.problem, line.decode("utf-8", "backslashreplace")))
            yield Chunk(file, records, places, rejected)


def _decode(line: bytes, reading: Reading) -> dict[str, Any]:
    record = decode_object(line)
    if reading.text_column not in record:
        raise DataError(f"there is no field {reading.text_column!r}, but {', '.join(record) or 'none'}", "Add it")
    if reading.entities_column in record:
        raise DataError(f"there is a field {reading.entities_column!r} already", "Choose another name")
    return record


def reason_against(text: Any, reading: Reading) -> str | None:
    """Why a value of the text column cannot be tagged, or None."""
    if text is None:
        return f"{reading.text_column!r} is null"
    if not isinstance(text, str):
        return f"{reading.text_column!r} is not a string but {type(text).__name__}"
    if len(text) > reading.max_characters:
        return f"{reading.text_column!r} has more than {reading.max_characters} characters"
    return None
