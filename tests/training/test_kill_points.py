"""A training that is killed again and again, anywhere, ends with the weights of an uninterrupted one, bit for bit.

Kill points are the audit events of Python inside the run's folder (a file opened, renamed, removed; a folder made) and
the updates. A process of its own dies by SIGKILL at one drawn at random, the next goes on and dies in turn. As many as
$TRIAFFINE_KILL_POINTS are tried, 200 by default.
"""

import gc
import multiprocessing
import os
import random
import signal
import sys
from pathlib import Path

import datasets
import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

from modeling_triaffine import TriaffineForNestedNER
from modeling_triaffine.training.checkpoints import list_checkpoints
from modeling_triaffine.training.run import prepare_run
from tests.helpers.micro_training import micro_records, new_process, write_task

KILL_POINTS = int(os.environ.get("TRIAFFINE_KILL_POINTS", "200"))
CHAIN = 20  # processes killed, one after the other, on the way to one model
UPDATES = 30
TRAINING = {
    "max_steps": UPDATES,
    "per_device_train_batch_size": 4,
    "do_eval": False,
    "eval_strategy": "no",
    "load_best_model_at_end": False,
    "save_strategy": "steps",
    "save_steps": 6,
    "save_total_limit": 2,
    "logging_steps": 1,
    "learning_rate": 1e-2,
    "use_cpu": True,
    "disable_tqdm": True,
}

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a system with SIGKILL")


class Events(TrainerCallback):
    """Counts what happens in the run's folder; the event with the number `deadly` is the last."""

    def __init__(self, folder: Path, deadly: int | None):
        self.folder = str(folder)
        self.deadly = deadly
        self.count = 0

    def happen(self) -> None:
        self.count += 1
        if self.count == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, _event: str, arguments: tuple) -> None:
        if arguments and isinstance(arguments[0], str | os.PathLike) and str(arguments[0]).startswith(self.folder):
            self.happen()

    def on_step_end(self, args, state, control, **kwargs):
        self.happen()


def train(corpus: Path, output_dir: Path, deadly: int | None, results) -> None:
    """What a process of its own does; it tells how many events there were."""
    gc.freeze()  # what was imported need not be looked through
    torch.set_num_threads(1)
    datasets.config.HF_DATASETS_CACHE = corpus.parent / "cache"
    options = ["--recipe", str(corpus.parent / "recipe"), "--train_file", str(corpus), "--output_dir", str(output_dir)]
    run = prepare_run([*options, "--resume_from_checkpoint"])
    events = Events(output_dir, deadly)
    run.trainer.add_callback(events)
    sys.addaudithook(events.audit)
    run.trainer.train(resume_from_checkpoint=True)
    run.trainer.save_model()
    results.put(events.count)


def in_own_process(corpus: Path, output_dir: Path, deadly: int | None = None) -> int | None:
    """Number of events of a training that ended; None of one that was killed."""
    results = multiprocessing.get_context("forkserver").SimpleQueue()
    process = new_process(train, corpus, output_dir, deadly, results)
    process.join(timeout=120)
    assert process.exitcode in (0, -signal.SIGKILL)
    return results.get() if process.exitcode == 0 else None


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("kills"), TRAINING, micro_records(40, seed=1))


@pytest.fixture(scope="module")
def uninterrupted(corpus: Path) -> tuple[Path, int]:
    """The folder of a training that nobody killed, and its number of events."""
    folder = corpus.parent / "uninterrupted"
    events = in_own_process(corpus, folder)
    assert events is not None
    assert events > 5 * UPDATES
    return folder, events


@pytest.mark.parametrize("chain", range(max(1, KILL_POINTS // CHAIN)))
def test_killed_anywhere_a_training_ends_as_if_it_had_not_been(corpus, uninterrupted, tmp_path, chain):
    whole, events = uninterrupted
    expected = load_file(whole / "model.safetensors")
    choose = random.Random(chain)
    kills = runs = 0
    ended = False
    while not ended or kills < CHAIN:
        runs += ended  # what has ended makes way for a new training
        folder = tmp_path / str(runs)
        # Within a third of a training's events: the next process begins further on, so that all places have their turn.
        deadly = choose.randint(1, events // 3) if kills < CHAIN else None
        ended = in_own_process(corpus, folder, deadly) is not None
        kills += not ended
        for checkpoint in list_checkpoints(folder):
            TriaffineForNestedNER.from_pretrained(checkpoint)
        if ended or (folder / "config.json").exists():  # then it loads, and is the finished model
            assert_same(load_file(folder / "model.safetensors"), expected)


def assert_same(weights: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert set(weights) == set(expected)
    for name, values in weights.items():
        assert torch.equal(values, expected[name]), name
