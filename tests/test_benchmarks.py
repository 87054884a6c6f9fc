"""The benchmarks compare like with like, and count what they say they count."""

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

from modeling_triaffine import TriaffineConfig
from modeling_triaffine.data.demo import demo_corpus
from modeling_triaffine.model.span_head_triaffine import TriaffineSpanHead
from tests.helpers.micro_training import MICRO_CONFIG, write_recipe

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
    assert gradients.keys() == expected_gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=0, atol=1e-10, msg=name)


def test_rows_say_what_ran_and_where_the_time_went(encoder, monkeypatch, capsys, tmp_path):
    import throughput

    output = tmp_path / "rows.jsonl"
    options = {"model_name_or_path": encoder, "max_samples": 6, "batch_size": 4, "repeats": 1, "output": output}
    # As small as the encoder, but for the windows: all sentences fit.
    options |= {"recipe": write_recipe(tmp_path / "recipe", {**MICRO_CONFIG, "max_subwords": 192})}
    monkeypatch.setattr(sys, "argv", ["throughput.py", *(f"--{name}={value}" for name, value in options.items())])
    with_dropout = {}  # the encoder alone must do the work that it does in the whole

    def watched(step):
        def watch(encoder, batch):
            with_dropout.setdefault(step.__name__, set()).add(encoder.training)
            step(encoder, batch)

        return watch

    for step in (throughput.run_encoder, throughput.train_encoder):
        monkeypatch.setattr(throughput, step.__name__, watched(step))
    throughput.main()
    assert with_dropout == {"run_encoder": {False}, "train_encoder": {True}}

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["what"], row["tensors"]) for row in rows] == [
        (what, tensors) for tensors in ("low rank", "full") for what in ("raw text to entities", "training")
    ]
    words = [len(record["tokens"]) for record in demo_corpus()["train"][:6]]
    for row in rows:
        assert row["sentences"] == len(words)
        assert row["subwords"] >= sum(words) + 2 * len(words)
        assert row["padded_over_subwords"] >= 1
        assert row["sentences_a_second"] > 0
        assert list(row["share"]) == ["encoder", "words", "head", "rest"]
        assert min(row["share"].values()) > 0
        assert sum(row["share"].values()) == pytest.approx(1, abs=0.01)
    header, *written = map(json.loads, output.read_text().splitlines())
    assert written == rows
    assert "torch" in header
