"""The package sets its faster operations in its own copy of the model's code; a model's own code has the plain ones."""

import contextlib
from dataclasses import fields

import pytest
import torch

from modeling_triaffine.model.triaffine_weights import ACCELERATION, Acceleration

NAMES = [field.name for field in fields(Acceleration)]


@pytest.mark.parametrize("name", NAMES)
def test_the_package_sets_every_operation(name):
    assert getattr(ACCELERATION, name).__module__.startswith("modeling_triaffine.acceleration")


@pytest.fixture
def plain():
    """The operations of the code beside a model."""
    return Acceleration()


def test_contractions_are_the_same_with_and_without_the_package(plain):
    generator = torch.Generator().manual_seed(0)
    tensor, insides, heads = (
        torch.randn(shape, generator=generator) for shape in ((2, 64, 65, 65), (90, 64), (90, 65))
    )
    found = [
        [weight.contract_words(insides, 1), weight.contract_pairs(heads, heads.flip(0))]
        for weight in (operations.full_weight(tensor) for operations in (plain, ACCELERATION))
    ]
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found[0][0], torch.einsum("nc,cae->nae", insides, tensor[1]), rtol=1e-4, atol=1e-4)


def test_without_the_package_there_are_no_kernels_and_no_int8(plain):
    assert isinstance(plain.linear_layers(torch.nn.Identity()), contextlib.nullcontext)
    with pytest.raises(ImportError, match=r"pip install 'modeling_triaffine\[onnx\]', and import modeling_triaffine"):
        plain.find_quantizer("int8", None, None)
