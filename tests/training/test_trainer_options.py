"""What a user can ask of the trainer beside the usual: which checkpoint is the best, other optimizers, refusals."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from modeling_triaffine import NestedNERTrainer
from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training import trainer as trainer_module
from modeling_triaffine.training.checkpoints import list_checkpoints
from tests.helpers.micro_training import micro_dataset, micro_records, micro_trainer

THREE_EPOCHS = {
    "num_train_epochs": 3,
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "load_best_model_at_end": True,
    "learning_rate": 3e-2,
}


def trainer_with_scores(
    folder: Path, monkeypatch: pytest.MonkeyPatch, metric: str, values: list[float], **options: Any
) -> NestedNERTrainer:
    """A trainer of three epochs whose evaluations find these values of a metric, one after the other."""
    scores = iter(values)
    monkeypatch.setattr(trainer_module, "_flat_metrics", lambda _: {metric: next(scores)})
    return micro_trainer(folder, micro_records(12), micro_records(5, seed=1), **{**THREE_EPOCHS, **options})


def assert_ends_with(trainer: NestedNERTrainer, weights: dict[str, torch.Tensor]) -> None:
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(value, weights[name]), name


@pytest.mark.parametrize(("metric", "values"), [("loss", [0.5, 0.2, 0.9]), ("f1", [0.5, 0.9, 0.2])])
def test_the_best_checkpoint_has_the_least_loss_or_the_highest_score(tmp_path, monkeypatch, metric, values):
    options = {"metric_for_best_model": metric, "save_total_limit": 5}
    trainer = trainer_with_scores(tmp_path, monkeypatch, metric, values, **options)
    trainer.train()
    _, best, last = (load_file(path / "model.safetensors") for path in list_checkpoints(tmp_path))
    assert_ends_with(trainer, best)
    assert any(not torch.equal(best[name], last[name]) for name in best)


def test_a_run_whose_folder_was_moved_ends_with_its_best_checkpoint(tmp_path, monkeypatch):
    values = [0.9, 0.2, 0.3]
    trainer_with_scores(tmp_path / "old", monkeypatch, "f1", values, save_total_limit=5).train()
    best, *_, last = list_checkpoints(tmp_path / "old")
    shutil.rmtree(last)
    (tmp_path / "old").rename(tmp_path / "new")
    weights = load_file(tmp_path / "new" / best.name / "model.safetensors")
    trainer = trainer_with_scores(tmp_path / "new", monkeypatch, "f1", values[2:], save_total_limit=1)
    trainer.train(resume_from_checkpoint=True)
    assert_ends_with(trainer, weights)


def test_a_run_is_resumed_by_another_name_of_its_folder(tmp_path, monkeypatch):
    values = [0.9, 0.2, 0.3]
    trainer_with_scores(tmp_path / "run", monkeypatch, "f1", values, save_total_limit=5).train()
    best, *_, last = list_checkpoints(tmp_path / "run")
    shutil.rmtree(last)
    monkeypatch.chdir(tmp_path)
    trainer = trainer_with_scores(Path("run"), monkeypatch, "f1", values[2:], save_total_limit=1)
    trainer.train(resume_from_checkpoint=True)
    assert_ends_with(trainer, load_file(best / "model.safetensors"))


def test_where_the_best_checkpoint_is_gone_the_next_best_takes_its_place(tmp_path, monkeypatch, caplog):
    values = [0.9, 0.2, 0.3]
    trainer_with_scores(tmp_path, monkeypatch, "f1", values, save_total_limit=5).train()
    best, _, last = list_checkpoints(tmp_path)
    shutil.rmtree(best), shutil.rmtree(last)
    trainer = trainer_with_scores(tmp_path, monkeypatch, "f1", values[2:])
    with caplog.at_level(logging.WARNING):
        trainer.train(resume_from_checkpoint=True)
    assert "best checkpoint so far, of update 2, is gone" in caplog.text
    assert trainer.state.best_metric == 0.3
    assert_ends_with(trainer, load_file(last / "model.safetensors"))


def test_learning_rates_that_a_resumed_run_does_not_take_are_warned_of(tmp_path, caplog):
    options = {"num_train_epochs": 2, "save_strategy": "epoch", "save_total_limit": 5}
    micro_trainer(tmp_path, micro_records(12), **options).train()
    shutil.rmtree(list_checkpoints(tmp_path)[-1])
    trainer = micro_trainer(tmp_path, micro_records(12), **options, encoder_learning_rate=5e-3)
    with caplog.at_level(logging.WARNING):
        trainer.train(resume_from_checkpoint=True)
    warnings = {record.getMessage() for record in caplog.records if "learning rate" in record.getMessage()}
    assert len(warnings) == 1
    assert "learning rate of the encoder stays 0.01" in warnings.pop()


def test_another_optimizer_is_taken(tmp_path):
    model_options = {"optimizer_cls_and_kwargs": (torch.optim.SGD, {"lr": 1e-2, "momentum": 0.5})}
    trainer = with_trainer_options(tmp_path, **model_options)
    trainer.train()
    optimizer: Any = trainer.optimizer
    assert isinstance(getattr(optimizer, "optimizer", optimizer), torch.optim.SGD)
    assert {group["name"] for group in optimizer.param_groups} >= {"head", "words", "encoder"}


def test_an_optimizer_with_averages_puts_them_into_the_model_that_is_scored(tmp_path):
    """As those without a schedule do; `eval` and `train` switch between the two."""
    seen = []

    class Averaging(torch.optim.SGD):
        def eval(self) -> None:
            seen.append("averages")

        def train(self) -> None:
            seen.append("weights")

    trainer = with_trainer_options(tmp_path, optimizer_cls_and_kwargs=(Averaging, {"lr": 1e-2}))
    trainer.train()
    seen.clear()
    trainer.evaluate()
    assert seen == ["averages"]


def with_trainer_options(folder: Path, **options: Any) -> NestedNERTrainer:
    like = micro_trainer(folder, micro_records(8), micro_records(4, seed=1))
    return NestedNERTrainer(
        like.model,
        like.args,
        processing_class=like.processing_class,
        train_dataset=like.train_dataset,
        eval_dataset=like.eval_dataset,
        **options,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compute_metrics": lambda _: {}}, "compute_metrics has no effect .* `predict_entities`"),
        ({"compute_loss_func": lambda *_: 0}, "compute_loss_func has no effect"),
        ({"model_init": lambda: None}, "model_init has no effect"),
        ({"train_dataset": micro_records(3)}, "train_dataset is a list; give a datasets.Dataset"),
        ({"eval_dataset": {"dev": micro_records(3)}}, r"eval_dataset\['dev'\] is a list"),
    ],
)
def test_what_would_do_nothing_is_refused(tmp_path, options, message):
    like = micro_trainer(tmp_path, micro_records(4))
    with pytest.raises(ValueError, match=message):
        NestedNERTrainer(like.model, like.args, processing_class=like.processing_class, **options)


def test_of_several_validation_sets_the_best_checkpoints_must_be_named(tmp_path):
    like = micro_trainer(tmp_path, micro_records(4))
    like.args.load_best_model_at_end = True
    sets = {"dev": micro_dataset(micro_records(1))}
    with pytest.raises(ValueError, match=r"metric_for_best_model is 'f1', .* dev_f1"):
        NestedNERTrainer(like.model, like.args, processing_class=like.processing_class, eval_dataset=sets)
    like.args.metric_for_best_model = "dev_f1"
    NestedNERTrainer(like.model, like.args, processing_class=like.processing_class, eval_dataset=sets)


@pytest.mark.parametrize("form", ["numpy", "pandas", "torch"])
def test_data_sets_train_and_score_whatever_their_format(tmp_path, form):
    like = micro_trainer(tmp_path, micro_records(4), micro_records(2, seed=1))
    trainer = NestedNERTrainer(
        like.model,
        like.args,
        processing_class=like.processing_class,
        train_dataset=like.train_dataset.with_format(form),
        eval_dataset=like.eval_dataset.with_format(form),
    )
    assert set(next(iter(trainer.get_train_dataloader()))) == set(next(iter(like.get_train_dataloader())))
    assert trainer.evaluate()["eval_loss"] == pytest.approx(like.evaluate()["eval_loss"])


def test_an_empty_training_set_is_refused(tmp_path):
    like = micro_trainer(tmp_path, micro_records(4))
    empty = like.train_dataset.select([])
    with pytest.raises(ValueError, match="train_dataset is empty"):
        NestedNERTrainer(like.model, like.args, processing_class=like.processing_class, train_dataset=empty)


@pytest.mark.parametrize("name", ["accuracy", "f2", "by_label"])
def test_a_metric_that_no_evaluation_gives_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=f"metric_for_best_model is '{name}'"):
        NestedNERTrainingArguments(output_dir=str(tmp_path), metric_for_best_model=name)


@pytest.mark.parametrize("name", ["f1", "eval_nested_f1", "loss", "f1_DNA", "eval_dev_precision"])
def test_metrics_of_an_evaluation_are_taken(tmp_path, name):
    NestedNERTrainingArguments(output_dir=str(tmp_path), metric_for_best_model=name)
