"""Faults of numbers and memory in training, and signals: each stops it with one paragraph, and nothing broken is saved.

Faults of folders and files are in `test_interrupted_runs.py`.
"""

import os
import re
import signal

import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

from modeling_triaffine.training import interruptions
from modeling_triaffine.training.interruptions import (
    OutOfMemoryError,
    StoppedError,
    TrainingFault,
    find_checkpoint,
    list_checkpoints,
)
from modeling_triaffine.training.plan import training_options
from modeling_triaffine.training.saving import describe_settings
from tests.helpers.faults import (
    RECORDS,
    UPDATES,
    assert_same_weights,
    failing_at_batch,
    ids_of_update,
    make_loss_nan,
)
from tests.helpers.micro_training import micro_trainer

# ---- Numbers ----


def test_a_loss_that_is_not_finite_stops_training_before_the_update(tmp_path) -> None:
    """It is that of the first of two batches; how a run goes on is in `test_interrupted_runs.py`."""
    options = {**UPDATES, "gradient_accumulation_steps": 2, "dataloader_num_workers": 2}
    trainer = micro_trainer(tmp_path, RECORDS, **options)
    trainer.model.register_forward_hook(failing_at_batch(7, make_loss_nan))
    with pytest.raises(FloatingPointError, match=r"loss of update 4 is nan.*All weights are finite") as caught:
        trainer.train()
    assert isinstance(caught.value, TrainingFault)
    at_fault, sound = ids_of_update(trainer, update=4, accumulation=2)
    assert all(repr(name) in str(caught.value) for name in at_fault)
    assert not any(repr(name) in str(caught.value) for name in sound)
    latest = tmp_path / "checkpoint-3"
    assert find_checkpoint("latest", tmp_path) == str(latest)
    assert_same_weights(trainer.model.state_dict(), load_file(latest / "model.safetensors"))


class BreakGradients(TrainerCallback):
    def __init__(self, update: int):
        self.update = update

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        if state.global_step + 1 == self.update:
            model.head.label_bias.grad.fill_(float("inf"))


def test_an_update_that_broke_the_weights_is_noticed_at_the_next(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, **{**UPDATES, "save_steps": 2})
    trainer.add_callback(BreakGradients(3))
    with pytest.raises(FloatingPointError, match=r"update 4 is nan.* previous update.* such as head\.label_bias"):
        trainer.train()
    assert find_checkpoint("latest", tmp_path) == str(tmp_path / "checkpoint-2")


def test_broken_weights_are_not_saved(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, **UPDATES)
    trainer.add_callback(BreakGradients(3))
    with pytest.raises(FloatingPointError, match=r"checkpoint of update 3 is not saved: .* such as head\.label_bias"):
        trainer.train()
    assert find_checkpoint("latest", tmp_path) == str(tmp_path / "checkpoint-2")
    with pytest.raises(FloatingPointError, match=r"The model is not saved"):
        trainer.save_model()
    assert not (tmp_path / "config.json").exists()


# ---- Memory ----


def gpu_is_full(_output) -> None:
    raise torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.1 GiB is "
        "free. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF."
    )


def test_memory_that_runs_out_is_explained_with_what_reduces_it(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, per_device_train_batch_size=4, per_device_eval_batch_size=2)
    for number, run in (("4", trainer.train), (r"\d", lambda: trainer.evaluate(trainer.train_dataset))):
        hook = trainer.model.register_forward_hook(failing_at_batch(2, gpu_is_full))
        expected = rf"batch of {number} sentences of up to \d+ sub-words \(CUDA out of memory\. Tried .* 2\.00 GiB\)"
        with pytest.raises(OutOfMemoryError, match=expected) as caught:
            run()
        hook.remove()
    assert {*re.findall(r"--(\w+)", str(caught.value))} <= training_options().keys()


def test_smaller_batches_are_found_where_memory_runs_out(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, per_device_train_batch_size=8, auto_find_batch_size=True)

    def too_large(_module, _inputs, options, _output) -> None:
        if len(options["num_words"]) > 4:
            gpu_is_full(None)

    trainer.model.register_forward_hook(too_large, with_kwargs=True)
    trainer.train()
    assert trainer.state.train_batch_size <= 4
    assert describe_settings(trainer)["per_device_train_batch_size"] == trainer.state.train_batch_size
    assert trainer.state.global_step == 3


# ---- Signals ----


class SignalAfter(TrainerCallback):
    def __init__(self, update: int, number: int):
        self.update, self.number = update, number

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.update:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_training_with_a_checkpoint_from_which_it_goes_on_exactly(tmp_path, number) -> None:
    options = {"num_train_epochs": 2, "per_device_train_batch_size": 2, "eval_strategy": "epoch"}
    options |= {"save_strategy": "epoch", "ema_decay": 0.5, "save_total_limit": 9}
    whole = micro_trainer(tmp_path / "whole", RECORDS, RECORDS[:3], **options)
    whole.train()
    for update in (2, 5):  # in the middle of an epoch, and before its last update, after which it is evaluated
        folder = tmp_path / str(update)
        trainer = micro_trainer(folder, RECORDS, RECORDS[:3], **options)
        trainer.add_callback(SignalAfter(update, number))
        before = signal.getsignal(number)
        with pytest.raises(
            StoppedError, match=rf"update {update + 1} of 12; saved in .*checkpoint-{update + 1}: .*--resume"
        ):
            trainer.train()
        assert signal.getsignal(number) is before
        evaluated = [entry["step"] for entry in trainer.state.log_history if "eval_f1" in entry]
        assert evaluated == ([6] if update == 5 else [])
        resumed = micro_trainer(folder, RECORDS, RECORDS[:3], **options)
        resumed.train(resume_from_checkpoint=True)
        assert resumed.state.best_metric == whole.state.best_metric
        assert_same_weights(resumed.model.state_dict(), whole.model.state_dict())


def test_checkpoints_come_in_time(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(interruptions, "MOST_SECONDS", 0.0)
    caplog.set_level("INFO")
    options = {"num_train_epochs": 2, "per_device_train_batch_size": 4, "save_strategy": "epoch", "save_total_limit": 9}
    trainer = micro_trainer(tmp_path, RECORDS, **options)
    trainer.train()
    assert [path.name for path in list_checkpoints(tmp_path)] == [f"checkpoint-{n}" for n in range(1, 7)]
    assert "The first checkpoint comes after an epoch, or after 0 minutes." in caplog.text
