"""Products of matrices in float32 by oneDNN on AMD's processors with AVX-512, of which torch's default, MKL, uses half.

MKL uses AVX-512 on Intel's processors only. oneDNN, which is part of torch as well, uses it on all of them: large
products take 0.4 to 0.5 of the time. On AMD's processors with AVX2 alone MKL is faster (0.85 to 0.95 of oneDNN's time).
"""

import contextlib
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

# Multiplications below which it takes longer to prepare oneDNN for a new shape than it saves.
LEAST_PRODUCTS = 2**22
# Most numbers of a product that is written to given memory; larger ones are computed in pieces. oneDNN writes to new
# memory, and glibc returns blocks of over 32 MB to the system: to get them again takes longer than oneDNN saves.
LARGEST_PIECE = 2**22


def linear_layers(module: nn.Module) -> contextlib.AbstractContextManager[Any]:
    """Computes linear layers by oneDNN inside the block, if it is faster on this processor.

    `torch.backends.mkldnn.enabled = False` switches it off. Layers under autocast, on other devices or of other types
    than float32 are left to torch. So is a module that recomputes activations in the backward pass, outside the block:
    both passes must keep the same tensors.
    """
    recomputes = module.training and any(getattr(part, "gradient_checkpointing", False) for part in module.modules())
    left = recomputes or not _is_wanted()
    return contextlib.nullcontext() if left else _OneDNNMode()


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
    """True if oneDNN is faster here and nothing traces the model: a graph must consist of torch's usual operations."""
    traced = torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None
    return not traced and onednn_is_faster()


class _OneDNNMode(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is linear and not kwargs and _is_for_onednn(*args):
            return _linear(*args)
        return function(*args, **(kwargs or {}))


def _is_for_onednn(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    """True if oneDNN can compute this linear layer, and it is large enough to gain from that."""
    parts = (values, weight) if bias is None else (values, weight, bias)
    return (
        values.device.type == "cpu"
        and values.dim() > 1
        # Subclasses, such as quantized weights, bring products of their own.
        and all(type(part) in (Tensor, nn.Parameter) and part.dtype == torch.float32 for part in parts)
        and values.numel() * len(weight) >= LEAST_PRODUCTS
        and torch._C._get_mkldnn_enabled()
        and not torch.is_autocast_enabled("cpu")
    )


def _linear(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    # `apply` inspects signatures at every call: a twentieth of the time of a single text.
    multiply: Any = OneDNNLinear.apply if torch.is_grad_enabled() else _multiply
    return multiply(values, weight, bias)


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
