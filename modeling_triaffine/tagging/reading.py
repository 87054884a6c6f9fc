"""Finds the input files, and splits each into chunks of rows with a text."""

import dataclasses
import glob
import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
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
Rejection = dict[str, Any]  # {"file", "row", "reason", "record"}


@dataclasses.dataclass(frozen=True)
class Reading:
    """How input files are read.

    Args:
        text_column, entities_column: The column or field with the text, and the one to add.
        max_characters: Longer texts are rejected.
        chunk_size: Number of rows that an actor processes at a time.
        files_at_once: Number of files read at the same time. Since outputs are written in order, the chunks of all but
            one wait in Ray's object store.
    """

    text_column: str = "text"
    entities_column: str = "entities"
    max_characters: int = 100_000
    chunk_size: int = 256
    files_at_once: int = 1


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Rows for one output.

    Args:
        output: The name of the output.
        rows: The rows that can be tagged: a table of Parquet, or records of JSON.
        places: The file of each of them, and its number in it, from 1.
        rejected: Those that cannot be tagged.
        entities: The number of entities by label, once they are found.
    """

    output: str
    rows: Any
    places: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    rejected: list[Rejection] = dataclasses.field(default_factory=list)
    entities: Counter[str] = dataclasses.field(default_factory=Counter)

    @property
    def has_failed(self) -> bool:
        """The rest of its file cannot be read; the chunk is the last one of its output."""
        return any(line["row"] is None for line in self.rejected)

    def texts(self, column: str) -> list[Any]:
        return self.rows[column].to_pylist() if isinstance(self.rows, pa.Table) else [row[column] for row in self.rows]

    def reject(self, reasons: Sequence[str | None]) -> "Chunk":
        """Moves the rows with a reason to the rejected ones."""
        good = [number for number, reason in enumerate(reasons) if reason is None]
        bad = [number for number, reason in enumerate(reasons) if reason is not None]
        records = _records(_take(self.rows, bad))
        rejected = [rejection(*self.places[n], reasons[n], record) for n, record in zip(bad, records, strict=True)]
        places = [self.places[number] for number in good]
        return Chunk(self.output, _take(self.rows, good), places, [*self.rejected, *rejected])

    def with_entities(self, column: str, found: list[list[dict[str, Any]]], kind: pa.DataType) -> "Chunk":
        """The chunk with a column of entities."""
        if isinstance(self.rows, pa.Table):
            rows = self.rows.append_column(column, pa.array(found, kind))
        else:
            rows = [{**record, column: entities} for record, entities in zip(self.rows, found, strict=True)]
        counts = Counter(entity["entity_group"] for entities in found for entity in entities)
        return dataclasses.replace(self, rows=rows, entities=counts)


def _take(rows: Any, numbers: list[int]) -> Any:
    return rows.take(pa.array(numbers, pa.int64())) if isinstance(rows, pa.Table) else [rows[n] for n in numbers]


def _records(rows: Any) -> list[dict[str, Any]]:
    return rows.to_pylist() if isinstance(rows, pa.Table) else rows


def rejection(file: str, row: int | None, reason: str | None, record: Any) -> Rejection:
    """A line of `rejected.jsonl`; `row` is None for a whole file."""
    return {"file": file, "row": row, "reason": reason, "record": record}


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


def check_columns(files: dict[str, str], reading: Reading) -> None:
    """Raises ValueError if there are rows in the first files, and all are rejected."""
    rejected: list[Rejection] = []
    for name, path in islice(files.items(), FILES_TO_CHECK):
        for chunk in read_chunks("" if name.endswith(TEXT) else name, {name: path}, reading):
            if chunk.places:
                return
            rejected = rejected or chunk.rejected
    if rejected:
        raise ValueError(f"No row can be tagged; {rejected[0]['file']}: {rejected[0]['reason']}.")


def count_rows(inputs: Inputs) -> int | None:
    """The number of rows; None if a file cannot be read."""
    total = 0
    try:
        for path in (path for files in inputs.values() for path in files.values()):
            if path.endswith(TEXT):
                total += 1
            elif path.endswith(PARQUET):
                total += pq.read_metadata(path).num_rows
            else:
                with open(path, "rb") as lines:
                    total += sum(1 for _ in lines)
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
        for chunk in read(output, files[output], reading):
            yield chunk.reject([reason_against(text, reading) for text in chunk.texts(reading.text_column)])
    except (OSError, ValueError, pa.ArrowException) as error:
        yield Chunk(output, [], rejected=[rejection(output, None, " ".join(str(error).split()), None)])


def read_texts(output: str, files: dict[str, str], reading: Reading) -> Chunk:
    """Documents that are files of their own; those that cannot be read are rejected."""
    rows: list[dict[str, Any]] = []
    reasons: list[str | None] = []
    for name, path in files.items():
        try:
            text = decode_text(Path(path).read_bytes())
            reasons.append(reason_against(text, reading))
        except (OSError, DataError) as error:
            text = None
            reasons.append(" ".join(str(error).split()))
        rows.append({"id": name, reading.text_column: text})
    return Chunk(output, rows, [(name, 1) for name in files]).reject(reasons)


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
        batch = list(islice(lines, reading.chunk_size))
        while True:
            chunk = Chunk(file, [])
            for row, line in batch:
                try:
                    chunk.rows.append(_decode(line, reading))
                    chunk.places.append((file, row))
                except DataError as error:
                    raw = line.decode("utf-8", "backslashreplace")
                    chunk.rejected.append(rejection(file, row, error.problem, raw))
            yield chunk
            if not (batch := list(islice(lines, reading.chunk_size))):
                return


def _decode(line: bytes, reading: Reading) -> dict[str, Any]:
    record = decode_object(line)
    if reading.text_column not in record:
        raise DataError(f"there is no field {reading.text_column!r}, but {', '.join(record) or 'none'}", "Add it")
    if reading.entities_column in record:
        raise DataError(f"there is a field {reading.entities_column!r} already", "Choose another name")
    return record


def reason_against(text: Any, reading: Reading) -> str | None:
    """Why a value of the text column cannot be tagged, or None."""
    if not isinstance(text, str):
        return f"{reading.text_column!r} is {'null' if text is None else f'not a string but {type(text).__name__}'}"
    if len(text) > reading.max_characters:
        return f"{reading.text_column!r} has more than {reading.max_characters} characters"
    return None
