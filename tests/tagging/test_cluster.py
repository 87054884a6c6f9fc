"""The cluster of the document on tagging, on two nodes of this machine, one of which dies during a run."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

pytest.importorskip("ray", reason="needs the extra ray")
from tests.helpers.processes import PATIENCE, free_port

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = REPOSITORY / "docs" / "tagging_a_corpus.md"
HOST = "127.0.0.1"
NUM_FILES, ROWS_OF_A_FILE = 8, 40

pytestmark = pytest.mark.nightly


class Cluster:
    """Nodes started with the document's commands; their processes are those with its home directory."""

    def __init__(self, home: Path):
        self.home, self.port = home, free_port()
        tools = Path(sys.executable).parent
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            "HOME": str(home),
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY),
            "RAY_TMPDIR": str(home),
            "RAY_worker_niceness": "0",
        }
        self.head, self.joining = (
            token.content.replace("FIRST_MACHINE", HOST).replace("6379", str(self.port))
            for token in MarkdownIt().parse(DOCUMENT.read_text(encoding="utf-8"))
            if token.type == "fence" and token.info == "console" and "ray start" in token.content
        )

    def start(self, commands: str, **environment: str) -> set[int]:
        """The processes of a new node."""
        before = self.processes()
        # Each node of one machine must have an address; on several machines, Ray finds it.
        commands = re.sub(
            r"^ray start", f"ray start --num-cpus 1 --node-ip-address {HOST}", commands, flags=re.MULTILINE
        )
        # Ray's processes keep what they inherit open.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                ["bash", "-ec", commands],
                env=self.environment | environment,
                stdout=output,
                stderr=output,
                timeout=PATIENCE,
                check=False,
            )
            output.seek(0)
            assert done.returncode == 0, output.read().decode()
        return self.processes() - before

    def processes(self) -> set[int]:
        found = set()
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                variables = path.read_bytes().split(b"\0")
            except OSError:  # ended, or another user's
                continue
            if f"RAY_TMPDIR={self.home}".encode() in variables:
                found.add(int(path.parent.name))
        return found

    def kill(self, processes: set[int]) -> None:
        for process in processes & self.processes():
            os.kill(process, signal.SIGKILL)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    # Not pytest's directory: the paths of Ray's sockets may have 107 characters.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as home:
        cluster = Cluster(Path(home))
        yield cluster
        cluster.kill(cluster.processes())


def test_a_run_on_two_nodes_survives_the_death_of_one(cluster, saved_model, tmp_path):
    corpus, tagged = tmp_path / "corpus", tmp_path / "tagged"
    corpus.mkdir()
    for part in range(NUM_FILES):
        ids = range(part * ROWS_OF_A_FILE, (part + 1) * ROWS_OF_A_FILE)
        rows = [{"id": row, "text": "The IL-2 gene binds it. " * 40} for row in ids]
        (corpus / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cluster.start(cluster.head)
    second = cluster.start(cluster.joining)
    command = [sys.executable, "-m", "modeling_triaffine", "tag", corpus, "--model", saved_model]
    options = ["--output_dir", tagged, "--actors", 2, "--chunk_size", 5]
    environment = cluster.environment | {"RAY_AUTH_MODE": "token", "RAY_ADDRESS": f"{HOST}:{cluster.port}"}
    with (tmp_path / "log").open("w") as log:
        run = subprocess.Popen([*map(str, [*command, *options])], env=environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + PATIENCE
            while run.poll() is None and not any(tagged.glob("?.jsonl")) and time.monotonic() < deadline:
                time.sleep(0.1)
            assert run.poll() is None, (tmp_path / "log").read_text()
            cluster.kill(second)
            assert run.wait(PATIENCE) == 0, (tmp_path / "log").read_text()
        finally:
            run.kill()
    lines = [line for path in sorted(tagged.glob("?.jsonl")) for line in path.read_text().splitlines()]
    ids = [json.loads(line)["id"] for line in lines]
    assert sorted(ids) == list(range(NUM_FILES * ROWS_OF_A_FILE))
