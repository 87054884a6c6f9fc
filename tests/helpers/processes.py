"""Processes forked from a server that has imported everything: a start takes milliseconds instead of seconds."""

import gc
import multiprocessing
import socket
import subprocess
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import torch

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
    process = context.Process(target=begin, args=(function, arguments))
    process.start()
    return process


def begin(function: Callable, arguments: tuple) -> None:
    gc.freeze()  # what was imported need not be looked through
    torch.set_num_threads(1)
    function(*arguments)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
