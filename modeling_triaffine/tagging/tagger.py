"""The actor with the model, which finds the entities of texts."""

import dataclasses
import hashlib
from functools import cached_property
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.utils.sha import sha_fileobj
from transformers.utils import logging

from ..model.decoding_triaffine import Threshold
from ..model.kinds_triaffine import TextEntity
from ..model.options_triaffine import PredictionOptions
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.processing_triaffine import FILES, VOCABULARIES_FILE
from ..own_weights import own_weights

Outcome = list[TextEntity] | str
"""The entities of a text, or why it has none."""
# The files of a model that determine its predictions.
MODEL_FILES = ["config.json", *FILES, VOCABULARIES_FILE, "*.safetensors"]
# A text for every model, to distinguish a failing machine from a failing text.
HARMLESS_TEXT = "Yes ."


@dataclasses.dataclass(frozen=True)
class Tagging:
    """The model and the options of its [`NestedNERPipeline`]; `revision` is a branch, tag or commit on the Hub."""

    model: str
    revision: str | None = None
    threshold: Threshold | None = None
    overlap: str = PredictionOptions.overlap
    batch_size: int | None = PredictionOptions.batch_size
    bf16: bool = False


def describe_model(name_or_path: str, revision: str | None = None) -> tuple[str, str | None]:
    """Returns what identifies the contents of a model, and its commit if it is on the Hub.

    Only files that determine predictions count: another name of the folder or a new model card changes nothing.
    """
    folder, commit = Path(name_or_path), None
    if not folder.is_dir():
        folder = Path(snapshot_download(name_or_path, revision=revision, allow_patterns=MODEL_FILES))
        commit = folder.name
    digest = hashlib.sha256()
    for path in sorted(path for pattern in MODEL_FILES for path in folder.glob(pattern)):
        with open(path, "rb") as file:
            digest.update(path.name.encode() + sha_fileobj(file))
    return f"SHA-256 {digest.hexdigest()}", commit


class Tagger:
    """An actor with a model, which is loaded once."""

    def __init__(self, tagging: Tagging, device: str):
        self.tagging, self.device = tagging, device

    @cached_property
    def pipeline(self) -> NestedNERPipeline:
        """The pipeline, loaded with the first texts, since Ray hides errors of constructors."""
        logging.disable_progress_bar()
        logging.set_verbosity_error()  # on a GPU, the pipeline warns of repeated calls
        tagging = self.tagging
        dtype = "bfloat16" if tagging.bf16 else "auto"
        pipeline = NestedNERPipeline(model=tagging.model, revision=tagging.revision, device=self.device, dtype=dtype)
        own_weights(pipeline.model)
        return pipeline

    def tag(self, texts: list[str]) -> list[Outcome]:
        """The entities of each text, or why the model fails on it. Raises its error if it fails on any text."""
        try:
            return [*self.find(texts)]
        except Exception as error:
            if len(texts) > 1:
                return [outcome for text in texts for outcome in self.tag([text])]
            self.find([HARMLESS_TEXT])
            return [f"the model failed: {' '.join(str(error).split())}"]

    def find(self, texts: list[str]) -> list[list[TextEntity]]:
        """The entities of each text."""
        options = {name: getattr(self.tagging, name) for name in ("threshold", "overlap", "batch_size")}
        try:
            found: list[list[TextEntity]] = self.pipeline(texts, **options)
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the tokenizer's Rust code is no Exception
            raise RuntimeError(f"{type(error).__name__}: {error}") from None
        return found
