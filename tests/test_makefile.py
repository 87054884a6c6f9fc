"""What `make` does before there is an environment, and what it removes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.processes import PATIENCE

REPOSITORY = Path(__file__).resolve().parents[1]
MAKEFILE = REPOSITORY / "Makefile"
# A Python that is as old as it says, and whose `venv` ends as that of Debian without ensurepip.
PYTHON = """#!{executable}
import sys
from pathlib import Path

sys.version_info = {version}
if sys.argv[1] == "-c":
    exec(sys.argv[2])
else:
    *_, folder = map(Path, sys.argv)
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    sys.exit("ensurepip is not available")
"""


@pytest.fixture
def make(tmp_path):
    """Runs targets of the Makefile in an empty folder, whatever the `make` is told that runs these tests."""
    if shutil.which("make") is None:
        pytest.skip("needs make")

    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", f"--file={MAKEFILE}", "VENV=.venv", "LOWEST=.venv-lowest"]

    def run(*arguments: str) -> subprocess.CompletedProcess:
        options = {"cwd": tmp_path, "env": environment, "timeout": PATIENCE}
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, **options)

    return run


@pytest.mark.parametrize("version", [(3, 10, 18), (3, 11, 0)])
def test_an_environment_that_cannot_be_used_does_not_stay(make, tmp_path, version):
    python = tmp_path / "python3"
    python.write_text(PYTHON.format(executable=sys.executable, version=version), encoding="utf-8")
    python.chmod(0o755)
    for _ in range(2):
        made = make(".venv/bin/python", f"PYTHON={python}")
        assert made.returncode != 0
        assert not (tmp_path / ".venv" / "bin" / "python").is_symlink()


def test_clean_keeps_the_models_of_its_user(make, tmp_path):
    kept, removed = tmp_path / "outputs" / "mine", tmp_path / "outputs" / "demo"
    for folder in (kept, removed, tmp_path / ".venv", tmp_path / "build"):
        folder.mkdir(parents=True)
    assert make("clean").returncode == 0
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*")] == [Path("outputs"), Path("outputs/mine")]


@pytest.mark.contract
def test_tests_that_are_named_are_there():
    """A file that was moved would be taken into runs that leave it out, or lose its place among the slowest."""
    left_out = re.search(r"(?s)^BESIDE_THE_CORE := (.*?[^\\])$", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)
    slowest = re.findall(r'^    "([\w/]+\.py)",$', (REPOSITORY / "tests" / "conftest.py").read_text(), re.MULTILINE)
    named = [name for name in left_out[1].split() if name != "\\"] + slowest
    assert len(named) > 20
    assert [name for name in named if not (REPOSITORY / "tests" / name).exists()] == []
