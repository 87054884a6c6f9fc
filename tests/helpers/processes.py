"""Processes forked from a server that has imported everything: a start takes milliseconds instead of seconds."""

import contextlib
import gc
import multiprocessing
import os
import runpy
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from tests.helpers.micro_training import REPOSITORY

PATIENCE = 600  # seconds; on a busy machine a start alone can take minutes


def new_process(function: Callable, *arguments: object) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.helpers.warm", function.__module__])
    process = context.Process(target=_begin, args=(function, arguments))
    process.start()
    return process


def _begin(function: Callable, arguments: tuple) -> None:
    gc.freeze()  # what was imported need not be looked through
    torch.set_num_threads(1)
    function(*arguments)


class PreparedProcess:
    """A process that prepares something once, and forks for each function that uses it.

    Args:
        prepare: a function of a module; its result is the first argument of the functions.
    """

    def __init__(self, prepare: Callable, *arguments: object):
        self.connection, theirs = multiprocessing.Pipe()
        self.process = new_process(_serve, theirs, prepare, arguments)

    def run(self, function: Callable, *arguments: object) -> int:
        """Exit code of a fork that calls a function of a module."""
        self.connection.send((function, arguments))
        assert self.connection.poll(PATIENCE), "the process hangs"
        code: int = self.connection.recv()
        return code

    def __enter__(self) -> "PreparedProcess":
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.join()


def _serve(connection: Connection, prepare: Callable, arguments: tuple) -> None:
    prepared = prepare(*arguments)
    gc.freeze()
    while True:
        function, arguments = connection.recv()
        process = multiprocessing.get_context("fork").Process(target=function, args=(prepared, *arguments))
        process.start()
        process.join()
        connection.send(process.exitcode)


def start_script(options: Iterable[object], errors: Path, prepare: Callable[[], None] | None = None) -> BaseProcess:
    """`examples/train.py` with its standard error in a file, after `prepare`, a function of a module."""
    return new_process(_run_script, [*map(str, options)], errors, prepare)


def _run_script(options: list[str], errors: Path, prepare: Callable[[], None] | None) -> None:
    os.dup2(os.open(errors, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 2)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    if prepare is not None:
        prepare()
    sys.argv = ["train.py", *options]
    try:
        runpy.run_path(str(REPOSITORY / "examples" / "train.py"), run_name="__main__")
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    finally:
        sys.stderr.flush()


@contextlib.contextmanager
def time_limit(seconds: float = PATIENCE / 4) -> Iterator[None]:
    """Ends what waits too long inside the block: its child processes are killed, and TimeoutError is raised."""

    def give_up(*_: object) -> None:
        for child in multiprocessing.active_children():
            child.kill()
        raise TimeoutError(f"no end after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def launch_two(function: Callable, *arguments: object) -> list[int | None]:
    """Exit codes of two processes that train together; as soon as one fails, the other is ended."""
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    processes = [
        new_process(_run_as, {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}, function, arguments)
        for rank in range(2)
    ]
    running = list(processes)
    while running:
        ended = wait([process.sentinel for process in running], PATIENCE)
        if not ended or any(process.exitcode for process in running):
            for process in running:
                process.kill()
        running = [process for process in running if process.sentinel not in ended]
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _run_as(environment: dict[str, str], function: Callable, arguments: tuple) -> None:
    os.environ.update(environment)
    function(*arguments)
