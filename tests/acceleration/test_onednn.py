"""Layers in oneDNN: values and gradients are torch's, and other precisions and modes are left to torch."""

import contextlib
import gc
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import linear

from modeling_triaffine.acceleration import onednn
from modeling_triaffine.acceleration.onednn import (
    OneDNNLinear,
    linear_layers,
    multiply_transposed,
    onednn_is_faster,
    run_lstm,
    write_product,
)
from tests.helpers.encoders import enable_checkpointing
from tests.helpers.tiny import tiny_model, tiny_processor

TEXT = "The IL-2 gene binds protein."

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="needs a build of torch with oneDNN"
)


@pytest.fixture
def calls(monkeypatch):
    """Shapes of the inputs that oneDNN multiplied: on any processor, and however small they are."""
    shapes = []

    multiply = onednn._multiply

    def record(values, weight, bias):
        shapes.append(tuple(values.shape))
        return multiply(values, weight, bias)

    monkeypatch.setattr(onednn, "_multiply", record)
    monkeypatch.setattr(onednn, "onednn_is_faster", lambda: True)
    monkeypatch.setattr(onednn, "LEAST_PRODUCTS", 1)
    return shapes


def example(*shape, out=5):
    generator = torch.Generator().manual_seed(0)
    sizes = (shape, (out, shape[-1]), (out,))
    return [torch.randn(*size, generator=generator).requires_grad_() for size in sizes]


@pytest.mark.parametrize("shape", [(7, 3), (2, 7, 3), (2, 1, 4, 3), (1, 1)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_values_and_gradients_of_both_orders(shape, has_bias):
    values, weight, bias = example(*shape)
    inputs = [values, weight, bias] if has_bias else [values, weight]

    def differentiated(function):
        result = function(*inputs) if has_bias else function(*inputs, None)
        first = torch.autograd.grad((result**3).sum(), inputs, create_graph=True)
        return result, *first, *torch.autograd.grad(sum((part**2).sum() for part in first), inputs)

    torch.testing.assert_close(differentiated(OneDNNLinear.apply), differentiated(linear), rtol=1e-4, atol=1e-4)


def test_products_of_matrices(calls, monkeypatch):
    left, right, _ = example(6, 4)
    torch.testing.assert_close(multiply_transposed(left, right), left @ right.T)
    torch.testing.assert_close(multiply_transposed(left, right.T.contiguous().T), left @ right.T)
    assert calls == [(6, 4), (6, 4)]
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)  # a graph keeps torch's own product
    torch.testing.assert_close(multiply_transposed(left, right), left @ right.T)
    monkeypatch.undo()
    monkeypatch.setattr(onednn, "onednn_is_faster", lambda: False)
    torch.testing.assert_close(multiply_transposed(left, right), left @ right.T)
    assert len(calls) == 2


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("largest_piece", [1, 10, 1000, None])
def test_a_product_is_written_in_pieces_or_by_torch(largest_piece, add, calls, monkeypatch):
    if largest_piece is None:
        monkeypatch.setattr(onednn, "onednn_is_faster", lambda: False)
    else:
        monkeypatch.setattr(onednn, "LARGEST_PIECE", largest_piece)
    left, right = torch.randn(6, 9)[:, 2:], torch.randn(6, 5)
    result = torch.randn(7, 5) if add else torch.full((7, 5), torch.nan)
    expected = left.T @ right + (result if add else 0)
    write_product(left, right, result, add)
    torch.testing.assert_close(result, expected)
    assert sum(rows for rows, _ in calls) == (7 if largest_piece else 0)


def test_the_model_computes_the_same(encoder, calls, monkeypatch):
    model = tiny_model(encoder)
    batch = tiny_processor(encoder)(TEXT)

    def scores_and_gradient():
        model.zero_grad()
        scores = model(**batch).span_logits
        scores.square().mean().backward()
        return scores, model.encoder.encoder.layer[0].attention.self.query.weight.grad

    in_onednn = scores_and_gradient()
    layers = len(calls)
    assert layers > 6 * 2  # of two layers of the encoder, forward and backward
    monkeypatch.setattr(onednn, "onednn_is_faster", lambda: False)
    torch.testing.assert_close(in_onednn, scores_and_gradient(), rtol=1e-4, atol=1e-6)
    assert len(calls) == layers


def test_gradient_checkpointing_is_left_to_torch(encoder, calls):
    model = tiny_model(encoder, triaffine_rank=2).train()
    enable_checkpointing(model)
    batch = tiny_processor(encoder)(TEXT)
    calls.clear()  # those of the construction
    model(**batch).span_logits.square().mean().backward()
    assert not calls
    model.eval()(**batch)
    assert calls


class Subclass(torch.Tensor):
    """A tensor with products of its own, such as a quantized one."""


@pytest.mark.parametrize(
    "reason", ["autocast", "bfloat16", "float64", "subclass", "switched off", "small", "traced", "compiled"]
)
@torch.no_grad()
def test_what_is_left_to_torch(calls, monkeypatch, reason):
    layer, values = nn.Linear(4, 5), torch.randn(6, 4)
    expected = layer(values)
    with linear_layers(layer):
        assert layer(values).dtype == torch.float32
    assert len(calls) == 1
    if reason in ("bfloat16", "float64"):
        values, layer = (part.to(getattr(torch, reason)) for part in (values, layer))
    if reason == "subclass":
        layer.weight = nn.Parameter(layer.weight.as_subclass(Subclass))
    if reason == "switched off":
        monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    if reason == "small":
        monkeypatch.setattr(onednn, "LEAST_PRODUCTS", 6 * 4 * 5 + 1)
    if reason == "traced":
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    if reason == "compiled":
        layer = torch.compile(layer, backend="eager")
    with linear_layers(layer), torch.autocast("cpu", torch.bfloat16, reason == "autocast"):
        result = layer(values)
    torch.testing.assert_close(result.float(), expected, rtol=0.1, atol=0.1)
    assert len(calls) == 1


def states(layer, values, by_onednn):
    if isinstance(layer, nn.LSTM):
        return run_lstm(layer, values) if by_onednn else layer(values)[0]
    with linear_layers(layer) if by_onednn else contextlib.nullcontext():
        return layer(values)


CHANGES = {
    "one number": lambda weight: weight[0, 1].add_(1),
    "through data": lambda weight: weight.data.mul_(2),
    "a row through data": lambda weight: weight.data[3].mul_(2),
    "a column through data": lambda weight: weight.data[:, 33].mul_(2),
    "other memory": lambda weight: setattr(weight, "data", weight * 2),
    "an optimizer": lambda weight: torch.optim.SGD([weight], 1.0).step(
        setattr(weight, "grad", torch.ones_like(weight))
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("kind", [nn.Linear, partial(nn.LSTM, batch_first=True)], ids=["linear", "lstm"])
@torch.no_grad()
def test_weights_are_laid_out_once_and_again_after_a_change(kind, change, calls, monkeypatch):
    monkeypatch.setattr(onednn, "_has_lstm", lambda: True)
    layer, laid_out, before, lay_out = kind(40, 50), [], len(onednn._LAID_OUT), onednn._laid_out
    monkeypatch.setattr(onednn, "_laid_out", lambda *given: laid_out.append(lay_out(*given)) or laid_out[-1])
    weights = [weight for weight in layer.parameters() if weight.dim() == 2]
    for weight in [None, *weights]:
        if weight is not None:
            change(weight)
        for shape in ((1, 7, 40), (3, 9, 40)):
            values = torch.randn(shape)
            torch.testing.assert_close(states(layer, values, True), states(layer, values, False))
    assert all(first is second for first, second in zip(laid_out[::2], laid_out[1::2], strict=True))
    assert len({*map(id, laid_out)}) == 1 + len(weights)
    assert len(onednn._LAID_OUT) == before + 1
    del layer, weight, weights
    gc.collect()
    assert len(onednn._LAID_OUT) == before  # what was laid out lives no longer than the layer


def test_an_lstm_with_gradients_or_hooks_is_torchs(monkeypatch):
    monkeypatch.setattr(onednn, "_laid_out", lambda *given: pytest.fail("laid out"))
    lstm, seen = nn.LSTM(3, 4, batch_first=True), []
    run_lstm(lstm, torch.randn(2, 5, 3)).sum().backward()
    assert lstm.weight_hh_l0.grad.any()
    lstm.register_forward_hook(lambda *given: seen.append(given))
    with torch.no_grad():
        run_lstm(lstm, torch.randn(2, 5, 3))
    assert len(seen) == 1
    lstm, given = nn.LSTM(3, 4, batch_first=True), torch.randn(2, 5, 3)
    lstm.forward = lambda values: (values, None)  # as Accelerate, which loads offloaded weights in it
    with torch.no_grad():
        assert run_lstm(lstm, given) is given


@pytest.mark.parametrize(("processor", "expected"), [("AMD EPYC", True), ("Intel Xeon", False), (None, False)])
def test_processors_on_which_it_is_faster(monkeypatch, processor, expected):
    names = {} if processor is None else {"cpu_name": processor}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: names)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    assert onednn_is_faster.__wrapped__() == expected
    for missing in ({"mkl.is_available": False}, {"cpu.get_cpu_capability": "AVX2"}):
        with monkeypatch.context() as patch:
            for name, value in missing.items():
                patch.setattr(f"torch.backends.{name}", lambda value=value: value)
            assert not onednn_is_faster.__wrapped__()


@torch.no_grad()
def test_an_lstm_is_torchs_where_a_trial_fails(monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    drawn = torch.get_rng_state()
    assert onednn._has_lstm.__wrapped__()
    assert torch.equal(torch.get_rng_state(), drawn)
    for found in (lambda *given: torch.zeros(2, 4, 3), lambda *given: torch.ops.mkldnn.of_another_version()):
        monkeypatch.setattr(onednn, "_run_lstm", found)
        assert not onednn._has_lstm.__wrapped__()
