"""The benchmarks can be imported, and compare like with like."""

from importlib import import_module
from pathlib import Path

import pytest
import torch

from modeling_triaffine import TriaffineConfig
from modeling_triaffine.model.span_head_triaffine import TriaffineSpanHead

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_what_a_benchmark_imports_exists(name):
    assert import_module(name).__doc__


@pytest.mark.parametrize("reference", [False, True], ids=["fast", "reference"])
@pytest.mark.parametrize("lengths", [[7, 2, 4], [1]], ids=str)
def test_published_form_has_the_scores_and_gradients_of_the_head(lengths, reference):
    from published import PublishedHead

    torch.manual_seed(0)
    config = TriaffineConfig(
        num_labels=3, hidden_size=12, triaffine_dim=8, max_candidates=5, triaffine_init_std=0.3, mlp_dropout=0.0
    )
    head = TriaffineSpanHead(config).double()
    head.reference = reference
    published = PublishedHead(head)
    batch, words = len(lengths), max(lengths)
    hidden = torch.randn(batch, words, 12, dtype=torch.float64)
    labels = torch.randint(3, (batch, words, words))

    expected = head(hidden, torch.tensor(lengths), labels)
    expected.loss.backward()
    expected_gradients = {name: value.grad for name, value in head.named_parameters()}
    published.zero_grad()
    actual = published(hidden, torch.tensor(lengths), labels)
    actual.loss.backward()

    for name in ("loss", "candidates", "candidate_mask"):
        torch.testing.assert_close(actual[name], expected[name])
    mask = expected.candidate_mask
    torch.testing.assert_close(actual.logits[mask], expected.logits[mask], rtol=0, atol=1e-10)
    gradients = {name: value.grad for name, value in head.named_parameters() if value.grad is not None}
    gradients |= published.triaffine_gradients()
    torch.testing.assert_close(gradients, expected_gradients, rtol=0, atol=1e-10)
