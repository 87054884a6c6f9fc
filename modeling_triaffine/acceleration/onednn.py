"""Layers in float32 by oneDNN, which is part of torch: products of matrices on some processors, and weights of LSTMs.

MKL, torch's default for products, uses AVX-512 on Intel's processors only. oneDNN uses it on AMD's as well: large
products take 0.4 to 0.5 of the time. On AMD's processors with AVX2 alone MKL is faster (0.85 to 0.95 of oneDNN's time).

oneDNN reads weights in layouts of its own. In prediction they are laid out once: in each call, as torch does for LSTMs,
it takes up to a sixth of the time of a single text.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import cache
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from ..model.triaffine_blocks import is_plain

# Multiplications below which it takes longer to prepare oneDNN for a new shape than it saves.
LEAST_PRODUCTS = 2**22
# Most numbers of a product that is written to given memory; larger ones are computed in pieces. oneDNN writes to new
# memory, and glibc returns blocks of over 32 MB to the system: to get them again takes longer than oneDNN saves.
LARGEST_PIECE = 2**22
# Most rows of a product whose weight is laid out before: with more, the layout takes little of the time.
MOST_ROWS = 256
LSTM = 2  # torch's number of it among recurrent networks

_LAID_OUT: Any = WeakIdKeyDictionary()  # first weight of a layer → its layout, and what shows that no weight changed


def linear_layers(module: nn.Module) -> contextlib.AbstractContextManager[Any]:
    """Computes the module's linear layers by oneDNN inside the block, if it is faster on this processor.

    `torch.backends.mkldnn.enabled = False` switches it off. Layers under autocast, on other devices or of other types
    than float32 are left to torch. So is a compiled module, and one that recomputes activations in the backward pass,
    outside the block: both passes must keep the same tensors.
    """
    recomputes = module.training and any(getattr(part, "gradient_checkpointing", False) for part in module.modules())
    compiled = module._compiled_call_impl is not None or hasattr(module, "_orig_mod")
    left = recomputes or compiled or not _is_wanted()
    return contextlib.nullcontext() if left else _computing_by_onednn(module)


@contextlib.contextmanager
def _computing_by_onednn(module: nn.Module) -> Iterator[None]:
    # A mode that sees all of torch's functions would take a thirtieth of the time of a single text.
    layers = [part for part in module.modules() if type(part) is nn.Linear and "forward" not in part.__dict__]
    for layer in layers:
        layer.__dict__["forward"] = MethodType(_run_linear, layer)
    try:
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)  # another thread, which runs the same model, may have been here


def _run_linear(layer: nn.Linear, values: Tensor) -> Tensor:
    parts = values, layer.weight, layer.bias
    return _linear(*parts) if _is_for_onednn(*parts) else nn.Linear.forward(layer, values)


def run_lstm(lstm: Any, values: Tensor) -> Tensor:
    """States [B, N, size] of an LSTM of one layer and direction, as torch computes them on a CPU."""
    if not is_plain(lstm, nn.LSTM) or torch.is_grad_enabled() or _is_traced():
        return lstm(values)[0]
    by_onednn = _can_compute(values, lstm.weight_ih_l0, lstm.weight_hh_l0) and _has_lstm()
    return _run_lstm(lstm, values) if by_onednn else lstm(values)[0]


def _run_lstm(lstm: Any, values: Tensor) -> Tensor:
    size, start = lstm.hidden_size, values.new_zeros(len(values), lstm.hidden_size)
    weights = _laid_out(_lay_out_lstm, lstm.weight_ih_l0, lstm.weight_hh_l0)
    parts = *weights, lstm.bias_ih_l0, lstm.bias_hh_l0, start, start
    options: Any = False, [], LSTM, size, 1, True, False, False, False
    return torch.ops.aten.mkldnn_rnn_layer(values.transpose(0, 1).contiguous(), *parts, *options)[0].transpose(0, 1)


def multiply_transposed(left: Tensor, right: Tensor) -> Tensor:
    """left · rightᵀ, [n, k] and [m, k] → [n, m], by oneDNN if it is faster; neither matrix is copied."""
    if _is_wanted() and _is_for_onednn(left, right):
        return _linear(left, right, None)
    return left @ right.mT


def write_product(left: Tensor, right: Tensor, result: Tensor, add: bool) -> None:
    """Writes leftᵀ · right, [n, m] and [n, k] → [m, k], to `result`, or adds it, by oneDNN if it is faster."""
    if not (_is_wanted() and _is_for_onednn(left.mT, right.mT)):
        torch.addmm(result, left.mT, right, beta=1 if add else 0, out=result)
        return
    rows = max(1, LARGEST_PIECE // right.shape[1])
    for piece, part in zip(left.split(rows, dim=1), result.split(rows), strict=True):
        product = _linear(piece.mT, right.mT, None)
        part.add_(product) if add else part.copy_(product)


@cache
def onednn_is_faster() -> bool:
    """True if oneDNN multiplies float32 faster than what torch uses by default on this processor."""
    mkl_and_onednn = torch.backends.mkl.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    has_avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
    processor: Any = torch.cpu.get_capabilities().get("cpu_name", "")  # such as "AMD EPYC"
    return mkl_and_onednn and has_avx512 and processor.startswith("AMD")


def _is_wanted() -> bool:
    """True if oneDNN is faster here and nothing traces the model."""
    return not _is_traced() and onednn_is_faster()


def _is_traced() -> bool:
    """True if the model is traced: a graph must consist of torch's usual operations."""
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


@cache
def _has_lstm() -> bool:
    """True if torch computes LSTMs by oneDNN on this processor, with weights that are laid out; tried once."""
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        return False
    lstm = nn.LSTM(2, 3, batch_first=True, device="meta").to_empty(device="cpu")  # without random numbers
    for number, weight in enumerate(lstm.parameters(), 1):
        weight.copy_(torch.arange(weight.numel()).view_as(weight) / (10 * number))
    values = torch.ones(2, 4, 2)
    try:
        return torch.allclose(_run_lstm(lstm, values), lstm(values)[0])
    except (AttributeError, RuntimeError):  # another version of torch
        return False


def _is_for_onednn(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    """True if oneDNN can compute this linear layer, and it is large enough to gain from that."""
    is_large = values.dim() > 1 and values.numel() * len(weight) >= LEAST_PRODUCTS
    return is_large and _can_compute(values, weight, *(() if bias is None else (bias,)))


def _can_compute(*parts: Tensor) -> bool:
    """True if oneDNN may compute with these tensors."""
    return (
        # Subclasses, such as quantized weights, bring products of their own.
        all(type(part) in (Tensor, nn.Parameter) and part.dtype == torch.float32 for part in parts)
        and parts[0].device.type == "cpu"
        and torch._C._get_mkldnn_enabled()
        and not torch.is_autocast_enabled("cpu")
    )


def _linear(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if torch.is_grad_enabled():
        multiply: Any = OneDNNLinear.apply
        return multiply(values, weight, bias)
    if type(weight) is nn.Parameter and values.numel() <= MOST_ROWS * weight.shape[1]:
        weight = _laid_out(torch.ops.mkldnn._reorder_linear_weight, weight)
    # `apply` inspects signatures at every call: a twentieth of the time of a single text.
    return _multiply(values, weight, bias)


def _laid_out(lay_out: Callable[..., Any], *weights: Tensor) -> Any:
    """The result of `lay_out` for the weights of a layer, computed again after they have changed.

    Writing to `weight.data` changes neither address nor version, so that some of each row and column are compared, too.
    """
    state = [(weight.data_ptr(), None if weight.is_inference() else weight._version) for weight in weights]
    known = _LAID_OUT.get(weights[0])
    if known is None or known[0] != state or not all(map(torch.equal, known[1], known[2])):
        given = [weight.detach() for weight in weights]
        sampled = [_sample(weight) for weight in given]
        known = _LAID_OUT[weights[0]] = state, sampled, [part.clone() for part in sampled], lay_out(*given)
    return known[3]


def _sample(weight: Tensor) -> Tensor:
    """A view of at least one value of each row and of each column of a weight [n, m]: of about max(n, m) in all."""
    columns = weight.shape[1]
    step = next(step for step in range(min(weight.shape), 0, -1) if math.gcd(step, columns) == 1)
    return weight.as_strided((-(-weight.numel() // step),), (step,))


def _lay_out_lstm(weight: Tensor, recurrent_weight: Tensor) -> list[Tensor]:
    reorder = torch.ops.mkldnn._reorder_mkldnn_rnn_layer_weight
    return reorder(weight, recurrent_weight, recurrent_weight.shape[1], False, True, False, None)


def _multiply(values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(values, weight, bias, "none", [], "")


class OneDNNLinear(torch.autograd.Function):
    """x Wᵀ + b by oneDNN, with gradients: x [..., in], W [out, in], b [out] or None → [..., out], all in float32."""

    @staticmethod
    def forward(values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _multiply(values, weight, bias)

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
        context.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        values, weight = context.saved_tensors
        (gradient,) = gradients
        rows = gradient.flatten(0, -2)
        of_values, of_weight, of_bias = context.needs_input_grad
        return (
            OneDNNLinear.apply(gradient, weight.T, None) if of_values else None,
            OneDNNLinear.apply(rows.T, values.flatten(0, -2).T, None) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )
