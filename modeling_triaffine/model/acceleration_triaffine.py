"""Operations that the package, where it is imported, replaces by faster ones with the same numbers.

The other files call those of `ACCELERATION`: here torch's own, in the package those of its folder `acceleration`, which
it sets when it registers the model with transformers.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor, nn


def _plain_layers(module: nn.Module) -> contextlib.AbstractContextManager[Any]:
    return contextlib.nullcontext()


def _multiply_transposed(left: Tensor, right: Tensor) -> Tensor:
    return left @ right.mT


def _write_product(left: Tensor, right: Tensor, result: Tensor, add: bool) -> None:
    torch.addmm(result, left.mT, right, beta=1 if add else 0, out=result)


def _no_kernels(device: torch.device) -> None:
    return None


def _no_quantizer(choice: str) -> NoReturn:
    raise ImportError(
        f"`quantize` is {choice!r}, but the code saved with a model computes in floating point only. Install the "
        "package, pip install 'modeling_triaffine[onnx]', and import modeling_triaffine before the model is loaded."
    )


@dataclass
class Acceleration:
    """Operations with a plain form here and, on some machines, a faster one in the package.

    Attributes:
        linear_layers: (module) → a context for a call of the module, whose linear layers are then faster.
        multiply_transposed: left · rightᵀ, [n, k] and [m, k] → [n, m].
        write_product: (left, right, result, add) writes leftᵀ · right, [n, m] and [n, k] → [m, k], to `result`, or adds
            it to what is there.
        span_kernels: (device) → a function of plan, attention and scoring that returns the p of [`attend_inside`]; None
            if there is none for the device.
        find_quantizer: (choice) → a function that quantizes the linear layers of a module in place; ValueError for an
            unknown choice, ImportError if what it needs is not installed.
    """

    linear_layers: Callable[[nn.Module], contextlib.AbstractContextManager[Any]] = _plain_layers
    multiply_transposed: Callable[[Tensor, Tensor], Tensor] = _multiply_transposed
    write_product: Callable[[Tensor, Tensor, Tensor, bool], None] = _write_product
    span_kernels: Callable[[torch.device], Callable[..., Tensor] | None] = _no_kernels
    find_quantizer: Callable[[str], Callable[[nn.Module], None]] = _no_quantizer


ACCELERATION = Acceleration()


def multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for products of bfloat16; without them, float32 is many times as fast."""
    if hasattr(torch.cpu, "get_capabilities"):
        has: Any = torch.cpu.get_capabilities()
        return any(has.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))  # the last one: ARM's
    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", bool)())  # earlier versions of torch
