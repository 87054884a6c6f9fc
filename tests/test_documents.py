"""Every snippet of README and docs runs as written.

Where a snippet names the Hub, a Hub on the loopback interface answers; encoders on it are tiny, and so is the corpus.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import constants

from modeling_triaffine.data.demo import write_demo_corpus
from modeling_triaffine.training.run import prepare_run, train_and_save
from tests.helpers.processes import free_port, run_program

if TYPE_CHECKING:
    from tests.helpers.hub_server import LoopbackHub

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
MAKE = re.compile(r"^make \w+", re.MULTILINE)  # would run these tests within themselves; `make demo` is run below
SENTENCES = 24  # of each split
SLOW = {"onnx.md", "tagging_a_corpus.md"}  # to export a model and to start Ray takes a minute each


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """The corpus and model of `make demo`, after one epoch on a few sentences."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo_corpus(folder / "corpus")
    for path in (folder / "corpus").iterdir():
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:SENTENCES]))
    options = {"recipe": "demo", "train_file": folder / "corpus", "output_dir": folder / "model", "num_train_epochs": 1}
    options |= {"dataset_name": "demo", "language": "en", "license": "apache-2.0", "use_cpu": True}
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    train_and_save(prepare_run([*arguments, "--do_predict"]))
    return folder


@pytest.fixture
def workspace(trained, tmp_path) -> Path:
    """A checkout of a reader who has run `make demo` and has a corpus of their own.

    GENIA's licence keeps its corpus away from here: a folder of the file's name stands in for it.
    """
    for name in ("examples", "hub_configs", "benchmarks", "modeling_triaffine", "docs"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    shutil.copytree(trained, tmp_path / "outputs" / "demo")
    for name in ("my_corpus", "GENIAcorpus3.02.xml"):
        shutil.copytree(trained / "corpus", tmp_path / name)
    (tmp_path / "texts.txt").write_text("The mayor of Port Velmar resigned.\n")
    return tmp_path


@pytest.fixture(scope="module")
def hub(trained, encoder) -> Iterator["LoopbackHub"]:
    """A Hub that holds the names of the documents: a model, and the recipes' encoder."""
    from tests.helpers.hub_server import LoopbackHub

    folders = {"owner/name": trained / "model", "sentence-transformers/all-MiniLM-L6-v2": encoder}
    with LoopbackHub() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        for name, folder in folders.items():
            hub.api.create_repo(name)
            hub.api.upload_folder(repo_id=name, folder_path=folder, ignore_patterns=["checkpoint-*"])
        yield hub


@pytest.fixture(scope="module")
def client(hub) -> Iterator[list[str]]:
    """The client of a process that runs documents and `triaffine-ner` with that Hub."""
    folder = tempfile.TemporaryDirectory(dir="/tmp")  # not pytest's: the path of a socket may have 107 characters
    address = Path(folder.name) / "socket"
    program = [sys.executable, str(REPOSITORY / "tests" / "helpers" / "warm_program.py"), str(address)]
    client = [program[0], "-S", *program[1:]]
    environment = {**os.environ, **hub.environment(), "WARM_PROGRAM": shlex.join(client)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    with folder, subprocess.Popen(program, env=environment) as server:
        while not address.exists():
            assert server.poll() is None
            time.sleep(0.05)
        yield client
        server.terminate()


@pytest.mark.parametrize(
    "document",
    [pytest.param(path, marks=[pytest.mark.nightly] if path.name in SLOW else []) for path in DOCUMENTS],
    ids=lambda path: path.name,
)
def test_snippets_run(document, trained, workspace, hub, client, monkeypatch):
    monkeypatch.setattr(hub, "repositories", deepcopy(hub.repositories))  # what one document publishes no other finds
    shown = document.read_text(encoding="utf-8")
    if "--output_dir outputs/mine" not in shown:  # a page about a model that is there already
        shutil.copytree(trained / "model", workspace / "outputs" / "mine")
    for port in set(re.findall(r"--port[ =](\d+)", shown)) - {"0"}:
        shown = shown.replace(port, str(free_port()))
    if re.search(r"^curl ", shown, re.MULTILINE) and shutil.which("curl") is None:
        pytest.skip("needs curl")
    copy = workspace / document.name
    copy.write_text(MAKE.sub(":", shown), encoding="utf-8")
    run_program(*client, "document", copy.name, cwd=workspace, timeout=1200)


@pytest.mark.contract
def test_documents_lead_to_what_is_there():
    """Links and pictures within the project; and every document can be reached."""
    reached = {REPOSITORY / "README.md"}
    for document in DOCUMENTS:
        text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?://)([^)#]+)", text):
            assert (document.parent / target).exists(), f"{document.name} names {target}"
            reached.add((document.parent / target).resolve())
    assert set(DOCUMENTS) <= reached
