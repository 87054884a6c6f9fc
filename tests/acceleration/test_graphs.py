"""Prediction by graphs, rehearsed on the CPU, where a replay runs the model again on the graph's memory."""

import pytest
import torch

from modeling_triaffine.acceleration import graphs
from modeling_triaffine.acceleration.graphs import EAGER_FIRST, Graphs
from modeling_triaffine.model.decoding_triaffine import find_entities
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
    recorded = Graphs(model)
    for _ in range(EAGER_FIRST + 2):
        for batch in batches(encoder):
            expected = find_entities(model(**batch), model.config, threshold=0.2)
            assert find_entities(recorded.run(batch), model.config, threshold=0.2) == near(expected)
    assert len(recorded.recorded) > 2
    assert {key[0] for key in recorded.recorded} == {key[0] for key in recorded.seen}


@torch.no_grad()
def test_what_has_no_shape_runs_as_ever(model, encoder, monkeypatch):
    monkeypatch.setattr(graphs, "WORDS", (1,))
    recorded = Graphs(model)
    for batch in batches(encoder):
        recorded.run(batch)
    assert not recorded.seen


def test_graphs_are_switched_on_by_a_variable_and_for_a_gpu_alone(model, encoder, monkeypatch):
    monkeypatch.setenv(graphs.SWITCH, "1")
    monkeypatch.setattr(Graphs, "run", lambda *_: pytest.fail("a CPU has no graphs"))
    graphs.run_model(model, next(batches(encoder)))
