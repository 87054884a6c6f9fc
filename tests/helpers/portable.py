"""What makes numeric tests hold on every machine: results compared within a tolerance, odd addresses, other last bits.

The last bits of a sum depend on the processor, the number of threads and the address of its terms.
"""

from functools import wraps
from typing import Any

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

from modeling_triaffine.model.span_head_triaffine import TriaffineSpanHead

TOLERANCE = 1e-5


def near(value: Any) -> Any:
    """`value`, plain data, with every float replaced by one that equals whatever is near to it."""
    if isinstance(value, float):
        return pytest.approx(value, abs=TOLERANCE)
    if isinstance(value, dict):
        return {key: near(item) for key, item in value.items()}
    if isinstance(value, list):
        return [near(item) for item in value]
    return value


@torch.no_grad()
def move_to_odd_addresses(module: nn.Module) -> nn.Module:
    """Moves every weight to an address that is no multiple of 64 bytes, as that of weights in a file may be."""
    for parameter in module.parameters():
        if parameter.device.type != "cpu":
            continue
        memory = torch.empty(parameter.numel() + 17, dtype=parameter.dtype)
        start = next(n for n in range(1, 17) if (memory.data_ptr() + n * parameter.element_size()) % 64)
        place = memory[start : start + parameter.numel()].view_as(parameter)
        parameter.data = place.copy_(parameter)
        assert parameter.data_ptr() % 64
    return module


def disturb_last_bits() -> None:
    """From now on loaded weights lie at odd addresses, and scores differ in their last bits, but for those of training.

    As if every result came from another machine: a test that passes asks for no more than all machines give.
    """
    load, score = PreTrainedModel.from_pretrained.__func__, TriaffineSpanHead.forward
    generator = torch.Generator().manual_seed(0)

    @wraps(load)
    def load_to_odd_addresses(model_class: type, *arguments: Any, **options: Any) -> Any:
        loaded = load(model_class, *arguments, **options)
        move_to_odd_addresses(loaded[0] if isinstance(loaded, tuple) else loaded)
        return loaded

    @wraps(score)
    def score_on_another_machine(self: TriaffineSpanHead, *arguments: Any, **options: Any) -> Any:
        output = score(self, *arguments, **options)
        if not self.training and not torch.compiler.is_compiling():
            for name in ("span_logits", "logits"):
                values = output.get(name)
                if values is not None and values.device.type == "cpu":
                    noise = torch.rand(values.shape, generator=generator, dtype=torch.float64) - 0.5
                    output[name] = values * (1 + 4 * torch.finfo(values.dtype).eps * noise).to(values.dtype)
        return output

    PreTrainedModel.from_pretrained = classmethod(load_to_odd_addresses)
    TriaffineSpanHead.forward = score_on_another_machine
