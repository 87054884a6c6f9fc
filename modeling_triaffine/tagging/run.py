"""The Ray Data pipeline: files → chunks (tasks) → entities (actors) → one output per file, in order."""

import contextlib
import dataclasses
import json
import logging
import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import ray
from filelock import FileLock
from ray.data import ActorPoolStrategy, DataContext, TaskPoolStrategy
from ray.data.exceptions import ExecutionTimeoutError

from ..installed_models import find_model
from ..progress import with_progress
from .output import LOCK, OutputFolder, Totals
from .reading import Chunk, Inputs, Reading, check_columns, count_rows, read_chunks, remaining_inputs
from .tagger import HARMLESS_TEXT, Tagger, Tagging, describe_model

logger = logging.getLogger(__name__)

# Number of actors in a row that may die while starting.
RETRIES = 3
# Options that may change in the next run; the description of the model tells its revisions apart.
FREE_OPTIONS = {"revision", "batch_size", "chunk_size", "files_at_once"}


@dataclasses.dataclass(frozen=True)
class Actors:
    """The processes with the model: their number, and the CPUs and GPUs of each.

    By default as many as fit on the cluster, with one GPU each if it has any. Two with half a GPU each share one.
    """

    count: int | None = None
    cpus: float = 1
    gpus: float | None = None

    def fitted(self, resources: dict[str, float]) -> "Actors":
        """The actors with defaults resolved; ValueError if they do not fit on the cluster, since Ray would wait."""
        gpus = float(resources.get("GPU", 0) > 0) if self.gpus is None else self.gpus
        rooms = [int(resources.get(kind, 0) / each) for kind, each in (("CPU", self.cpus), ("GPU", gpus)) if each]
        wanted = self.count or 1
        room = min(rooms, default=wanted)
        if room < wanted:
            needs = f"{self.cpus:g} CPUs and {gpus:g} GPUs"
            raise ValueError(f"{wanted} actors with {needs} each do not fit: Ray has room for {room}. Request less.")
        return Actors(self.count or room, self.cpus, gpus)


def tag_corpus(
    files: dict[str, str],
    output_dir: Path,
    tagging: Tagging,
    reading: Reading | None = None,
    actors: Actors | None = None,
) -> Totals:
    """Writes an output for each of the files, {name: path}, that has none yet; see `output.py`.

    Runs on the Ray cluster that this process is connected to, else on the one that `ray.init` finds: that of
    RAY_ADDRESS, that of this machine, or a new one for the duration of the call.

    Raises:
        ValueError: The options do not match existing outputs, the model, the columns or the cluster.
        OSError: There is no such model, or another run writes to the folder.
        RuntimeError: Ray failed, or the model could not be loaded or failed on every text; finished outputs are kept.
    """
    reading, actors = reading or Reading(), actors or Actors()
    check_columns(files, reading)
    place = find_model(tagging.model)
    model, revision = describe_model(place, tagging.revision)
    place = str(Path(place).resolve()) if Path(place).is_dir() else place
    tagging = dataclasses.replace(tagging, model=place, revision=revision)
    Tagger(tagging, reading, "cpu").tag([HARMLESS_TEXT])  # what is wrong with model or options is said here
    options = {**dataclasses.asdict(tagging), **dataclasses.asdict(reading), "model": model}
    options = {name: value for name, value in options.items() if name not in FREE_OPTIONS}
    output_dir.mkdir(parents=True, exist_ok=True)
    with FileLock(output_dir / LOCK, timeout=0):
        inputs = remaining_inputs(files, output_dir, reading.chunk_size)
        waiting = {name for names in inputs.values() for name in names}
        output = OutputFolder(output_dir, options, waiting)
        if finished := len(files) - len(waiting):
            logger.warning("%s: %d of %d files have an output, and are not read.", output_dir, finished, len(files))
        if inputs:
            write_outputs(output, inputs, tagging, reading, actors)
        return output.count_rejections()


def write_outputs(output: OutputFolder, inputs: Inputs, tagging: Tagging, reading: Reading, actors: Actors) -> None:
    with connected():
        actors = actors.fitted(ray.cluster_resources())
        chunks = tagged_chunks(inputs, tagging, reading, actors)
        chunks = with_progress(
            chunks, "documents", count_rows(inputs), size=lambda chunk: len(chunk.places) + len(chunk.rejected)
        )
        try:
            # Closed at any end: Ray would start anew for results that are still awaited once it was shut down.
            with contextlib.closing(chunks):
                for name, chunks_of_output in groupby(chunks, key=lambda chunk: chunk.output):
                    output.write(name, chunks_of_output)
        except (ray.exceptions.RayError, ExecutionTimeoutError) as error:
            cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error  # of the actor, or Ray
            message = f"{type(cause).__name__}: {cause} Existing outputs are complete; repeat the call to continue."
            raise RuntimeError(f"Tagging stopped: {message}") from error


@contextlib.contextmanager
def connected() -> Iterator[None]:
    """Connects to Ray or starts it, unless connected, without dashboard, usage statistics and logs."""
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # fatal errors are raised as exceptions
    handler = signal.getsignal(signal.SIGTERM)
    # Ray puts the working directory first on the path of its workers. That of a stranger's model has Python files.
    with contextlib.chdir(Path(__file__).parents[2]):
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    can_handle = threading.current_thread() is threading.main_thread()
    if can_handle:  # Ray's own handler aborts, with a dump of its stack
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        yield
    finally:
        ray.shutdown()
        if can_handle:
            signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)  # None: one that Python did not install


def tagged_chunks(inputs: Inputs, tagging: Tagging, reading: Reading, actors: Actors) -> Iterator[Chunk]:
    """The tagged chunks of all files, in the order of the outputs.

    Chunks are pickled, because Ray would unify the schemas of tables. If the process of an actor dies, the actor is
    restarted and its chunk repeated; Ray stops a run without progress, as of a chunk that always kills its actor.
    """
    context = DataContext.get_current().copy()
    context.execution_options.preserve_order = True
    context.target_max_block_size = 1  # bytes: every chunk is one Ray block, and so one task
    context.raise_original_map_exception = True  # else an error of an actor has no `cause`
    context.max_consecutive_actor_init_deaths = RETRIES
    context.enable_progress_bars = context.print_on_execution_start = False
    sources = [{"output": output, "files": json.dumps(files)} for output, files in inputs.items()]

    def read(source: dict[str, str]) -> Iterator[dict[str, bytes]]:
        chunks = read_chunks(source["output"], json.loads(source["files"]), reading)
        return ({"chunk": pickle.dumps(chunk)} for chunk in chunks)

    tagger: Any = Tagger  # Dataset.map accepts classes as well as functions
    with DataContext.current(context):
        chunks = ray.data.from_items(sources, override_num_blocks=len(sources)).flat_map(
            read,
            compute=TaskPoolStrategy(min(reading.files_at_once, len(sources))),
            num_cpus=0,  # else it waits forever if the actors have all CPUs
        )
        tagged = chunks.map(
            tagger,
            fn_constructor_args=(tagging, reading, "cuda" if actors.gpus else "cpu"),
            compute=ActorPoolStrategy(size=actors.count),
            num_cpus=actors.cpus,
            num_gpus=actors.gpus,
        )
        return (pickle.loads(row["chunk"]) for row in tagged.iter_rows())
