"""Runs the snippets of a Markdown document from top to bottom, as a reader would who types them all.

Python snippets share their names, as in one session; bash snippets stop at the first command that fails. A server runs
until the document's end; what follows waits until the port that it names answers. JSON snippets must be JSON, line by
line or as a whole. Other blocks are output or pictures. `triaffine-ner` is run by `warm_program.py`, whose client
$WARM_PROGRAM is.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

STARTING_TIME = 300  # seconds, for a server to answer on a busy machine
STOPPING_TIME = 30
RUNNABLE = {"python", "bash", "json"}
SERVERS = ("triaffine-ner page ", "triaffine-ner serve ")


def main(arguments: list[str]) -> None:
    document = Path(arguments[0])
    names: dict[str, Any] = {"__name__": "__main__"}
    servers: list[subprocess.Popen] = []
    try:
        for snippet in MarkdownIt().parse(document.read_text(encoding="utf-8")):
            if snippet.type == "fence" and snippet.info in RUNNABLE:
                line = snippet.map[0] + 2  # its first, from 1
                print(f"--- {document.name}, line {line}", file=sys.stderr, flush=True)
                run(snippet.info, snippet.content, document, line, names, servers)
    finally:
        for server in servers:
            server.terminate()
        codes = [server.wait(STOPPING_TIME) for server in servers]
    assert not any(codes), f"A server ended with {codes}."


def run(
    language: str, content: str, document: Path, line: int, names: dict[str, Any], servers: list[subprocess.Popen]
) -> None:
    if language == "python":
        source = "\n" * (line - 1) + content  # tracebacks name the document's own lines
        exec(compile(source, str(document), "exec"), names)
    elif language == "json":
        check_json(content)
    elif content.startswith(SERVERS):
        servers.append(start_server(content))
    else:
        program = f'triaffine-ner() {{ {os.environ["WARM_PROGRAM"]} triaffine-ner "$@"; }}\n'
        subprocess.run(["bash", "-euo", "pipefail", "-c", program + content], check=True)


def check_json(content: str) -> None:
    try:
        json.loads(content)
    except json.JSONDecodeError:
        for line in content.splitlines():
            json.loads(line)


def start_server(command: str) -> subprocess.Popen:
    port = re.search(r"--port[ =](\d+)", command)
    assert port, f"A server in the background names its port: {command}"
    server = subprocess.Popen(["bash", "-c", f"exec {os.environ['WARM_PROGRAM']} {command}"])
    deadline = time.monotonic() + STARTING_TIME
    while time.monotonic() < deadline:
        assert server.poll() is None, f"The server ended with {server.returncode}: {command}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", int(port[1]))) == 0:
                return server
        time.sleep(0.2)
    server.kill()
    raise TimeoutError(f"No answer on port {port[1]} after {STARTING_TIME} s: {command}")
