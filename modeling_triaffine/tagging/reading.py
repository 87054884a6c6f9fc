"""Finds the input files, and splits each into chunks of rows with a text."""

import dataclasses
import glob
import json
import logging
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..files import paths_below
from ..parsing import JSON_SUFFIXES, DataError, check_is_line, decode_object
from .chunks import Chunk, rejection

logger = logging.getLogger(__name__)

SUFFIXES = {".parquet", *JSON_SUFFIXES}
# pyarrow's errors for mixed types, integers beyond 64 bits, and halves of surrogate pairs.
NO_COLUMN = (pa.ArrowException, OverflowError, UnicodeEncodeError, RecursionError)
# Of lists and objects inside each other; Arrow's streams allow 64.
MAX_LEVELS = 50


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
        ValueError: there is no file of a kind that can be read, or two files would have the same output.
    """
    found: dict[str, str] = {}
    by_output: dict[str, str] = {}
    outputs = output_dir.resolve()
    for given in inputs:
        every = _matches(given)
        matches = [(name, path) for name, path in every if not path.resolve().is_relative_to(outputs)]
        paths = [(name, path) for name, path in matches if path.suffix in SUFFIXES]
        if others := sorted(name for name, path in matches if path.suffix not in SUFFIXES):
            logger.warning("%s: files left out: %d (%s).", given, len(others), ", ".join(others[:10]))
        if not paths:
            outside = f" outside of the output folder {output_dir}" if len(matches) < len(every) else ""
            raise ValueError(
                f"{given}: there is no {', '.join(sorted(SUFFIXES))} file{outside}. Give a file, a folder or a pattern."
            )
        for name, path in paths:
            found[name] = os.path.abspath(path)  # with the suffix, which what a link leads to may lack
            place = str(path.resolve())
            other = by_output.setdefault(output_name(name), place)
            if other != place:
                raise ValueError(f"{other} and {path} would have the same output. Tag them into two folders.")
    return dict(sorted(found.items()))


def output_name(name: str) -> str:
    """The name of the output of an input file."""
    return str(Path(name).with_suffix(".parquet"))


def _matches(given: str) -> list[tuple[str, Path]]:
    folder = Path(given)
    if folder.is_dir():
        names = (path.relative_to(folder) for path in paths_below(folder) if path.is_file())
        return [(name.as_posix(), folder / name) for name in names if not any(part[0] in "._" for part in name.parts)]
    paths = [folder] if folder.is_file() else [Path(match) for match in glob.glob(given, recursive=True)]
    return [(path.name, path) for path in paths if path.is_file()]


def read_chunks(file: str, path: str, reading: Reading) -> Iterator[Chunk]:
    """The chunks of a file in order, at least one; an error in the file becomes the `failure` of the last."""
    read = read_parquet if path.endswith(".parquet") else read_json_lines
    try:
        yield from read(file, path, reading)
    except (OSError, ValueError, pa.ArrowException) as error:
        yield Chunk(file, pa.table({}), failure=" ".join(str(error).split()))


def read_parquet(file: str, path: str, reading: Reading) -> Iterator[Chunk]:
    """The rows of a Parquet file; those without a text are rejected."""
    with pq.ParquetFile(path) as parquet:
        schema = parquet.schema_arrow
        _check_free(schema.names, reading)
        text_types = [field.type for field in schema if field.name == reading.text_column]
        if len(text_types) != 1 or not _is_text(text_types[0]):
            columns = ", ".join(f"{field.name!r} ({field.type})" for field in schema)
            raise ValueError(f"there must be one column {reading.text_column!r} of strings; its columns are {columns}")
        plain = pa.schema([field.with_type(_without_views(field.type)) for field in schema], schema.metadata)
        before = 0
        batches = ([batch] for batch in parquet.iter_batches(reading.chunk_size))
        for rows in batches if parquet.metadata.num_rows else [[]]:
            table = pa.Table.from_batches(rows, schema).cast(plain)
            texts = table[reading.text_column].to_pylist()
            chunk = Chunk(file, table, range(before + 1, before + 1 + len(texts)))
            yield chunk.reject([reason_against(text, reading) for text in texts])
            before += len(texts)


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type with strings and bytes in place of views of them, of which pyarrow cannot select rows."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    for is_list, list_of in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_list(kind):
            return list_of(kind.value_field.with_type(_without_views(kind.value_type)))
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return views.get(kind, kind)


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value)


def _check_free(columns: Iterable[str], reading: Reading) -> None:
    if reading.entities_column in columns:
        raise ValueError(f"there is a column {reading.entities_column!r} already; give another entities_column")


def reason_against(text: Any, reading: Reading) -> str | None:
    """Why a value of the text column cannot be tagged, or None."""
    if text is None:
        return f"{reading.text_column!r} is null"
    if not isinstance(text, str):
        return f"{reading.text_column!r} is not a string but {type(text).__name__}"
    if len(text) > reading.max_characters:
        return f"{reading.text_column!r} has {len(text)} characters, more than {reading.max_characters}"
    if not is_encodable(text):
        return f"{reading.text_column!r} contains half of a surrogate pair, which cannot be encoded"
    return None


def is_encodable(text: str) -> bool:
    """Whether UTF-8 can represent the text: JSON can escape half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Line(NamedTuple):
    """A JSON line, numbered from 1: a record with a text, or the reason for its rejection."""

    row: int
    raw: bytes
    record: dict[str, Any]
    reason: str | None


def read_json_lines(file: str, path: str, reading: Reading) -> Iterator[Chunk]:
    """The rows of a file of JSON lines; lines without a text are rejected, blank ones skipped.

    The file is read twice, because the types of its columns are only known at its end.
    """
    with open(path, "rb") as opened:
        check_is_line(next((line for line in opened if line.strip()), b""))
    types = _column_types(path, reading)
    _check_free(types, reading)
    for lines in _chunks_of_lines(path, reading):
        good = [line for line in lines if line.reason is None]
        columns = {name: _column([line.record.get(name) for line in good], kind) for name, kind in types.items()}
        rejected = [
            rejection(file, line.row, line.reason, line.raw.decode("utf-8", "backslashreplace"))
            for line in lines
            if line.reason is not None
        ]
        yield Chunk(file, pa.table(columns), [line.row for line in good], rejected)


def _chunks_of_lines(path: str, reading: Reading) -> Iterator[list[Line]]:
    """At least one chunk, even of a file without lines."""
    with open(path, "rb") as file:
        lines = (_parse(row, raw.rstrip(b"\r\n"), reading) for row, raw in enumerate(file, 1) if raw.strip())
        yield list(islice(lines, reading.chunk_size))
        while chunk := list(islice(lines, reading.chunk_size)):
            yield chunk


def _parse(row: int, raw: bytes, reading: Reading) -> Line:
    try:
        record = decode_object(raw)
    except DataError as error:
        return Line(row, raw, {}, error.problem)
    if reading.text_column not in record:
        return Line(row, raw, {}, f"there is no field {reading.text_column!r}")
    if not is_encodable("".join(record)):
        return Line(row, raw, {}, "the name of a field contains half of a surrogate pair, which cannot be encoded")
    return Line(row, raw, record, reason_against(record[reading.text_column], reading))


def _column_types(path: str, reading: Reading) -> dict[str, pa.DataType | None]:
    """Field → type of its column; None if no type fits all values, which are then written as JSON."""
    types: dict[str, pa.DataType | None] = {reading.text_column: pa.string()}
    widened = set()
    for lines in _chunks_of_lines(path, reading):
        records = [line.record for line in lines if line.reason is None]
        for name in dict.fromkeys(name for record in records for name in record):
            known = types.get(name, pa.null())
            types[name] = _common_type(known, [record.get(name) for record in records])
            if types[name] not in (known, None) and known != pa.null():
                widened.add(name)
    if widened:  # a wider type may not hold earlier values: of floats, integers beyond 2**53
        for lines in _chunks_of_lines(path, reading):
            for name in widened:
                values = [line.record.get(name) for line in lines if line.reason is None]
                types[name] = _common_type(types[name], values)
    # A column of nulls alone is one of strings, which other files may have.
    return {name: pa.string() if kind == pa.null() else kind for name, kind in types.items()}


def _common_type(known: pa.DataType | None, values: list[Any]) -> pa.DataType | None:
    """The type of a column with values of the type `known` and these values; None if there is none, or was none."""
    if known is None:
        return None
    try:
        seen = pa.array(values).type
        schemas = [pa.schema({"values": kind}) for kind in (known, seen)]
        common = pa.unify_schemas(schemas, promote_options="permissive").field("values").type
        pa.array(values, common)
        return common if _is_storable(common) else None
    except NO_COLUMN:
        return None


def _is_storable(kind: pa.DataType, levels: int = MAX_LEVELS) -> bool:
    """Whether Parquet and Arrow can store the type: neither objects without fields nor very deep ones."""
    parts = [kind.field(number).type for number in range(kind.num_fields)]
    is_whole = bool(parts) or not pa.types.is_struct(kind)
    return is_whole and levels > 0 and all(_is_storable(part, levels - 1) for part in parts)


def _column(values: list[Any], kind: pa.DataType | None) -> pa.Array:
    if kind is None:
        return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())
    return pa.array(values, kind)
