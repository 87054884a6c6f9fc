"""The output folder of a tagged corpus.

    options.json      the options that the outputs depend on; a run with other options is refused
    NAME.parquet      the output of one input, written atomically and only once
    rejected.jsonl    {"file", "row", "reason", "record"} of each row that could not be tagged

The rejections of an input are written before its output is renamed to its final name, and a run first removes the
rejections of inputs without output. So even if a run is killed, each row ends up in exactly one of the two places.
"""

import json
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from ..files import atomic_path, open_output, unfinished
from .chunks import Chunk, rejection
from .reading import output_name

ROW_GROUP_BYTES = 64 * 2**20


class Totals(NamedTuple):
    """Numbers of finished files, tagged rows, rejected rows and unreadable files in an output folder."""

    files: int
    tagged: int
    rejected: int
    unreadable: int


class OutputFolder:
    """The folder for the outputs of a run with these options.

    Raises:
        ValueError: it has outputs of other options, or other files.
    """

    def __init__(self, folder: Path, options: dict[str, Any]):
        self.folder = folder
        self.rejections = folder / "rejected.jsonl"
        self._check_options(folder / "options.json", options)
        with open_output(self.rejections) as output:  # without those of inputs that were not finished
            output.writelines(line for line in self._read_rejections() if self.path(json.loads(line)["file"]).is_file())

    def path(self, name: str) -> Path:
        """The output for the input of this name, which exists once the input is finished."""
        return self.folder / output_name(name)

    def write(self, name: str, chunks: Iterable[Chunk]) -> None:
        """Writes the output and the rejections of one input from all its chunks."""
        try:
            with (
                atomic_path(self.path(name)) as beside,
                open(self.rejections, "a", encoding="utf-8") as rejections,
            ):
                groups = _row_groups(_tables(chunks, rejections))
                first = next(groups)
                # Opened here, since pyarrow takes no name that is not UTF-8.
                with open(beside, "wb") as file:
                    with pq.ParquetWriter(file, first.schema) as writer:
                        for table in chain([first], groups):
                            if len(table):  # `datasets` cannot read a row group without rows
                                writer.write_table(table)
                    for written in (rejections, file):  # what is there is not made again, even after a power failure
                        written.flush()
                        os.fsync(written.fileno())
        except UnreadableFileError:
            pass  # its rejection says why

    def totals(self) -> Totals:
        """The totals over all runs."""
        outputs = (path for path in self.folder.rglob("*.parquet") if path.is_file())  # folders have such names, too
        rows = [*map(_num_rows, outputs)]
        rejected = [line["row"] is not None for line in map(json.loads, self._read_rejections())]
        return Totals(len(rows), sum(rows), sum(rejected), len(rejected) - sum(rejected))

    def _check_options(self, path: Path, options: dict[str, Any]) -> None:
        if path.is_file():
            before = json.loads(path.read_bytes())
            others = [name for name in options if before.get(name) != options[name]]
            if others:
                changes = "; ".join(f"{name} was {before.get(name)}, now it is {options[name]}" for name in others)
                raise ValueError(
                    f"The outputs in {self.folder} were made with other options: {changes}. Give those options, or "
                    "another output folder."
                )
        elif self.folder.is_dir() and {found.name for found in self.folder.iterdir()} - {unfinished(path).name}:
            raise ValueError(f"{self.folder} contains other files. Give a new or empty output folder.")
        else:
            with open_output(path) as output:
                json.dump(options, output, indent=2)

    def _read_rejections(self) -> Iterator[str]:
        """Complete lines only: a truncated last line belongs to an unfinished input."""
        if self.rejections.is_file():
            with open(self.rejections, encoding="utf-8", errors="replace") as lines:
                yield from (line for line in lines if line.endswith("\n"))


def _num_rows(output: Path) -> int:
    try:
        rows: int = pq.read_metadata(output).num_rows
        return rows
    except pa.ArrowInvalid as error:
        raise ValueError(f"{output} is damaged ({error}). Delete it and run again.") from None


class UnreadableFileError(Exception):
    """An input cannot be read completely."""


def _tables(chunks: Iterable[Chunk], rejections: TextIO) -> Iterator[pa.Table]:
    for chunk in chunks:
        lines = list(chunk.rejected)
        if chunk.failure is not None:
            lines.append(rejection(chunk.file, None, chunk.failure, None))
        # NaN, as pandas writes for missing values, is no JSON.
        strict = (json.loads(json.dumps(line), parse_constant=lambda _: None) for line in lines)
        rejections.writelines(json.dumps(line) + "\n" for line in strict)
        if chunk.failure is not None:
            raise UnreadableFileError
        yield chunk.table


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Concatenates tables to row groups of about `ROW_GROUP_BYTES`; yields at least one."""
    group: list[pa.Table] = []
    size = 0
    for table in tables:
        group.append(table)
        size += table.nbytes
        if size >= ROW_GROUP_BYTES:
            yield pa.concat_tables(group)
            group, size = [table.slice(0, 0)], 0
    yield pa.concat_tables(group)
