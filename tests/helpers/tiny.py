"""Tiny real models for the tests: of random weights, with their processors, on an encoder of `encoders.py`."""

from collections.abc import Sequence
from pathlib import Path

import torch

from modeling_triaffine.model.model_triaffine import TriaffineForNestedNER
from modeling_triaffine.model.pipeline_triaffine import NestedNERPipeline
from modeling_triaffine.model.processing_triaffine import TriaffineProcessor

LABELS = ["DNA", "protein", "None"]


def tiny_model(encoder: str, seed: int = 0, **fields) -> TriaffineForNestedNER:
    torch.manual_seed(seed)
    sizes = {"triaffine_dim": 6, "lstm_hidden_size": 5, "max_candidates": 6, "triaffine_init_std": 0.3}
    fields = {"id2label": dict(enumerate(LABELS))} | sizes | fields
    return TriaffineForNestedNER.from_encoder(encoder, **fields).eval()


def tiny_processor(encoder: str, **options) -> TriaffineProcessor:
    return TriaffineProcessor.from_encoder(encoder, **options)


def tiny_pipeline(encoder: str, **fields) -> NestedNERPipeline:
    return NestedNERPipeline(model=tiny_model(encoder, **fields), processor=tiny_processor(encoder), device="cpu")


def save_tiny_model(folder: Path, encoder: str, parts: Sequence[str] = (), **fields) -> Path:
    """A model with its processor, saved; it reads these parts of words ("words", "pos", "chars") beside sub-words."""
    processor = tiny_processor(encoder)
    processor.build_vocabularies([{"tokens": ["gene", "binds"], "pos": ["N", "V"]}], parts)
    for part in parts:
        name = part.removesuffix("s") if part != "pos" else part
        fields |= {f"{name}_vocab_size": len(processor.vocabularies[part]), f"{name}_embedding_size": 4}
    if "chars" in parts:
        fields["char_lstm_hidden_size"] = 2
    tiny_model(encoder, **fields).save_pretrained(folder)
    processor.save_pretrained(folder)
    return Path(folder)
