"""Hyper-parameter search as transformers has it, with `model_init`."""

import copy

import pytest

from modeling_triaffine import NestedNERTrainer, TriaffineForNestedNER
from tests.helpers.micro_training import micro_records, micro_trainer

RATES = [1e-6, 1e-2]


def space(trial):
    """Two trials in a given order; only the second one learns."""
    rate = trial.suggest_float("rate", RATES[trial.number], RATES[trial.number])
    return dict.fromkeys(("learning_rate", "encoder_learning_rate", "embeddings_learning_rate"), rate)


def test_trials_start_from_new_models_and_are_compared(tmp_path):
    pytest.importorskip("optuna")
    options = {"num_train_epochs": 8, "per_device_train_batch_size": 4, "seed": 1, "eval_strategy": "epoch"}
    like = micro_trainer(tmp_path, micro_records(24), micro_records(12, seed=1), **options)
    config = like.model.config
    trainer = NestedNERTrainer(
        args=like.args,
        model_init=lambda: TriaffineForNestedNER(copy.deepcopy(config)),
        processing_class=like.processing_class,
        train_dataset=like.train_dataset,
        eval_dataset=like.eval_dataset,
    )
    best = trainer.hyperparameter_search(
        backend="optuna",
        hp_space=space,
        n_trials=2,
        direction="maximize",
        compute_objective=lambda metrics: metrics["eval_f1"],
    )
    assert (best.run_id, best.hyperparameters) == ("1", {"rate": RATES[1]})
