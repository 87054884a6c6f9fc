"""Processes forked from a server that has imported everything: a start takes milliseconds instead of seconds."""

import contextlib
import gc
import multiprocessing
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing.spawn import ProcessException, start_processes

from tests.helpers.micro_training import REPOSITORY

PATIENCE = 600  # seconds; on a busy machine a start alone can take minutes


def run_program(*command: object, **options: Any) -> str:
    """Standard output of a program that must succeed."""
    options = {"capture_output": True, "text": True, "timeout": PATIENCE, **options}
    result = subprocess.run([*map(str, command)], check=False, **options)
    assert result.returncode == 0, result.stdout[-1000:] + result.stderr[-5000:]
    return result.stdout


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


@contextlib.contextmanager
def prepared_process(prepare: Callable, *arguments: object) -> Iterator[Callable[..., int]]:
    """Starts a process that prepares something once, and gives what runs a function of a module in a fork of it.

    The function's first argument is what was prepared; the exit code of the fork is returned.
    """
    connection, theirs = multiprocessing.Pipe()
    process = new_process(_serve, theirs, prepare, arguments)

    def run(function: Callable, *arguments: object) -> int:
        connection.send((function, arguments))
        assert connection.poll(PATIENCE), "the process hangs"
        return connection.recv()

    yield run
    process.kill()
    process.join()


def _serve(connection: Connection, prepare: Callable, arguments: tuple) -> None:
    prepared = prepare(*arguments)
    gc.freeze()
    while True:
        function, arguments = connection.recv()
        process = multiprocessing.get_context("fork").Process(target=function, args=(prepared, *arguments))
        process.start()
        process.join()
        connection.send(process.exitcode)


def run_script(
    options: Iterable[object], errors: Path, prepare: Callable[[], None] | None = None
) -> tuple[int | None, str]:
    """Exit code of `examples/train.py`, after `prepare`, a function of a module; and its standard error, in a file."""
    process = new_process(_run_script, [*map(str, options)], errors, prepare)
    process.join(PATIENCE)
    return process.exitcode, errors.read_text(encoding="utf-8")


def _run_script(options: list[str], errors: Path, prepare: Callable[[], None] | None) -> None:
    os.dup2(os.open(errors, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 2)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    if prepare is not None:
        prepare()
    sys.argv = ["train.py", *options]
    runpy.run_path(str(REPOSITORY / "examples" / "train.py"), run_name="__main__")


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
    _begin(function, arguments)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
