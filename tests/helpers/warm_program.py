"""`triaffine-ner` and documents in forks of one process that has imported the libraries: a start takes milliseconds.

    python tests/helpers/warm_program.py SOCKET                     # serves
    python -S tests/helpers/warm_program.py SOCKET PROGRAM OPTIONS  # its client: runs as the program itself would

The program has the client's folder, standard streams and signals, and the server's environment.
"""

import atexit
import gc
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

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
        code = connection.recv(1)
        connection.recv(1)  # nothing: the process has ended
    return code[0] if code else 1


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
    """Turns this process, a fork of the server, into the program that a client asks for."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, *_ = socket.recv_fds(connection, 1 << 16, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    (program, *arguments), folder = json.loads(message)
    os.chdir(folder)
    connection.send(os.getpid().to_bytes(4, "big"))
    leave = os._exit
    os._exit = lambda code: leave(connection.send(bytes([code])))  # as a server ends itself
    os._exit(run(programs[program], arguments))


def run(program: Program, arguments: list[str]) -> int:
    """Exit code of a program, which has cleaned up after itself."""
    code: Any = 0
    try:
        program(arguments)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else bool(code)


if __name__ == "__main__":
    main()
