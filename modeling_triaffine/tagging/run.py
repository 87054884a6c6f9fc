"""The Ray Data pipeline: files → chunks (tasks) → entities (actors) → one output per file, in order."""

import contextlib
import dataclasses
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import ray
from ray.data import ActorPoolStrategy, DataContext, TaskPoolStrategy
from ray.data.exceptions import ExecutionTimeoutError
from tqdm import tqdm

from ..model.checks_triaffine import check_threshold
from ..model.configuration_triaffine import TriaffineConfig
from .chunks import Chunk
from .output import OutputFolder, Totals
from .reading import Reading, read_chunks
from .tagger import Tagger, Tagging, describe_model

logger = logging.getLogger(__name__)

# Number of actors in a row that may die while starting.
RETRIES = 3
# Options that may change in the next run; the description of the model tells its revisions apart.
FREE_OPTIONS = {"revision", "batch_size", "chunk_size", "files_at_once"}


@dataclasses.dataclass(frozen=True)
class Actors:
    """The processes with the model: their number, and the CPUs and GPUs of each.

    By default as many as fit on the cluster, with one GPU each if it has any.
    """

    count: int | None = None
    cpus: float = 1
    gpus: float | None = None

    def fitted(self, resources: dict[str, float]) -> "Actors":
        """Returns the actors with defaults resolved; raises ValueError if they do not fit on the cluster."""
        gpus = float(resources.get("GPU", 0) > 0) if self.gpus is None else self.gpus
        rooms = [int(resources.get(kind, 0) / each) for kind, each in (("CPU", self.cpus), ("GPU", gpus)) if each]
        wanted = self.count or 1
        room = min(rooms, default=wanted)
        if room < wanted:
            raise ValueError(
                f"{wanted} actors with {self.cpus:g} CPUs and {gpus:g} GPUs each do not fit: Ray has "
                f"{resources.get('CPU', 0):g} CPUs and {resources.get('GPU', 0):g} GPUs. Request less, or add machines."
            )
        return Actors(self.count or room, self.cpus, gpus)


def tag_corpus(
    files: dict[str, str],
    output_dir: Path,
    tagging: Tagging,
    reading: Reading | None = None,
    actors: Actors | None = None,
) -> Totals:
    """Writes `output_dir/NAME.parquet` for each of the files, {name: path}, that has no output yet; see `output.py`.

    Runs on the Ray cluster that this process is connected to, else on the one that `ray.init` finds: that of
    RAY_ADDRESS, that of this machine, or a new one for the duration of the call.

    Raises:
        ValueError: the options do not match existing outputs, the model or the cluster.
        OSError: there is no such model.
        RuntimeError: Ray failed, or the model could not be loaded or failed on every text; finished outputs are kept.
    """
    reading, actors = reading or Reading(), actors or Actors()
    model, revision = describe_model(tagging.model, tagging.revision)
    config = TriaffineConfig.from_pretrained(tagging.model, revision=revision)
    check_threshold(tagging.threshold, config.entity_labels)
    if Path(tagging.model).is_dir():
        tagging = dataclasses.replace(tagging, model=str(Path(tagging.model).resolve()))
    tagging = dataclasses.replace(tagging, revision=revision)
    output = OutputFolder(output_dir, options_of_outputs(model, tagging, reading))
    waiting = {name: path for name, path in files.items() if not output.path(name).is_file()}
    if finished := len(files) - len(waiting):
        logger.warning(
            "%s: outputs that exist stay: %d of %d files are not read again. Delete the output of a file that has "
            "changed, or choose another folder.",
            *(output_dir, finished, len(files)),
        )
    if waiting:
        with connected():
            actors = actors.fitted(ray.cluster_resources())
            chunks = with_progress(tagged_chunks(waiting, tagging, reading, actors), len(waiting))
            try:
                # Closed at any end: Ray would start anew for results that are still awaited once it was shut down.
                with contextlib.closing(chunks):
                    for name, chunks_of_file in groupby(chunks, key=lambda chunk: chunk.file):
                        output.write(name, chunks_of_file)
            except (ray.exceptions.RayError, ExecutionTimeoutError) as error:
                cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error  # of the actor, or Ray
                raise RuntimeError(
                    f"Tagging stopped: {type(cause).__name__}: {cause} Existing outputs are complete; repeat the call "
                    "to continue with the others."
                ) from error
    return output.totals()


def options_of_outputs(model: str, tagging: Tagging, reading: Reading) -> dict[str, Any]:
    """The options that all outputs in a folder must share."""
    options = {**dataclasses.asdict(tagging), **dataclasses.asdict(reading), "model": model}
    return {name: value for name, value in options.items() if name not in FREE_OPTIONS}


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
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises plain ones, as when its processes do not start in time
        what = " ".join(str(error).split()).rstrip(".")
        raise OSError(f"Ray did not start: {what}. On a busy machine, try again later.") from error
    can_handle = threading.current_thread() is threading.main_thread()
    if can_handle:  # Ray's own handler aborts, with a dump of its stack
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        yield
    finally:
        ray.shutdown()
        if can_handle:
            signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)  # None: one that Python did not install


def tagged_chunks(files: dict[str, str], tagging: Tagging, reading: Reading, actors: Actors) -> Iterator[Chunk]:
    """The tagged chunks of all files, in the order of the files.

    If the process of an actor dies, the actor is restarted and its chunk repeated; Ray stops a run without progress, as
    of a chunk that always kills its actor.
    """
    context = DataContext.get_current().copy()
    context.execution_options.preserve_order = True
    context.target_max_block_size = 1  # bytes: every chunk is one Ray block, and so one task
    context.raise_original_map_exception = True  # else an error of an actor has no `cause`
    context.max_consecutive_actor_init_deaths = RETRIES
    context.enable_progress_bars = context.print_on_execution_start = False
    sources = [{"file": file, "path": path} for file, path in files.items()]
    tagger: Any = Tagger  # Dataset.map accepts classes as well as functions
    with DataContext.current(context):
        chunks = ray.data.from_items(sources, override_num_blocks=len(sources)).flat_map(
            partial(pack_chunks, reading=reading),
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
        return map(Chunk.unpack, tagged.iter_rows())


def pack_chunks(source: dict[str, Any], reading: Reading) -> Iterator[dict[str, Any]]:
    """The chunks of a file as rows of a Dataset."""
    return (chunk.pack() for chunk in read_chunks(source["file"], source["path"], reading))


def with_progress(chunks: Iterable[Chunk], files: int) -> Generator[Chunk]:
    """The chunks, with a progress bar of rows if standard error is a terminal."""
    with tqdm(unit=" rows", desc=f"{files} files", disable=not sys.stderr.isatty()) as progress:
        for chunk in chunks:
            yield chunk
            progress.update(len(chunk.rows) + len(chunk.rejected))
