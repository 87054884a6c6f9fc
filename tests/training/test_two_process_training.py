"""Two real processes on the CPU train, score, save and resume as one does; one that is killed takes nothing with it."""

import contextlib
import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.multiprocessing.spawn import ProcessException, start_processes
from transformers import AutoModel

from modeling_triaffine.evaluation.scores import score_entities
from modeling_triaffine.training.interruptions import list_checkpoints
from tests.helpers.faults import RECORDS, UPDATES, SignalAfter, assert_same_weights, failing_at_batch, make_loss_nan
from tests.helpers.micro_training import micro_records, micro_trainer, weights_after_training
from tests.helpers.processes import PATIENCE, begin, free_port

DIES_AFTER = 7
# 4 epochs of 4 updates, with dropout after each evaluation; a kill after update 7 leaves a checkpoint within an epoch.
INTERRUPTED = {"num_train_epochs": 4, "save_strategy": "steps", "save_steps": 2, "max_subwords_per_batch": 24}
INTERRUPTED |= {"eval_strategy": "epoch"}


def train_in_every_way(folder: Path) -> None:
    batches = {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 2, "save_strategy": "epoch"}
    trainer = micro_trainer(folder, micro_records(8), micro_records(7, seed=1), optim="sgd", **batches)
    weights_after_training(trainer)
    result = {
        "processes": trainer.accelerator.num_processes,
        "metrics": trainer.evaluate(),
        "predictions": trainer.predict(trainer.eval_dataset).predictions,
    }
    trainer.save_model()
    train_interrupted(folder / "uninterrupted")
    train_interrupted(folder / "killed")
    (folder / f"process_{os.environ['RANK']}.json").write_text(json.dumps(result))


def train_interrupted(folder: Path, update_to_die_after: int | None = None) -> None:
    """A training that goes on where it was, and saves its model; the second process may die in it."""
    trainer = micro_trainer(folder, micro_records(12), micro_records(3, seed=1), {"mlp_dropout": 0.3}, **INTERRUPTED)
    if update_to_die_after is not None and trainer.args.process_index == 1:
        trainer.add_callback(SignalAfter(update_to_die_after, signal.SIGKILL))
    trainer.train(resume_from_checkpoint=True)
    trainer.save_model()


def launch_two(function: Callable, *arguments: object) -> list[int | None]:
    """Exit codes of two processes that train together; as soon as one fails, the other is ended."""
    multiprocessing.set_forkserver_preload(["tests.helpers.warm", function.__module__])
    arguments = (str(free_port()), function, arguments)
    both = start_processes(_begin_as, arguments, nprocs=2, join=False, start_method="forkserver")
    with contextlib.suppress(ProcessException):
        while not both.join(PATIENCE):
            pass
    return [process.exitcode for process in both.processes]


def _begin_as(rank: int, port: str, function: Callable, arguments: tuple) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    begin(function, arguments)


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    """The folder that two processes wrote into, and the result of each."""
    folder = tmp_path_factory.mktemp("two")
    assert -signal.SIGKILL in launch_two(train_interrupted, folder / "killed", DIES_AFTER)
    assert list_checkpoints(folder / "killed")[-1].name == "checkpoint-6"
    launch_two(train_in_every_way, folder)
    # Processes may abort when they end, after all work is done: what they wrote is what counts.
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("process_*.json"))]
    assert [result["processes"] for result in results] == [2, 2]
    return folder, results


def test_they_train_and_score_as_one_does(tmp_path, two_processes):
    folder, results = two_processes
    options = {"optim": "sgd", "per_device_train_batch_size": 8}
    alone = micro_trainer(tmp_path, micro_records(8), micro_records(7, seed=1), **options)
    weights = weights_after_training(alone)
    metrics = alone.evaluate()
    for result in results:
        for name in ("eval_loss", "eval_f1", "eval_nested_f1"):
            assert result["metrics"][name] == pytest.approx(metrics[name], rel=1e-9), name
        scores = score_entities(result["predictions"], alone.eval_dataset["entities"])
        assert scores["f1"] == result["metrics"]["eval_f1"]
    saved = AutoModel.from_pretrained(folder, dtype=torch.float64).state_dict()
    torch.testing.assert_close(saved, weights, rtol=0, atol=1e-10)


def test_training_resumes_in_the_middle_of_an_epoch_after_a_process_was_killed(two_processes):
    folder, _ = two_processes
    assert (folder / "checkpoint-1" / "rng_state_1.pth").is_file()
    assert not (folder / "_incomplete").exists()
    assert_same_weights(*(load_file(folder / name / "model.safetensors") for name in ("killed", "uninterrupted")))


def train_in_process(folder: Path) -> None:
    """One of two processes; the loss of the second is no number in update 3."""
    trainer = micro_trainer(folder, RECORDS, **UPDATES)
    rank = trainer.args.process_index
    if rank == 1:
        trainer.model.register_forward_hook(failing_at_batch(3, make_loss_nan))
    try:
        trainer.train()
    except FloatingPointError as error:
        (folder / f"{rank}.txt").write_text(str(error))


def test_of_two_processes_both_stop_if_one_loss_is_not_finite(tmp_path) -> None:
    assert launch_two(train_in_process, tmp_path) == [0, 0]
    messages = [(tmp_path / f"{rank}.txt").read_text() for rank in range(2)]
    assert messages[0] == messages[1]
    assert "The loss of update 3 is nan" in messages[0]
    assert [path.name for path in list_checkpoints(tmp_path)] == ["checkpoint-1", "checkpoint-2"]
