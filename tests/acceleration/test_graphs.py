"""Prediction and training by graphs, rehearsed on the CPU, where a replay runs the model on the graph's memory."""

import pytest
import torch

from modeling_triaffine.acceleration import graphs
from modeling_triaffine.acceleration.graphs import EAGER_FIRST, Graphs, predict
from modeling_triaffine.model.decoding_triaffine import find_entities
from tests.helpers.micro_training import micro_records, micro_trainer, weights_after_training
from tests.helpers.portable import near
from tests.helpers.tiny import tiny_model, tiny_processor

SENTENCES = ["gene binds protein", "the gene", "x", "gene " * 20, "protein binds the gene and x", "the " * 9]


@pytest.fixture
def model(encoder):
    return tiny_model(encoder, triaffine_rank=3, lstm_hidden_size=4, max_span_width=6).eval()


def batches(encoder):
    processor = tiny_processor(encoder)
    features = processor.encode([sentence.split() for sentence in SENTENCES])
    for rows in ([0, 1, 2], [3], [4, 5], [1], [5, 4, 0, 2, 1]):
        batch = processor.pad([features[row] for row in rows])
        yield batch | {"max_words": int(batch["num_words"].max())}


@torch.no_grad()
def test_every_batch_has_the_entities_of_the_plain_path(model, encoder):
    of_model = Graphs(model.config, model.device)
    for _ in range(EAGER_FIRST + 2):
        for batch in batches(encoder):
            expected = find_entities(model(**batch), model.config, threshold=0.2)
            assert find_entities(predict(model, batch, of_model), model.config, threshold=0.2) == near(expected)
    assert len(of_model.recorded) > 2
    assert of_model.recorded.keys() == of_model.seen.keys()


@torch.no_grad()
def test_results_stay_when_another_batch_fills_the_memory_of_a_graph(model, encoder, monkeypatch):
    memory = {"span_logits": torch.zeros(3, 2, 2, 2)}
    monkeypatch.setattr(Graphs, "run", lambda *_: memory)
    output = predict(model, next(batches(encoder)), Graphs(model.config, model.device))
    memory["span_logits"].fill_(1.0)
    assert not output.span_logits.any()


@torch.no_grad()
def test_what_has_no_shape_runs_as_ever(model, encoder, monkeypatch):
    monkeypatch.setattr(graphs, "WORDS", (1,))
    of_model = Graphs(model.config, model.device)
    for batch in batches(encoder):
        predict(model, batch, of_model)
    assert not of_model.seen


def test_graphs_are_switched_on_by_a_variable_and_for_a_gpu_alone(model, encoder, monkeypatch):
    monkeypatch.setenv(graphs.SWITCH, "1")
    monkeypatch.setattr(Graphs, "run", lambda *_: pytest.fail("a CPU has no graphs"))
    graphs.run_model(model, next(batches(encoder)))


def with_graphs(trainer, monkeypatch):
    """The trainer, whose steps run by graphs as on a GPU."""
    monkeypatch.setattr(graphs, "are_wanted", lambda device: True)
    return trainer


def test_a_training_by_graphs_ends_with_the_same_weights(tmp_path, monkeypatch):
    options = {"train": micro_records(48), "num_train_epochs": 4, "ema_decay": 0.9}
    smoothed = {"boundary_smoothing": 0.1}
    plain = weights_after_training(micro_trainer(tmp_path / "plain", config=smoothed, **options))
    trainer = with_graphs(micro_trainer(tmp_path / "graphs", config=smoothed, **options), monkeypatch)
    torch.testing.assert_close(weights_after_training(trainer), plain)
    assert trainer._graphs.recorded


def test_a_training_draws_the_same_numbers_whenever_graphs_are_recorded_or_scores_computed(tmp_path, monkeypatch):
    options = {"train": micro_records(48), "num_train_epochs": 4, "config": {"mlp_dropout": 0.3}}
    at_once = weights_after_training(with_graphs(micro_trainer(tmp_path / "once", **options), monkeypatch))
    monkeypatch.setattr(graphs, "EAGER_FIRST", 1000)
    options |= {"validation": micro_records(2, seed=1), "eval_strategy": "epoch"}
    never = weights_after_training(micro_trainer(tmp_path / "never", **options))
    assert all(torch.equal(weights, never[name]) for name, weights in at_once.items())


def test_a_step_that_cannot_be_recorded_runs_as_ever(tmp_path, monkeypatch, caplog):
    options = {"train": micro_records(24), "num_train_epochs": 3}
    plain = weights_after_training(micro_trainer(tmp_path / "plain", **options))
    trainer = with_graphs(micro_trainer(tmp_path / "graphs", **options), monkeypatch)

    def refuse(self, function, padded):
        function(padded)  # leaves gradients behind
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(Graphs, "_run", refuse)
    torch.testing.assert_close(weights_after_training(trainer), plain)
    assert caplog.text.count("run without graphs: operation not permitted") == 1
