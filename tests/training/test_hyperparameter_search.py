"""Hyper-parameter search with Optuna, and trainers that make their models by `model_init`."""

import copy

import pytest
import torch
from torch.optim import SGD

from modeling_triaffine import NestedNERTrainer, TriaffineForNestedNER
from tests.helpers.micro_training import micro_records, micro_trainer


def searching_trainer(folder, model_init=None, **options):
    """A trainer of few updates, whose models differ from trial to trial only in what the trial sets."""
    options = {"num_train_epochs": 8, "per_device_train_batch_size": 4, "seed": 1, **options}
    like = micro_trainer(folder, micro_records(24), micro_records(12, seed=1), eval_strategy="epoch", **options)
    config = like.model.config
    return NestedNERTrainer(
        args=like.args,
        model_init=model_init or (lambda: TriaffineForNestedNER(copy.deepcopy(config))),
        processing_class=like.processing_class,
        train_dataset=like.train_dataset,
        eval_dataset=like.eval_dataset,
    )


RATES = [1e-6, 1e-2, 1e-5]


def space(trial):
    """Three trials in a given order: of these rates, the second one learns."""
    rate = RATES[trial.number]
    return dict.fromkeys(
        ("learning_rate", "encoder_learning_rate", "embeddings_learning_rate"),
        trial.suggest_float("rate", rate, rate),
    )


def test_three_trials_are_compared_by_f1(tmp_path):
    optuna = pytest.importorskip("optuna")
    trainer = searching_trainer(tmp_path)
    scores = []
    evaluate = trainer.evaluate
    trainer.evaluate = lambda *arguments, **options: scores.append(evaluate(*arguments, **options)) or scores[-1]
    study = optuna.samplers.RandomSampler(seed=0)
    best = trainer.hyperparameter_search(backend="optuna", hp_space=space, n_trials=3, sampler=study)
    f1 = [score["eval_f1"] for score in scores[7::8]]  # after the last epoch of each trial
    assert len(f1) == 3
    assert f1[1] > max(f1[0], f1[2])
    assert (best.run_id, best.objective, best.hyperparameters) == ("1", f1[1], {"rate": RATES[1]})


@pytest.mark.parametrize("metric", ["loss", "eval_loss", "precision"])
def test_trials_are_compared_by_the_metric_of_the_arguments(metric, tmp_path):
    pytest.importorskip("optuna")
    trainer = searching_trainer(tmp_path, metric_for_best_model=metric, num_train_epochs=4)
    best = trainer.hyperparameter_search(backend="optuna", hp_space=space, n_trials=2)
    assert best.run_id == "1"
    assert best.objective > 0


def test_an_objective_of_ones_own_is_minimized_as_in_transformers(tmp_path):
    pytest.importorskip("optuna")
    trainer = searching_trainer(tmp_path)
    best = trainer.hyperparameter_search(
        backend="optuna", hp_space=space, n_trials=2, compute_objective=lambda metrics: -metrics["eval_f1"]
    )
    assert best.run_id == "1"
    assert best.objective < 0


def test_every_training_starts_from_a_new_model(tmp_path):
    made = []

    def model_init(trial):
        made.append(trial)
        return TriaffineForNestedNER(config)

    config = micro_trainer(tmp_path, micro_records(24)).model.config
    trainer = searching_trainer(tmp_path, model_init, max_steps=1)
    losses = []
    for _ in range(2):
        trainer.train()
        losses.append(trainer.state.log_history[-1]["train_loss"])
    assert losses[0] == losses[1]  # the same seed, and nothing of the first training
    assert made == [None] * 3


def test_what_fits_no_new_models(tmp_path):
    trainer = searching_trainer(tmp_path)
    with pytest.raises(ValueError, match="give either a model or model_init, a function that creates one"):
        NestedNERTrainer(trainer.model, trainer.args, processing_class=trainer.processing_class, model_init=len)
    with pytest.raises(ValueError, match="`optimizers` belong to one model"):
        NestedNERTrainer(
            args=trainer.args,
            model_init=trainer.model_init,
            processing_class=trainer.processing_class,
            optimizers=(SGD([torch.zeros(1)], 0.1), None),
        )
    with pytest.raises(RuntimeError, match="pass your model through a model_init function"):
        micro_trainer(tmp_path, micro_records(2)).hyperparameter_search(backend="optuna")


def test_a_new_model_decides_how_labels_are_numbered(tmp_path):
    trainer = searching_trainer(tmp_path, num_train_epochs=1, save_strategy="no")
    config = copy.deepcopy(trainer.model.config)
    config.id2label = {0: "protein", 1: "DNA", 2: "None"}
    config.multi_label = True
    trainer.model_init = lambda: TriaffineForNestedNER(config)
    trainer.train()
    assert trainer.data_collator.label2id == {"protein": 0, "DNA": 1, "None": 2}
    assert trainer.data_collator.multi_label
    config.id2label = {0: "DNA", 1: "RNA", 2: "None"}
    with pytest.raises(ValueError, match=r"'protein'.* DNA, RNA"):
        trainer.train()
