"""The options of a run; its input files, and their rows."""

import glob
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..documents import Row, TextOptions
from ..files import JSON_SUFFIXES, paths_below
from ..model.decoding_triaffine import Threshold
from ..model.options_triaffine import PredictionOptions

PARQUET = ".parquet"
TEXTS = "texts-{}.jsonl"  # outputs of documents that are files of their own
TEXTS_OF_AN_OUTPUT = 256
ROWS_OF_A_BATCH = 1000  # of Parquet


@dataclass(frozen=True)
class TagOptions(TextOptions):
    """The options of [`tag_corpus`].

    Args:
        model, revision: As for [`find_model`], and a branch, tag or commit on the Hub.
        threshold, overlap, batch_size, bf16: As for [`NestedNERPipeline`].
        actors: Number of processes with the model, each with a CPU; None: as many as fit on the cluster.
        gpus_per_actor: None: a GPU if there are any. Two actors with half a GPU share one.
    """

    model: str | None
    revision: str | None = None
    threshold: Threshold | None = None
    overlap: str = PredictionOptions.overlap
    batch_size: int | None = PredictionOptions.batch_size
    bf16: bool = False
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
            matching = glob.glob(given) or glob.glob(glob.escape(given))
            named = {Path(path): Path(os.path.basename(path)) for path in matching}
        named = {path: name for path, name in named.items() if not any(part[0] in "._" for part in name.parts)}
        readable = [path for path in named if path.is_file() or not path.exists()]  # a broken link is rejected
        paths = [path for path in readable if output_dir.resolve() not in path.resolve().parents]
        if not paths:
            raise ValueError(f"{given}: no such file, or no file in it. Give .txt, .jsonl or .parquet files.")
        for path in paths:
            name, place = named[path].as_posix(), os.path.abspath(path)
            if Path("/", name).match(f"/{TEXTS}".format("*")):
                raise ValueError(f"{place} has the name of an output of .txt files. Rename it.")
            if found.setdefault(name, place) != place:
                raise ValueError(f"{found[name]} and {place} would have the same output. Tag them into two folders.")
    return dict(sorted(found.items()))


def outputs_to_write(files: Iterable[str], output_dir: Path) -> dict[str, str]:
    """Returns file → output for each file without output yet. Documents share outputs."""
    outputs = sorted(output_dir.glob(TEXTS.format("*")))
    done = {json.loads(line)["id"] for output in outputs for line in output.read_bytes().splitlines()}
    left = [name for name in files if name not in done and not (output_dir / name).is_file()]
    first = int(outputs[-1].stem.rpartition("-")[2]) + 1 if outputs else 0
    documents = enumerate(filter(is_document, left), first * TEXTS_OF_AN_OUTPUT)
    found = {name: name for name in left if not is_document(name)}
    return found | {name: TEXTS.format(f"{number // TEXTS_OF_AN_OUTPUT:05}") for number, name in documents}


def read_all(files: Mapping[str, str], options: TextOptions) -> Iterator[Row]:
    """Yields the rows of all files, {name: path}."""
    for file, path in files.items():
        yield from read_rows(file, path, options)


def read_rows(file: str, path: str, options: TextOptions) -> Iterator[Row]:
    """Yields the rows of a file; if it cannot be read to its end, the last one says why, and has no number."""
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
