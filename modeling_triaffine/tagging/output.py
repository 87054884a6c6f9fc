"""The output folder of a tagged corpus.

    options.json      the options that the outputs depend on; a run with other options is refused
    NAME              the output of one input, Parquet or JSON lines as it is, written atomically and only once
    rejected.jsonl    {"file", "row", "reason", "record"} of each row that could not be tagged

The rejections of an input are written before its output is renamed to its final name, and a run first removes the
rejections of the inputs that it reads. So even if a run is killed, each row ends up in exactly one of the two places.
"""

import contextlib
import dataclasses
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features

from ..data.features import ENTITY_FEATURES
from ..files import atomic_path, open_output, unfinished, write_text
from .reading import PARQUET, Chunk
from .tagger import Outcome

ENTITIES: pa.DataType = Features({"entities": ENTITY_FEATURES}).arrow_schema.field("entities").type
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


class OutputFolder:
    """The folder for the outputs of a run with these options, which reads these files.

    Raises:
        ValueError: It has outputs of other options, or other files.
    """

    def __init__(self, folder: Path, options: dict[str, Any], files: Collection[str], entities_column: str):
        self.folder, self.entities_column = folder, entities_column
        self.rejections = folder / "rejected.jsonl"
        self.totals = Totals()
        self._check_options(folder / "options.json", options)
        with open_output(self.rejections) as output:
            output.writelines(line for line in self._read_rejections() if json.loads(line)["file"] not in files)

    def write(self, name: str, chunks: Iterable[tuple[Chunk, list[Outcome]]]) -> None:
        """Writes an output and its rejections from all its chunks, with the outcome of each row."""
        counted = Totals()
        try:
            with (
                open(self.rejections, "a", encoding="utf-8") as rejections,
                atomic_path(self.folder / name) as beside,
                open(beside, "wb") as file,  # here, since pyarrow takes no name that is not UTF-8
            ):
                parts = (self._tagged_rows(chunk, outcomes, rejections, counted) for chunk, outcomes in chunks)
                write = write_parquet if name.endswith(PARQUET) else write_json_lines
                write(file, parts)
                rejections.flush()  # before the output has its name
        except EOFError:
            return  # its rejection says why
        self.totals.outputs += 1
        self.totals.tagged += counted.tagged
        self.totals.entities += counted.entities

    def _tagged_rows(self, chunk: Chunk, outcomes: list[Outcome], rejections: TextIO, counted: Totals) -> Any:
        """The rows of a chunk with their entities, a table or records; rejects those that have none."""

        def reject(file: str, row: int | None, reason: str, record: Any) -> None:
            line = json.dumps({"file": file, "row": row, "reason": reason, "record": record}, default=str)
            # NaN, as pandas writes for missing values, is no JSON.
            rejections.write(json.dumps(json.loads(line, parse_constant=lambda _: None)) + "\n")

        good = [row for row, outcome in enumerate(outcomes) if not isinstance(outcome, str)]
        found: list[Any] = [outcomes[row] for row in good]
        for row, reason in enumerate(outcomes):
            if isinstance(reason, str):
                record = chunk.rows[row] if isinstance(chunk.rows, list) else chunk.rows.slice(row, 1).to_pylist()[0]
                reject(*chunk.places[row], reason, record)
        if chunk.failure is not None:
            reject(chunk.output, None, chunk.failure, None)
            raise EOFError
        counted.tagged += len(found)
        counted.entities += Counter(entity["entity_group"] for entities in found for entity in entities)
        if isinstance(chunk.rows, list):
            return [{**chunk.rows[row], self.entities_column: spans} for row, spans in zip(good, found, strict=True)]
        table = chunk.rows.take(pa.array(good, pa.int64()))
        return table.append_column(self.entities_column, pa.array(found, ENTITIES))

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
            write_text(path, json.dumps(options, indent=2))

    def _read_rejections(self) -> Iterator[str]:
        """Reads complete lines only: a truncated last line belongs to an unfinished input."""
        if self.rejections.is_file():
            with open(self.rejections, encoding="utf-8", errors="replace") as lines:
                yield from (line for line in lines if line.endswith("\n"))


def write_json_lines(file: BinaryIO, parts: Iterable[list[Any]]) -> None:
    for records in parts:
        file.writelines(json.dumps(record).encode() + b"\n" for record in records)


def write_parquet(file: BinaryIO, tables: Iterable[pa.Table]) -> None:
    """Writes row groups of about `ROW_GROUP_BYTES`, and none without rows, which `datasets` cannot read."""
    with contextlib.ExitStack() as stack:
        writer: Any = None
        group: list[pa.Table] = []
        for table in chain(tables, [None]):
            if table is not None:
                writer = writer or stack.enter_context(pq.ParquetWriter(file, table.schema))
                group.append(table)
            if group and (table is None or sum(each.nbytes for each in group) >= ROW_GROUP_BYTES):
                if len(rows := pa.concat_tables(group)):
                    writer.write_table(rows)
                group = []
