"""The cluster of the document on tagging, on two nodes of this machine, one of which dies during a run."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil  # comes with accelerate
import pytest
from markdown_it import MarkdownIt

pytest.importorskip("ray", reason="needs the extra ray")
from tests.helpers.processes import PATIENCE, free_port

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = REPOSITORY / "docs" / "tagging_a_corpus.md"
HOST = "127.0.0.1"
NUM_FILES, ROWS_OF_A_FILE = 8, 160

pytestmark = pytest.mark.nightly


class Cluster:
    """Nodes started with the document's commands; their processes are those with its home directory."""

    def __init__(self, home: str):
        self.home, self.address = home, f"{HOST}:{free_port()}"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.environment |= {"HOME": home, "RAY_TMPDIR": home, "RAY_worker_niceness": "0"}
        self.environment |= {"PATH": path, "PYTHONPATH": str(REPOSITORY)}
        start = f"ray start --num-cpus 1 --node-ip-address {HOST}"  # on several machines, Ray finds the addresses
        self.head, self.joining = (
            re.sub("^ray start", start, token.content, flags=re.MULTILINE)
            .replace("FIRST_MACHINE:6379", self.address)
            .replace("--port 6379", f"--port {self.address.rpartition(':')[2]}")
            for token in MarkdownIt().parse(DOCUMENT.read_text(encoding="utf-8"))
            if token.type == "fence" and token.info == "console" and "ray start" in token.content
        )

    def start(self, commands: str) -> set[psutil.Process]:
        """The processes of a new node."""
        before = self.processes()
        with tempfile.TemporaryFile() as output:  # Ray's processes keep what they inherit open
            options = {"env": self.environment, "stdout": output, "stderr": output, "timeout": PATIENCE}
            done = subprocess.run(["bash", "-ec", commands], check=False, **options)
            output.seek(0)
            assert done.returncode == 0, output.read().decode()
        return self.processes() - before

    def processes(self) -> set[psutil.Process]:
        found = set()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # ended, or another user's
                if process.environ().get("RAY_TMPDIR") == self.home:
                    found.add(process)
        return found


def kill(processes: set[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    # Not pytest's directory: the paths of Ray's sockets may have 107 characters.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as home:
        cluster = Cluster(home)
        yield cluster
        kill(cluster.processes())


def test_a_run_on_two_nodes_survives_the_death_of_one(cluster, saved_model, tmp_path):
    corpus, tagged, log = tmp_path / "corpus", tmp_path / "tagged", tmp_path / "log"
    corpus.mkdir()
    for part in range(NUM_FILES):
        ids = range(part * ROWS_OF_A_FILE, (part + 1) * ROWS_OF_A_FILE)
        rows = [{"id": row, "text": "The IL-2 gene binds it. " * 10} for row in ids]
        (corpus / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cluster.start(cluster.head)
    second = cluster.start(cluster.joining)
    command = [sys.executable, "-m", "modeling_triaffine", "tag", corpus, "--model", saved_model]
    command += ["--output_dir", tagged, "--actors", 2]
    environment = cluster.environment | {"RAY_AUTH_MODE": "token", "RAY_ADDRESS": cluster.address}
    with (
        log.open("w") as output,
        subprocess.Popen([*map(str, command)], env=environment, stdout=output, stderr=output) as run,
    ):
        try:
            deadline = time.monotonic() + PATIENCE
            while run.poll() is None and not any(tagged.glob("?.jsonl")) and time.monotonic() < deadline:
                time.sleep(0.1)
            assert run.poll() is None, log.read_text()
            kill(second)
            assert run.wait(PATIENCE) == 0, log.read_text()
        finally:
            run.kill()
    lines = [line for path in sorted(tagged.glob("?.jsonl")) for line in path.read_text().splitlines()]
    assert sorted(json.loads(line)["id"] for line in lines) == list(range(NUM_FILES * ROWS_OF_A_FILE))
