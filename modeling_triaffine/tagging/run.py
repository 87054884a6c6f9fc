"""Files → rows → entities, found by actors on a Ray cluster → one output per file, in order."""

import contextlib
import hashlib
import logging
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import ray
from huggingface_hub import snapshot_download
from transformers.utils import logging as transformers_logging

from ..documents import Row, TextOptions, check_usable, with_progress
from ..files import locked
from ..installed_models import find_and_name
from ..model.decoding_triaffine import Threshold
from ..model.kinds_triaffine import TextEntity
from ..model.options_triaffine import PredictionOptions
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.processing_triaffine import FILES, VOCABULARIES_FILE
from .files import OutputFolder, read_all

# The files of a model that determine its predictions.
MODEL_FILES = ["config.json", *FILES, VOCABULARIES_FILE, "*.safetensors"]
HARMLESS_TEXT = "Yes ."  # a text for every model, to distinguish a failing machine from a failing text
# Rows that are sent to an actor together; how often they are sent again if it dies; chunks that wait for each actor.
CHUNK, RETRIES, CHUNKS_AHEAD = 256, 3, 4
# Options that may change in the next run. Another revision is noticed by the digest of the model.
FREE_OPTIONS = {"revision", "batch_size", "actors", "gpus_per_actor"}


@dataclass(frozen=True)
class TagOptions(TextOptions):
    """The options of [`tag_corpus`]; those of a model and its predictions are as for [`NestedNERPipeline`]."""

    model: str | None
    revision: str | None = None
    threshold: Threshold | None = None
    overlap: str = PredictionOptions.overlap
    batch_size: int | None = PredictionOptions.batch_size
    bf16: bool = False
    actors: int | None = None  # processes with the model, each with a CPU; None: as many as fit on the cluster
    gpus_per_actor: float | None = None  # None: a GPU if there are any; two actors with half a GPU share one

    def fitted(self, resources: dict[str, float]) -> "TagOptions":
        """Returns the options with numbers of actors and GPUs; ValueError if they do not fit: Ray would only wait."""
        gpus = float(resources.get("GPU", 0) > 0) if self.gpus_per_actor is None else self.gpus_per_actor
        needs = {"CPU": 1.0, "GPU": gpus}
        room = min(int(resources.get(kind, 0) / each) for kind, each in needs.items() if each)
        count = self.actors or max(room, 1)
        if count > room:
            raise ValueError(f"{count} actors, each of {needs}, do not fit: Ray has room for {room}. Request less.")
        return replace(self, actors=count, gpus_per_actor=gpus)


def tag_corpus(files: dict[str, str], output_dir: Path, options: TagOptions) -> OutputFolder:
    """Writes an output for each of the files, {name: path}, that has none yet; see [`OutputFolder`].

    Runs on the Ray cluster that this process is connected to, else on the one that `ray.init` finds: that of
    RAY_ADDRESS, that of this machine, or a new one for the duration of the call.

    Raises:
        ValueError: The options do not match outputs, model, columns or cluster, or another run writes to the folder.
        OSError: There is no such model.
        RuntimeError: Ray failed, or the model could not be loaded or failed on every text; finished outputs are kept.
    """
    check_usable(read_all(files, options))
    place = find_and_name(options.model)
    digest, revision = identify_model(place, options.revision)
    options = replace(options, model=str(Path(place).resolve()) if Path(place).is_dir() else place, revision=revision)
    Tagger(replace(options, gpus_per_actor=0)).tag([HARMLESS_TEXT])  # says what is wrong with model or options
    fixed = {name: value for name, value in asdict(options).items() if name not in FREE_OPTIONS} | {"model": digest}
    with locked(output_dir):
        output = OutputFolder(output_dir, fixed, options.entities_column)
        outputs = output.outputs_to_write(files)
        left = {file: files[file] for file in outputs}
        try:
            if left:
                total = sum(1 for _ in read_all(left, options))  # takes little time, compared with prediction
                with connected():
                    tagged = tag_rows(read_all(left, options), options.fitted(ray.cluster_resources()))
                    output.write(with_progress(tagged, total), outputs)
        except ray.exceptions.RayError as error:
            cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error  # of the actor, or Ray
            problem = f"{type(cause).__name__}: {cause} Existing outputs are complete; repeat the call to continue."
            raise RuntimeError(f"Tagging stopped: {problem}") from error
    return output


@contextlib.contextmanager
def connected() -> Iterator[None]:
    """Connects to Ray or starts it, unless connected, without dashboard, usage statistics and logs."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray's workers import from the working directory first. If it is the folder of a model, it contains Python files.
    with contextlib.chdir(Path(__file__).parents[2]):
        try:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # Ray has no class of its own for this
            raise OSError(
                f"Ray did not start ({error}). It needs a HOME to write to and an idle processor. Or use `predict`."
            ) from None
    try:
        yield
    finally:
        ray.shutdown()


def tag_rows(rows: Iterator[Row], options: TagOptions) -> Iterator[Row]:
    """Yields the rows in order, with their entities or the reason why they have none. The actors take turns.

    If the process or the node of an actor dies, the others take its rows; the last actor is started anew. A chunk of
    rows is sent at most `RETRIES` times again, because one of its texts may be what kills actors.
    """
    tagger: Any = ray.remote(num_cpus=1, num_gpus=options.gpus_per_actor)(Tagger)
    pool = deque(tagger.remote(options) for _ in range(options.actors or 1))
    waiting: deque[tuple[list[Row], Any, Any]] = deque()

    def send(chunk: list[Row]) -> tuple[list[Row], Any, Any]:
        pool.rotate()
        return chunk, pool[0], pool[0].tag.remote([row.text for row in chunk if row.outcome is None])

    def finish_first(retries: int = RETRIES) -> list[Row]:
        chunk, actor, answer = waiting.popleft()
        try:
            outcomes = iter(ray.get(answer))
        except ray.exceptions.RayActorError:
            if not retries:
                raise
            if actor in pool:
                pool.remove(actor)
                pool.extend([] if pool else [tagger.remote(options)])
            waiting.appendleft(send(chunk))
            return finish_first(retries - 1)
        for row in chunk:
            row.outcome = next(outcomes) if row.outcome is None else row.outcome
        return chunk

    while chunk := [*islice(rows, CHUNK)]:
        waiting.append(send(chunk))
        if len(waiting) > CHUNKS_AHEAD * len(pool):
            yield from finish_first()
    while waiting:
        yield from finish_first()


def identify_model(name_or_path: str, revision: str | None) -> tuple[str, str | None]:
    """Returns a digest of the contents of a model, and its commit if it is on the Hub.

    Only files that determine predictions count: another name of the folder or a new model card changes nothing.
    """
    folder, commit = Path(name_or_path), None
    if not folder.is_dir():
        folder = Path(snapshot_download(name_or_path, revision=revision, allow_patterns=MODEL_FILES))
        commit = folder.name
    digest = hashlib.sha256()
    for path in sorted(path for pattern in MODEL_FILES for path in folder.glob(pattern)):
        with open(path, "rb") as file:
            digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return f"SHA-256 {digest.hexdigest()}", commit


@dataclass
class Tagger:
    """An actor with a model, which is loaded once."""

    options: TagOptions

    @cached_property
    def pipeline(self) -> NestedNERPipeline:
        """The pipeline, loaded with the first texts, since Ray hides errors of constructors."""
        transformers_logging.disable_progress_bar()
        transformers_logging.set_verbosity_error()  # on a GPU, the pipeline warns of repeated calls
        options, dtype = self.options, "bfloat16" if self.options.bf16 else "auto"
        device = "cuda" if options.gpus_per_actor else "cpu"
        place: dict[str, Any] = {"revision": options.revision, "disable_mmap": True}  # a file may change
        return NestedNERPipeline(model=options.model, device=device, dtype=dtype, **place)

    def tag(self, texts: list[str]) -> list[list[TextEntity] | str]:
        """Returns the entities of each text, or why the model fails on it; raises its error if it fails on any text."""
        options = {name: getattr(self.options, name) for name in ("threshold", "overlap", "batch_size")}
        pipeline = self.pipeline
        try:
            return [*pipeline(texts, **options)]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the tokenizer's Rust code is no Exception
            failure = " ".join(f"{type(error).__name__}: {error}".split())
            if texts == [HARMLESS_TEXT]:
                raise RuntimeError(failure) from error
        # Not in the block above, in which the traceback keeps the memory of the forward pass.
        if len(texts) > 1:
            return [outcome for text in texts for outcome in self.tag([text])]
        self.tag([HARMLESS_TEXT])
        return [f"the model failed: {failure}"]
