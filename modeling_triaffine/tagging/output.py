"""The output folder of a tagged corpus.

    options.json      the options that the outputs depend on; a run with other options is refused
    NAME              the output of one input, Parquet or JSON lines as it is, written atomically and only once
    rejected.jsonl    {"file", "row", "reason", "record"} of each row that could not be tagged

The rejections of an input are written before its output is renamed to its final name, and a run first removes the
rejections of the inputs that it reads. So even if a run is killed, each row ends up in exactly one of the two places.
"""

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ..files import atomic_path, open_output, unfinished
from .reading import PARQUET, Chunk

ROW_GROUP_BYTES = 64 * 2**20
LOCK = ".lock"
MOST_REASONS = 10


@dataclasses.dataclass
class Totals:
    """Counts of a run: finished outputs, tagged rows, entities by label; and the rejections of all runs.

    rejected: Reason → the places, "FILE, row N".
    """

    outputs: int = 0
    tagged: int = 0
    entities: Counter[str] = dataclasses.field(default_factory=Counter)
    rejected: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    def describe(self) -> str:
        """One line for each count."""
        labels = ", ".join(f"{label} {number:,}" for label, number in self.entities.most_common())
        lines = [f"Documents: {self.tagged:,}, in {self.outputs:,} files.", f"Entities: {labels or 'none'}."]
        if self.rejected:
            lines.append(f"Rejected: {sum(map(len, self.rejected.values())):,}.")
        by_number = sorted(self.rejected.items(), key=lambda item: -len(item[1]))[:MOST_REASONS]
        return "\n".join([*lines, *(f"  {len(at):,}: {reason} (first: {at[0]})" for reason, at in by_number)])


class UnreadableFileError(Exception):
    """An input cannot be read completely."""


class OutputFolder:
    """The folder for the outputs of a run with these options, which reads these files.

    Raises:
        ValueError: It has outputs of other options, or other files.
    """

    def __init__(self, folder: Path, options: dict[str, Any], files: Collection[str]):
        self.folder = folder
        self.rejections = folder / "rejected.jsonl"
        self.totals = Totals()
        self._check_options(folder / "options.json", options)
        with open_output(self.rejections) as output:
            output.writelines(line for line in self._read_rejections() if json.loads(line)["file"] not in files)

    def write(self, name: str, chunks: Iterable[Chunk]) -> None:
        """Writes an output and its rejections from all its chunks."""
        write = write_parquet if name.endswith(PARQUET) else write_json_lines
        counted = Totals()
        try:
            with (
                atomic_path(self.folder / name) as beside,
                open(self.rejections, "a", encoding="utf-8") as rejections,
                open(beside, "wb") as file,  # here, since pyarrow takes no name that is not UTF-8
            ):
                write(file, _counted(chunks, rejections, counted))
                for written in (rejections, file):  # what is there is not made again, even after a power failure
                    written.flush()
                    os.fsync(written.fileno())
        except UnreadableFileError:
            return  # its rejection says why
        self.totals.outputs += 1
        self.totals.tagged += counted.tagged
        self.totals.entities += counted.entities

    def count_rejections(self) -> Totals:
        """The totals, with the rejections of all runs."""
        self.totals.rejected = {}
        for line in map(json.loads, self._read_rejections()):
            place = line["file"] if line["row"] is None else f"{line['file']}, row {line['row']}"
            self.totals.rejected.setdefault(line["reason"], []).append(place)
        return self.totals

    def _check_options(self, path: Path, options: dict[str, Any]) -> None:
        if path.is_file():
            before = json.loads(path.read_bytes())
            others = [
                f"{name} was {before.get(name)}, now it is {now}"
                for name, now in options.items()
                if before.get(name) != now
            ]
            if others:
                raise ValueError(f"{self.folder} has outputs of other options: {'; '.join(others)}. Give another one.")
        elif self.folder.is_dir() and {found.name for found in self.folder.iterdir()} - {unfinished(path).name, LOCK}:
            raise ValueError(f"{self.folder} contains other files. Give a new or empty output folder.")
        else:
            with open_output(path) as output:
                json.dump(options, output, indent=2)

    def _read_rejections(self) -> Iterator[str]:
        """Complete lines only: a truncated last line belongs to an unfinished input."""
        if self.rejections.is_file():
            with open(self.rejections, encoding="utf-8", errors="replace") as lines:
                yield from (line for line in lines if line.endswith("\n"))


def _counted(chunks: Iterable[Chunk], rejections: Any, totals: Totals) -> Iterator[Chunk]:
    for chunk in chunks:
        # NaN, as pandas writes for missing values, is no JSON.
        lines = (json.loads(json.dumps(one, default=str), parse_constant=lambda _: None) for one in chunk.rejected)
        rejections.writelines(json.dumps(line) + "\n" for line in lines)
        if chunk.has_failed:
            raise UnreadableFileError
        totals.tagged += len(chunk.places)
        totals.entities += chunk.entities
        yield chunk


def write_json_lines(file: BinaryIO, chunks: Iterable[Chunk]) -> None:
    for chunk in chunks:
        file.writelines(json.dumps(record).encode() + b"\n" for record in chunk.rows)


def write_parquet(file: BinaryIO, chunks: Iterable[Chunk]) -> None:
    """Writes row groups of about `ROW_GROUP_BYTES`."""
    groups = _row_groups(chunk.rows for chunk in chunks)
    first = next(groups)
    with pq.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], groups):
            if len(table):  # `datasets` cannot read a row group without rows
                writer.write_table(table)


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    group: list[pa.Table] = []
    for table in tables:
        group.append(table)
        if sum(each.nbytes for each in group) >= ROW_GROUP_BYTES:
            yield pa.concat_tables(group)
            group = [table.slice(0, 0)]
    yield pa.concat_tables(group)
