"""Calibration: the temperature, the thresholds, the error of probabilities, and what a split is read into."""

import pytest
import torch

from modeling_triaffine.evaluation.calibration import (
    ScoredSpans,
    _calibrate_labels,
    calibrate,
    calibration_error,
    choose_threshold,
    fit_temperature,
    score_spans,
)
from modeling_triaffine.evaluation.prediction import predict_words
from modeling_triaffine.evaluation.scores import score_entities
from modeling_triaffine.model.triaffine_ops import label_probabilities
from tests.helpers.tiny import tiny_model, tiny_processor

SENTENCES = [["The", "gene", "binds", "DNA"], ["It", "works"], ["protein"]]


def synthetic_scores(multi_label, sharpness, spans=6000):
    """Labels drawn from a model's probabilities, and logits that are `sharpness` times as large as it should give."""
    torch.manual_seed(0)
    logits = 2 * torch.randn(spans, 3 - multi_label)
    probabilities = label_probabilities(logits, multi_label)[:, :-1]
    if multi_label:
        gold = torch.rand(spans, 2) < probabilities
    else:
        drawn = torch.rand(spans, 1)
        upper = probabilities.cumsum(-1)
        gold = (drawn < upper) & (drawn >= upper - probabilities)
    return ScoredSpans(sharpness * logits, gold, gold.sum(0).tolist(), multi_label)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_the_temperature_undoes_what_makes_probabilities_too_sharp_or_flat(multi_label, sharpness):
    spans = synthetic_scores(multi_label, sharpness)
    temperature = fit_temperature(spans)
    assert temperature == pytest.approx(sharpness, rel=0.1)
    before, after = (calibration_error(spans, t) for t in (1.0, temperature))
    assert after < 0.025 < before / 2


@pytest.mark.parametrize(
    ("logits", "gold"),
    [
        ([], []),
        ([2.0, 2.0, 2.0], [True, True, True]),
        ([2.0, 2.0, 2.0], [False, False, False]),
        ([2.0, 3.0, -1.0], [True, True, False]),  # a wrong one that is not found without a threshold
    ],
)
def test_the_temperature_is_1_where_none_is_the_best(logits, gold, caplog):
    spans = ScoredSpans(torch.tensor(logits).view(-1, 1), torch.tensor(gold).bool().view(-1, 1), [3], True)
    assert fit_temperature(spans) == 1.0
    assert f"The temperature stays 1: of {len(gold)} predictions" in caplog.text
    assert f"{gold.count(False)} are wrong" in caplog.text


def test_calibration_error_of_three_bins():
    probabilities = torch.tensor([[0.61, 0.39], [0.69, 0.31], [0.85, 0.15], [0.95, 0.05], [1.0, 0.0], [0.2, 0.8]])
    gold = torch.tensor([[True], [False], [True], [True], [False], [True]])
    assert calibration_error(ScoredSpans(probabilities.log(), gold, [3])) == pytest.approx((2 * 0.15 + 0.15 + 0.95) / 5)
    assert calibration_error(ScoredSpans(probabilities.log(), gold, [0])) == 0  # a label that the sentences do not have


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_are_the_best_of_all(seed):
    torch.manual_seed(seed)
    scores = (torch.rand(40) * 12).round() / 12  # with equal ones, between which no threshold can stand
    gold, entities = torch.rand(40) < scores, 30
    scores = scores.double()

    def f1_at(threshold):
        predicted = scores >= threshold
        return 2 * (gold & predicted).sum().item() / (predicted.sum().item() + entities)

    best = max(f1_at(threshold) for threshold in (scores.unique() - 1e-3).tolist())
    assert f1_at(choose_threshold(scores, gold, entities)) == pytest.approx(best)


@pytest.mark.parametrize("fields", [{}, {"cross_span": False}, {"multi_label": True}], ids=str)
def test_what_is_read_and_found_is_what_the_model_predicts(encoder, fields):
    """The scores before and after are those of prediction, without and with what was found."""
    model, processor = tiny_model(encoder, **fields), tiny_processor(encoder)
    bias = model.head.label_bias.data
    bias.copy_(torch.full_like(bias, -2.0) if model.config.multi_label else 2.0 * torch.eye(3)[-1])
    records = [{"tokens": words, "entities": []} for words in SENTENCES]
    likely = predict_words(model, processor, records, threshold=1e-3)
    label = likely[0][0]["type"]
    for record, entities in zip(records, likely, strict=True):
        record["entities"] = [entity for entity in entities if entity["type"] == label][1:]
    records[2]["entities"] = [{"start": 0, "end": 1, "type": "RNA"}]
    spans = score_spans(model, processor, records)
    counts = dict(zip(model.config.entity_labels, spans.entities, strict=True))
    assert sum(counts.values()) == len(records[0]["entities"] + records[1]["entities"])
    found = calibrate(model, processor, records, "train")
    assert label in found.thresholds
    model.config.temperature = found.temperature
    references = [record["entities"] for record in records]
    for thresholds, side in ((found.thresholds, "after"), (None, "before")):
        model.config.label_thresholds = thresholds
        scores = score_entities(predict_words(model, processor, records), references, found.labels)["by_label"]
        for name, label in found.labels.items():
            assert getattr(label, side) == scores[name]


def test_a_gain_that_may_be_chance_is_not_taken():
    spans = synthetic_scores(False, 1.0, spans=100)
    for label in _calibrate_labels("ab", spans, 1.0).values():
        assert (label.threshold, label.after) == (None, label.before)


@pytest.mark.parametrize("entities", [4, 5])
def test_a_threshold_needs_five_entities(entities):
    """The model misses all of them, and a lower threshold finds them all and nothing else."""
    logits = torch.tensor([[0.0, 1.0]] * entities + [[-5.0, 1.0]] * 20)
    gold = torch.tensor([[True]] * entities + [[False]] * 20)
    (label,) = _calibrate_labels("a", ScoredSpans(logits, gold, [entities]), 1.0).values()
    assert label.before["f1"] == 0.0
    assert label.after["f1"] == (0.0 if entities < 5 else 1.0)
