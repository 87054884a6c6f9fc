"""The code that is saved beside a model; what strangers make of it is in `tests/publishing/test_publishing.py`."""

import shutil
import sys
from pathlib import Path

from transformers.dynamic_module_utils import get_imports, get_relative_imports

from modeling_triaffine.model import repository_triaffine
from modeling_triaffine.model.repository_triaffine import HANDLER_FILE, REMOTE_CODE_FILES
from tests.helpers.portable import near
from tests.helpers.stranger import ask_a_stranger, expected_answer
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


def test_files_are_in_the_order_to_read_them():
    """A file is read before those that it imports: a model card says so."""
    folder = Path(repository_triaffine.__file__).parent
    for number, name in enumerate(REMOTE_CODE_FILES):
        later = {file.removesuffix(".py") for file in REMOTE_CODE_FILES[number + 1 :]}
        early = set(get_relative_imports(folder / name)) - later
        assert not early, f"{name} imports {early}: move it up in REMOTE_CODE_FILES, and renew the card of the tests"


def test_pipelines_without_the_package(saved_model, tmp_path):
    """Of a model object; and with one hash in every process, so that `Dataset.map` finds its cache again."""
    expected = near(expected_answer(saved_model)["found"])
    name = {"name": str(saved_model)}
    of_objects, hashes = ask_a_stranger(tmp_path, ("make_of_objects", name), ("fingerprint", name))
    assert of_objects == [expected] * 3
    (again,) = ask_a_stranger(tmp_path, ("fingerprint", name))
    assert hashes == again
    assert len(set(hashes)) == 1


def test_a_model_is_saved_from_another_working_directory(saved_model, tmp_path):
    shutil.copytree(saved_model, tmp_path / "a" / "b" / "model")
    given = {"folder": str(tmp_path), "name": "a/b/model", "save_to": str(tmp_path / "saved")}
    ((complete, without_code),) = ask_a_stranger(tmp_path, ("save_elsewhere", given))
    assert {*REMOTE_CODE_FILES, "model.safetensors", "processor_config.json"} <= {*complete}
    assert {"model.safetensors", "processor_config.json"} <= {*without_code}


def test_saving_leaves_a_projects_own_files(encoder, tmp_path):
    """An endpoint's files have names that a project may have given to its own."""
    for name in ("requirements.txt", "handler.py"):
        (tmp_path / name).write_text("mine")
    tiny_model(encoder).save_pretrained(tmp_path)
    tiny_processor(encoder).save_pretrained(tmp_path)
    assert [(tmp_path / name).read_text() for name in ("requirements.txt", "handler.py")] == ["mine", "mine"]
    assert {path.name for path in tmp_path.iterdir()} >= set(REMOTE_CODE_FILES)
