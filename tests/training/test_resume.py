"""From which checkpoint a training goes on, and what it takes over; `test_kill_points.py` kills it anywhere."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import SchedulerType

from modeling_triaffine.training.interruptions import (
    CheckpointError,
    choose_checkpoint,
    find_checkpoint,
    list_checkpoints,
    lock_folder,
    remove_incomplete,
)
from modeling_triaffine.training.saving import summarize_training
from tests.helpers.faults import RECORDS, UPDATES, assert_same_weights
from tests.helpers.micro_training import micro_trainer


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.fixture(scope="module")
def checkpointed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoints of two updates."""
    folder = tmp_path_factory.mktemp("checkpointed")
    micro_trainer(folder, RECORDS[:4], **{**UPDATES, "num_train_epochs": 1}).train()
    return folder


@pytest.mark.parametrize("damage", [cut_off, Path.unlink, lambda path: path.write_text("[]")])
def test_an_incomplete_checkpoint_is_skipped_and_removed(tmp_path, checkpointed, caplog, damage) -> None:
    """The Trainer writes the state last."""
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    damage(folder / "checkpoint-2" / "trainer_state.json")
    assert find_checkpoint("latest", folder) == find_checkpoint(True, folder) == str(folder / "checkpoint-1")
    with pytest.raises(CheckpointError, match=r"checkpoint-2 .*trainer_state\.json"):
        find_checkpoint(str(folder / "checkpoint-2"), folder)
    remove_incomplete(folder)
    assert [path.name for path in list_checkpoints(folder)] == ["checkpoint-1"]
    [line] = caplog.messages
    assert "checkpoint-2, which is incomplete" in line


def test_a_checkpoint_of_another_name_is_resumed_from(tmp_path, checkpointed) -> None:
    start = shutil.copytree(checkpointed / "checkpoint-1", tmp_path / "start")
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    (folder / "checkpoint-2" / "trainer_state.json").unlink()
    trainer = micro_trainer(folder, RECORDS[:4], **{**UPDATES, "num_train_epochs": 1, "save_strategy": "no"})
    trainer.train(resume_from_checkpoint=str(start))
    assert trainer.state.global_step == 2
    assert [path.name for path in list_checkpoints(folder)] == ["checkpoint-1"]


@pytest.mark.parametrize(
    ("option", "value"),
    [("lr_scheduler_type", "reduce_lr_on_plateau"), ("lr_scheduler_type", "greedy"), ("optim", "adafactor")],
)
def test_rates_that_follow_the_scores_and_an_optimizer_outside_torch_are_resumed(tmp_path, option, value) -> None:
    if option == "lr_scheduler_type" and value not in list(SchedulerType):
        pytest.skip("needs a later version of transformers")
    options = {**UPDATES, "num_train_epochs": 2, "save_total_limit": 5, "eval_strategy": "epoch", option: value}
    trainer = micro_trainer(tmp_path, RECORDS[:4], RECORDS[:2], **options)
    trainer.train()
    shutil.rmtree(list_checkpoints(tmp_path)[-1])
    again = micro_trainer(tmp_path, RECORDS[:4], RECORDS[:2], **options)
    again.train(resume_from_checkpoint=True)
    if option == "lr_scheduler_type":
        assert again.args.lr_scheduler_kwargs["mode"] == "max"
    assert again.state.global_step == trainer.state.global_step
    assert_same_weights(again.model.state_dict(), trainer.model.state_dict())


def test_weights_alone_are_not_resumed_from(tmp_path) -> None:
    options = {**UPDATES, "num_train_epochs": 1, "save_only_model": True}
    micro_trainer(tmp_path, RECORDS[:4], **options).train()
    micro_trainer(tmp_path, RECORDS[:4], **options).train(resume_from_checkpoint=True)  # it was finished
    with pytest.raises(CheckpointError, match=r"no optimizer .*start a new run"):
        micro_trainer(tmp_path, RECORDS[:4], **{**options, "num_train_epochs": 2}).train(resume_from_checkpoint=True)


def test_a_checkpoint_that_is_overwritten_is_incomplete_meanwhile(tmp_path, checkpointed, monkeypatch) -> None:
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    trainer = micro_trainer(folder, RECORDS[:4], **{**UPDATES, "num_train_epochs": 1})
    monkeypatch.setattr(trainer, "_save_optimizer_and_scheduler", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trainer.train(resume_from_checkpoint=str(folder / "checkpoint-1"))
    assert find_checkpoint("latest", folder) == str(folder / "checkpoint-1")


def test_checkpoints_are_found_by_their_update(tmp_path: Path) -> None:
    for name in ("checkpoint-9", "checkpoint-10", "checkpoint-x"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trainer_state.json").write_text("{}")
    assert find_checkpoint("latest", tmp_path) == str(tmp_path / "checkpoint-10")
    assert find_checkpoint(None, tmp_path) is find_checkpoint(True, tmp_path / "checkpoint-9") is None


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "model.safetensors"])
@pytest.mark.parametrize("damage", [cut_off, lambda path: path.write_bytes(b"")], ids=["cut off", "empty"])
def test_damaged_files_are_an_error_that_names_the_checkpoint_before(tmp_path, checkpointed, name, damage) -> None:
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    damage(folder / "checkpoint-2" / name)
    trainer = micro_trainer(folder, RECORDS[:4], **{**UPDATES, "num_train_epochs": 2})
    with pytest.raises(CheckpointError, match=r"checkpoint-2 cannot be loaded.*_checkpoint .*/checkpoint-1"):
        trainer.train(resume_from_checkpoint=True)


def test_options_that_a_checkpoint_keeps_are_those_of_the_card(tmp_path, checkpointed, caplog) -> None:
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    trainer = micro_trainer(folder, RECORDS[:4], **{**UPDATES, "num_train_epochs": 2, "learning_rate": 0.5, "seed": 7})
    trainer.train(resume_from_checkpoint=True)
    assert "Options stay as in the checkpoint: learning_rate 0.01, seed 42" in caplog.text
    settings = summarize_training(trainer).settings
    assert (settings["learning_rate"], settings["seed"], settings["num_train_epochs"]) == (0.01, 42, 2)


def test_another_corpus_is_not_resumed_with(tmp_path, checkpointed) -> None:
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    trainer = micro_trainer(folder, RECORDS[4:8], **UPDATES)
    with pytest.raises(CheckpointError, match="a training on other sentences"):
        trainer.train(resume_from_checkpoint=True)


def test_a_folder_has_one_run(tmp_path, checkpointed) -> None:
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    with pytest.raises(ValueError, match=r"has checkpoint-2 of an earlier run\. Add --resume_from_checkpoint"):
        choose_checkpoint(None, folder, do_train=True)
    assert choose_checkpoint("latest", folder, do_train=True) == str(folder / "checkpoint-2")
    path = str(folder / ".lock")
    hold = f"import filelock; lock = filelock.FileLock({path!r}); lock.acquire(); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(ValueError, match="Another run is writing to --output_dir"):
            lock_folder(folder)
        other.stdin.close()
    lock_folder(folder).release()
