"""The package sets its faster operations in its own copy of the model's code; a model's own code has the plain ones."""

import contextlib
import importlib.util
from dataclasses import fields

import pytest
import torch

from modeling_triaffine.model import triaffine_weights
from modeling_triaffine.model.triaffine_weights import ACCELERATION, Acceleration

NAMES = [field.name for field in fields(Acceleration)]


@pytest.mark.parametrize("name", NAMES)
def test_the_package_sets_every_operation(name):
    assert getattr(ACCELERATION, name).__module__.startswith("modeling_triaffine.acceleration")


@pytest.fixture
def plain():
    """The operations of another copy of the file, such as the one beside a model."""
    spec = importlib.util.spec_from_file_location("copied", triaffine_weights.__file__)
    copied = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copied)
    return copied.ACCELERATION


@pytest.mark.parametrize("add", [False, True])
def test_products_are_the_same_with_and_without_the_package(plain, add):
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(200, 300, generator=generator) for _ in range(2))
    results = []
    for operations in (plain, ACCELERATION):
        result = torch.ones(300, 300)
        operations.write_product(left, right, result, add)
        results.append([operations.multiply_transposed(left, right), result])
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(results[0], [left @ right.T, left.T @ right + (1.0 if add else 0.0)])


def test_without_the_package_there_are_no_kernels_and_no_int8(plain):
    assert plain.span_kernels(torch.device("cuda"), False) is None
    assert isinstance(plain.linear_layers(torch.nn.Identity()), contextlib.nullcontext)
    with pytest.raises(ImportError, match=r"pip install 'modeling_triaffine\[onnx\]', and import modeling_triaffine"):
        plain.find_quantizer("int8", None, None)
