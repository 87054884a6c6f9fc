"""What each of two processes does in `test_two_process_training.py`."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import torch

from modeling_triaffine import NestedNERTrainer
from tests.helpers.faults import SignalAfter
from tests.helpers.micro_training import micro_records, micro_trainer

# 4 epochs of 3 updates; a kill after update 7 leaves a checkpoint in the middle of an epoch.
INTERRUPTED = {"num_train_epochs": 4, "save_strategy": "steps", "save_steps": 2, "per_device_train_batch_size": 2}


def weights_after_training(trainer: NestedNERTrainer) -> dict[str, torch.Tensor]:
    trainer.model.double()  # so that only a real difference is one
    trainer.train()
    return trainer.model.state_dict()


def train_and_score(folder: Path) -> dict[str, Any]:
    batches = {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 2, "save_strategy": "epoch"}
    trainer = micro_trainer(folder, micro_records(8), micro_records(7, seed=1), optim="sgd", **batches)
    weights_after_training(trainer)
    result = {
        "processes": trainer.accelerator.num_processes,
        "metrics": trainer.evaluate(),
        "predictions": trainer.predict(trainer.eval_dataset).predictions,
    }
    trainer.save_model()
    return result


def resume(folder: Path, batches: dict[str, int]) -> dict[str, Any]:
    """Which weights differ after a training that went on from a checkpoint in the middle of its second epoch."""
    options = {**batches, "num_train_epochs": 2, "save_strategy": "steps", "save_steps": 1, "save_total_limit": 99}
    trainers = [micro_trainer(folder, micro_records(12), config={"mlp_dropout": 0.3}, **options) for _ in range(2)]
    trainers[0].train()
    step = trainers[0].state.max_steps // 2 + 1
    trainers[1].train(resume_from_checkpoint=str(folder / f"checkpoint-{step}"))
    whole, resumed = (trainer.model.state_dict() for trainer in trainers)
    differing = [part for part in whole if not torch.equal(whole[part], resumed[part])]
    return {"updates": trainers[0].state.max_steps, "checkpoint": step, "differing": differing}


def train_interrupted(folder: Path, update_to_die_after: int | None = None) -> None:
    """A training that goes on where it was, and saves its model; the second process may die in it."""
    trainer = micro_trainer(folder, micro_records(12), config={"mlp_dropout": 0.3}, **INTERRUPTED)
    if update_to_die_after is not None and trainer.args.process_index == 1:
        trainer.add_callback(SignalAfter(update_to_die_after, signal.SIGKILL))
    trainer.train(resume_from_checkpoint=True)
    trainer.save_model()


def train_in_every_way(folder: Path) -> None:
    result = train_and_score(folder)
    for batches in ({"per_device_train_batch_size": 2}, {"max_subwords_per_batch": 24}):
        [name] = batches
        result[name] = resume(folder / name, batches)
    train_interrupted(folder / "uninterrupted")
    train_interrupted(folder / "killed")
    (folder / f"process_{os.environ['RANK']}.json").write_text(json.dumps(result))
