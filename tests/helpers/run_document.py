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
from markdown_it.token import Token

STARTING_TIME = 300  # seconds, for a server to answer on a busy machine
STOPPING_TIME = 30
RUNNABLE = {"python", "bash", "json"}
SERVERS = ("triaffine-ner page ", "triaffine-ner serve ")


def main(arguments: list[str]) -> None:
    document = Path(arguments[0])
    names: dict[str, Any] = {"__name__": "__main__"}
    servers: list[subprocess.Popen] = []
    try:
        for snippet in snippets(document):
            print(f"--- {document.name}, line {line_of(snippet)}", file=sys.stderr, flush=True)
            run(snippet, document, names, servers)
    finally:
        for server in servers:
            server.terminate()
        codes = [server.wait(STOPPING_TIME) for server in servers]
    assert not any(codes), f"A server ended with {codes}."


def snippets(document: Path) -> list[Token]:
    """The fenced blocks that can be run, in order."""
    tokens = MarkdownIt().parse(document.read_text(encoding="utf-8"))
    return [token for token in tokens if token.type == "fence" and token.info in RUNNABLE]


def line_of(snippet: Token) -> int:
    """The snippet's first line in its document, from 1."""
    assert snippet.map is not None
    return snippet.map[0] + 2


def run(snippet: Token, document: Path, names: dict[str, Any], servers: list[subprocess.Popen]) -> None:
    language = snippet.info
    if language == "python":
        source = "\n" * (line_of(snippet) - 1) + snippet.content  # tracebacks name the document's own lines
        exec(compile(source, str(document), "exec"), names)
    elif language == "json":
        check_json(snippet.content)
    elif snippet.content.startswith(SERVERS):
        servers.append(start_server(snippet.content))
    else:
        program = f'triaffine-ner() {{ {os.environ["WARM_PROGRAM"]} triaffine-ner "$@"; }}\n'
        subprocess.run(["bash", "-euo", "pipefail", "-c", program + snippet.content], check=True)


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
