"""Every public name has a place in the reference and a docstring; examples run where `make demo` has been run."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import griffe
import pytest

import modeling_triaffine
from modeling_triaffine.commands import main
from modeling_triaffine.data.demo import write_demo_corpus
from modeling_triaffine.data.formats import FORMATS
from tests.helpers.tiny import save_tiny_model

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDERS = ("data", "drawing", "evaluation", "explanation", "training")
SENTENCES = 24  # of each split
SLOW = ("OnnxNestedNER",)  # to export a model takes half a minute
PACKAGE = griffe.load("modeling_triaffine", search_paths=[REPOSITORY], resolve_aliases=True)


def public_names() -> list[str]:
    """Those of the package, and those of the folders that it does not have itself."""
    names = {name: name for name in modeling_triaffine.__all__ if not name.startswith("__")}
    for folder in FOLDERS:
        exported = import_module(f"modeling_triaffine.{folder}").__all__
        names |= {name: f"{folder}.{name}" for name in exported if name not in names}
    return [*names.values()]


def docstring(name: str) -> str:
    found = PACKAGE[name]
    while found.is_alias:
        found = found.target
    return found.docstring.value if found.docstring else ""


@pytest.fixture(scope="module")
def demo(encoder, tmp_path_factory) -> Path:
    """The folder of a reader who has run `make demo`: a corpus, and a model, here of random weights."""
    folder = tmp_path_factory.mktemp("reader")
    write_demo_corpus(folder / "outputs" / "demo" / "corpus")
    for path in (folder / "outputs" / "demo" / "corpus").iterdir():
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:SENTENCES]))
    save_tiny_model(folder / "outputs" / "demo" / "model", encoder, triaffine_rank=4)
    return folder


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly) if name in SLOW else name for name in public_names()]
)
def test_the_example_of_a_public_name_runs(name, demo, monkeypatch, capsys):
    monkeypatch.chdir(demo)
    monkeypatch.setattr(FORMATS, "data", {**FORMATS.data})  # what one example registers no other finds
    if name in SLOW:
        main(["export", "--model", "outputs/demo/model", "--output", "outputs/demo/onnx"])
    assert docstring(name)
    example = doctest.DocTestParser().get_doctest(docstring(name), {}, name, name, 0)
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(example)
    assert results.failed == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_is_in_the_reference(name):
    page = (REPOSITORY / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert re.search(rf"(?m)^::: modeling_triaffine\.{re.escape(name)}$", page)
