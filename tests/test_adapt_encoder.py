"""The example that adapts an encoder: what it reads, what it changes, and that a model starts from what it saves."""

import json
import runpy
from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from tests.helpers.tiny import tiny_model, tiny_processor

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "adapt_encoder.py"
TEXTS = ["IL-2 binds the gene .", "The protein binds IL-2 .", "A gene of the protein ."] * 8


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(EXAMPLE))


def write_corpus(path):
    rows = [{"tokens": text.split(), "entities": []} for text in TEXTS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_corpora_and_lines_are_read_alike(example, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(TEXTS[:2]) + "\n\n \n" + "\n".join(TEXTS[2:]))
    assert example["read_texts"](lines) == example["read_texts"](write_corpus(tmp_path / "train.jsonl")) == TEXTS


def test_a_model_starts_from_the_adapted_encoder(example, encoder, tmp_path):
    options = ["--num_train_epochs", "2", "--batch_size", "8", "--max_subwords", "6"]  # reads long texts in pieces
    example["main"]([encoder, str(write_corpus(tmp_path / "train.jsonl")), str(tmp_path / "adapted"), *options])
    before, after = (AutoModel.from_pretrained(folder) for folder in (encoder, tmp_path / "adapted"))
    assert after.config.hidden_size == before.config.hidden_size
    name = "encoder.layer.0.attention.self.query.weight"
    assert not torch.equal(before.get_parameter(name), after.get_parameter(name))
    model = tiny_model(str(tmp_path / "adapted"))
    torch.testing.assert_close(model.encoder.get_parameter(name), after.get_parameter(name))
    assert model(**tiny_processor(str(tmp_path / "adapted"))(TEXTS[0])).span_logits.isfinite().all()
