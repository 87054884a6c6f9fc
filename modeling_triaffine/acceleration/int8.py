"""The encoder's linear layers in int8 on the CPU.

ONNX Runtime multiplies, and everything else stays in float32. Weights are rounded once, with a scale per
output; activations at every call, with a scale for each part that a thread multiplies ("dynamic quantization"). No
calibration or export: any checkpoint can be quantized when it is loaded.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import importing_extra

CHOICES = ("int8",)
# Weights use 7 of the 8 bits: processors without VNNI add two products of 8 bits in 16 bits, which would overflow.
LARGEST = 63
# Below so many rows, a second thread takes longer to start than it saves.
LEAST_ROWS = 64


def find_quantizer(choice: str, dtype: Any, device: Any) -> Callable[[Any], Any]:
    """A function that quantizes the encoder of a model in place, and returns the model.

    Raises ValueError for another choice, dtype or device, ImportError if ONNX Runtime is missing.
    """
    if choice not in CHOICES:
        raise ValueError(
            f"`quantize` is {choice!r}; choose {', '.join(map(repr, CHOICES))}, or None for no quantization."
        )
    require_float32(dtype, f'beside its int8 layers, quantize="{choice}"')
    require_cpu(device, f'quantize="{choice}"')
    _import_onnx()
    return _quantize_encoder


def _quantize_encoder(model: Any) -> Any:
    model.float().cpu()
    quantize_linear_layers(model.encoder)
    return model


def require_cpu(device: Any, what: str) -> None:
    """Raises ValueError if `device` is another one than the CPU, where `what` computes."""
    if device not in (None, -1) and torch.device("cuda" if isinstance(device, int) else device).type != "cpu":
        raise ValueError(f"`device` is {device!r}, but {what} computes on the CPU; leave `device` out.")


def require_float32(dtype: Any, what: str) -> None:
    """Raises ValueError if `dtype` is another one than float32, in which `what` computes."""
    if dtype not in (None, "auto", "float32", torch.float32):
        raise ValueError(f"`dtype` is {dtype}, but {what} computes in float32; leave `dtype` (--bf16) out.")


def _import_onnx() -> tuple[Any, Any]:
    """The modules onnxruntime and onnx, imported for quantized models only."""
    with importing_extra("onnx", "Quantizing to int8 needs ONNX Runtime"):
        import onnx
        import onnxruntime
    return onnxruntime, onnx


def quantize_linear_layers(module: nn.Module) -> None:
    """Replaces every `nn.Linear` inside `module`, which is on the CPU, by a [`QuantizedLinear`].

    Raises:
        ValueError: adapters of PEFT are beside the layers, and read their weights.
    """
    if hasattr(module, "merge_and_unload"):
        raise ValueError(
            "The encoder has PEFT adapters, and its layers cannot be quantized next to them. Merge the adapters first: "
            "model.encoder = model.encoder.merge_and_unload()."
        )
    for parent in list(module.modules()):
        for name, layer in parent.named_children():
            if type(layer) is nn.Linear:
                setattr(parent, name, QuantizedLinear(layer))


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    """Threads shared by all layers of a process; ONNX Runtime would start its own for each layer."""
    return ThreadPoolExecutor(os.cpu_count())


class QuantizedLinear(nn.Module):
    """A linear layer x Wᵀ + b with W and x in int8, sums in int32 and b in float32; without gradients.

    It can be copied and pickled, as `Dataset.map(num_proc=…)` does, but has no weights to save.
    """

    def __init__(self, layer: nn.Linear):
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.graph = _graph(
            *(None if part is None else part.detach().float().numpy() for part in (layer.weight, layer.bias))
        )
        self.session = _open_session(self.graph)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.session = _open_session(self.graph)

    def _save_to_state_dict(self, *arguments: Any) -> None:
        raise ValueError("A model quantized to int8 cannot be saved; save it before you quantize it.")

    def forward(self, values: Tensor) -> Tensor:
        """values [..., in] → [..., out], in the precision of the values."""
        rows = values.detach().float().reshape(-1, self.in_features).contiguous()
        parts = rows.split(max(-(-len(rows) // torch.get_num_threads()), LEAST_ROWS))
        results = _threads(os.getpid()).map(self._multiply, parts) if parts[1:] else map(self._multiply, parts)
        return torch.cat(list(results)).view(*values.shape[:-1], self.out_features).to(values.dtype)

    def _multiply(self, rows: Tensor) -> Tensor:
        (result,) = self.session.run(None, {"x": rows.numpy()})
        return torch.from_numpy(result)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


def _open_session(graph: bytes) -> Any:
    onnxruntime, _ = _import_onnx()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    # The arena of each layer would keep the memory of its largest batch.
    options.enable_cpu_mem_arena = False
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _graph(weight: np.ndarray, bias: np.ndarray | None) -> bytes:
    """The layer of weight [out, in] and bias [out] as an ONNX model, x [rows, in] → y [rows, out]."""
    _, onnx = _import_onnx()
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    scale = np.abs(weight).max(axis=1) / LARGEST
    scale[scale == 0] = 1
    constants = {
        "weight": np.rint(weight / scale[:, None]).astype(np.int8).T.copy(),
        "weight_zero": np.zeros(len(weight), dtype=np.int8),
        "weight_scale": scale.astype(np.float32),
        "bias": np.zeros_like(scale) if bias is None else bias,
    }
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["quantized", "x_scale", "x_zero"]),
        helper.make_node("MatMulInteger", ["quantized", "weight", "x_zero", "weight_zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["products"], to=float32),
        helper.make_node("Mul", ["x_scale", "weight_scale"], ["scale"]),
        helper.make_node("Mul", ["products", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["y"]),
    ]
    size = {"x": weight.shape[1], "y": weight.shape[0]}
    given, result = ([helper.make_tensor_value_info(name, float32, ["rows", size[name]])] for name in ("x", "y"))
    initializers = [onnx.numpy_helper.from_array(values, name) for name, values in constants.items()]
    graph = helper.make_graph(nodes, "linear", given, result, initializers)
    # Old versions, which every ONNX Runtime reads; the installed `onnx` may default to newer ones.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    serialized: Any = model.SerializeToString()
    return bytes(serialized)
