"""The code that is saved beside a model; what strangers make of it is in `tests/publishing/test_publishing.py`."""

import sys
from pathlib import Path

import pytest
from transformers.dynamic_module_utils import get_imports, get_relative_imports

from modeling_triaffine.model import repository_triaffine
from modeling_triaffine.model.repository_triaffine import HANDLER_FILE, REMOTE_CODE_FILES
from tests.helpers.tiny import tiny_model, tiny_processor

ALWAYS_THERE = {"torch", "transformers", "tokenizers", "numpy", "safetensors", "huggingface_hub", "packaging"}


def test_remote_code_imports_only_what_a_stranger_has():
    """Flat siblings and guarded imports only: the static check that transformers makes of remote code."""
    folder = Path(repository_triaffine.__file__).parent
    for name in (*REMOTE_CODE_FILES, HANDLER_FILE):
        needed = set(get_imports(folder / name)) - set(sys.stdlib_module_names)
        assert needed <= ALWAYS_THERE
        assert {f"{sibling}.py" for sibling in get_relative_imports(folder / name)} <= set(REMOTE_CODE_FILES)
    assert get_relative_imports(folder / HANDLER_FILE) == []  # an endpoint runs it as a file of no package


def test_saving_leaves_a_projects_own_files(encoder, tmp_path):
    """An endpoint's files have names that a project may have given to its own."""
    for name in ("requirements.txt", "handler.py"):
        (tmp_path / name).write_text("mine")
    tiny_model(encoder).save_pretrained(tmp_path)
    tiny_processor(encoder).save_pretrained(tmp_path)
    assert [(tmp_path / name).read_text() for name in ("requirements.txt", "handler.py")] == ["mine", "mine"]
    assert {path.name for path in tmp_path.iterdir()} >= set(REMOTE_CODE_FILES)


@pytest.mark.parametrize(("folder", "revision"), [("ab" * 20, "ab" * 20), ("model", None)], ids=["hub", "folder"])
def test_code_that_was_not_imported_comes_from_the_commit_of_the_rest(tmp_path, monkeypatch, folder, revision):
    code = tmp_path / folder
    code.mkdir()
    for name in REMOTE_CODE_FILES[:3]:
        (code / name).write_text("imported")
    asked = []

    def find(origin, name, revision, **options):
        asked.append((origin, name, revision))
        return None

    monkeypatch.setattr(repository_triaffine, "__file__", str(code / "repository_triaffine.py"))
    monkeypatch.setattr(repository_triaffine, "cached_file", find)
    repository_triaffine.save_remote_code(tmp_path / "saved", "owner/name")
    assert asked == [("owner/name", name, revision) for name in (*REMOTE_CODE_FILES[3:], HANDLER_FILE)]
