"""The code that is saved beside a model; what strangers make of it is in `tests/publishing/test_publishing.py`."""

import shutil
import sys
from pathlib import Path

import pytest
from transformers.dynamic_module_utils import get_imports, get_relative_imports

from modeling_triaffine.model import repository_triaffine
from modeling_triaffine.model.repository_triaffine import HANDLER_FILE, REMOTE_CODE_FILES
from tests.helpers.stranger import ask_a_stranger

ALWAYS_THERE = {"torch", "transformers", "tokenizers", "numpy", "safetensors", "huggingface_hub", "packaging"}


@pytest.mark.contract
def test_remote_code_imports_only_what_a_stranger_has():
    """Flat siblings and guarded imports only: the static check that transformers makes of remote code."""
    folder = Path(repository_triaffine.__file__).parent
    for name in (*REMOTE_CODE_FILES, HANDLER_FILE):
        needed = set(get_imports(folder / name)) - set(sys.stdlib_module_names)
        assert needed <= ALWAYS_THERE
        assert {f"{sibling}.py" for sibling in get_relative_imports(folder / name)} <= set(REMOTE_CODE_FILES)
    assert get_relative_imports(folder / HANDLER_FILE) == []  # an endpoint runs it as a file of no package


def test_files_are_in_the_order_to_read_them():
    """A file is read before those that it imports: a model card says so."""
    folder = Path(repository_triaffine.__file__).parent
    for number, name in enumerate(REMOTE_CODE_FILES):
        later = {file.removesuffix(".py") for file in REMOTE_CODE_FILES[number + 1 :]}
        early = set(get_relative_imports(folder / name)) - later
        assert not early, f"{name} imports {early}: move it up in REMOTE_CODE_FILES, and renew the card of the tests"


def test_a_pipeline_without_the_package_has_one_hash_in_every_process(saved_model, tmp_path):
    """`Dataset.map` then finds its cache again."""
    question = "fingerprint", {"name": str(saved_model)}
    (hashes,), (again,) = (ask_a_stranger(tmp_path, question) for _ in range(2))
    assert len({*hashes, *again}) == 1


def test_a_model_is_saved_from_another_working_directory(saved_model, tmp_path):
    shutil.copytree(saved_model, tmp_path / "a" / "b" / "model")
    given = {"folder": str(tmp_path), "name": "a/b/model", "save_to": str(tmp_path / "saved")}
    ((complete, without_code),) = ask_a_stranger(tmp_path, ("save_elsewhere", given))
    assert {*REMOTE_CODE_FILES, "model.safetensors", "processor_config.json"} <= {*complete}
    assert {"model.safetensors", "processor_config.json"} <= {*without_code}
