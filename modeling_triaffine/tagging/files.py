"""The input files of a run with their rows, and the folder with the outputs.

    options.json      the options that the outputs depend on; a run with other options is refused
    NAME              the output of one input, Parquet or JSON lines as it is, written atomically and only once
    texts-*.jsonl     the outputs of documents, which are files of their own
    rejected.jsonl    {"file", "row", "reason"} of each row that could not be tagged

The rejections of an input are written before its output is renamed to its final name, and a run first removes the
rejections of the inputs that it reads. So even if a run is killed, each row ends up in exactly one of the two places.
"""

import contextlib
import glob
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, groupby, islice, takewhile
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features

from ..data.records import ENTITY_FEATURES
from ..documents import Counts, Row, TextOptions
from ..files import JSON_SUFFIXES, LOCK, atomic_path, open_output, paths_below, write_text

PARQUET = ".parquet"
OPTIONS, REJECTED, TEXTS = "options.json", "rejected.jsonl", "texts-{}.jsonl"
TEXTS_OF_AN_OUTPUT = 256
ROWS_OF_A_BATCH = 1000  # of Parquet
ENTITIES: pa.DataType = Features({"entities": ENTITY_FEATURES}).arrow_schema.field("entities").type
MOST_REASONS = 10


def is_document(name: str) -> bool:
    """True for a file that is one row: a text, or what cannot be read."""
    return not name.lower().endswith((PARQUET, *JSON_SUFFIXES))


def find_files(inputs: Iterable[str], output_dir: Path) -> dict[str, str]:
    """Returns name → absolute path of all input files, sorted by name.

    A folder stands for all files in it, a pattern for the files that it matches ("**": at any depth). Names are paths
    below the folder, or below the folders of a pattern that have no wildcards. Names that begin with "." or "_", and
    files in the output folder, are no inputs. ValueError: there is no file, or two files have one name.
    """
    found: dict[str, str] = {}
    for given in inputs:
        folder = Path(given)
        if folder.is_dir():
            named = {path: path.relative_to(folder) for path in paths_below(folder)}
        else:
            matching = map(Path, glob.glob(given, recursive=True) or glob.glob(glob.escape(given)))
            plain = Path(*takewhile(lambda part: not glob.has_magic(part), folder.parts[:-1]))
            named = {path: path.relative_to(plain) for path in matching}
        named = {path: name for path, name in named.items() if not any(part[0] in "._" for part in name.parts)}
        readable = [path for path in named if path.is_file() or not path.exists()]  # a broken link is rejected
        paths = [path for path in readable if output_dir.resolve() not in path.resolve().parents]
        if not paths:
            raise ValueError(f"{given}: no such file, or no file in it. Give .txt, .jsonl or .parquet files.")
        for path in paths:
            name, place = named[path].as_posix(), os.path.abspath(path)
            if name in (OPTIONS, REJECTED) or Path("/", name).match(f"/{TEXTS}".format("*")):
                raise ValueError(f"{place} has the name of a file of the output folder. Rename it.")
            if found.setdefault(name, place) != place:
                raise ValueError(f"{found[name]} and {place} would have the same output. Tag them into two folders.")
    return dict(sorted(found.items()))


def read_all(files: Mapping[str, str], options: TextOptions) -> Iterator[Row]:
    """Yields the rows of all files, {name: path}. If a file cannot be read to its end, its last row says why."""
    for file, path in files.items():
        try:
            if is_document(path):
                yield options.read_document(file, Path(path), file)
            elif path.lower().endswith(PARQUET):
                yield from read_parquet(file, path, options)
            else:
                with open(path, "rb") as lines:
                    yield from options.read_lines(lines, file, is_json=True)
        except (OSError, ValueError, pa.ArrowException) as error:
            yield Row(file, None, outcome=" ".join(str(error).split()))


def read_parquet(file: str, path: str, options: TextOptions) -> Iterator[Row]:
    with pq.ParquetFile(path) as parquet:
        options.check_names(parquet.schema_arrow.names)
        numbers = count(1)
        for batch in parquet.iter_batches(ROWS_OF_A_BATCH):
            table = pa.Table.from_batches([batch], parquet.schema_arrow)
            for place, text in enumerate(table[options.text_column].to_pylist()):
                yield options.row(file, next(numbers), table.slice(place, 1), text)


class _NoOutputError(Exception):
    """A file gets no output."""


class OutputFolder:
    """The folder with the outputs of all runs with these options, and the counts of the outputs of this run."""

    def __init__(self, folder: Path, options: dict[str, Any], entities_column: str):
        self.folder, self.entities_column = folder, entities_column
        self.rejections = folder / REJECTED
        self.counts = Counts()
        path = folder / OPTIONS
        if not path.is_file():
            if {found.name for found in folder.iterdir()} - {LOCK}:
                raise ValueError(f"{folder} contains other files. Give a new or empty output folder.")
            write_text(path, json.dumps(options, indent=2))
        before = json.loads(path.read_bytes())
        for name, now in options.items():
            if (was := before.get(name)) != now:
                raise ValueError(f"{folder} has other options: {name} was {was}, now it is {now}. Give another folder.")

    def outputs_to_write(self, files: Iterable[str]) -> dict[str, str]:
        """Returns file → output for each file that is in no output yet. Documents share outputs."""
        outputs = sorted(self.folder.glob(TEXTS.format("*")))
        done = {json.loads(line)["id"] for output in outputs for line in output.read_bytes().splitlines()}
        left = [name for name in files if name not in done and not (self.folder / name).is_file()]
        first = int(outputs[-1].stem.rpartition("-")[2]) + 1 if outputs else 0
        documents = enumerate(filter(is_document, left), first * TEXTS_OF_AN_OUTPUT)
        found = {name: name for name in left if not is_document(name)}
        return found | {name: TEXTS.format(f"{number // TEXTS_OF_AN_OUTPUT:05}") for number, name in documents}

    def read_rejections(self) -> Iterator[dict[str, Any]]:
        """Reads complete lines only: a truncated last line belongs to an unfinished input."""
        if self.rejections.is_file():
            with open(self.rejections, encoding="utf-8", errors="replace") as lines:
                yield from (json.loads(line) for line in lines if line.endswith("\n"))

    def write(self, rows: Iterable[Row], outputs: Mapping[str, str]) -> None:
        """Writes rows to the outputs of their files, in this order, or to the rejections if they have no entities.

        Former rejections of these files are removed. A file that cannot be read to its end, or has no row with
        entities, gets rejections, and no output.
        """
        with open_output(self.rejections) as output:
            output.writelines(json.dumps(line) + "\n" for line in self.read_rejections() if line["file"] not in outputs)
        for name, of_output in groupby(rows, key=lambda row: outputs[row.file]):
            write = write_parquet if name.lower().endswith(PARQUET) else write_json_lines
            with (
                contextlib.suppress(_NoOutputError),
                atomic_path(self.folder / name) as beside,
                open(beside, "wb") as file,  # here, since pyarrow takes no name that is not UTF-8
            ):
                write(file, self._accepted(of_output), self.entities_column)

    def _accepted(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yields the rows with entities and writes down the others; raises _NoOutputError if there is to be none."""
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
                        raise _NoOutputError
        if not counts.documents:
            raise _NoOutputError
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
