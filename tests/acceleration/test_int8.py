"""The encoder in int8: which layers are quantized, how close they stay, what is refused."""

import copy
import pickle
import shutil
import sys
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.acceleration.int8 import QuantizedLinear
from tests.helpers.portable import near
from tests.helpers.tiny import tiny_model, tiny_processor

pytest.importorskip("onnxruntime", reason="needs the extra onnx")

TEXT = "The IL-2 gene binds protein. It is DNA! No gene here."


@pytest.fixture(scope="module")
def model(encoder):
    return tiny_model(encoder)


@pytest.fixture(scope="module")
def finder(encoder, model):
    return NestedNERPipeline(model=model, processor=tiny_processor(encoder), quantize="int8")


def linear_layers(module, kind):
    return [layer for layer in module.modules() if type(layer) is kind]


def test_the_encoder_is_quantized_and_nothing_else(finder, model):
    quantized = linear_layers(finder.model.encoder, QuantizedLinear)
    assert len(quantized) == len(linear_layers(model.encoder, nn.Linear)) > 0
    assert not linear_layers(finder.model.encoder, nn.Linear)
    assert linear_layers(finder.model, QuantizedLinear) == quantized


def test_entities_are_nearly_those_of_float32(finder, model, encoder):
    exact = NestedNERPipeline(model=model, processor=tiny_processor(encoder))(TEXT, threshold=0.0)
    found = {(e["start"], e["end"], e["entity_group"]): e["score"] for e in finder(TEXT, threshold=0.0)}
    shared = [(e["score"], found[key]) for e in exact if (key := (e["start"], e["end"], e["entity_group"])) in found]
    assert len(shared) > len(exact) / 2
    assert max(abs(one - other) for one, other in shared) < 0.1


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5, 64), (2, 3, 64), (1, 64)], ids=str)
def test_a_quantized_layer_is_within_the_rounding_error(shape, bias):
    torch.manual_seed(0)
    layer = nn.Linear(64, 32, bias=bias)
    with torch.no_grad():
        layer.weight[3] = 0  # a row without a scale
        layer.weight[4] *= 100  # scales are of each output
        values = 3 * torch.randn(shape)
        expected, found = layer(values), QuantizedLinear(layer)(values)
    assert found.shape == expected.shape
    assert found.dtype == torch.float32
    error = (found - expected).abs().flatten(0, -2).amax(0)
    assert (error < 0.1 * layer.weight.norm(dim=1) + 1e-5).all()


@pytest.mark.parametrize("rows", [100, 201])
def test_threads_share_the_rows(rows, two_threads):
    torch.manual_seed(0)
    layer = nn.Linear(16, 8)
    values = torch.randn(rows, 16)
    assert (layer(values) - QuantizedLinear(layer)(values)).abs().max() < 0.05


def test_a_row_of_zeros_stays_one_without_a_warning():
    layer = nn.Linear(4, 2)
    nn.init.zeros_(layer.weight)
    with warnings.catch_warnings(action="error"):
        result = QuantizedLinear(layer)(torch.randn(3, 4))
    assert torch.allclose(result, layer.bias.expand(3, 2))


def test_several_quantized_models_and_other_users_of_onnxruntime_work_in_one_process(model, encoder):
    import onnxruntime

    from modeling_triaffine.acceleration.int8 import _graph

    for _ in range(2):
        NestedNERPipeline(model=model, processor=tiny_processor(encoder), quantize="int8")
    onnxruntime.InferenceSession(_graph(np.ones((2, 3), np.float32), None), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(("keywords", "fact"), [({"quantize": "nonesuch"}, "int8"), ({"device": "cuda"}, "cuda")])
def test_what_cannot_be_quantized_is_refused(model, encoder, keywords, fact):
    with pytest.raises(ValueError, match=fact):
        NestedNERPipeline(model=model, processor=tiny_processor(encoder), **{"quantize": "int8", **keywords})


def test_without_onnxruntime_the_extra_is_named(model, encoder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"\[onnx\]"):
        NestedNERPipeline(model=model, processor=tiny_processor(encoder), quantize="int8")


@pytest.mark.parametrize("again", [lambda layer: layer, copy.deepcopy])
def test_layers_keep_no_memory_of_their_largest_batch(again):
    layer = again(QuantizedLinear(nn.Linear(16, 8)))
    assert not layer.session.get_session_options().enable_cpu_mem_arena


@pytest.mark.parametrize("again", [copy.deepcopy, lambda pipeline: pickle.loads(pickle.dumps(pipeline))])
def test_copies_and_other_processes_find_the_same(finder, again):
    assert again(finder)(TEXT, threshold=0.0) == near(finder(TEXT, threshold=0.0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_all_but_the_quantized_layers_can_be_cast(finder, dtype):
    cast = copy.deepcopy(finder)
    cast.model.to(dtype)
    assert cast(TEXT, threshold=0.0)


def test_a_quantized_model_is_not_saved(finder, saved_model, tmp_path):
    with pytest.raises(ValueError, match="int8"):
        finder.save_pretrained(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    shutil.copytree(saved_model, tmp_path, dirs_exist_ok=True)
    with pytest.raises(ValueError, match="int8"):  # it would have no encoder
        finder.model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == (saved_model / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", ["predict", "evaluate", "serve"])
def test_int8_and_bfloat16_exclude_each_other(command, saved_model, name):
    result = command(name, "--model", saved_model, "--int8", "--bf16", *(["corpus"] if name == "evaluate" else []))
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "`dtype` is bfloat16" in result.err
    assert "int8" in result.err
