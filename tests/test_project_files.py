"""The requirements of the package, the files that `make clean` removes, and the tests that the Makefile names.

The lowest versions are those that `make test-lowest` runs and the model checks.
"""

import ast
import configparser
import os
import re
import runpy
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
from packaging.version import Version

from modeling_triaffine.model import checks_triaffine, configuration_triaffine
from modeling_triaffine.model.checks_triaffine import LOWEST_VERSIONS
from modeling_triaffine.model.repository_triaffine import REQUIREMENTS
from tests.helpers.processes import PATIENCE

REPOSITORY = Path(__file__).resolve().parents[1]
MAKEFILE = REPOSITORY / "Makefile"


@pytest.fixture(scope="module")
def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(REPOSITORY / "setup.cfg")
    return parser


@pytest.mark.contract
def test_lowest_versions_are_those_that_are_run(setup_cfg):
    allowed = dict(line.split(">=") for line in setup_cfg["options"]["install_requires"].split())
    constraints = (REPOSITORY / "constraints-lowest.txt").read_text().splitlines()
    run = dict(line.lower().split("==") for line in constraints if not line.startswith("#"))
    assert {name: Version(lowest) for name, lowest in allowed.items()} == {name: Version(run[name]) for name in allowed}
    assert {name: Version(lowest) for name, lowest in LOWEST_VERSIONS.items()} == {
        name: Version(allowed[name]) for name in ("torch", "transformers")
    }


@pytest.mark.contract
def test_the_space_and_an_endpoint_install_what_the_package_needs(setup_cfg):
    needed = setup_cfg["options"]["install_requires"].split()
    assert REQUIREMENTS.split() == [line for line in needed if line.startswith(("torch", "transformers"))]
    lines = (REPOSITORY / "examples" / "space" / "requirements.txt").read_text().splitlines()
    installed = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    assert installed == set(needed), "change examples/space/requirements.txt"


@pytest.mark.parametrize("package", LOWEST_VERSIONS)
def test_too_old_a_package_is_one_sentence_at_import(package, monkeypatch):
    installed = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "1.9" if name == package else installed(name))
    with pytest.raises(ImportError, match=rf"{package}>={LOWEST_VERSIONS[package]} is required .*{package}==1\.9"):
        runpy.run_path(checks_triaffine.__file__)


def test_remote_code_checks_versions_before_it_imports_anything_else():
    """The configuration is the first file that transformers imports."""
    source = Path(configuration_triaffine.__file__).read_text(encoding="utf-8")
    first = next(node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom))
    assert (first.level, first.module) == (1, "checks_triaffine")


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
