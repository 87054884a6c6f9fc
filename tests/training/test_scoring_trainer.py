"""Evaluation by the trainer: entities, their scores and candidates, whatever the batches."""

import pytest

from modeling_triaffine import NestedNERTrainer
from modeling_triaffine.evaluation.prediction import predict_words
from modeling_triaffine.evaluation.scores import candidate_recall, score_entities
from tests.helpers.micro_training import micro_dataset, micro_records, micro_trainer
from tests.helpers.portable import near


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> NestedNERTrainer:
    """A trainer whose model has learned something, with evaluation data that holds two types on one span."""
    validation = micro_records(9, seed=1)
    first = validation[0]["entities"][0]
    validation[0]["entities"].append({**first, "type": "DNA"})
    options = {"num_train_epochs": 6, "per_device_eval_batch_size": 4, "max_grad_norm": 1.0}
    trainer = micro_trainer(tmp_path_factory.mktemp("trained"), micro_records(64), validation, **options)
    trainer.train()
    return trainer


def test_metrics_are_the_scores_of_the_predictions_against_the_entity_lists(trained: NestedNERTrainer) -> None:
    metrics = trained.evaluate()
    predictions = trained.predict(trained.eval_dataset).predictions
    scores = score_entities(predictions, trained.eval_dataset["entities"])
    assert 0.5 < scores["f1"] < 1.0
    assert scores["gold"] == sum(map(len, trained.eval_dataset["entities"]))
    for ratio in ("f1", "precision", "recall"):
        assert metrics[f"eval_{ratio}"] == scores[ratio]
    assert metrics["eval_flat_f1"] == scores["flat"]["f1"]
    assert metrics["eval_nested_f1"] == scores["nested"]["f1"]
    assert metrics["eval_f1_protein"] == scores["by_label"]["protein"]["f1"]
    assert trained.state.log_history[-1]["eval_f1"] == scores["f1"]


def test_long_sentences_are_scored_in_the_windows_of_prediction(trained, monkeypatch):
    monkeypatch.setattr(trained.processing_class, "max_sentence_words", 16)
    rows = [{**record, "tokens": record["tokens"] * 8} for record in trained.eval_dataset]
    dataset = micro_dataset(rows)
    model, processor = trained.model, trained.processing_class
    found = predict_words(model, processor, rows)
    assert all(found)
    assert trained.predict(dataset).predictions == near(found)
    metrics = trained.evaluate(dataset)
    assert metrics["eval_recall"] == near(score_entities(found, dataset["entities"])["recall"])


def test_evaluation_counts_the_gold_among_the_candidates(trained, monkeypatch):
    monkeypatch.setattr(trained.model.head.config, "max_candidates", 2)
    metrics, rows = trained.evaluate(), list(trained.eval_dataset)
    found = predict_words(trained.model, trained.processing_class, rows, threshold=0.0)  # every candidate
    candidates = [{(entity["start"], entity["end"]) for entity in entities} for entities in found]
    recall = candidate_recall(candidates, [row["entities"] for row in rows])["recall"]
    assert metrics["eval_candidate_recall"] == near(recall)
    assert metrics["eval_recall"] < metrics["eval_candidate_recall"] < 1


def test_evaluation_does_not_depend_on_batch_size_or_order(trained, monkeypatch):
    dataset = trained.eval_dataset
    turned = dataset.select(range(len(dataset) - 1, -1, -1))
    losses, predictions = [], []
    ways = [*((batch_size, None, dataset) for batch_size in (1, 4, 50)), (4, None, turned), (1, 30, dataset)]
    for batch_size, max_subwords, rows in ways:
        monkeypatch.setattr(trained.args, "per_device_eval_batch_size", batch_size)
        monkeypatch.setattr(trained.args, "max_subwords_per_batch", max_subwords)
        losses.append(trained.evaluate(rows)["eval_loss"])
        found = trained.predict(rows).predictions
        predictions.append(found if rows is dataset else found[::-1])
    assert losses == pytest.approx([losses[0]] * 5, rel=1e-5)
    spans = [
        [[(entity["start"], entity["end"], entity["type"]) for entity in of_sentence] for of_sentence in found]
        for found in predictions
    ]
    assert all(found == spans[0] for found in spans)


def test_records_without_entities_are_predicted_without_metrics(trained: NestedNERTrainer) -> None:
    bare = trained.eval_dataset.remove_columns("entities")
    for unlabelled in (bare, bare.add_column("entities", [None] * len(bare))):
        output = trained.predict(unlabelled)
        assert output.predictions == near(trained.predict(trained.eval_dataset).predictions)
        assert output.label_ids is None
        assert not [name for name in output.metrics if "f1" in name or "loss" in name]
