"""A training that is killed at any moment and started again ends with the weights of an uninterrupted one, bit for bit.

The trainings run in processes of their own, which kill themselves with SIGKILL at a chosen place of the code.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

from modeling_triaffine.training import checkpoints
from modeling_triaffine.training.checkpoints import find_checkpoint, list_checkpoints
from modeling_triaffine.training.run import prepare_run, train_and_save
from tests.helpers.micro_training import REPOSITORY, micro_records, new_process, script_environment, write_task

# 3 epochs of 4 updates; checkpoints after updates 3, 6, 9 and 12: in the middle of epochs, and at the end of one.
TRAINING = {
    "num_train_epochs": 3,
    "per_device_train_batch_size": 3,
    "gradient_accumulation_steps": 2,
    "eval_strategy": "steps",
    "eval_steps": 3,
    "save_strategy": "steps",
    "save_steps": 3,
    "logging_steps": 1,
    "learning_rate": 1e-2,
    "encoder_learning_rate": 1e-2,
    "embeddings_learning_rate": 1e-2,
    "use_cpu": True,
    "disable_tqdm": True,
}

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a system with SIGKILL")


def kill_this_process(*_arguments, **_options) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at_call(owner: object, name: str, number: int, before: Callable[..., object] | None = None) -> None:
    """Makes the `number`-th call of `owner.name` the last thing this process does."""
    original = getattr(owner, name)
    calls = 0

    def counted(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == number:
            if before is not None:
                before(*arguments, **options)
            kill_this_process()
        return original(*arguments, **options)

    setattr(owner, name, counted)


class KillAfterUpdate(TrainerCallback):
    def __init__(self, update: int):
        self.update = update

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.update:
            kill_this_process()


def write_half(_state: object, path: str, *_arguments: object) -> None:
    Path(path).write_bytes(b"half")


def delete_half(folder: Path, *_arguments, **_options) -> None:
    next(path for path in Path(folder).iterdir() if path.is_file()).unlink()


# Where a training is killed; each place is reached after the model and the trainer have been made.
KILLS: dict[str, Callable] = {
    "before the first checkpoint": lambda trainer: trainer.add_callback(KillAfterUpdate(2)),
    "in the middle of an epoch": lambda trainer: trainer.add_callback(KillAfterUpdate(8)),
    "while the first checkpoint is written": lambda trainer: kill_at_call(torch, "save", 2, write_half),
    "while a later checkpoint is written": lambda trainer: kill_at_call(torch, "save", 6, write_half),
    "before a whole checkpoint has its name": lambda trainer: kill_at_call(checkpoints, "publish_folder", 2),
    "before old checkpoints are removed": lambda trainer: kill_at_call(checkpoints, "discard_old_checkpoints", 2),
    "while an old checkpoint is removed": lambda trainer: kill_at_call(shutil, "rmtree", 2, delete_half),
    "after training": lambda trainer: kill_at_call(type(trainer), "predict", 1),
    "before the model has its name": lambda trainer: kill_at_call(checkpoints, "publish_files", 1),
    "while the model gets its name": lambda trainer: kill_at_call(Path, "replace", 3),
}


def command(corpus: Path, output_dir: Path) -> list[str]:
    recipe = corpus.parent / "recipe"
    return ["--recipe", str(recipe), "--train_file", str(corpus), "--output_dir", str(output_dir)]


def train(corpus: Path, output_dir: Path, kill: str | None, resume: bool) -> None:
    """What a process of its own does."""
    torch.set_num_threads(1)
    datasets.config.HF_DATASETS_CACHE = corpus.parent / "cache"
    run = prepare_run([*command(corpus, output_dir), *(["--resume_from_checkpoint"] if resume else [])])
    if kill is not None:
        KILLS[kill](run.trainer)
    train_and_save(run)


def in_own_process(*arguments) -> int:
    """Runs `train` in a process of its own; returns its exit code."""
    process = new_process(train, *arguments)
    process.join(timeout=120)
    assert process.exitcode is not None, "the training hangs"
    return process.exitcode


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("resume"), TRAINING, micro_records(23, seed=1), micro_records(9, seed=2))


@pytest.fixture(scope="module")
def uninterrupted(corpus: Path) -> Path:
    output_dir = corpus.parent / "uninterrupted"
    assert in_own_process(corpus, output_dir, None, False) == 0
    return output_dir


def state_of_latest(output_dir: Path) -> dict:
    return json.loads((list_checkpoints(output_dir)[-1] / "trainer_state.json").read_text(encoding="utf-8"))


def assert_same_end(output_dir: Path, expected_dir: Path) -> None:
    weights, expected = (load_file(folder / "model.safetensors") for folder in (output_dir, expected_dir))
    assert weights.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(weights[name], value), name
    history, expected_history = (
        [
            (entry["step"], entry["loss"])
            for entry in json.loads((folder / "log_history.json").read_text())
            if "loss" in entry
        ]
        for folder in (output_dir, expected_dir)
    )
    assert history == expected_history
    assert sorted(path.name for path in output_dir.iterdir()) == sorted(path.name for path in expected_dir.iterdir())


def test_uninterrupted_training_learns_and_keeps_the_best_checkpoint(uninterrupted: Path) -> None:
    state = state_of_latest(uninterrupted)
    evaluations = {entry["step"]: entry["eval_f1"] for entry in state["log_history"] if "eval_f1" in entry}
    best = max(evaluations, key=evaluations.__getitem__)
    assert state["best_model_checkpoint"] == str(uninterrupted / f"checkpoint-{best}")
    assert [path.name for path in list_checkpoints(uninterrupted)] == [f"checkpoint-{best}"]
    weights, best_weights = (
        load_file(folder / "model.safetensors") for folder in (uninterrupted, uninterrupted / f"checkpoint-{best}")
    )
    assert all(torch.equal(weights[name], value) for name, value in best_weights.items())


@pytest.mark.parametrize("kill", KILLS)
def test_killed_and_resumed_training_ends_as_an_uninterrupted_one(
    tmp_path: Path, corpus: Path, uninterrupted: Path, kill: str
) -> None:
    output_dir = tmp_path / "out"
    assert in_own_process(corpus, output_dir, kill, False) == -signal.SIGKILL
    for folder in output_dir.glob("checkpoint-*"):
        assert (folder / "optimizer.pt").stat().st_size > 1000
        best = json.loads((folder / "trainer_state.json").read_text())["best_model_checkpoint"]
        assert best is None or Path(best).parent == output_dir
    assert not (output_dir / "config.json").exists()
    assert in_own_process(corpus, output_dir, None, True) == 0
    assert_same_end(output_dir, uninterrupted)


def test_script_killed_from_outside_goes_on_with_the_same_command(
    tmp_path: Path, corpus: Path, uninterrupted: Path
) -> None:
    output_dir = tmp_path / "out"
    script = [sys.executable, str(REPOSITORY / "examples" / "train.py"), *command(corpus, output_dir)]
    script.append("--resume_from_checkpoint")
    environment = script_environment(corpus.parent)
    with subprocess.Popen(script, env=environment, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not output_dir.is_dir() or not list_checkpoints(output_dir):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.kill()
        assert "There is no checkpoint in" in process.stderr.read()
    assert process.returncode == -signal.SIGKILL
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Training goes on from" in done.stderr
    assert_same_end(output_dir, uninterrupted)


def test_the_latest_whole_checkpoint_is_found(tmp_path: Path) -> None:
    assert find_checkpoint(True, tmp_path) is None
    for name in ("checkpoint-9", "checkpoint-10", "checkpoint-x", "checkpoint-30"):
        (tmp_path / name).mkdir()
        if name != "checkpoint-30":
            (tmp_path / name / "trainer_state.json").write_text("{}")
    assert find_checkpoint("latest", tmp_path) == find_checkpoint(True, tmp_path) == str(tmp_path / "checkpoint-10")
    assert find_checkpoint(str(tmp_path / "checkpoint-9"), tmp_path) == str(tmp_path / "checkpoint-9")
    assert find_checkpoint(None, tmp_path) is find_checkpoint(False, tmp_path) is None
    with pytest.raises(FileNotFoundError, match="checkpoint-30 is no checkpoint to go on from"):
        find_checkpoint(str(tmp_path / "checkpoint-30"), tmp_path)


def test_old_checkpoints_are_removed_up_to_the_limit(tmp_path: Path) -> None:
    for step in (2, 4, 6, 10):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text("{}")
    checkpoints.discard_old_checkpoints(tmp_path, None, keep=set())
    assert len(list_checkpoints(tmp_path)) == 4
    checkpoints.discard_old_checkpoints(tmp_path, 2, keep={tmp_path / "checkpoint-2", tmp_path / "checkpoint-6"})
    assert [path.name for path in list_checkpoints(tmp_path)] == ["checkpoint-2", "checkpoint-6"]


def test_publishing_replaces_files_and_leaves_others(tmp_path: Path) -> None:
    source, target = tmp_path / "_incomplete" / "model", tmp_path
    source.mkdir(parents=True)
    for folder, content in ((target, "old"), (source, "new")):
        for name in ("config.json", "weights"):
            (folder / name).write_text(content)
    (target / "other").write_text("old")
    checkpoints.publish_files(source, target, last="config.json")
    assert {path.name: path.read_text() for path in target.iterdir() if path.is_file()} == {
        "config.json": "new",
        "weights": "new",
        "other": "old",
    }
    assert checkpoints.remove_leftovers(target)
    assert not checkpoints.remove_leftovers(target)
