"""The exported graph in ONNX Runtime gives the model's scores, for any number of sentences, sub-words and words."""

from typing import Any

import numpy as np
import pytest
import torch

from modeling_triaffine import NestedNERPipeline, OnnxNestedNER
from modeling_triaffine.commands import export
from modeling_triaffine.conversion import onnx_export
from modeling_triaffine.conversion.onnx_export import export_onnx, graph_inputs, quantize_onnx, run_onnx
from tests.helpers.tiny import tiny_model, tiny_processor

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
# torch's exporter warns of its own inside.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

SENTENCE = ["IL-2", "gene", "binds", "to", "protein", "kinase", "C"]
BATCHES = {
    "one word": [["gene"]],
    "one sentence": [SENTENCE],
    "ragged": [["a", "protein"], SENTENCE * 3, ["x"], SENTENCE, ["gene", "gene", "gene"]],
    "empty sentence": [SENTENCE, []],
    "windows": [SENTENCE, SENTENCE * 30, SENTENCE * 2],
}
CHARACTERS = {"char_vocab_size": 30, "char_embedding_size": 4, "char_lstm_hidden_size": 3}
FORMS: dict[str, dict[str, Any]] = {
    "as genia-minilm": {
        "triaffine_rank": 4,
        "lstm_layers": 2,
        "mix_layers": True,
        "cross_span_residual": True,
        **CHARACTERS,
    },
    "full": {"lstm_hidden_size": 0},
    "linear, one stage": {
        "attention": "linear",
        "scoring": "linear_boundary",
        "cross_span": False,
        "max_span_width": 4,
    },
}


def forms() -> list:
    """The first exports what all of them do, and takes long enough."""
    return [
        pytest.param(form, id=name, marks=[pytest.mark.nightly] if number else [])
        for number, (name, form) in enumerate(FORMS.items())
    ]


@pytest.fixture(scope="module", params=forms())
def exported(request, encoder, tmp_path_factory):
    """A model, its processor and the path of its graph."""
    model, processor = tiny_model(encoder, **request.param), tiny_processor(encoder)
    if model.config.has_chars:
        processor.build_vocabularies([{"tokens": SENTENCE}], ["chars"])
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    assert export_onnx(model, processor, path) < 1e-5
    return model, processor, path


@pytest.mark.parametrize("sentences", BATCHES.values(), ids=BATCHES)
def test_outputs_are_the_models(exported, sentences):
    model, processor, path = exported
    batch = processor.pad(processor.encode(sentences))
    with torch.no_grad():
        expected = model(**batch)
    found = run_onnx(path, graph_inputs(batch, processor.max_subwords))
    assert ("logits" in found) == model.config.cross_span
    for name, values in found.items():
        wanted = expected[name].numpy()
        assert values.dtype == wanted.dtype
        np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-4, err_msg=name)


def test_padding_changes_nothing(exported):
    _, processor, path = exported
    together = run_onnx(path, graph_inputs(processor.pad(processor.encode(BATCHES["ragged"])), processor.max_subwords))
    alone = run_onnx(path, graph_inputs(processor.pad(processor.encode([SENTENCE])), processor.max_subwords))
    words = len(SENTENCE)
    np.testing.assert_allclose(together["span_logits"][3, :words, :words], alone["span_logits"][0], rtol=0, atol=1e-4)


@pytest.fixture(scope="module")
def folder(exported, tmp_path_factory):
    """What `export --int8` writes."""
    model, processor, path = exported
    quantize_onnx(path, path.with_name("model_int8.onnx"))
    model.config.save_pretrained(path.parent)
    processor.save_pretrained(path.parent)
    return path.parent


TEXTS = ["IL-2 gene binds to protein kinase C. A gene.", "", "gene " * 200]


@pytest.mark.parametrize(("quantize", "tolerance"), [(None, 1e-4), ("int8", 0.15)])
def test_predictor_is_the_pipeline(exported, folder, quantize, tolerance):
    model, processor, _ = exported
    expected = NestedNERPipeline(model=model, processor=processor)(TEXTS, threshold=0.0)
    found = OnnxNestedNER(folder, quantize=quantize)(TEXTS, threshold=0.0)
    assert [len(entities) > 0 for entities in found] == [True, False, True]
    for text, one, other in zip(TEXTS, expected, found, strict=True):
        scores = {(e["start"], e["end"], e["entity_group"]): e["score"] for e in one}
        shared = [
            (e["score"], scores[key]) for e in other if (key := (e["start"], e["end"], e["entity_group"])) in scores
        ]
        assert len(shared) == len(one) or (quantize and len(shared) >= len(one) / 3), text
        assert all(abs(score - wanted) < tolerance for score, wanted in shared)


def test_predictor_names_the_graph_that_is_missing(encoder, tmp_path):
    tiny_model(encoder).save_pretrained(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"model\.onnx"):
        OnnxNestedNER(tmp_path)
    with pytest.raises(ValueError, match="int3"):
        OnnxNestedNER(tmp_path, quantize="int3")


def test_other_pooling_is_refused(encoder, tmp_path):
    model = tiny_model(encoder, subword_pooling="mean")
    with pytest.raises(ValueError, match='"mean"'):
        export_onnx(model, tiny_processor(encoder), tmp_path / "model.onnx")


def test_graph_that_computes_something_else_is_refused(encoder, tmp_path, monkeypatch):
    model, processor = tiny_model(encoder, cross_span=False), tiny_processor(encoder)

    class Program:
        def save(self, path):
            path.touch()

    def run_wrongly(path, inputs):
        batch = onnx_export.example_batch(processor, (13, 1, 9, 13))
        return {"span_logits": model(**batch).span_logits.detach().numpy() + 0.01}

    monkeypatch.setattr(onnx_export, "translate", lambda *_: Program())
    monkeypatch.setattr(onnx_export, "run_onnx", run_wrongly)
    with pytest.raises(ValueError, match=r"up to 0\.01 .*\(bert\)"):
        export_onnx(model, processor, tmp_path / "model.onnx")


def test_what_torch_cannot_export_is_told(encoder, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("Could not guard on u1.\nFor more information …")

    monkeypatch.setattr(onnx_export, "translate", fail)
    with pytest.raises(ValueError, match=r"encoder \(bert\): Could not guard on u1\.$"):
        export_onnx(tiny_model(encoder), tiny_processor(encoder), tmp_path / "model.onnx")


def test_failed_export_leaves_nothing(encoder, tmp_path):
    model, processor = tiny_model(encoder, subword_pooling="first"), tiny_processor(encoder)
    model.save_pretrained(tmp_path / "model")
    processor.save_pretrained(tmp_path / "model")
    output = tmp_path / "onnx"
    with pytest.raises(ValueError, match="subword_pooling"):
        export.command(str(tmp_path / "model"), output)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    output.mkdir()
    with pytest.raises(ValueError, match=f"{output} exists"):
        export.command(str(tmp_path / "model"), output)
