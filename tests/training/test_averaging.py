"""Averaged weights: what the average is, where it is used and saved, and that resuming is exact."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from modeling_triaffine.training.optimization import averaging
from tests.helpers.faults import assert_same_weights
from tests.helpers.micro_training import micro_records, micro_trainer, trainer_like

RECORDS = micro_records(12)
TRAINING = {"per_device_train_batch_size": 4, "max_steps": 6, "save_strategy": "steps", "save_steps": 3}


def train_with_averages(folder: Path, **options):
    trainer = micro_trainer(folder, RECORDS, **{**TRAINING, "ema_decay": 0.8, **options})
    trainer.train(resume_from_checkpoint=True)
    return trainer


def test_the_average_follows_the_weights():
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = averaging(torch.optim.SGD, decay=0.25)([weight], lr=0.1)
    average, updates = None, []
    for update in range(1, 8):
        optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()
        decay = min(0.25, update / (update + 9))
        average = weight.detach().clone() if average is None else decay * average + (1 - decay) * weight.detach()
        updates.append(weight.detach().clone())
        optimizer.eval()
        torch.testing.assert_close(weight.detach(), average)
        optimizer.eval()
        torch.testing.assert_close(weight.detach(), average)
        optimizer.train()
        assert torch.equal(weight, updates[-1])
    plain = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    without = torch.optim.SGD([plain], lr=0.1)
    for expected in updates:
        without.zero_grad()
        plain.square().sum().backward()
        without.step()
        assert torch.equal(plain, expected)


def test_the_average_is_evaluated_and_saved(tmp_path: Path):
    trainer = train_with_averages(tmp_path / "run")
    trainer.save_model(str(tmp_path / "model"))
    optimizer = trainer.optimizer
    saved = load_file(tmp_path / "model" / "model.safetensors")
    name, parameter = next((name, one) for name, one in trainer.model.named_parameters() if "lstm" in name)
    assert torch.equal(saved[name], parameter)
    optimizer.train()
    assert not torch.equal(saved[name], parameter)
    trainer.evaluate(trainer.train_dataset)
    assert torch.equal(saved[name], parameter)


def test_resuming_is_exact(tmp_path: Path):
    whole = train_with_averages(tmp_path / "whole")
    train_with_averages(tmp_path / "cut", save_total_limit=2)
    shutil.rmtree(tmp_path / "cut" / "checkpoint-6")
    resumed = train_with_averages(tmp_path / "cut")
    assert resumed.state.global_step == 6
    assert_same_weights(resumed.model.state_dict(), whole.model.state_dict())
    for trainer in (whole, resumed):
        trainer.optimizer.train()
    assert_same_weights(resumed.model.state_dict(), whole.model.state_dict())


def test_invalid_uses_of_averages_are_errors(tmp_path: Path):
    trainer = micro_trainer(tmp_path / "run", RECORDS, **TRAINING, ema_decay=0.9)
    with pytest.raises(ValueError, match=r"ema_decay is 1;"):
        micro_trainer(tmp_path / "run", RECORDS, ema_decay=1.0)
    own = torch.optim.SGD(trainer.model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match=r"`optimizers`.*ema_decay"):
        trainer_like(trainer, optimizers=(own, None))
    without = micro_trainer(tmp_path / "run", RECORDS).args
    assert trainer_like(trainer, without, optimizers=(own, None)).optimizer is own
    trainer.train()
    with pytest.raises(ValueError, match="--ema_decay of its run"):
        train_with_averages(tmp_path / "run", ema_decay=None, max_steps=8)
