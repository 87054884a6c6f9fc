"""The actor with the model, which adds entities to chunks."""

import dataclasses
import hashlib
import pickle
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Features
from huggingface_hub import snapshot_download
from huggingface_hub.utils.sha import sha_fileobj
from transformers.utils import logging

from ..data.features import ENTITY_FEATURES
from ..model.decoding_triaffine import Threshold
from ..model.options_triaffine import PredictionOptions
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.processing_triaffine import FILES, VOCABULARIES_FILE
from ..own_weights import own_weights
from .reading import Chunk, Reading

ENTITIES: pa.DataType = Features({"entities": ENTITY_FEATURES}).arrow_schema.field("entities").type
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
    """Adds entities to chunks with a model that is loaded once."""

    def __init__(self, tagging: Tagging, reading: Reading, device: str):
        self.tagging, self.reading, self.device = tagging, reading, device

    @cached_property
    def find_entities(self) -> NestedNERPipeline:
        """The pipeline, loaded with the first chunk, since Ray does not report errors of constructors."""
        logging.disable_progress_bar()
        logging.set_verbosity_error()  # on a GPU, the pipeline warns of repeated calls
        tagging = self.tagging
        dtype = "bfloat16" if tagging.bf16 else "auto"
        pipeline = NestedNERPipeline(model=tagging.model, revision=tagging.revision, device=self.device, dtype=dtype)
        own_weights(pipeline.model)
        return pipeline

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return {"chunk": pickle.dumps(self.tag_chunk(pickle.loads(row["chunk"])))}

    def tag_chunk(self, chunk: Chunk) -> Chunk:
        """The chunk with its entities; texts on which the model fails are rejected."""
        texts = chunk.texts(self.reading.text_column)
        try:
            found = self.tag(texts)
        except Exception:
            reasons = [self.reason_against(text) for text in texts]
            chunk = chunk.reject(reasons)
            found = self.tag([text for text, reason in zip(texts, reasons, strict=True) if reason is None])
        return chunk.with_entities(self.reading.entities_column, found, ENTITIES)

    def tag(self, texts: list[str]) -> list[list[dict[str, Any]]]:
        """The entities of each text."""
        options = {name: getattr(self.tagging, name) for name in ("threshold", "overlap", "batch_size")}
        try:
            found: list[list[dict[str, Any]]] = self.find_entities(texts, **options)
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the tokenizer's Rust code is no Exception
            raise RuntimeError(f"{type(error).__name__}: {error}") from None
        return found

    def reason_against(self, text: str) -> str | None:
        """Why the model fails on a text, or None. Raises the error if the model fails on any text."""
        try:
            self.tag([text])
        except Exception as error:
            self.tag([HARMLESS_TEXT])
            return f"the model failed: {' '.join(str(error).split())}"
        return None
