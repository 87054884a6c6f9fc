"""The output folder of a tagged corpus.

    options.json      the options that the outputs depend on; a run with other options is refused
    NAME              the output of one input, Parquet or JSON lines as it is, written atomically and only once
    rejected.jsonl    {"file", "row", "reason"} of each row that could not be tagged

The rejections of an input are written before its output is renamed to its final name, and a run first removes the
rejections of the inputs that it reads. So even if a run is killed, each row ends up in exactly one of the two places.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features

from ..data.schema import ENTITY_FEATURES
from ..files import atomic_path, open_output, write_text
from .reading import PARQUET, ROWS_OF_A_BATCH, Row

ENTITIES: pa.DataType = Features({"entities": ENTITY_FEATURES}).arrow_schema.field("entities").type
LOCK = ".lock"
MOST_REASONS = 10


class OutputFolder:
    """The folder for the outputs of a run with these options, and counts: finished outputs, tagged rows, entities.

    Raises:
        ValueError: It has outputs of other options, or other files.
    """

    def __init__(self, folder: Path, options: dict[str, Any], entities_column: str):
        self.folder, self.entities_column = folder, entities_column
        self.rejections = folder / "rejected.jsonl"
        self.outputs = self.tagged = 0
        self.entities: Counter[str] = Counter()
        path = folder / "options.json"
        if not path.is_file():
            if {found.name for found in folder.iterdir()} - {LOCK}:
                raise ValueError(f"{folder} contains other files. Give a new or empty output folder.")
            write_text(path, json.dumps(options, indent=2))
        before = json.loads(path.read_bytes())
        for name, now in options.items():
            if (was := before.get(name)) != now:
                raise ValueError(f"{folder} has other options: {name} was {was}, now it is {now}. Give another folder.")

    def forget_rejections(self, files: Collection[str]) -> None:
        """Removes the rejections of inputs that are read again."""
        with open_output(self.rejections) as output:
            output.writelines(json.dumps(line) + "\n" for line in self.read_rejections() if line["file"] not in files)

    def read_rejections(self) -> Iterator[dict[str, Any]]:
        """Reads complete lines only: a truncated last line belongs to an unfinished input."""
        if self.rejections.is_file():
            with open(self.rejections, encoding="utf-8", errors="replace") as lines:
                yield from (json.loads(line) for line in lines if line.endswith("\n"))

    def write(self, rows: Iterable[Row]) -> None:
        """Writes the outputs of rows, which come output by output, with entities or the reason why they have none.

        A file that cannot be read to its end, or has no row with entities, gets rejections, and no output.
        """
        for name, of_output in groupby(rows, key=lambda row: row.output):
            write = write_parquet if name.lower().endswith(PARQUET) else write_json_lines
            with (
                contextlib.suppress(EOFError),
                atomic_path(self.folder / name) as beside,
                open(beside, "wb") as file,  # here, since pyarrow takes no name that is not UTF-8
            ):
                write(file, self._accepted(of_output), self.entities_column)

    def _accepted(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yields the rows with entities and writes down the others; raises EOFError if there is to be no output."""
        tagged, entities = 0, Counter[str]()
        with open(self.rejections, "a", encoding="utf-8") as rejections:  # closed before the output has its name
            for row in rows:
                if isinstance(row.outcome, list):
                    tagged += 1
                    entities.update(entity["entity_group"] for entity in row.outcome)
                    yield row
                else:
                    line = {"file": row.file, "row": row.number, "reason": row.outcome}
                    rejections.write(json.dumps(line) + "\n")
                    if row.number is None:
                        raise EOFError
        if not tagged:
            raise EOFError
        self.outputs += 1
        self.tagged += tagged
        self.entities += entities

    def describe(self) -> tuple[str, int]:
        """Returns the counts of this run and the rejections of all runs, in lines; and the number of the latter."""
        labels = ", ".join(f"{label} {number:,}" for label, number in self.entities.most_common()) or "none"
        lines = [f"Documents: {self.tagged:,}, in {self.outputs:,} files.", f"Entities: {labels}."]
        reasons = Counter(line["reason"] for line in self.read_rejections())
        lines += [f"Rejected: {reasons.total():,}."] if reasons else []
        lines += [f"  {number:,}: {reason}" for reason, number in reasons.most_common(MOST_REASONS)]
        return "\n".join(lines), reasons.total()


def write_json_lines(file: BinaryIO, rows: Iterator[Row], entities_column: str) -> None:
    for row in rows:
        file.write(json.dumps({**row.record, entities_column: row.outcome}).encode() + b"\n")


def write_parquet(file: BinaryIO, rows: Iterator[Row], entities_column: str) -> None:
    with contextlib.ExitStack() as stack:
        writer: Any = None
        while group := [*islice(rows, ROWS_OF_A_BATCH)]:
            table = pa.concat_tables(row.record for row in group)
            table = table.append_column(entities_column, pa.array([row.outcome for row in group], ENTITIES))
            writer = writer or stack.enter_context(pq.ParquetWriter(file, table.schema))
            writer.write_table(table)
