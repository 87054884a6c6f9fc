"""Labels that are trained and never predicted, and the one threshold for all labels."""

import pytest
import torch

from modeling_triaffine.evaluation.calibration import ScoredSpans, shared_threshold
from modeling_triaffine.model.decoding_triaffine import entity_mask
from modeling_triaffine.training.new_labels import extend_labels

from .helpers.micro_training import micro_records, micro_trainer

CONFIG = {"id2label": {0: "protein", 1: "other_name", 2: "None"}, "auxiliary_labels": ["other_name"]}


def test_a_span_whose_likeliest_label_is_auxiliary_is_no_entity():
    logits = torch.tensor([[2.0, 0.0, -1.0, 1.0], [1.5, 0.0, 2.0, 1.0], [0.0, 0.0, 0.0, 5.0]])
    assert entity_mask(logits, [None, None], multi_label=False).tolist() == [[True, False], [False] * 2, [False] * 2]
    assert entity_mask(logits, [0.0, 0.9], multi_label=False).tolist() == [[True, False], [False] * 2, [True, False]]
    several = entity_mask(logits[:, :3] - 1, [None, None], multi_label=True)  # each label is accepted by itself
    assert several.tolist() == [[True, False], [True, False], [False] * 2]


@pytest.mark.parametrize("multi_label", [False, True])
def test_trained_but_neither_predicted_nor_scored(tmp_path, multi_label):
    records = micro_records(60)
    for entity in (entity for record in records for entity in record["entities"]):
        entity["type"] = entity["type"].replace("DNA", "other_name")
    config = {**CONFIG, "multi_label": multi_label}
    trainer = micro_trainer(tmp_path, records, records, config, num_train_epochs=8)
    trainer.train()
    output = trainer.predict(trainer.eval_dataset)
    found = {entity["type"] for entities in output.predictions for entity in entities}
    gold = [entity["type"] for entities in output.label_ids for entity in entities]
    assert found == {*gold} == {"protein"}
    assert output.metrics["test_f1"] > 0.9


def test_new_labels_come_before_auxiliary_ones(tmp_path):
    records = micro_records(4)
    for record in records:
        record["entities"] = [entity for entity in record["entities"] if entity["type"] == "protein"]
    model = micro_trainer(tmp_path, records, config=CONFIG).model
    extended = extend_labels(model, ["DNA"])
    assert list(extended.config.id2label.values()) == ["protein", "DNA", "other_name", "None"]
    old, new = model.head.state_dict(), extended.head.state_dict()
    changed = [name for name in old if old[name].shape != new[name].shape]
    assert changed
    for name in changed:
        assert torch.equal(new[name][0], old[name][0])
        assert torch.equal(new[name][2], old[name][1])


def test_shared_threshold_is_half_of_the_f1_that_it_reaches():
    generator = torch.Generator().manual_seed(0)
    probabilities, chance = torch.rand(2, 20_000, generator=generator, dtype=torch.float64).clamp(0.001, 0.999)
    gold = (chance < probabilities).unsqueeze(-1)
    logits = torch.stack([probabilities.log(), (1 - probabilities).log()], dim=-1)
    spans = ScoredSpans(logits, gold, [int(gold.sum())])
    threshold = shared_threshold(spans, temperature=1.0)

    def f1(least):
        chosen = probabilities >= least
        return 2 * float(gold[chosen].sum()) / float(chosen.sum() + gold.sum())

    assert threshold == pytest.approx(f1(threshold) / 2, abs=2e-3)
    assert f1(threshold) >= max(f1(least / 50) for least in range(1, 50)) - 2e-3
    # Scores that are no probabilities, and a model that finds nothing, have no such threshold.
    both = ScoredSpans(4 * logits, gold, spans.entities), ScoredSpans(logits - torch.tensor([99, 0]), gold & ~gold, [1])
    assert [shared_threshold(wrong, temperature=1.0) for wrong in both] == [None, None]
