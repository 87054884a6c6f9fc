"""The package sets its faster operations in its own copy of the model's code; a model's own code has the plain ones."""

import contextlib
from dataclasses import fields

import pytest
import torch

from modeling_triaffine.acceleration import accelerate
from modeling_triaffine.model.triaffine_weights import Acceleration

NAMES = [field.name for field in fields(Acceleration)]


@pytest.fixture
def fast():
    """The operations of the package."""
    operations = Acceleration()
    accelerate(operations)
    return operations


@pytest.mark.parametrize("name", NAMES)
def test_the_package_sets_every_operation(fast, name):
    assert getattr(fast, name).__module__.startswith("modeling_triaffine.acceleration")


@pytest.fixture
def plain():
    """The operations of the code beside a model."""
    return Acceleration()


def test_contractions_are_the_same_with_and_without_the_package(plain, fast):
    generator = torch.Generator().manual_seed(0)
    tensor, insides, heads = (
        torch.randn(shape, generator=generator) for shape in ((2, 64, 65, 65), (90, 64), (90, 65))
    )
    exact = torch.einsum("nc,cae->nae", insides.double(), tensor[1].double())
    exact_pairs = torch.einsum("rcae,na,ne->rnc", tensor.double(), heads.double(), heads.flip(0).double())
    for operations in (plain, fast):
        weight = operations.full_weight(tensor)
        found = weight.contract_words(insides, slice(1, 2)).squeeze(2), weight.contract_pairs(heads, heads.flip(0))
        for one, other in zip(found, (exact, exact_pairs), strict=True):  # libraries differ in the order of sums
            assert (one - other).abs().max() <= 1e-5 * other.abs().max()


def test_without_the_package_torch_computes_linear_layers(plain):
    assert isinstance(plain.linear_layers(torch.nn.Identity()), contextlib.nullcontext)
