"""Files → chunks of texts → entities, found by actors on a Ray cluster → one output per file, in order."""

import contextlib
import dataclasses
import logging
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import ray
from filelock import FileLock

from ..installed_models import find_model
from ..progress import with_progress
from .output import LOCK, OutputFolder, Totals
from .reading import Chunk, Inputs, Reading, check_columns, count_rows, read_chunks, remaining_inputs
from .tagger import HARMLESS_TEXT, Outcome, Tagger, Tagging, describe_model

logger = logging.getLogger(__name__)

# How often texts are sent again when their actor dies; chunks that wait for each actor, or for an earlier chunk.
RETRIES, CHUNKS_AHEAD = 3, 4
# Options that may change in the next run; the description of the model tells its revisions apart.
FREE_OPTIONS = {"revision", "batch_size", "chunk_size"}


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
    Tagger(tagging, "cpu").find([HARMLESS_TEXT])  # what is wrong with model or options is said here
    options = {**dataclasses.asdict(tagging), **dataclasses.asdict(reading), "model": model}
    options = {name: value for name, value in options.items() if name not in FREE_OPTIONS}
    output_dir.mkdir(parents=True, exist_ok=True)
    with FileLock(output_dir / LOCK, timeout=0):
        inputs = remaining_inputs(files, output_dir, reading.chunk_size)
        waiting = {name for names in inputs.values() for name in names}
        output = OutputFolder(output_dir, options, waiting, reading.entities_column)
        if finished := len(files) - len(waiting):
            logger.warning("%s: %d of %d files have an output, and are not read.", output_dir, finished, len(files))
        if inputs:
            write_outputs(output, inputs, tagging, reading, actors)
        return output.count_rejections()


def write_outputs(output: OutputFolder, inputs: Inputs, tagging: Tagging, reading: Reading, actors: Actors) -> None:
    chunks = (chunk for name, files in inputs.items() for chunk in read_chunks(name, files, reading))
    with connected():
        actors = actors.fitted(ray.cluster_resources())
        tagged = with_progress(
            tagged_chunks(chunks, tagging, actors), "documents", count_rows(inputs), size=lambda pair: len(pair[1])
        )
        try:
            for name, of_output in groupby(tagged, key=lambda pair: pair[0].output):
                output.write(name, of_output)
        except ray.exceptions.RayError as error:
            cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error  # of the actor, or Ray
            message = f"{type(cause).__name__}: {cause} Existing outputs are complete; repeat the call to continue."
            raise RuntimeError(f"Tagging stopped: {message}") from error


@contextlib.contextmanager
def connected() -> Iterator[None]:
    """Connects to Ray or starts it, unless connected, without dashboard, usage statistics and logs."""
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


def tagged_chunks(chunks: Iterable[Chunk], tagging: Tagging, actors: Actors) -> Iterator[tuple[Chunk, list[Outcome]]]:
    """The chunks in order, with the outcome of each row. The actors take turns.

    If the process or the node of an actor dies, those that are left take its texts, and the last one is started anew;
    but not for ever, since a text may kill each.
    """
    tagger: Any = ray.remote(num_cpus=actors.cpus, num_gpus=actors.gpus)(Tagger)

    def start() -> Any:
        return tagger.remote(tagging, "cuda" if actors.gpus else "cpu")

    pool = deque(start() for _ in range(actors.count or 1))
    waiting: deque[tuple[Chunk, list[str], Any, Any]] = deque()

    def send(texts: list[str]) -> tuple[Any, Any]:
        pool.rotate()
        return pool[0], pool[0].tag.remote(texts)

    def first_answer(retries: int = RETRIES) -> tuple[Chunk, list[Outcome]]:
        chunk, texts, actor, answer = waiting.popleft()
        try:
            found = iter(ray.get(answer))
        except ray.exceptions.RayActorError:
            if not retries:
                raise
            if actor in pool:
                pool.remove(actor)
                pool.extend([] if pool else [start()])
            waiting.appendleft((chunk, texts, *send(texts)))
            return first_answer(retries - 1)
        return chunk, [next(found) if reason is None else reason for reason in chunk.reasons]

    for chunk in chunks:
        texts = [text for text, reason in zip(chunk.texts, chunk.reasons, strict=True) if reason is None]
        waiting.append((chunk, texts, *send(texts)))
        if len(waiting) > CHUNKS_AHEAD * len(pool):
            yield first_answer()
    while waiting:
        yield first_answer()
