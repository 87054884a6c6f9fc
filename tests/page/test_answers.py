"""The models of the demo page, its answers without a browser, and the command."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gradio", reason="needs the extra demo")

from modeling_triaffine import page
from modeling_triaffine.explanation import explain
from modeling_triaffine.page import answers, build_page
from modeling_triaffine.page.answers import LONGEST_TEXT, NO_TEXT, Models, explain_entity, find_entities
from tests.helpers.portable import near
from tests.page.conftest import HOSTILE, PATIENCE, TEXT, find, save_model

FIELDS = ("text", "model")
REPOSITORY = Path(__file__).resolve().parents[2]


def test_only_offered_models_are_loaded(models):
    offered = Models([models["tiny"]])
    assert offered.pipeline("tiny") is offered.pipeline("tiny")
    for name in (str(models[HOSTILE]), "owner/name", ""):
        with pytest.raises(KeyError):
            offered.pipeline(name)


def test_an_error_is_a_paragraph_that_does_not_reveal_the_path_of_a_model(tmp_path, caplog):
    (tmp_path / "broken").mkdir()
    drawing, *_ = find_entities(Models([tmp_path / "broken"]), "broken", TEXT, None, "all")
    assert drawing == '<p class="error" role="alert">The request failed; the log of the page says why.</p>'
    assert "processor_config.json" in caplog.text


def test_code_of_a_repository_is_not_run(encoder, tmp_path):
    folder = save_model(tmp_path / "mine", encoder, [])
    for path in folder.glob("*.py"):
        path.write_text("raise SystemExit('run')\n")
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer["auto_map"] = {"AutoTokenizer": ["text_triaffine.Tokenizer", "text_triaffine.Tokenizer"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert Models([folder]).pipeline("mine")(TEXT)


@pytest.mark.parametrize(
    ("card", "examples"),
    [("---\nwidget: [{text: one}, {text: 2}]\n---\n", ["one", "2"])]
    + [(card, []) for card in ("", "no front matter", "---\nwidget: 7\n---\n", "---\n[\n---\n", "---\n- 1\n---\n")],
)
def test_examples_of_a_card_are_its_texts(tmp_path, card, examples):
    (tmp_path / "README.md").write_text(card)
    assert Models([tmp_path]).examples() == examples


@pytest.mark.parametrize(("names", "is_shown"), [(1, False), (2, True)])
def test_a_list_of_models_is_shown_where_there_is_a_choice(models, names, is_shown):
    page = build_page([*models.values()][:names], device="cpu")
    fields = [one["props"] for one in page.get_config_file()["components"] if one["props"].get("elem_id") in FIELDS]
    assert [(field["elem_id"], field["visible"]) for field in fields] == [("text", True), ("model", is_shown)]


def test_only_a_longer_text_than_the_limit_is_refused(models):
    offered = Models([models["tiny"]])
    for length, said in ((LONGEST_TEXT, "The request failed"), (LONGEST_TEXT + 1, f"the limit is {LONGEST_TEXT:,}")):
        assert said in find_entities(offered, "gone", "x" * length, None, "all")[0]
    assert find_entities(offered, "tiny", " \n ", None, "all") == (NO_TEXT, "", None)


def test_an_entity_is_explained_by_the_threshold_that_found_it(models):
    offered = Models([models["tiny"]])
    *_, marked = find_entities(offered, "tiny", f"{TEXT}\ud800", 0.05, "all")
    assert marked.text == f"{TEXT}\ufffd"  # browsers cannot display lone surrogates
    assert marked.entities == near(offered.pipeline("tiny")(marked.text, threshold=0.05))
    assert marked.entities
    for entity in marked.entities:
        explanation = explain(offered.pipeline("tiny"), marked.text, (entity["start"], entity["end"]), 0.05)
        assert entity["entity_group"] in {explanation.predicted, *explanation.also_predicted}
        answer = explain_entity(offered, marked, entity["start"], entity["end"])
        assert answer == answers.show_explanation(explanation)


def test_options_of_the_command(command, monkeypatch):
    served = []
    for name in ("build_page", "serve_page"):
        monkeypatch.setattr(page, name, lambda *given, **options: served.append((given, options)))
    monkeypatch.setenv("GRADIO_TEMP_DIR", "cache")  # the command sets it where it is not set
    options = ["--model", "o/a", "--model", "o/b", "--open", "--device", "cpu", "--host", "localhost"]
    assert command("page", *options).code == 0
    (models, built), (address, opens) = served
    assert (models, built) == ((["o/a", "o/b"],), {"device": "cpu"})
    assert (address[1], address[3], opens) == ("localhost", True, {})
    assert command("page").code == 0
    assert [Path(model).name for model in served[2][0][0]] == ["names-en", "genia"]


@pytest.mark.nightly  # the document about the page starts it, too
def test_the_command_serves_until_it_is_stopped_and_leaves_no_files(browser, models, tmp_path):
    program = "from modeling_triaffine.commands import main; main()"
    options = ["page", "--model", models["tiny"], "--port", "0", "--device", "cpu"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
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
            assert {path.name for path in tmp_path.rglob("*.html")} == {"entities.html"}
            visited.close()
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE / 1000) == 0
    assert [*tmp_path.glob("tmp*")] == []


def test_errors_of_the_command(command, tmp_path):
    result = command("page", "--model", tmp_path)
    assert (result.code, result.out) == (2, "")
    assert "processor_config.json" in result.err
