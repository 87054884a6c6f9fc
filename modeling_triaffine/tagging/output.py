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
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features

from ..data.features import ENTITY_FEATURES
from ..documents import Counts, Row
from ..files import atomic_path, open_output, write_text
from .reading import PARQUET, ROWS_OF_A_BATCH, is_document

ENTITIES: pa.DataType = Features({"entities": ENTITY_FEATURES}).arrow_schema.field("entities").type
LOCK = ".lock"
MOST_REASONS = 10


class OutputFolder:
    """The folder for the outputs of a run with these options, and the counts of its finished outputs.

    Raises:
        ValueError: It has outputs of other options, or other files.
    """

    def __init__(self, folder: Path, options: dict[str, Any], entities_column: str):
        self.folder, self.entities_column = folder, entities_column
        self.rejections = folder / "rejected.jsonl"
        self.counts = Counts()
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

    def write(self, rows: Iterable[Row], outputs: Mapping[str, str]) -> None:
        """Writes the rows with entities or the reason why they have none to the outputs of their files, in this order.

        A file that cannot be read to its end, or has no row with entities, gets rejections, and no output.
        """
        for name, of_output in groupby(rows, key=lambda row: outputs[row.file]):
            write = write_parquet if name.lower().endswith(PARQUET) else write_json_lines
            with (
                contextlib.suppress(EOFError),
                atomic_path(self.folder / name) as beside,
                open(beside, "wb") as file,  # here, since pyarrow takes no name that is not UTF-8
            ):
                write(file, self._accepted(of_output), self.entities_column)

    def _accepted(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yields the rows with entities and writes down the others; raises EOFError if there is to be no output."""
        counts = Counts()
        with open(self.rejections, "a", encoding="utf-8") as rejections:  # closed before the output has its name
            for row in rows:
                if isinstance(row.outcome, list):
                    counts.add(row.outcome)
                    yield row
                else:
                    line = {"file": row.file, "row": row.number, "reason": row.outcome}
                    rejections.write(json.dumps(line) + "\n")
                    if row.number is None and not is_document(row.file):
                        raise EOFError
        if not counts.documents:
            raise EOFError
        self.counts.documents += counts.documents
        self.counts.entities += counts.entities

    def describe(self) -> str:
        """Returns the counts, with the rejections of all runs by reason."""
        reasons = Counter(line["reason"] for line in self.read_rejections())
        self.counts.rejected = reasons.total()
        return "\n".join([str(self.counts), *(f"  {n:,}: {reason}" for reason, n in reasons.most_common(MOST_REASONS))])


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
