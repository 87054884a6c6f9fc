"""Files → rows → entities, found by actors on a Ray cluster → one output per file, in order."""

import contextlib
import logging
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import ray
from filelock import FileLock

from ..installed_models import find_model
from ..progress import with_progress
from .output import LOCK, OutputFolder
from .reading import Row, check_columns, count_rows, files_to_read, read_rows
from .tagger import HARMLESS_TEXT, Tagger, TagOptions, identify_model

# How often rows are sent again when their actor dies; chunks that wait for each actor, or for an earlier chunk.
RETRIES, CHUNKS_AHEAD = 3, 4
# Options that may change in the next run; the digest of the model tells its revisions apart.
FREE_OPTIONS = {"revision", "batch_size", "chunk_size", "actors", "cpus_per_actor", "gpus_per_actor"}


def tag_corpus(files: dict[str, str], output_dir: Path, options: TagOptions) -> OutputFolder:
    """Writes an output for each of the files, {name: path}, that has none yet; see `output.py`.

    Runs on the Ray cluster that this process is connected to, else on the one that `ray.init` finds: that of
    RAY_ADDRESS, that of this machine, or a new one for the duration of the call.

    Raises:
        ValueError: The options do not match existing outputs, the model, the columns or the cluster.
        OSError: There is no such model, or another run writes to the folder.
        RuntimeError: Ray failed, or the model could not be loaded or failed on every text; finished outputs are kept.
    """
    check_columns(files, options)
    place = find_model(options.model)
    digest, revision = identify_model(place, options.revision)
    options = replace(options, model=str(Path(place).resolve()) if Path(place).is_dir() else place, revision=revision)
    Tagger(options, "cpu").tag([HARMLESS_TEXT])  # what is wrong with model or options is said here
    fixed = {name: value for name, value in asdict(options).items() if name not in FREE_OPTIONS} | {"model": digest}
    output_dir.mkdir(parents=True, exist_ok=True)
    with FileLock(output_dir / LOCK, timeout=0):
        output = OutputFolder(output_dir, fixed, options.entities_column)
        try:
            write_outputs(output, files, options)
        except ray.exceptions.RayError as error:
            cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error  # of the actor, or Ray
            problem = f"{type(cause).__name__}: {cause} Existing outputs are complete; repeat the call to continue."
            raise RuntimeError(f"Tagging stopped: {problem}") from error
    return output


def write_outputs(output: OutputFolder, files: dict[str, str], options: TagOptions) -> None:
    inputs = files_to_read(files, output.folder, options.chunk_size)
    if inputs:
        output.forget_rejections({file for _, file in inputs})
        rows = (row for name, file in inputs for row in read_rows(name, file, files[file], options))
        total = sum(count_rows(files[file]) for _, file in inputs)
        with connected():
            output.write(with_progress(tag_rows(rows, options.fitted(ray.cluster_resources())), "documents", total))


@contextlib.contextmanager
def connected() -> Iterator[None]:
    """Connects to Ray or starts it, unless connected, without dashboard, usage statistics and logs."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # fatal errors are raised as exceptions
    # Ray puts the working directory first on the path of its workers. That of a stranger's model has Python files.
    with contextlib.chdir(Path(__file__).parents[2]):
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


def tag_rows(rows: Iterator[Row], options: TagOptions) -> Iterator[Row]:
    """Yields the rows in order, with their entities or the reason why they have none. The actors take turns.

    If the process or the node of an actor dies, those that are left take its rows, and the last one is started anew;
    but not for ever, since a text may kill each.
    """
    tagger: Any = ray.remote(num_cpus=options.cpus_per_actor, num_gpus=options.gpus_per_actor)(Tagger)
    device = "cuda" if options.gpus_per_actor else "cpu"
    pool = deque(tagger.remote(options, device) for _ in range(options.actors or 1))
    waiting: deque[tuple[list[Row], Any, Any]] = deque()

    def send(chunk: list[Row]) -> tuple[list[Row], Any, Any]:
        pool.rotate()
        return chunk, pool[0], pool[0].tag.remote([row.text for row in chunk if row.outcome is None])

    def first(retries: int = RETRIES) -> list[Row]:
        chunk, actor, answer = waiting.popleft()
        try:
            outcomes = iter(ray.get(answer))
        except ray.exceptions.RayActorError:
            if not retries:
                raise
            if actor in pool:
                pool.remove(actor)
                pool.extend([] if pool else [tagger.remote(options, device)])
            waiting.appendleft(send(chunk))
            return first(retries - 1)
        for row in chunk:
            row.outcome = next(outcomes) if row.outcome is None else row.outcome
        return chunk

    while chunk := [*islice(rows, options.chunk_size)]:
        waiting.append(send(chunk))
        if len(waiting) > CHUNKS_AHEAD * len(pool):
            yield from first()
    while waiting:
        yield from first()
