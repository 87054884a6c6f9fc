"""Faults of numbers and memory, signals, and the checkpoint from which a training goes on and what it takes over.

Trainings killed anywhere are in `test_kill_points.py`.
"""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

from modeling_triaffine.files import locked
from modeling_triaffine.publishing.run_summary import RunSummary
from modeling_triaffine.training import interruptions
from modeling_triaffine.training.interruptions import CheckpointError, OutOfMemoryError, find_checkpoint
from modeling_triaffine.training.plan import training_options
from tests.helpers.faults import RECORDS, UPDATES, SignalAfter, assert_same_weights, failing_at_batch, make_loss_nan
from tests.helpers.micro_training import micro_trainer

# ---- Numbers ----


def test_a_loss_that_is_not_finite_stops_training_before_the_update(tmp_path) -> None:
    """It is that of the first of two batches."""
    options = {**UPDATES, "gradient_accumulation_steps": 2, "dataloader_num_workers": 2}
    trainer = micro_trainer(tmp_path, RECORDS, **options)
    trainer.model.register_forward_hook(failing_at_batch(7, make_loss_nan))
    with pytest.raises(FloatingPointError, match=r"loss of update 4 is nan.*All weights are finite") as caught:
        trainer.train()
    assert isinstance(caught.value, interruptions.TrainingFault)
    latest = tmp_path / "checkpoint-3"
    assert find_checkpoint("latest", tmp_path) == str(latest)
    assert_same_weights(trainer.model.state_dict(), load_file(latest / "model.safetensors"))


class BreakGradients(TrainerCallback):
    def __init__(self, update: int):
        self.update = update

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        if state.global_step + 1 == self.update:
            model.head.label_bias.grad.fill_(float("inf"))


@pytest.mark.parametrize(
    ("save_steps", "message"),
    [
        (2, r"update 4 is nan.* update before.* such as head\.label_bias"),
        (1, r"checkpoint of update 3 is not saved: .* such as head\.label_bias"),
    ],
)
def test_an_update_that_broke_the_weights_is_noticed_at_the_next_or_at_a_checkpoint(tmp_path, save_steps, message):
    trainer = micro_trainer(tmp_path, RECORDS, **{**UPDATES, "save_steps": save_steps})
    trainer.add_callback(BreakGradients(3))
    with pytest.raises(FloatingPointError, match=message):
        trainer.train()
    assert find_checkpoint("latest", tmp_path) == str(tmp_path / "checkpoint-2")
    with pytest.raises(FloatingPointError, match=r"The model is not saved"):
        trainer.save_model()
    assert not (tmp_path / "config.json").exists()


# ---- Memory ----


def gpu_is_full(_output) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15 GiB")


def test_memory_that_runs_out_is_explained_with_what_reduces_it(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, per_device_train_batch_size=4, per_device_eval_batch_size=2)
    for run in (trainer.train, lambda: trainer.evaluate(trainer.train_dataset)):
        hook = trainer.model.register_forward_hook(failing_at_batch(2, gpu_is_full))
        with pytest.raises(OutOfMemoryError, match=r"memory \(CUDA out of memory\. Tried .* 2\.00 GiB\)") as caught:
            run()
        hook.remove()
    assert set() < {*re.findall(r"--(\w+)", str(caught.value))} <= training_options().keys()


def test_smaller_batches_are_found_where_memory_runs_out(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, per_device_train_batch_size=8, auto_find_batch_size=True)

    def too_large(_module, _inputs, options, _output) -> None:
        if len(options["num_words"]) > 4:
            gpu_is_full(None)

    trainer.model.register_forward_hook(too_large, with_kwargs=True)
    trainer.train()
    assert trainer.state.train_batch_size <= 4
    assert trainer.describe_settings()["per_device_train_batch_size"] == trainer.state.train_batch_size
    assert trainer.state.global_step == 3


# ---- Signals ----


@pytest.mark.parametrize(("number", "saved"), [(signal.SIGINT, "epoch"), (signal.SIGTERM, "best")])
def test_a_signal_ends_training_with_a_checkpoint_from_which_it_goes_on_exactly(tmp_path, number, saved) -> None:
    options = {"num_train_epochs": 3, "per_device_train_batch_size": 2, "eval_strategy": "epoch"}
    options |= {"save_strategy": saved, "ema_decay": 0.5, "save_total_limit": 9}
    whole = micro_trainer(tmp_path / "whole", RECORDS, RECORDS[:3], **options)
    whole.train()
    for update in (2, 11):  # in the middle of an epoch, and before its last update, after which it is evaluated
        folder = tmp_path / str(update)
        trainer = micro_trainer(folder, RECORDS, RECORDS[:3], **options)
        trainer.add_callback(SignalAfter(update, number))
        before = signal.getsignal(number)
        stopped = rf"update {update + 1} of 18; saved in .*checkpoint-{update + 1}: .*--resume"
        with pytest.raises(interruptions.StoppedError, match=stopped):
            trainer.train()
        assert signal.getsignal(number) is before
        RunSummary().save(folder)  # of a run before
        trainer.save_model(str(folder))
        assert RunSummary.load(folder) is None
        evaluated = [entry["step"] for entry in trainer.state.log_history if "eval_f1" in entry]
        assert evaluated == ([6, 12] if update == 11 else [])
        resumed = micro_trainer(folder, RECORDS, RECORDS[:3], **options)
        resumed.train(resume_from_checkpoint=True)
        assert resumed.state.best_metric == whole.state.best_metric
        for weights in ("train", "eval"):  # those in training and their average, with which the model ends
            for each in (resumed, whole):
                getattr(each.optimizer, weights)()
            assert_same_weights(resumed.model.state_dict(), whole.model.state_dict())


def test_checkpoints_come_in_time(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(interruptions, "MOST_SECONDS", 0.0)
    caplog.set_level("INFO")
    options = {"num_train_epochs": 2, "per_device_train_batch_size": 4, "save_strategy": "epoch", "save_total_limit": 9}
    trainer = micro_trainer(tmp_path, RECORDS, **options)
    trainer.train()
    assert [path.name for path in interruptions.list_checkpoints(tmp_path)] == [f"checkpoint-{n}" for n in range(1, 7)]
    assert "The first checkpoint comes after an epoch, or after 0 minutes." in caplog.text


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.fixture(scope="module")
def checkpointed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoints of two updates."""
    folder = tmp_path_factory.mktemp("checkpointed")
    micro_trainer(folder, RECORDS[:4], **{**UPDATES, "num_train_epochs": 1}).train()
    return folder


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, monkeypatch) -> None:
    save = torch.save

    def save_half(content, path, **options):
        save(content, path, **options)
        if "checkpoint-3" in str(path):
            cut_off(Path(path))
            raise RuntimeError("unexpected pos 576 vs 534")  # of torch

    monkeypatch.setattr(torch, "save", save_half)
    with pytest.raises(OSError, match=rf"saved in {tmp_path}\. Is the disk full\?"):
        micro_trainer(tmp_path, RECORDS, **UPDATES).train()
    assert find_checkpoint("latest", tmp_path) == str(tmp_path / "checkpoint-2")


@pytest.mark.parametrize("damage", [cut_off, Path.unlink, lambda path: path.write_text("[]")])
def test_an_incomplete_checkpoint_is_skipped_and_set_aside(tmp_path, checkpointed, caplog, damage) -> None:
    """The Trainer writes the state last. A person's own folders stay."""
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    (folder / "checkpoint-2-notes").mkdir()
    damage(folder / "checkpoint-2" / "trainer_state.json")
    assert find_checkpoint("latest", folder) == find_checkpoint(True, folder) == str(folder / "checkpoint-1")
    with pytest.raises(CheckpointError, match=r"checkpoint-2 .*trainer_state\.json"):
        find_checkpoint(str(folder / "checkpoint-2"), folder)
    interruptions.set_incomplete_aside(folder)
    assert [path.name for path in interruptions.list_checkpoints(folder)] == ["checkpoint-1"]
    assert (folder / "checkpoint-2-notes").is_dir()
    (aside,) = folder.glob("incomplete-checkpoint-2-*")
    assert (aside / "model.safetensors").is_file()
    assert aside.name in caplog.messages.pop()
    assert find_checkpoint("latest", tmp_path) is None
    assert "starting from scratch" in caplog.text


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "model.safetensors"])
@pytest.mark.parametrize("damage", [cut_off, lambda path: path.write_bytes(b"")], ids=["cut off", "empty"])
def test_damaged_files_are_an_error_that_names_the_checkpoint_before(tmp_path, checkpointed, name, damage) -> None:
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    damage(folder / "checkpoint-2" / name)
    trainer = micro_trainer(folder, RECORDS[:4], **{**UPDATES, "num_train_epochs": 2})
    with pytest.raises(CheckpointError, match=r"checkpoint-2 cannot be loaded.*_checkpoint .*/checkpoint-1"):
        trainer.train(resume_from_checkpoint=True)


def test_what_a_resumed_training_takes_from_its_checkpoint(tmp_path, checkpointed, caplog) -> None:
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    others = ((RECORDS[4:8], 9, None, "of other sentences"), (RECORDS[:4], 9, "outermost", "--flat_annotation"))
    for records, most, flat_annotation, problem in (*others, (RECORDS[:4], 1, None, "update 2 exceeds")):
        trainer = micro_trainer(folder, records, **{**UPDATES, "max_steps": most})
        trainer.data_collator.flat_annotation = flat_annotation
        with pytest.raises(CheckpointError, match=problem):
            trainer.train(resume_from_checkpoint=True)
    others = {"num_train_epochs": 2, "learning_rate": 0.5, "seed": 7, "optim": "sgd", "ema_decay": 0.5}
    trainer = micro_trainer(folder, RECORDS[:4], **{**UPDATES, **others})
    trainer.train(resume_from_checkpoint=True)
    stay = "ema_decay None, learning_rate 0.01, optim adamw_torch_fused"
    assert f"Options stay as in the checkpoint: {stay}" in caplog.text
    assert [trainer.run_summary.settings.get(name) for name in others] == [2, 0.01, 42, "adamw_torch_fused", None]
    (folder / "checkpoint-2" / "optimizer.pt").unlink()  # as with `save_only_model`
    with pytest.raises(CheckpointError, match=r"has no optimizer .*Start a new run"):
        trainer.train(resume_from_checkpoint=str(folder / "checkpoint-2"))


def test_a_folder_has_one_run(tmp_path, checkpointed) -> None:
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    with pytest.raises(ValueError, match=r"has checkpoint-2 of an earlier run\. Add --resume_from_checkpoint"):
        interruptions.choose_checkpoint(None, folder)
    assert interruptions.choose_checkpoint("latest", folder) == str(folder / "checkpoint-2")
    path = str(folder / ".lock")
    hold = f"import filelock; lock = filelock.FileLock({path!r}); lock.acquire(); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(ValueError, match=f"Another run is writing to {folder}"):
            locked(folder).__enter__()
        other.stdin.close()
    locked(folder).__enter__()
