"""`triaffine-ner` and documents in forks of one process that has imported the libraries: a start takes milliseconds.

    python tests/helpers/warm_program.py SOCKET                     # serves
    python -S tests/helpers/warm_program.py SOCKET PROGRAM OPTIONS  # its client: runs as the program itself would

The program has the client's folder, standard streams and signals, and the server's environment.
"""

import atexit
import gc
import json
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable

Program = Callable[[list[str]], None]


def main() -> None:
    address, *command = sys.argv[1:]
    if command:
        sys.exit(ask(address, command))
    serve(address)


def ask(address: str, command: list[str]) -> int:
    """Exit code of a command, after its end."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [json.dumps([command, os.getcwd()]).encode()], [0, 1, 2])
        process = int.from_bytes(connection.recv(4), "big")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.kill(process, number))
        return (connection.recv(1) or b"\1")[0]


def serve(address: str) -> None:
    import modeling_triaffine.page
    import modeling_triaffine.training.run  # noqa: F401
    from modeling_triaffine import commands
    from modeling_triaffine.training.plan import NestedNERTrainingArguments
    from tests.helpers import run_document

    # Documents train on two dozen sentences, which `min_steps` of a recipe would read some hundred times.
    NestedNERTrainingArguments.min_steps = property(lambda _: 0, lambda *_: None)
    programs = {"triaffine-ner": commands.main, "document": run_document.main}
    gc.freeze()  # what was imported need not be looked through
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended processes leave nothing behind
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        while True:
            connection, _ = server.accept()
            if os.fork() == 0:
                answer(connection, programs)
            connection.close()


def answer(connection: socket.socket, programs: dict[str, Program]) -> None:
    """Runs the program that a client asks for in a fork of this process, itself a fork of the server."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, *_ = socket.recv_fds(connection, 1 << 16, 3)
    process = multiprocessing.get_context("fork").Process(target=run, args=(programs, streams, *json.loads(message)))
    process.start()
    connection.send(process.pid.to_bytes(4, "big"))
    process.join()
    connection.send(bytes([abs(process.exitcode)]))
    os._exit(0)


def run(programs: dict[str, Program], streams: list[int], command: list[str], folder: str) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.chdir(folder)
    try:
        programs[command[0]](command[1:])
    finally:
        atexit._run_exitfuncs()


if __name__ == "__main__":
    main()
