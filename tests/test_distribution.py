"""The wheel, built from the source distribution and installed alone, is complete and runs from an empty folder."""

import shutil
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.helpers.processes import run_program

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = ("modeling_triaffine", "hub_configs", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")
BUILD_SDIST = "from setuptools import build_meta; build_meta.build_sdist('dist')"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
OFFLINE = ["--no-index", "--no-deps"]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> tuple[Path, Path]:
    """Source distribution and wheel; the wheel is built from the source distribution, in which nothing is missing."""
    folder = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        copy(REPOSITORY / name, folder / name)
    shutil.copy(REPOSITORY / "MANIFEST.in", folder)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_project_files.py").touch()
    run_program(sys.executable, "-c", BUILD_SDIST, cwd=folder)
    (source,) = (folder / "dist").glob("*.tar.gz")
    run_program(*PIP, "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", folder / "dist", source, cwd=folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    return source, wheel


@pytest.fixture(scope="module")
def program(distributions, tmp_path_factory) -> Path:
    """`triaffine-ner` in an environment with the wheel, which finds its requirements where these tests do."""
    folder = tmp_path_factory.mktemp("environment")
    run_program(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    run_program(*PIP, "--python", folder / "bin" / "python", "install", *OFFLINE, distributions[1], cwd=folder)
    (installed,) = folder.glob("lib/*/site-packages")
    (installed / "requirements.pth").write_text(sysconfig.get_path("purelib"))  # behind the wheel, without its own .pth
    return folder / "bin" / "triaffine-ner"


def test_the_wheel_has_every_file_of_the_package_and_every_recipe(distributions):
    with zipfile.ZipFile(distributions[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert distributions[1].stat().st_size < 100 * 2**20  # the most that PyPI takes
    if not (REPOSITORY / ".git").exists():
        pytest.skip("needs a checkout, to know which files there should be")
    listing = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "modeling_triaffine", "hub_configs")
    listed = run_program(*listing, cwd=REPOSITORY).split()
    expected = {name.replace("hub_configs/", "modeling_triaffine/hub_configs/", 1) for name in listed}
    assert names == expected


def test_the_source_distribution_has_no_tests_and_a_description_that_the_index_can_show(distributions):
    with tarfile.open(distributions[0]) as source:
        assert [name for name in source.getnames() if "/tests" in name] == []
    pytest.importorskip("twine", reason="needs twine, of the extra test")
    run_program(sys.executable, "-m", "twine", "check", "--strict", *distributions, cwd=REPOSITORY)


WHERE = "import modeling_triaffine; print(modeling_triaffine.__file__)"


def test_the_program_runs_from_an_empty_folder(program, tmp_path):
    assert run_program(program, "--version", cwd=tmp_path, env={"PATH": ""}).startswith("triaffine-ner ")
    where = run_program(program.with_name("python"), "-c", WHERE, cwd=tmp_path, env={"PATH": ""})
    assert Path(where.strip()).is_relative_to(program.parents[1])
