"""Contractions with full tensors: where their gradients go, and who may ask for them."""

import pytest
import torch

from modeling_triaffine.acceleration import full_tensors
from modeling_triaffine.acceleration.full_tensors import buffered_weight
from modeling_triaffine.model.triaffine_blocks import FullWeight
from tests.model.test_span_head import make_head, random_labels

WORDS = torch.arange(15, dtype=torch.double).view(5, 3).cos()
PAIRS = torch.arange(8, dtype=torch.double).view(2, 4).sin()
ONE_WORD, ONE_PAIR = torch.ones(1, 3, dtype=torch.double), torch.ones(1, 4, dtype=torch.double)


def make_weight():
    torch.manual_seed(0)
    parameter = torch.nn.Parameter(torch.randn(2, 3, 4, 4, dtype=torch.double))
    return parameter, buffered_weight(parameter)


def loss_of(weight, at_once=1):
    labels = [slice(first, first + at_once) for first in range(0, 2, at_once)]
    pairs = weight.pad(PAIRS), weight.pad(PAIRS.flip(0))
    contracted = [weight.contract_words(WORDS, some).square().sum() for some in labels]
    return torch.stack(contracted).sum() + weight.contract_pairs(*pairs).square().sum()


def expected_gradient(parameter):
    contracted = torch.einsum("nc,rcae->nrae", WORDS, parameter)
    spans = torch.einsum("na,ne,rcae->rnc", PAIRS, PAIRS.flip(0), parameter)
    return torch.autograd.grad(contracted.square().sum() + spans.square().sum(), parameter)[0]


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("form", [FullWeight, buffered_weight], ids=["plain", "buffered"])
def test_gradients_of_all_contractions_arrive_and_accumulate(form, at_once):
    parameter, _ = make_weight()
    expected = expected_gradient(parameter)
    for times in (1, 2):
        loss_of(form(parameter), at_once).backward()
        torch.testing.assert_close(parameter.grad, times * expected)


@pytest.mark.parametrize(
    ("made", "of_labels"),
    [([1], (0, 1)), ([0, None], (2, 1)), ([None, 0], (2, 1))],
    ids=["no contraction of a label", "pairs first", "words first"],
)
def test_contractions_of_a_single_label_beside_those_of_all(made, of_labels):
    """Of words by their label, of pairs by None; what is made last comes first in the backward pass."""
    parameter, weight = make_weight()
    parts = [
        weight.contract_pairs(ONE_PAIR, ONE_PAIR)
        if label is None
        else weight.contract_words(ONE_WORD, slice(label, label + 1))
        for label in made
    ]
    sum(part.sum() for part in parts).backward()
    for gradient, expected in zip(parameter.grad, of_labels, strict=True):
        assert (gradient == expected).all()


def test_gradients_left_by_a_partial_backward_are_forgotten():
    parameter, weight = make_weight()
    words = ONE_WORD.clone().requires_grad_()
    loss = weight.contract_words(words, slice(0, 1)).sum()
    torch.autograd.grad(loss, words, retain_graph=True)
    loss.backward()
    assert (parameter.grad[0] == 1).all()


def test_gradient_of_a_tensor_that_is_computed():
    scale = torch.ones((), dtype=torch.double, requires_grad=True)
    parameter, _ = make_weight()
    loss = loss_of(buffered_weight(scale * parameter))
    loss.backward()
    torch.testing.assert_close(scale.grad, (parameter * expected_gradient(parameter)).sum())


def test_frozen_tensor():
    parameter, _ = make_weight()
    weight = buffered_weight(parameter.requires_grad_(False))
    words = ONE_WORD.clone().requires_grad_()
    weight.contract_words(words, slice(0, 1)).sum().backward()
    torch.testing.assert_close(words.grad, parameter[0].sum((1, 2)).view(1, 3))
    assert parameter.grad is None


@pytest.mark.parametrize("at_once", [1, 2])
def test_padding_for_tensor_cores_changes_nothing(monkeypatch, at_once):
    """As on CUDA, a and e are padded to whole multiples, and labels copied together, here on the CPU."""
    expected_parameter, weight = make_weight()
    loss_of(weight).backward()
    monkeypatch.setattr(full_tensors, "_padding", lambda values: -values.shape[-1] % 8)
    monkeypatch.setattr(full_tensors, "_labels_at_once", lambda *_: at_once)
    parameter, weight = make_weight()
    assert weight.pad(PAIRS).shape == (2, 8)
    assert weight.contract_words(WORDS, slice(0, at_once)).shape == (5, 8, at_once, 8)
    loss_of(weight, at_once).backward()
    torch.testing.assert_close(parameter.grad, expected_parameter.grad)


@pytest.mark.parametrize("shares", [True, False])
def test_head_that_recomputes_everything_gives_the_same_gradients(shares, monkeypatch):
    def gradients(kept_share):
        monkeypatch.setattr(full_tensors, "KEPT_SHARE", kept_share)
        head, hidden, lengths = make_head(share_triaffine=shares)
        labels = random_labels(lengths, 4, hidden.shape[1])
        for _ in range(2):
            head(hidden, lengths, labels).loss.backward()
        return {name: value.grad for name, value in head.named_parameters()}

    torch.testing.assert_close(gradients(0), gradients(full_tensors.KEPT_SHARE))
