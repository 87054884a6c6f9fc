"""Saved folders load in a fresh process that cannot import the package, with equal scores, and so what it saves."""

import json
import sys
from pathlib import Path

from transformers.dynamic_module_utils import get_imports, get_relative_imports

from modeling_triaffine.model import repository_triaffine
from modeling_triaffine.model.repository_triaffine import AUTO_MAP, CUSTOM_PIPELINES, HANDLER_FILE, REMOTE_CODE_FILES
from tests.helpers.portable import near
from tests.helpers.stranger import ask_a_stranger, expected_answer
from tests.helpers.tiny import tiny_model, tiny_processor

ALWAYS_THERE = {"torch", "transformers", "tokenizers", "numpy", "safetensors", "huggingface_hub", "packaging"}


def test_folder(encoder, tmp_path):
    processor = tiny_processor(encoder)
    processor.build_vocabularies([{"tokens": ["gene", "binds"], "pos": []}], ["chars"])
    sizes = {"char_vocab_size": len(processor.vocabularies["chars"]), "char_embedding_size": 3}
    saved, again = tmp_path / "saved", tmp_path / "again"
    tiny_model(encoder, **sizes, char_lstm_hidden_size=2).save_pretrained(saved)
    processor.save_pretrained(saved)
    # What a stranger saves is code of its own, and whole.
    first = {"name": str(saved), "save_to": str(again), "by_all_names": True}
    answers = ask_a_stranger(tmp_path, ("load", first), ("load", {"name": str(again)}))
    assert answers == near([expected_answer(saved)] * 2)
    files = {path.name: path.read_bytes() for path in saved.iterdir()}
    assert {"config.json", "model.safetensors", "processor_config.json", "vocabularies.json", "tokenizer.json"} <= set(
        files
    )
    saved_again = {path.name: path.read_bytes() for path in again.iterdir()}
    for contents in (files, saved_again):
        config = json.loads(contents.pop("config.json"))
        assert (config["auto_map"], config["custom_pipelines"]) == (AUTO_MAP, CUSTOM_PIPELINES)
    assert saved_again == files
    assert all(str(tmp_path) not in path.read_text() for path in saved.glob("*.json"))


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
