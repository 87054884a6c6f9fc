"""Linear layers in oneDNN: values and gradients are torch's, and other precisions and modes are left to torch."""

import pytest
import torch
from torch.nn.functional import linear

from modeling_triaffine.acceleration import onednn
from modeling_triaffine.acceleration.onednn import (
    OneDNNLinear,
    linear_layers,
    multiply_transposed,
    onednn_is_faster,
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


@pytest.mark.parametrize("reason", ["autocast", "bfloat16", "float64", "subclass", "switched off", "small", "compiled"])
def test_what_is_left_to_torch(calls, monkeypatch, reason):
    values, weight, bias = (part.detach() for part in example(6, 4))
    expected = linear(values, weight, bias)
    with linear_layers(torch.nn.Identity()):
        assert linear(values, weight, bias).dtype == torch.float32
    assert len(calls) == 1
    if reason in ("bfloat16", "float64"):
        values, weight, bias = (part.to(getattr(torch, reason)) for part in (values, weight, bias))
    if reason == "subclass":
        weight = weight.as_subclass(Subclass)
    if reason == "switched off":
        monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    if reason == "small":
        monkeypatch.setattr(onednn, "LEAST_PRODUCTS", 6 * 4 * 5 + 1)
    if reason == "compiled":
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    with linear_layers(torch.nn.Identity()), torch.autocast("cpu", torch.bfloat16, reason == "autocast"):
        result = linear(values, weight, bias)
    torch.testing.assert_close(result.float(), expected, rtol=0.1, atol=0.1)
    assert len(calls) == 1


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
