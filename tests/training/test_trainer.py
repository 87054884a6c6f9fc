"""The trainer: the loss of an update, rates, arguments."""

from pathlib import Path

import pytest
import torch
from transformers import TrainingArguments

from modeling_triaffine.training import NestedNERTrainingArguments
from tests.helpers.micro_training import micro_records, micro_trainer, trainer_like
from tests.helpers.two_processes import weights_after_training

# ---- Updates ----


@pytest.mark.parametrize(("batch_size", "accumulation"), [(4, 2), (3, 3), (1, 8)], ids=["4+4", "3+3+2", "8x1"])
def test_accumulated_update_is_that_of_one_batch(tmp_path: Path, batch_size: int, accumulation: int) -> None:
    records = micro_records(8)
    start = micro_trainer(tmp_path, records).model.double().state_dict()
    whole = weights_after_training(micro_trainer(tmp_path, records, optim="sgd", per_device_train_batch_size=8))
    parts = weights_after_training(
        micro_trainer(
            tmp_path,
            records,
            optim="sgd",
            per_device_train_batch_size=batch_size,
            gradient_accumulation_steps=accumulation,
        )
    )
    assert any(not torch.equal(start[name], whole[name]) for name in whole)
    for name in whole:
        torch.testing.assert_close(parts[name], whole[name], rtol=0, atol=1e-10, msg=name)


def test_batches_of_subwords_make_the_update_of_one_batch(tmp_path: Path) -> None:
    records = micro_records(8)
    options = {"optim": "sgd", "max_subwords_per_batch": 40, "gradient_accumulation_steps": 8}
    parts = micro_trainer(tmp_path, records, **options)
    sizes = [len(batch["num_words"]) for batch in parts.get_train_dataloader()]
    assert len(set(sizes)) > 1  # else the mean over batches would be that over sentences
    weights = weights_after_training(parts)
    assert parts.state.max_steps == 1
    whole = weights_after_training(micro_trainer(tmp_path, records, optim="sgd", per_device_train_batch_size=8))
    for name in whole:
        torch.testing.assert_close(weights[name], whole[name], rtol=0, atol=1e-10, msg=name)


# ---- Arguments ----


def test_plain_training_arguments_train_with_one_rate(tmp_path: Path) -> None:
    records = micro_records(8)
    trainer = micro_trainer(tmp_path / "unused", records, records)
    arguments = TrainingArguments(
        str(tmp_path / "out"), use_cpu=True, max_steps=2, save_strategy="no", learning_rate=0.01
    )
    plain = trainer_like(trainer, arguments)
    plain.train()
    assert {group["initial_lr"] for group in plain.optimizer.param_groups} == {0.01}
    assert 0 <= plain.evaluate()["eval_f1"] <= 1


def test_a_calibration_is_for_the_model_before_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = micro_records(4)
    calibration = {"temperature": 1.5, "label_thresholds": {"DNA": 0.0}}
    trainer = micro_trainer(tmp_path, records, records, config=calibration, max_steps=1)
    trainer.evaluate()
    assert trainer.model.config.temperature == 1.5
    trainer.train()
    assert (trainer.model.config.temperature, trainer.model.config.label_thresholds) == (1.0, None)
    assert "calibrat" in caplog.text


def test_batches_go_to_a_gpu_without_waiting_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def goes_without_waiting(**options) -> bool:
        return NestedNERTrainingArguments(str(tmp_path), use_cpu=True, **options).accelerator_config.non_blocking

    assert not goes_without_waiting()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert goes_without_waiting()
    assert not goes_without_waiting(accelerator_config={"non_blocking": False})
