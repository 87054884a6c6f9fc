"""The models of the demo page, their examples, and the command."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("gradio", reason="needs the extra demo")

from modeling_triaffine import addresses, page
from modeling_triaffine.page import build_page
from modeling_triaffine.page.answers import show_error
from modeling_triaffine.page.models import Models
from tests.helpers.demo_page import HOSTILE, PATIENCE, TEXT, find, save_model

FIELDS = ("text", "model")
REPOSITORY = Path(__file__).resolve().parents[2]


# ---- models


def test_only_offered_models_are_loaded_unless_the_choice_is_free(models):
    offered = Models([models["tiny"]])
    assert offered.pipeline("tiny") is offered.pipeline("tiny")
    for name in (str(models[HOSTILE]), "owner/name", "", None):
        problem = "is not offered here" if name else "No model is chosen"
        with pytest.raises(ValueError, match=f"{problem}; choose one of tiny"):
            offered.pipeline(name)
        assert offered.examples(name) == []
    free = Models([models["tiny"]], free_choice=True)
    assert len(free.pipeline(str(models[HOSTILE]))(TEXT)) > 0


@pytest.mark.parametrize(("is_removed", "problem"), [(False, r"processor_config\.json"), (True, "neither a folder")])
def test_messages_do_not_reveal_the_path_of_a_model(tmp_path, is_removed, problem):
    (tmp_path / "broken").mkdir()
    offered = Models([tmp_path / "broken"])
    if is_removed:
        (tmp_path / "broken").rmdir()
    with pytest.raises(ValueError, match=f"broken.*{problem}") as error:
        offered.pipeline("broken")
    assert str(tmp_path) not in str(error.value)


def test_code_of_a_repository_is_not_run(encoder, tmp_path):
    folder = save_model(tmp_path / "mine", encoder, [])
    for path in folder.glob("*.py"):
        path.write_text("raise SystemExit('run')\n")
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer["auto_map"] = {"AutoTokenizer": ["text_triaffine.Tokenizer", "text_triaffine.Tokenizer"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert Models([folder]).pipeline("mine")(TEXT)


@pytest.mark.parametrize("named", ["kernels-community/flash-attn", {"encoder_config": "owner/attention"}])
def test_code_of_an_attention_on_the_hub_is_not_run(encoder, tmp_path, named):
    """Where `kernels` is installed, transformers would fetch what a configuration names."""
    folder = save_model(tmp_path / "mine", encoder, [])
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "attn_implementation": named}))
    model: Any = Models([folder]).pipeline("mine").model
    assert model.config._attn_implementation == model.encoder.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("card", ["", "no front matter", "---\nwidget: 7\n---\n", "---\n[\n---\n", "---\n- 1\n---\n"])
def test_a_card_without_examples_has_none(tmp_path, card):
    (tmp_path / "README.md").write_text(card)
    assert Models([tmp_path]).examples(tmp_path.name) == []


def test_examples_of_a_card_are_its_texts(tmp_path):
    widget = [{"text": "one"}, {"text": 2}, "three", {"text": " "}, {"src": "x"}, *({"text": str(n)} for n in range(9))]
    (tmp_path / "README.md").write_text(f"---\n{yaml.safe_dump({'widget': widget})}---\n")
    assert Models([tmp_path]).examples(tmp_path.name) == ["one", "0", "1", "2", "3"]


def test_given_examples_replace_those_of_the_card(models):
    configuration = str(build_page([models["tiny"]], examples=["one of mine"], device="cpu").get_config_file())
    assert "one of mine" in configuration
    assert "protein binds gene" not in configuration


@pytest.mark.parametrize(("names", "free", "is_shown"), [(1, False, False), (1, True, True), (2, False, True)])
def test_a_list_of_models_is_shown_where_there_is_a_choice(models, names, free, is_shown):
    page = build_page([*models.values()][:names], free_choice=free, device="cpu")
    fields = [one["props"] for one in page.get_config_file()["components"] if one["props"].get("elem_id") in FIELDS]
    assert [(field["elem_id"], field["visible"]) for field in fields] == [("text", True), ("model", is_shown)]


def test_errors_are_one_line():
    assert show_error(ValueError("a\n  <b>")) == '<p class="error" role="alert">a &lt;b&gt;</p>'


# ---- the command


@pytest.fixture
def served(monkeypatch):
    """The calls of the command to build and serve the page, which do nothing."""
    calls = []
    monkeypatch.setattr(page, "build_page", lambda *given, **options: calls.append((given, options)))
    monkeypatch.setattr(page, "serve_page", lambda *given, **options: calls.append((given, options)))
    return calls


def test_only_loopback_addresses_leave_the_choice_free(command, served):
    for host, free in {"127.0.0.1": True, "localhost": True, "0.0.0.0": False}.items():
        served.clear()
        assert command("page", "--model", "o/m", "--host", host, "--port", "0").code == 0
        assert served[0][1]["free_choice"] == free


def test_the_page_is_served_on_loopback_by_default(command, served):
    assert command("page", "--model", "o/a", "--model", "o/b").code == 0
    (models, _), (address, options) = served
    assert models == (["o/a", "o/b"],)
    assert address[1] == addresses.HOST
    assert options == {"open_browser": False}
    assert command("page", "--model", "o/a", "--open", "--device", "cpu").code == 0
    assert served[2][1]["device"] == "cpu"
    assert served[3][1] == {"open_browser": True}
    assert command("page", "--model", "a", "--port", "70000").code == 2


@pytest.mark.nightly  # the document about the page starts it, too
def test_the_command_serves_until_it_is_stopped_and_leaves_no_files(browser, models, tmp_path):
    cache = tmp_path / "cache"
    program = "from modeling_triaffine.commands import main; main()"
    options = ["page", "--model", models["tiny"], "--port", "0", "--device", "cpu"]
    environment = {**os.environ, "GRADIO_TEMP_DIR": str(cache), "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", program, *map(str, options)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        try:
            printed = process.stdout.readline()
            address = printed.split()[4]
            assert printed == f"The page is at {address} (stop it with Ctrl+C).\n"
            visited = browser.new_page()
            visited.set_default_timeout(PATIENCE)
            visited.goto(address)
            find(visited, TEXT)
            visited.wait_for_selector("#download")
            assert sorted(path.name for path in cache.rglob("*") if path.is_file()) == [
                "entities.html",
                "entities.json",
            ]
            visited.close()
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE / 1000) == 0
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_errors_of_the_command(command, tmp_path):
    result = command("page", "--model", tmp_path)
    assert (result.code, result.out) == (2, "")
    assert f" {tmp_path.name}" in result.err
    assert str(tmp_path) not in result.err
    assert "processor_config.json" in result.err
