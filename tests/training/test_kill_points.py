"""A training that is killed again and again, anywhere, ends with exactly the weights of an uninterrupted one.

Kill points are Python's audit events inside the run's folder (a file opened, renamed, removed; a folder made), files of
weights and of the optimizer half written, and the updates. A process dies by SIGKILL at a random one, the next resumes
and dies in turn. $TRIAFFINE_KILL_POINTS are tried, 200 by default.
"""

import contextlib
import gc
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import TrainerCallback

from modeling_triaffine import TriaffineForNestedNER
from modeling_triaffine.model import repository_triaffine
from modeling_triaffine.training.interruptions import find_checkpoint
from modeling_triaffine.training.run import Run, prepare_run
from tests.helpers.faults import assert_same_weights
from tests.helpers.micro_training import MICRO_CONFIG, MICRO_ENCODER, micro_records, task_arguments, write_task
from tests.helpers.processes import PATIENCE, new_process

KILL_POINTS = int(os.environ.get("TRIAFFINE_KILL_POINTS", "200"))
CHAIN = 20  # processes killed, one after the other, on the way to one model
UPDATES = 9  # of which 6 are an epoch
TRAINING = {
    "max_steps": UPDATES,
    "per_device_train_batch_size": 4,
    "do_eval": False,
    "eval_strategy": "no",
    "save_strategy": "steps",
    "save_steps": 2,
    "logging_steps": 1,
    "learning_rate": 1e-2,
    "use_cpu": True,
    "disable_tqdm": True,
}

ENCODER = {"encoder_config": {**MICRO_ENCODER, "vocab_size": 300}}
SMALL = {**MICRO_CONFIG, **ENCODER, "attention": "none", "scoring": "biaffine", "cross_span": False}

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a system with SIGKILL")


class Events(TrainerCallback):
    """Counts what happens in the run's folder; the event with the number `deadly` is the last."""

    def __init__(self, folder: Path, deadly: int | None):
        self.folder = str(folder)
        self.deadly = deadly
        self.count = 0

    def happen(self, written: str | None = None) -> None:
        self.count += 1
        if self.count == self.deadly:
            if written is not None:
                os.truncate(written, os.path.getsize(written) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, module: ModuleType, name: str) -> None:
        """Makes a file half written by a function, which audit events do not show, one more event."""
        write = getattr(module, name)

        def watched(content: Any, path: str, *arguments: Any, **options: Any) -> None:
            write(content, path, *arguments, **options)
            self.happen(written=path)

        setattr(module, name, watched)

    def audit(self, _event: str, arguments: tuple) -> None:
        if arguments and isinstance(arguments[0], str | os.PathLike) and str(arguments[0]).startswith(self.folder):
            self.happen()

    def on_step_end(self, args, state, control, **kwargs):
        self.happen()


def train(run: Run, output_dir: Path, limit: int, deadly: int | None = None) -> None:
    """Runs in a process of its own, and writes its number of events beside the folder."""
    run.plan.training.output_dir, run.plan.training.save_total_limit = str(output_dir), limit
    events = Events(output_dir, deadly)
    run.trainer.add_callback(events)
    sys.addaudithook(events.audit)
    events.watch(torch, "save")
    events.watch(transformers.modeling_utils, "safe_save_file")
    run.trainer.train(resume_from_checkpoint=True)
    run.trainer.save_model()
    (output_dir.parent / "events.txt").write_text(str(events.count))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., int]]:
    """A process that has read the corpus and made the model: runs a function of a module in a fork of it.

    The function's first argument is the run; the exit code of the fork is returned.
    """
    corpus = write_task(tmp_path_factory.mktemp("kills"), TRAINING, micro_records(24, seed=1), config=SMALL)
    connection, theirs = multiprocessing.Pipe()
    process = new_process(_serve, theirs, corpus)

    def run_in_fork(function: Callable, *arguments: object) -> int:
        connection.send((function, arguments))
        assert connection.poll(PATIENCE), "the process hangs"
        return connection.recv()

    yield run_in_fork
    process.kill()
    process.join()


def _serve(connection: Connection, corpus: Path) -> None:
    repository_triaffine.REMOTE_CODE_FILES = repository_triaffine.REMOTE_CODE_FILES[:2]  # more points lie elsewhere
    run = prepare_run(task_arguments(corpus, corpus.parent / "out"))
    gc.freeze()
    while True:
        function, arguments = connection.recv()
        process = multiprocessing.get_context("fork").Process(target=function, args=(run, *arguments))
        process.start()
        process.join()
        connection.send(process.exitcode)


@pytest.fixture(scope="module")
def uninterrupted(prepared: Callable[..., int], tmp_path_factory) -> tuple[dict[str, torch.Tensor], int]:
    """The weights of a training that was not killed, and its number of events."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    assert prepared(train, folder / "out", 1) == 0
    events = int((folder / "events.txt").read_text())
    assert events > 3 * UPDATES
    return load_file(folder / "out" / "model.safetensors"), events


@pytest.mark.parametrize("chain", range(max(1, KILL_POINTS // CHAIN)))
def test_killed_anywhere_a_training_ends_as_if_it_had_not_been(prepared, uninterrupted, tmp_path, chain):
    expected, events = uninterrupted
    choose = random.Random(chain)
    kills = runs = 0
    ended = False
    loaded = set()
    while not ended or kills < CHAIN:
        runs += ended  # a new training follows one that has ended
        folder = tmp_path / str(runs)
        # Within a third of a training's events: the next process begins further on, so that all places have their turn.
        deadly = choose.randint(1, events // 3) if kills < CHAIN else None
        code = prepared(train, folder, 1 + chain % 2, deadly)
        ended = code == 0
        assert ended or code == -signal.SIGKILL
        kills += not ended
        latest = find_checkpoint("latest", folder)
        if latest not in loaded | {None}:
            TriaffineForNestedNER.from_pretrained(latest)
            loaded.add(latest)
        model = folder / "model.safetensors"
        with contextlib.nullcontext() if ended else contextlib.suppress(FileNotFoundError, SafetensorError):
            assert_same_weights(load_file(model), expected)
