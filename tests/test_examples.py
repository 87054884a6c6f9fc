"""The examples: the notebook as it is and as its copy is kept, the Space, and the encoder that is adapted."""

import json
import runpy
from pathlib import Path

import nbformat
import pytest
import torch
import yaml
from transformers import AutoModel

from tests.helpers.processes import PATIENCE
from tests.helpers.tiny import tiny_model, tiny_processor

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOK, SPACE = EXAMPLES / "quickstart.ipynb", EXAMPLES / "space"


def test_the_notebook_runs_from_its_first_cell_to_its_last(tmp_path):
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("num_train_epochs=16", "max_steps=2")
    NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("nested-entities" in data.get("text/html", "") for data in shown)
    assert (tmp_path / "quickstart" / "model" / "model.safetensors").is_file()


def test_the_kept_copy_was_run_in_order_and_names_no_folder_of_a_machine():
    text = NOTEBOOK.read_text(encoding="utf-8")
    for folder in ("/home/", "/root/", "/Users/", "/tmp/", "/var/", "site-packages"):
        assert folder not in text
    code = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


def test_the_space_shows_its_models_or_says_what_it_lacks(monkeypatch):
    pytest.importorskip("gradio", reason="needs the extra demo")
    from modeling_triaffine import page

    monkeypatch.delenv("TRIAFFINE_MODELS", raising=False)
    with pytest.raises(SystemExit, match="Set its variable TRIAFFINE_MODELS"):
        runpy.run_path(str(SPACE / "app.py"), run_name="__main__")
    served = []
    monkeypatch.setenv("TRIAFFINE_MODELS", "owner/one  owner/two")
    monkeypatch.setattr(page, "build_page", lambda models: models)
    monkeypatch.setattr(page, "serve_page", lambda built, host: served.append((built, host)))
    runpy.run_path(str(SPACE / "app.py"), run_name="__main__")
    assert served == [(["owner/one", "owner/two"], "0.0.0.0")]


def test_the_front_matter_of_the_space():
    _, matter, body = (SPACE / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(matter)
    assert fields["sdk"] == "gradio"
    assert (SPACE / fields["app_file"]).is_file()
    assert len(fields["short_description"]) <= 60  # the Hub takes no longer one
    assert "modeling_triaffine modeling_triaffine" in body  # the package travels with it


TEXTS = ["IL-2 binds the gene .", "The protein binds IL-2 .", "A gene of the protein ."] * 8


def test_a_model_starts_from_the_encoder_that_corpora_and_lines_adapt(encoder, tmp_path):
    example = runpy.run_path(str(EXAMPLES / "adapt_encoder.py"))
    lines, corpus, adapted = tmp_path / "lines.txt", tmp_path / "train.jsonl", str(tmp_path / "adapted")
    lines.write_text("\n".join(TEXTS[:2]) + "\n\n \n" + "\n".join(TEXTS[2:]))
    corpus.write_text("".join(json.dumps({"tokens": text.split(), "entities": []}) + "\n" for text in TEXTS))
    assert example["read_texts"](lines) == example["read_texts"](corpus) == TEXTS
    options = ["--num_train_epochs", "2", "--batch_size", "8", "--max_subwords", "6"]  # reads long texts in pieces
    example["main"]([encoder, str(corpus), adapted, *options])
    before, after = (AutoModel.from_pretrained(folder) for folder in (encoder, adapted))
    assert after.config.hidden_size == before.config.hidden_size
    name = "encoder.layer.0.attention.self.query.weight"
    assert not torch.equal(before.get_parameter(name), after.get_parameter(name))
    model = tiny_model(adapted)
    torch.testing.assert_close(model.encoder.get_parameter(name), after.get_parameter(name))
    assert model(**tiny_processor(adapted)(TEXTS[0])).span_logits.isfinite().all()
