"""What `make clean` removes, and the tests that the Makefile names."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.processes import PATIENCE

REPOSITORY = Path(__file__).resolve().parents[1]
MAKEFILE = REPOSITORY / "Makefile"


def test_clean_keeps_the_models_of_its_user(tmp_path):
    if shutil.which("make") is None:
        pytest.skip("needs make")
    kept, removed = tmp_path / "outputs" / "mine", tmp_path / "outputs" / "demo"
    for folder in (kept, removed, tmp_path / ".venv", tmp_path / "build"):
        folder.mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", f"--file={MAKEFILE}", "VENV=.venv", "LOWEST=.venv-lowest", "clean"]
    subprocess.run(command, cwd=tmp_path, env=environment, timeout=PATIENCE, check=True)
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*")] == [Path("outputs"), Path("outputs/mine")]


@pytest.mark.contract
def test_tests_that_are_named_are_there():
    """A file that was moved would be taken into runs that leave it out, or lose its place among the slowest."""
    left_out = re.search(r"(?s)^BESIDE_THE_CORE := (.*?[^\\])$", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)
    slowest = re.findall(r'^    "([\w/]+\.py)",$', (REPOSITORY / "tests" / "conftest.py").read_text(), re.MULTILINE)
    named = [name for name in left_out[1].split() if name != "\\"] + slowest
    assert len(named) > 10
    assert [name for name in named if not (REPOSITORY / "tests" / name).exists()] == []
