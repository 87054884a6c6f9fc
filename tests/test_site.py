"""The documentation builds as a site without a warning: every link, anchor and name of the reference exists."""

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import modeling_triaffine

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def test_readme_is_the_first_page_and_links_lead_into_the_site(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="results.html#beside-other-libraries-by-f1"' in page
    assert not re.search(r'(?:href|src)="(?:\.\./)*docs/', page)


def test_a_linked_file_of_the_repository_is_part_of_the_site(site):
    assert (site / "benchmarks" / "results" / "accuracy.svg").is_file()
    assert 'href="benchmarks/results/accuracy.svg"' in (site / "results.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in modeling_triaffine.__all__ if not name.startswith("__")])
def test_a_public_name_has_a_docstring_and_a_place_in_the_reference(site, name):
    assert inspect.getdoc(getattr(modeling_triaffine, name))
    assert f'id="modeling_triaffine.{name}"' in (site / "reference" / "python.html").read_text(encoding="utf-8")


def test_links_of_the_repository_are_found():
    specification = importlib.util.spec_from_file_location("hooks", REPOSITORY / "docs" / "_site" / "hooks.py")
    hooks = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(hooks)

    assert hooks.target("docs/results.md", "../benchmarks/results/accuracy.svg") == "benchmarks/results/accuracy.svg"
    assert hooks.target("README.md", "docs/results.md") == "docs/results.md"
    assert hooks.LINK.findall("[a](https://x.org) [b](#below) [c](../d.md#e)") == ["../d.md"]
