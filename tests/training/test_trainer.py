"""The trainer: the loss of an update, arguments, the best checkpoint, other optimizers, refusals, a search."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import DataCollatorForTokenClassification, TrainingArguments

from modeling_triaffine import NestedNERTrainer, TriaffineProcessor
from modeling_triaffine.evaluation.scores import score_entities
from modeling_triaffine.publishing.run_summary import RunSummary
from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.interruptions import list_checkpoints
from tests.helpers.faults import assert_same_weights
from tests.helpers.micro_training import micro_records, micro_trainer, trainer_like, weights_after_training


@pytest.mark.parametrize(
    "batches",
    [
        {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2},
        {"per_device_train_batch_size": 3, "gradient_accumulation_steps": 3},
        {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8},
        {"max_subwords_per_batch": 40, "gradient_accumulation_steps": 8},
    ],
    ids=["4+4", "3+3+2", "8x1", "sub-words"],
)
def test_accumulated_update_is_that_of_one_batch(tmp_path: Path, batches: dict[str, int]) -> None:
    records = micro_records(8)
    start = micro_trainer(tmp_path, records).model.double().state_dict()
    whole = weights_after_training(micro_trainer(tmp_path, records, optim="sgd", per_device_train_batch_size=8))
    trainer = micro_trainer(tmp_path, records, optim="sgd", **batches)
    if "max_subwords_per_batch" in batches:  # else the mean over batches would be that over sentences
        assert len({len(batch["num_words"]) for batch in trainer.get_train_dataloader()}) > 1
    parts = weights_after_training(trainer)
    assert trainer.state.max_steps == 1
    assert any(not torch.equal(start[name], whole[name]) for name in whole)
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-10)


def test_plain_arguments_have_one_rate_and_another_optimizer_is_taken(tmp_path: Path) -> None:
    """A calibration is that of the weights before the training."""
    records, calibration = micro_records(8), {"temperature": 1.5, "label_thresholds": {"DNA": 0.0}}
    trainer = micro_trainer(tmp_path / "unused", records, records, config=calibration)
    trainer.evaluate()
    assert trainer.model.config.temperature == 1.5
    options = {"max_steps": 2, "save_strategy": "no", "learning_rate": 0.01, "dataloader_in_order": False}
    arguments = TrainingArguments(str(tmp_path / "out"), use_cpu=True, **options)
    plain = trainer_like(trainer, arguments, optimizer_cls_and_kwargs=(torch.optim.SGD, {"lr": 1e-2, "momentum": 0.5}))
    plain.train()
    assert (plain.model.config.temperature, plain.model.config.label_thresholds) == (1.0, None)
    optimizer: Any = plain.optimizer
    assert isinstance(getattr(optimizer, "optimizer", optimizer), torch.optim.SGD)
    assert {group["name"] for group in optimizer.param_groups} >= {"head", "words", "encoder"}
    assert {group["initial_lr"] for group in optimizer.param_groups} == {0.01}
    assert plain.get_eval_dataloader().in_order  # by which batches have their rows
    plain.model.config.return_dict = False
    assert 0 <= plain.evaluate()["eval_f1"] <= 1


def test_arguments_follow_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_non_blocking(**options) -> bool:
        return NestedNERTrainingArguments(str(tmp_path), use_cpu=True, **options).accelerator_config.non_blocking

    assert not is_non_blocking()
    for has_accelerator in (False, True):  # Accelerate joins the processes of a CPU by `use_cpu` only
        monkeypatch.setattr(torch.accelerator, "is_available", lambda known=has_accelerator: known)
        assert NestedNERTrainingArguments(str(tmp_path)).use_cpu != has_accelerator
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert is_non_blocking()
    assert not is_non_blocking(accelerator_config={"non_blocking": False})


EACH_EPOCH = {"eval_strategy": "epoch", "save_strategy": "epoch"}
EACH_UPDATE = {"eval_strategy": "steps", "eval_steps": 1, "save_strategy": "steps", "save_steps": 2}  # every second
THREE_EPOCHS = {**EACH_EPOCH, "num_train_epochs": 3, "load_best_model_at_end": True, "learning_rate": 3e-2}
VIRUS = {"start": 0, "end": 1, "type": "virus"}


def test_parts_that_do_not_fit_are_refused_before_the_training(tmp_path):
    like = micro_trainer(tmp_path, micro_records(4))
    with pytest.raises(ValueError, match="give a DataCollatorForNestedNER"):
        trainer_like(like, data_collator=DataCollatorForTokenClassification(None))
    unknown = like.train_dataset.map(lambda _: {"entities": [VIRUS]})
    with pytest.raises(ValueError, match="eval_dataset has entities of type virus in row 0, which the model has no "):
        trainer_like(like, eval_dataset=unknown)
    with pytest.raises(ValueError, match=r"TriaffineProcessor as `processing_class`, not .* with a TokenizersBackend"):
        NestedNERTrainer(like.model, like.args, processing_class=like.processing_class.tokenizer)
    with pytest.raises(ValueError, match="Give `train_dataset` or `eval_dataset`"):
        like.evaluate()
    like.args.ema_decay = 0.5
    with pytest.raises(ValueError, match="your own optimizer; set ema_decay=None"):
        trainer_like(like, optimizers=(torch.optim.SGD(like.model.parameters()), None))
    like.args.ema_decay = None
    smoothed = TrainingArguments(str(tmp_path), use_cpu=True, label_smoothing_factor=0.1)
    for arguments, options in ((smoothed, {}), (None, {"preprocess_logits_for_metrics": print})):
        with pytest.raises(ValueError, match="has no effect"):
            trainer_like(like, arguments, **options)
    narrow = TriaffineProcessor(like.processing_class.tokenizer, max_subwords=32)
    with pytest.raises(ValueError, match=r"windows of 32 .*max_subwords=64"):
        NestedNERTrainer(like.model, like.args, processing_class=narrow)
    like.model.config.context = "document"
    with pytest.raises(ValueError, match=r"context 'document', and the processor .* 'none'.* context='document'"):
        trainer_like(like)
    like.model.config.id2label[0] = "RNA"
    with pytest.raises(ValueError, match="unlike `id2label`; delete or leave it out"):
        trainer_like(like)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {**EACH_EPOCH, "load_best_model_at_end": True}),
        ({"eval_strategy": "steps"}, {"save_strategy": "steps", "save_steps": 50, "load_best_model_at_end": True}),
        ({"eval_strategy": "no"}, {"save_strategy": "epoch", "load_best_model_at_end": False}),
        ({"eval_strategy": "steps", "eval_steps": 0.25}, {"save_steps": 0.25, "load_best_model_at_end": True}),
        ({"eval_strategy": "steps", "eval_steps": 0.1, "save_steps": 0.3}, {"load_best_model_at_end": True}),
        ({"eval_strategy": "steps", "eval_steps": 20, "save_steps": 30}, {"load_best_model_at_end": False}),
        ({"save_strategy": "no"}, {"eval_strategy": "epoch", "load_best_model_at_end": False}),
        ({"do_eval": False}, {"do_eval": False, "eval_strategy": "epoch", "load_best_model_at_end": True}),
        ({"eval_strategy": "no", "save_strategy": "steps"}, {"save_steps": 500}),
        ({"lr_scheduler_type": "reduce_lr_on_plateau"}, {"lr_scheduler_kwargs": {"mode": "max"}}),
        ({"seed": "42", "per_device_train_batch_size": "8"}, {"seed": 42, "per_device_train_batch_size": 8}),
    ],
)
def test_options_that_follow_from_others(tmp_path, options, expected):
    args = NestedNERTrainingArguments(str(tmp_path), use_cpu=True, **options)
    assert {name: getattr(args, name) for name in expected} == expected
    assert type(args.seed) is type(args.per_device_train_batch_size) is int


@pytest.mark.parametrize(
    ("options", "epochs", "updates"),
    [
        ({"num_train_epochs": 2, "min_steps": 10}, 4, 12),  # 12 sentences are three batches
        ({"num_train_epochs": 2, "min_steps": 6}, 2, 6),
        ({"num_train_epochs": 1.5, "min_steps": 5}, 2, 5),  # five updates in one epoch and a half
        ({"num_train_epochs": 2, "min_steps": 7, "gradient_accumulation_steps": 2}, 4, 8),
        ({"num_train_epochs": 2, "min_steps": 10, "max_steps": 1}, 1, 1),
        ({"num_train_epochs": 2, "min_steps": None}, 2, 6),
    ],
)
def test_small_data_gets_more_epochs(tmp_path, options, epochs, updates):
    trainer = micro_trainer(tmp_path, micro_records(12), per_device_train_batch_size=4, **options)
    trainer.train()
    assert (trainer.state.num_train_epochs, trainer.state.global_step) == (epochs, updates)
    assert trainer.args.num_train_epochs == options["num_train_epochs"]  # a recipe of the run has what was asked for


@pytest.mark.parametrize("when", [{}, {"eval_strategy": "steps", "eval_steps": 5, "save_strategy": "steps"}])
def test_more_epochs_do_not_have_more_evaluations_and_the_loss_is_logged_before_each(tmp_path, when):
    options = {**THREE_EPOCHS, "min_steps": 20, "save_total_limit": None, **when}
    trainer = micro_trainer(tmp_path, micro_records(8), micro_records(2, seed=1), **options)
    trainer.train()
    log = [(row["step"], name) for row in trainer.state.log_history for name in ("loss", "eval_loss") if name in row]
    epochs = [5, 10, 15, 20] if when else [7, 14, 20]
    assert log == [(step, name) for step in epochs for name in ("loss", "eval_loss")]
    if not when:
        assert [path.name for path in list_checkpoints(tmp_path)] == ["checkpoint-7", "checkpoint-14", "checkpoint-20"]


def test_without_validation_data_nothing_is_scored(tmp_path):
    like = micro_trainer(tmp_path, micro_records(4))
    trainer = trainer_like(like, NestedNERTrainingArguments(str(tmp_path), use_cpu=True))
    assert (trainer.args.eval_strategy, trainer.args.load_best_model_at_end) == ("no", False)
    with pytest.raises(ValueError, match="eval_strategy"):  # asked for, not by default
        trainer_like(like, TrainingArguments(str(tmp_path), use_cpu=True, eval_strategy="epoch"))
    with pytest.raises(ValueError, match="calibrate_threshold needs validation data"):
        trainer_like(like, NestedNERTrainingArguments(str(tmp_path), use_cpu=True, calibrate_threshold=True))


@pytest.mark.parametrize(("when", "scores"), [({}, [0.2, 0.9, 0.5]), (EACH_UPDATE, [0.1, 0.2, 0.99, 0.9, 0.99, 0.5])])
def test_own_metrics_of_entities_choose_the_best_checkpoint(tmp_path, when, scores):
    seen = []
    values = iter(scores)

    def compute_metrics(evaluated):
        seen.append(evaluated)
        return {"mine": np.float64(next(values)), "eval_predicted": torch.tensor(-1)}

    options = {**THREE_EPOCHS, **when, "save_total_limit": 5, "metric_for_best_model": "mine"}
    like = micro_trainer(tmp_path, micro_records(12), micro_records(5, seed=1), **options)
    trainer = trainer_like(like, compute_metrics=compute_metrics)
    trainer.train()
    assert trainer.state.best_metric == pytest.approx(0.9)
    best = list_checkpoints(tmp_path)[1]
    assert trainer.state.best_model_checkpoint == str(best)
    assert_same_weights(trainer.model.state_dict(), load_file(best / "model.safetensors"))
    logged = [entry for entry in trainer.state.log_history if "eval_mine" in entry]
    assert [entry["eval_mine"] for entry in logged] == pytest.approx(scores)
    assert all(type(entry["eval_mine"]) is float and "eval_f1" in entry for entry in logged)  # beside the built-in ones
    assert [entry["eval_predicted"] for entry in logged] == [-1] * len(scores)  # what is named alike is replaced
    predictions, references = seen[-1]
    assert references == [record["entities"] for record in micro_records(5, seed=1)]
    assert all({*entity} == {"start", "end", "type", "score"} for entities in predictions for entity in entities)
    assert score_entities(predictions, references)["f1"] == pytest.approx(logged[-1]["eval_f1"])
    values = iter([0.5])
    assert trainer.predict(trainer.eval_dataset).metrics["test_mine"] == pytest.approx(0.5)
    trainer.args.metric_for_best_model, trainer.control.should_save = "nested_f2", True
    with pytest.raises(ValueError, match=r"nested_f2(?s:.)*eval_f1"):
        trainer._determine_best_metric(logged[-1], None)


def test_the_card_of_a_trainer_tells_of_its_training(tmp_path, caplog):
    """Of two validation sets, by the one that chooses checkpoints."""
    caplog.set_level("INFO")
    options = {"num_train_epochs": 2, "eval_strategy": "epoch", "min_steps": 1, "ema_decay": 0.9}
    like = micro_trainer(tmp_path, micro_records(8), micro_records(2, seed=1), **options, metric_for_best_model="b_f1")
    trainer = trainer_like(like, eval_dataset={"a": like.train_dataset, "b": like.eval_dataset})
    trainer.args.calibrate_threshold = True
    trainer.save_model()
    assert RunSummary.load(tmp_path) is None
    trainer.train()
    assert "Calibrated on the validation data" in caplog.text
    trainer.evaluate()
    trainer.save_model(tmp_path / "saved")
    trainer.create_model_card()
    card = (tmp_path / "README.md").read_text()
    facts = ("see the table of [epochs](#epochs)", "`min_steps`", "`learning_rate`", "`ema_decay`")
    assert all(fact in card for fact in facts)
    assert "no record of how this model was trained" not in card
    summary = RunSummary.load(tmp_path / "saved")
    assert summary.is_trained
    losses = [row["eval_b_loss"] for row in trainer.state.log_history if "eval_b_loss" in row][:2]
    table = [(row.update, row.kept, row.validation_loss) for row in summary.training_table]
    assert table == [(1, False, losses[0]), (2, True, losses[1])]
