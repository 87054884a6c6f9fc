"""The optimizer: parameter groups, and averaged weights: what the average is, where it is used, exact resuming."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import TrainerCallback

from modeling_triaffine.training.optimization import averaging, build_parameter_groups
from tests.helpers.micro_training import micro_records, micro_trainer
from tests.model.test_launches import Launches


def test_each_parameter_is_in_one_group_with_its_rate_and_decay(tmp_path: Path) -> None:
    rates = {"head": 3.0, "words": 2.0, "encoder": 1.0}
    options = {"learning_rate": 3.0, "embeddings_learning_rate": 2.0, "encoder_learning_rate": 1.0}
    trainer = micro_trainer(tmp_path, micro_records(4), **options)
    groups = trainer.create_optimizer().param_groups
    names = {id(parameter): name for name, parameter in trainer.model.named_parameters()}
    by_group = {group["name"]: {names[id(parameter)] for parameter in group["params"]} for group in groups}
    counted = Counter(name for names in by_group.values() for name in names)
    assert set(counted) == {*names.values()}
    assert set(counted.values()) == {1}
    for group in groups:
        part, *no_decay = group["name"].split("_", 1)
        assert all(name.startswith(f"{part}.") for name in by_group[group["name"]])
        assert (group["lr"], group["weight_decay"]) == (rates[part], 0.0 if no_decay else 0.01)
    assert groups[0]["name"].startswith("head")
    model = trainer.model
    no_decay = {name for group, names in by_group.items() if group.endswith("no_decay") for name in names}
    norms = {
        f"{module_name}.{name}"
        for module_name, module in model.named_modules()
        if isinstance(module, nn.LayerNorm)
        for name, _ in module.named_parameters()
    }
    biases = {name for name, _ in model.named_parameters() if "bias" in name}
    assert "head.label_bias" in biases
    assert norms
    assert no_decay == norms | biases


def test_frozen_parameters_are_in_no_group() -> None:
    model = nn.ModuleDict({"head": nn.Linear(2, 2), "encoder": nn.Linear(2, 2)})
    model["encoder"].requires_grad_(False)
    groups = build_parameter_groups(model.named_parameters(), {"head": 1.0, "encoder": 1.0}, 0.1, {"head.weight"})
    assert [group["name"] for group in groups] == ["head", "head_no_decay"]
    with pytest.raises(ValueError, match="No weight of the model is trained"):
        build_parameter_groups(model["encoder"].named_parameters(), {}, 0.1, set())
    with pytest.raises(ValueError, match="wrapped as a whole"):  # so its parts have no rates
        build_parameter_groups(nn.ModuleDict({"base_model": model}).named_parameters(), {}, 0.1, set())


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


def test_a_weight_that_gets_its_first_gradient_late_is_averaged_from_then_on():
    early, late = (torch.nn.Parameter(torch.tensor([value])) for value in (1.0, -2.0))
    optimizer = averaging(torch.optim.AdamW, decay=0.25)([early, late], lr=0.1)
    with pytest.raises(ValueError, match="averages the weights itself"):  # as schedule-free optimizers do
        averaging(type(optimizer), decay=0.25)
    for update in range(4):
        optimizer.zero_grad()
        (early if update < 2 else early * late).square().sum().backward()
        optimizer.step()
        trained = late.detach().clone()
        optimizer.eval()
        assert torch.equal(late, trained) == (update < 3)  # its average starts with its first update
        optimizer.train()
        assert torch.equal(late, trained)


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


def test_a_second_training_starts_with_the_result_of_the_first(tmp_path: Path):
    trainer, seen = train_with_averages(tmp_path), []
    bias = trainer.model.head.label_bias
    result = bias.detach().clone()
    trainer.model.register_forward_pre_hook(lambda *_: seen.append(bias.detach().clone()))
    trainer.train()
    assert torch.equal(seen[0], result)


def test_averages_stay_on_in_a_resumed_run(tmp_path: Path):
    train_with_averages(tmp_path / "run")
    assert train_with_averages(tmp_path / "run", ema_decay=None, max_steps=8).args.ema_decay == 0.8


def test_an_update_launches_little_outside_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As on a GPU, where clipping, AdamW and averages take all weights of a group at once."""
    monkeypatch.setattr(torch.nn.utils.clip_grad, "_has_foreach_support", lambda *_: True)
    trainer = micro_trainer(tmp_path, RECORDS, **TRAINING, ema_decay=0.8, optim="adamw_torch_fused", max_grad_norm=1.0)
    counts, clip = [], trainer._clip_grad_norm

    def clip_and_count(model: nn.Module):
        counts.append(Launches())
        counts[-1].__enter__()
        return clip(model)

    class Stop(TrainerCallback):
        def on_step_end(self, *_, **__):
            counts[-1].__exit__(None, None, None)

    monkeypatch.setattr(trainer, "_clip_grad_norm", clip_and_count)
    trainer.add_callback(Stop())
    trainer.train()
    assert len(trainer.optimizer.param_groups) == 6
    # The first update makes the state, the last puts the average into the model.
    assert max(len(update.names) for update in counts[1:-1]) <= 30
