"""The options of a run; its input files and their rows, each with its text or with the reason why it has none."""

import glob
import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..files import paths_below
from ..model.decoding_triaffine import Threshold
from ..model.kinds_triaffine import TextEntity
from ..model.options_triaffine import PredictionOptions
from ..parsing import JSON_SUFFIXES, DataError, check_is_line, decode_object, decode_text

PARQUET = ".parquet"
TEXTS = "texts-{}.jsonl"  # outputs of documents that are files of their own
TEXTS_OF_AN_OUTPUT = 256
ROWS_OF_A_BATCH = 1000  # of Parquet
FILES_TO_CHECK = 100


@dataclass(frozen=True)
class TagOptions:
    """The options of [`tag_corpus`].

    Args:
        model, revision: As for [`find_model`], and a branch, tag or commit on the Hub.
        text_column, entities_column: The column or field with the text, and the one to add.
        threshold, overlap, batch_size, bf16: As for [`NestedNERPipeline`].
        max_characters: Longer texts are rejected.
        actors: Number of processes with the model, each with a CPU; None: as many as fit on the cluster.
        gpus_per_actor: None: a GPU if there are any. Two actors with half a GPU share one.
    """

    model: str | None
    revision: str | None = None
    text_column: str = "text"
    entities_column: str = "entities"
    threshold: Threshold | None = None
    overlap: str = PredictionOptions.overlap
    batch_size: int | None = PredictionOptions.batch_size
    bf16: bool = False
    max_characters: int = 100_000
    actors: int | None = None
    gpus_per_actor: float | None = None

    def fitted(self, resources: dict[str, float]) -> "TagOptions":
        """Returns the options with all actors counted; ValueError if they do not fit, since Ray would wait for room."""
        gpus = float(resources.get("GPU", 0) > 0) if self.gpus_per_actor is None else self.gpus_per_actor
        needs = {"CPU": 1.0, "GPU": gpus}
        room = min(int(resources.get(kind, 0) / each) for kind, each in needs.items() if each)
        count = self.actors or max(room, 1)
        if count > room:
            raise ValueError(f"{count} actors, each of {needs}, do not fit: Ray has room for {room}. Request less.")
        return replace(self, actors=count, gpus_per_actor=gpus)


@dataclass
class Row:
    """A row of an input, or a document.

    Args:
        output, file: The names of its output and of its file.
        number: Its number in the file, from 1; None stands for the rest of a file that cannot be read.
        record: A dictionary, or a table of one row.
        text: Its text, if there is one.
        outcome: Its entities, or why there are none; None until it is tagged.
    """

    output: str
    file: str
    number: int | None
    record: Any
    text: Any
    outcome: list[TextEntity] | str | None


def is_document(name: str) -> bool:
    """True for a file that is one row: a text, or what cannot be read."""
    return not name.lower().endswith((PARQUET, *JSON_SUFFIXES))


def find_files(inputs: Iterable[str], output_dir: Path) -> dict[str, str]:
    """Returns name → absolute path of all input files, sorted by name.

    A folder stands for all files in it, named by their relative paths, a pattern for the files that it matches. Names
    that begin with "." or "_", and files in the output folder, are no inputs.

    Raises:
        ValueError: There is no file, or two files have one name.
    """
    found: dict[str, str] = {}
    for given in inputs:
        folder = Path(given)
        if folder.is_dir():
            named = {path: path.relative_to(folder) for path in paths_below(folder)}
        else:
            named = {Path(path): Path(os.path.basename(path)) for path in glob.glob(given) or [given]}
        named = {path: name for path, name in named.items() if not any(part[0] in "._" for part in name.parts)}
        paths = [path for path in named if path.is_file() and output_dir.resolve() not in path.resolve().parents]
        if not paths:
            raise ValueError(f"{given}: there is no file outside of {output_dir}.")
        for path in paths:
            name, place = named[path].as_posix(), os.path.abspath(path)
            if found.setdefault(name, place) != place:
                raise ValueError(f"{found[name]} and {place} would have the same output. Tag them into two folders.")
    return dict(sorted(found.items()))


def files_to_read(files: Iterable[str], output_dir: Path) -> list[tuple[str, str]]:
    """Returns (output, file) for each file without output yet. Documents share outputs."""
    outputs = sorted(output_dir.glob(TEXTS.format("*")))
    done = {json.loads(line)["id"] for output in outputs for line in output.read_bytes().splitlines()}
    left = [name for name in files if name not in done and not (output_dir / name).is_file()]
    first = int(outputs[-1].stem.rpartition("-")[2]) + 1 if outputs else 0
    tables = [(name, name) for name in left if not is_document(name)]
    documents = enumerate(filter(is_document, left), first * TEXTS_OF_AN_OUTPUT)
    return tables + [(TEXTS.format(f"{number // TEXTS_OF_AN_OUTPUT:05}"), name) for number, name in documents]


def check_columns(files: dict[str, str], options: TagOptions) -> None:
    """Raises ValueError if there are rows in the first files, and none of them can be tagged."""
    problem = None
    for name, path in islice(files.items(), FILES_TO_CHECK):
        for row in read_rows(name, name, path, options):
            if row.outcome is None:
                return
            problem = problem or f"{name}: {row.outcome} No other row can be tagged, either."
    if problem:
        raise ValueError(problem)


def count_rows(path: str) -> int:
    """Returns the number of rows, by lines or the footer of Parquet; of a file that cannot be read, its rejection."""
    try:
        with open(path, "rb") as file:
            if path.lower().endswith(PARQUET):
                return int(pq.read_metadata(file).num_rows)
            return 1 if is_document(path) else sum(1 for _ in file)
    except (OSError, pa.ArrowException):
        return 1


def read_rows(output: str, file: str, path: str, options: TagOptions) -> Iterator[Row]:
    """Yields the rows of a file; if it cannot be read to its end, the last one says why, and has no number."""
    read = read_document if is_document(path) else read_parquet if path.lower().endswith(PARQUET) else read_json_lines
    try:
        for number, record, text in read(file, path, options):
            yield Row(output, file, number, record, text, reason_against(text, options))
    except (OSError, ValueError, pa.ArrowException) as error:
        yield Row(output, file, 1 if is_document(path) else None, None, None, " ".join(str(error).split()))


def read_document(file: str, path: str, options: TagOptions) -> Iterator[tuple[int, Any, Any]]:
    if not path.lower().endswith(".txt"):
        raise DataError("it is no .txt, .jsonl or .parquet file", "Extract its text, as pdftotext does for a PDF")
    text = decode_text(Path(path).read_bytes())
    yield 1, {"id": file, options.text_column: text}, text


def read_parquet(file: str, path: str, options: TagOptions) -> Iterator[tuple[int, Any, Any]]:
    with pq.ParquetFile(path) as parquet:
        check_names(parquet.schema_arrow.names, options)
        numbers = count(1)
        for batch in parquet.iter_batches(ROWS_OF_A_BATCH):
            table = pa.Table.from_batches([batch], parquet.schema_arrow)
            for place, text in enumerate(table[options.text_column].to_pylist()):
                yield next(numbers), table.slice(place, 1), text


def read_json_lines(file: str, path: str, options: TagOptions) -> Iterator[tuple[int, Any, Any]]:
    with open(path, "rb") as lines:
        check_is_line(lines.readline())
        lines.seek(0)
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = decode_object(line)
                check_names(record, options)
            except DataError as error:
                yield number, None, error
            else:
                yield number, record, record[options.text_column]


def check_names(names: Collection[str], options: TagOptions) -> None:
    """Raises a DataError if columns or fields lack the text, or have entities already."""
    if options.text_column not in names:
        raise DataError(f"there is no {options.text_column!r}, but {', '.join(names) or 'none'}", "Give --text-column")
    if options.entities_column in names:
        raise DataError(f"there is {options.entities_column!r} already", "Give another --entities-column")


def reason_against(text: Any, options: TagOptions) -> str | None:
    """Returns why a value of the text's column, or the error in its place, cannot be tagged; None if it can."""
    if isinstance(text, DataError):
        return str(text)
    if not isinstance(text, str):
        return f"{options.text_column!r} is {'null' if text is None else f'not a string but {type(text).__name__}'}."
    if len(text) > options.max_characters:
        return f"{options.text_column!r} has more than {options.max_characters} characters."
    return None
