"""The package sets its faster operations in its own copy of the model's code; a model's own code has the plain ones."""

import contextlib
from dataclasses import fields

import torch

from modeling_triaffine.acceleration import accelerate
from modeling_triaffine.model.triaffine_blocks import Acceleration


def test_the_package_sets_every_operation_and_without_it_torch_computes_linear_layers():
    fast, plain = Acceleration(), Acceleration()
    accelerate(fast)
    for field in fields(Acceleration):
        assert getattr(fast, field.name).__module__.startswith("modeling_triaffine.acceleration"), field.name
    assert isinstance(plain.linear_layers(torch.nn.Identity()), contextlib.nullcontext)
