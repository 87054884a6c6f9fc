"""The exported graph gives the model's scores, for any number of sentences, sub-words and words.

An export takes a minute. So the graph runs in torch, before its translation, and what replaces operations of torch is
compared alone; nightly, the graphs are exported and run in ONNX Runtime.
"""

import copy
import json
import pickle
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from modeling_triaffine import NestedNERPipeline, OnnxNestedNER, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.conversion import onnx as onnx_graphs
from modeling_triaffine.conversion.onnx import export_onnx, graph_inputs, open_pipeline, open_session, run_session
from modeling_triaffine.model.triaffine_ops import select_candidates, span_mask, span_scores_reference
from tests.helpers.tiny import tiny_model, tiny_processor
from tests.model.test_triaffine_ops import make_factor

pytest_plugins = ("tests.helpers.hub_server",)
onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
# torch's exporter warns of its own inside.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

SENTENCE = ["IL-2", "gene", "binds", "to", "protein", "kinase", "C"]
BATCHES = {
    "one word": [["gene"]],
    "one sentence": [SENTENCE],
    "ragged": [["a", "protein"], SENTENCE * 3, ["x"], SENTENCE, ["gene", "gene", "gene"]],
    "empty sentence": [SENTENCE, []],
    "windows": [SENTENCE, SENTENCE * 4, ["a", "gene"]],
}
WORDS = {"lstm_layers": 2, "char_vocab_size": 30, "char_embedding_size": 4, "char_lstm_hidden_size": 3}
EXPORTED: dict[str, dict[str, Any]] = {  # in ONNX Runtime, too, which takes a minute for each
    "as genia-minilm": {**WORDS, "mix_layers": True, "cross_span_residual": True, "max_span_width": 4},
    "one stage": {"attention": "triaffine_no_label", "cross_span": False, "lstm_hidden_size": 0},
}
FORMS = EXPORTED | {
    "own tensors": {"share_triaffine": False},
    "several labels on a span": {"multi_label": True, "cross_span_residual": True},
}


class TorchSession:
    """Stands for ONNX Runtime's: the graph before its translation, with torch's own LSTM."""

    def __init__(self, model: TriaffineForNestedNER, inputs: list[str]):
        model = copy.deepcopy(model)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(onnx_graphs, "OnnxLSTM", lambda layer: layer)
            onnx_graphs.make_exportable(model)
        self.inputs, self.outputs = inputs, [*onnx_graphs.OUTPUTS[: None if model.config.cross_span else 1]]
        self.graph = onnx_graphs.InferenceGraph(model, self.outputs)

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name in self.inputs]

    def get_outputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name in self.outputs]

    @torch.no_grad()
    def run(self, _: None, values: dict[str, np.ndarray]) -> list[np.ndarray]:
        found = self.graph(**{name: torch.from_numpy(value) for name, value in values.items()})
        return [value.numpy() for value in found]


class Exported(NamedTuple):
    model: TriaffineForNestedNER
    processor: TriaffineProcessor
    session: Any
    folder: Path  # as `export` writes it


IN_ONNX_RUNTIME = [pytest.param((form, True), id=f"{form}, exported", marks=pytest.mark.nightly) for form in EXPORTED]


@pytest.fixture(scope="module", params=[*(pytest.param((form, False), id=form) for form in FORMS), *IN_ONNX_RUNTIME])
def exported(request, encoder, tmp_path_factory) -> Exported:
    form, in_onnx_runtime = request.param
    model = tiny_model(encoder, max_subwords=64, triaffine_rank=4, **FORMS[form])
    processor = tiny_processor(encoder, max_subwords=64)
    if model.config.char_lstm_hidden_size:
        processor.build_vocabularies([{"tokens": SENTENCE}], ["chars"])
    folder = tmp_path_factory.mktemp("onnx")
    path = folder / "model.onnx"
    if in_onnx_runtime:
        assert export_onnx(model, processor, path) < 1e-5
        session = open_session(path)
    else:
        path.touch()
        inputs = graph_inputs(processor.pad(processor.encode([SENTENCE])), processor.max_subwords)
        session = TorchSession(model, list(inputs))
    model.config.save_pretrained(folder)
    processor.save_pretrained(folder)
    return Exported(model, processor, session, folder)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("max_width", [None, 3])
def test_candidates_of_the_graph_are_the_models(max_width, multi_label):
    logits = torch.randn(3, 7, 7, 4, generator=torch.Generator().manual_seed(0))
    starts, ends, lengths = torch.arange(7)[:, None], torch.arange(7), torch.tensor([7, 1, 4])[:, None, None]
    valid = (starts <= ends) & (ends < lengths) & (ends - starts < (max_width or 7))
    given = logits, valid, 5, max_width, multi_label
    torch.testing.assert_close(onnx_graphs.candidates_by_topk(*given), select_candidates(*given), rtol=0, atol=0)


@pytest.mark.parametrize("sentences", BATCHES.values(), ids=BATCHES)
def test_outputs_are_those_of_the_model(exported, sentences):
    model, processor, session, _ = exported
    batch = processor.pad(processor.encode(sentences))
    with torch.no_grad():
        expected = model(**batch)
    found = run_session(session, graph_inputs(batch, processor.max_subwords))
    assert ("logits" in found) == model.config.cross_span
    torch.testing.assert_close(found, {name: expected[name].numpy() for name in found}, rtol=1e-4, atol=1e-4)


TEXTS = ["IL-2 gene binds to protein kinase C. A gene.", "", "gene " * 70]


def scores_of(found: list[dict]) -> dict[tuple, float]:
    return {(entity["start"], entity["end"], entity["entity_group"]): entity["score"] for entity in found}


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ((), NestedNERPipeline),
        (("model.onnx",), OnnxNestedNER),
        (("model.onnx", "model.safetensors"), NestedNERPipeline),
    ],
)
def test_a_graph_alone_opens_in_onnx_runtime(online, tmp_path, monkeypatch, files, kind):
    for name in ("config.json", *files):
        (tmp_path / name).write_text("{}")
    online.api.create_repo("owner/name")
    online.api.upload_folder(folder_path=tmp_path, repo_id="owner/name")
    for one in (NestedNERPipeline, OnnxNestedNER):
        monkeypatch.setattr(onnx_graphs, one.__name__, lambda *given, kind=one, **options: (kind, given, options))
    loading = {"device": "cpu"} | ({"disable_mmap": False} if kind is NestedNERPipeline else {})
    for model in (tmp_path, "owner/name"):
        assert open_pipeline(model, device="cpu") == (kind, (model,), loading)
    monkeypatch.setattr(onnx_graphs, "find_file", None)  # without a configuration, no other file is asked for
    with pytest.raises(OSError, match="owner/none"):
        open_pipeline("owner/none")


def test_predict_with_an_exported_graph_finds_what_the_model_does(exported, monkeypatch, command, tmp_path):
    model, processor, session, folder = exported
    monkeypatch.setattr(onnx_graphs, "open_session", lambda *_: session)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    result = command("predict", "--model", folder, tmp_path / "texts.txt", "--threshold", "0")
    assert result.code == 0
    found = [scores_of(json.loads(line)["entities"]) for line in result.out.splitlines()]
    expected = map(scores_of, NestedNERPipeline(model=model, processor=processor)(TEXTS, threshold=0.0))
    assert found == [pytest.approx(one, abs=1e-4) for one in expected]
    assert [len(entities) > 0 for entities in found] == [True, False, True]
    with pytest.raises(OSError, match=r"no file named model\.safetensors"):
        NestedNERPipeline(str(folder))


@pytest.mark.parametrize("exported", IN_ONNX_RUNTIME, indirect=True)
def test_predictor_in_int8_is_near_the_pipeline(exported, tmp_path):
    model, processor, _, folder = exported
    folder = shutil.copytree(folder, tmp_path / "int8")
    graph = folder / "model.onnx"
    onnx.save(onnx.load(graph), graph, save_as_external_data=True, location="model.onnx.data")  # as of a large model
    onnx_graphs.quantize_onnx(graph)
    assert not (folder / "model.onnx.data").exists()
    expected = NestedNERPipeline(model=model, processor=processor)(TEXTS, threshold=0.0)
    found = pickle.loads(pickle.dumps(OnnxNestedNER(folder)))(TEXTS, threshold=0.0)
    for one, other in zip(map(scores_of, expected), map(scores_of, found), strict=True):
        shared = one.keys() & other.keys()
        assert len(shared) >= len(one) / 3
        assert all(abs(one[key] - other[key]) < 0.15 for key in shared)


# ---- what replaces torch's own operations


@pytest.mark.parametrize("max_width", [None, 1, 3, 9, 1_000_000])  # the square of a million would not fit
@pytest.mark.parametrize("kind", ["rank", "shared rank"])
def test_span_scores_at_once_are_those_of_the_definition(kind, max_width):
    attention, scoring = make_factor((2, 7, 3, 4), kind, 0), make_factor((2, 7, 3, 4), "rank", 1)
    lengths = torch.tensor([7, 4])
    mask = span_mask(lengths, 7, max_width).unsqueeze(1)
    found, expected = (
        score(attention, scoring, lengths, max_width).scores * mask
        for score in (onnx_graphs.span_scores_at_once, span_scores_reference)
    )
    torch.testing.assert_close(found, expected)


def test_the_lstm_computes_as_torchs(tmp_path):
    """Alone, it is exported in seconds."""
    torch.manual_seed(0)
    layer = torch.nn.LSTM(3, 4, batch_first=True)
    values = torch.randn(2, 5, 3)
    torch.onnx.export(onnx_graphs.OnnxLSTM(layer), (values,), tmp_path / "lstm.onnx", dynamo=True, verbose=False)
    (given,) = (session := open_session(tmp_path / "lstm.onnx")).get_inputs()
    found, *_ = run_session(session, {given.name: values}).values()
    np.testing.assert_allclose(found, layer(values)[0].detach().numpy(), rtol=0, atol=1e-6)


def test_predictor_names_the_graph_that_is_missing_or_damaged(encoder, tmp_path):
    tiny_model(encoder).save_pretrained(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"model\.onnx"):
        OnnxNestedNER(tmp_path)
    (tmp_path / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ValueError, match=r"model\.onnx, .* cannot be opened"):
        OnnxNestedNER(tmp_path)
    for options in ({"device": "cuda"}, {"device": 0}, {"dtype": "bfloat16"}):  # also where there is no such GPU
        with pytest.raises(ValueError, match="computes on the CPU in float32"):
            OnnxNestedNER(tmp_path, **options)


def test_models_that_have_no_fast_graph_are_refused(encoder, tmp_path):
    for fields in ({}, {"attention": "linear", "triaffine_rank": 4}, {"subword_pooling": "mean", "triaffine_rank": 4}):
        with pytest.raises(ValueError, match="train with --triaffine_rank 64"):
            export_onnx(tiny_model(encoder, cross_span=False, **fields), tiny_processor(encoder), tmp_path / "m.onnx")


def test_graph_that_computes_something_else_is_refused(encoder, tmp_path, monkeypatch):
    model, processor = tiny_model(encoder, cross_span=False, triaffine_rank=4), tiny_processor(encoder)
    batch = onnx_graphs.example_batch(processor, (13, 1, 9, 13))
    wrong = {"span_logits": model(**batch).span_logits.detach().numpy() + 0.01}
    monkeypatch.setattr(onnx_graphs, "translate", lambda *_: SimpleNamespace(save=Path.touch))
    monkeypatch.setattr(onnx_graphs, "open_session", lambda path: None)
    monkeypatch.setattr(onnx_graphs, "run_session", lambda *_: wrong)
    with pytest.raises(ValueError, match=r"up to 0\.01\d? .*\(bert\)"):
        export_onnx(model, processor, tmp_path / "model.onnx")
