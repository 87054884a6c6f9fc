"""The options of a run, its model, and the actor that finds the entities of texts with it."""

import dataclasses
import hashlib
from functools import cached_property
from pathlib import Path

from huggingface_hub import snapshot_download
from transformers.utils import logging

from ..model.decoding_triaffine import Threshold
from ..model.kinds_triaffine import TextEntity
from ..model.options_triaffine import PredictionOptions
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.processing_triaffine import FILES, VOCABULARIES_FILE
from ..own_weights import own_weights

# The files of a model that determine its predictions.
MODEL_FILES = ["config.json", *FILES, VOCABULARIES_FILE, "*.safetensors"]
# A text for every model, to distinguish a failing machine from a failing text.
HARMLESS_TEXT = "Yes ."


@dataclasses.dataclass(frozen=True)
class TagOptions:
    """The options of [`tag_corpus`].

    Args:
        model, revision: As for [`find_model`], and a branch, tag or commit on the Hub.
        text_column, entities_column: The column or field with the text, and the one to add.
        threshold, overlap, batch_size, bf16: As for [`NestedNERPipeline`].
        max_characters: Longer texts are rejected.
        chunk_size: Number of rows that an actor processes at a time.
        actors: Number of processes with the model; None: as many as fit on the cluster.
        cpus_per_actor, gpus_per_actor: What each needs; None: a GPU if there are any. Two with half a GPU share one.
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
    chunk_size: int = 256
    actors: int | None = None
    cpus_per_actor: float = 1
    gpus_per_actor: float | None = None

    def fitted(self, resources: dict[str, float]) -> "TagOptions":
        """Returns the options with all actors counted; ValueError if they do not fit, since Ray would wait for room."""
        gpus = float(resources.get("GPU", 0) > 0) if self.gpus_per_actor is None else self.gpus_per_actor
        needs = {"CPU": self.cpus_per_actor, "GPU": gpus}
        room = min(int(resources.get(kind, 0) / each) for kind, each in needs.items() if each)
        count = self.actors or max(room, 1)
        if count > room:
            raise ValueError(f"{count} actors, each of {needs}, do not fit: Ray has room for {room}. Request less.")
        return dataclasses.replace(self, actors=count, gpus_per_actor=gpus)


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


@dataclasses.dataclass
class Tagger:
    """An actor with a model, which is loaded once."""

    options: TagOptions
    device: str

    @cached_property
    def pipeline(self) -> NestedNERPipeline:
        """The pipeline, loaded with the first texts, since Ray hides errors of constructors."""
        logging.disable_progress_bar()
        logging.set_verbosity_error()  # on a GPU, the pipeline warns of repeated calls
        options, dtype = self.options, "bfloat16" if self.options.bf16 else "auto"
        pipeline = NestedNERPipeline(model=options.model, revision=options.revision, device=self.device, dtype=dtype)
        own_weights(pipeline.model)
        return pipeline

    def tag(self, texts: list[str]) -> list[list[TextEntity] | str]:
        """Returns the entities of each text, or why the model fails on it; raises its error if it fails on any text."""
        options = {name: getattr(self.options, name) for name in ("threshold", "overlap", "batch_size")}
        pipeline = self.pipeline
        try:
            return [*pipeline(texts, **options)]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the tokenizer's Rust code is no Exception
            if texts == [HARMLESS_TEXT]:
                raise RuntimeError(f"{type(error).__name__}: {error}") from error
            if len(texts) > 1:
                return [outcome for text in texts for outcome in self.tag([text])]
            self.tag([HARMLESS_TEXT])
            return [f"the model failed: {' '.join(f'{type(error).__name__}: {error}'.split())}"]
