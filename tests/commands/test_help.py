"""The command line before a command runs: help, completion and usage errors."""

import re
import sys

import pytest

from modeling_triaffine.commands import COMPLETION, build_application, main
from modeling_triaffine.commands.corpora import convert
from modeling_triaffine.commands.options import read_threshold
from modeling_triaffine.commands.predict import predict
from modeling_triaffine.conversion import CORPORA
from modeling_triaffine.data.schema import OFFSET_UNITS
from modeling_triaffine.data.writing import PREDICTION_WRITERS, WRITERS
from modeling_triaffine.model.kinds_triaffine import ATTENTIONS, OVERLAPS
from modeling_triaffine.model.options_triaffine import MODEL_OPTIONS
from modeling_triaffine.training.interruptions import OutOfMemoryError, StoppedError
from modeling_triaffine.training.options import RunOptions, TrainingOptions
from tests.helpers.processes import run_program

COMMANDS = [*build_application().commands]
OWN_OPTIONS = (RunOptions, TrainingOptions)


@pytest.mark.contract
def test_help_lists_every_command(command):
    result = command("--help")
    assert result.code == 0
    assert [name for name in COMMANDS if f"\n  {name} " not in result.out] == []
    assert command().out == result.out
    assert command("--version").out.startswith("triaffine-ner ")


@pytest.mark.contract
@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_an_example(command, name):
    result = command(name, "--help")
    assert result.code == 0
    assert re.search(rf"^ .*triaffine-ner {name} ", result.out, re.MULTILINE)


def test_streams_may_be_closed(monkeypatch):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    main(["--version"])


def test_help_and_usage_errors_load_no_library():
    """As these take seconds to import. And the package is the program."""
    program = """
import runpy, sys
for arguments in (["--help"], ["predict", "--help"], ["train", "--help"], ["predict", "--modle", "x"], ["--version"]):
    sys.argv = ["modeling_triaffine", *arguments]
    try:
        runpy.run_module("modeling_triaffine", run_name="__main__")
    except SystemExit:
        pass
print(sorted({"torch", "transformers", "datasets", "numpy", "huggingface_hub"} & set(sys.modules)))
"""
    *_, version, loaded = run_program(sys.executable, "-c", program).splitlines()
    assert version.startswith("triaffine-ner ")
    assert loaded == "[]"


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["predicct"], ["'predicct'", "Did you mean 'predict'?"]),
        (["tag", "x"], ["Missing option '--output-dir'", "`triaffine-ner tag --help`"]),
        (["predict", "--modle", "x"], ["--modle", "--model"]),
        (["predict", "--overlap", "nonesuch"], ["'--overlap': 'nonesuch'", "'all', 'nested', 'flat'"]),
        (["predict", "--threshold", "1.5"], ["'--threshold'", "'1.5'", "from 0 to 1"]),
        (["explain", "--text", "y"], ["--span", "--offsets"]),
        (["serve", "--port", "0", "--model", "no/where/model"], ["no/where/model", "names-en"]),
        (["serve", "--port", "0", "--host", "192.0.2.1"], ["Cannot listen on 192.0.2.1"]),
        (["serve", "--max-texts", "0"], ["--max-texts"]),
        (["page", "--port", "70000"], ["--port"]),
        (["convert", "x", "y", "--columns", "tokens"], ["--columns", "'tokens'"]),
        (["convert", "x.pth", "y"], ["--trained-on", "--encoder"]),
        (["convert", "x.bin", "y", "--vocabularies", "z"], ["--trained-on", "--encoder"]),
        (["train", "--train-fil", "x", "--output_dir", "y"], ["train_fil", "Did you mean train_file?"]),
        (["train", "--recipe", "demmo", "--output_dir", "y"], ["'demmo'", "ace2004-albert, "]),
    ],
)
def test_mistakes_on_the_command_line_are_one_paragraph(command, arguments, facts):
    if "no/where/model" in arguments:
        pytest.importorskip("fastapi")  # of the extra `serve`
    result = command(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert [fact for fact in facts if fact not in result.err] == []


@pytest.mark.contract
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("pred", ["predict"]),
        ("predict --ba", ["--batch-size"]),
        ("predict --overlap ", [*OVERLAPS]),
        ("evaluate --format br", ["brat"]),
        ("train --cross_span_axis ", ["key", "query"]),
        ("train --data-format br", ["brat"]),
    ],
)
def test_the_shell_completes(command, monkeypatch, words, found):
    monkeypatch.setenv(COMPLETION, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"triaffine-ner {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    assert command().out.split() == found


@pytest.mark.contract
@pytest.mark.parametrize(
    ("of", "option", "names"),
    [
        (convert, "to", WRITERS),
        (convert, "trained_on", CORPORA),
        (convert, "offsets", OFFSET_UNITS),
        (predict, "to", ["json_lines", *PREDICTION_WRITERS]),
        (predict, "overlap", OVERLAPS),
    ],
)
def test_choices_are_those_of_the_other_folders(of, option, names):
    """`commands/` names them again, so that help needs no imports."""
    annotation = str(of.__annotations__[option])
    assert [*names] == re.findall(r"'(\w+)'", annotation.partition("]")[0])


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("0.5", 0.5),
        ("DNA=0.4, cell line=.5", {"DNA": 0.4, "cell line": 0.5}),
        ("Ämter (x=y)=0.5", {"Ämter (x=y)": 0.5}),
    ],
)
def test_thresholds_for_labels_with_any_characters(text, threshold):
    assert read_threshold(text) == threshold


@pytest.mark.contract
def test_the_help_of_train_has_every_option_of_this_package_and_all_help_those_of_transformers(command):
    short, everything = command("train", "--help").out, command("train", "--help-all").out
    own = {name for holder in OWN_OPTIONS for name in holder.__annotations__} | {*MODEL_OPTIONS}
    assert [name for name in own if f"\n  --{name} " not in short.replace("\n", " \n")] == []
    assert "--gradient_checkpointing" not in short
    assert all(f"\n  --{name}" in everything for name in (*own, "gradient_checkpointing"))
    text = " ".join(short.split())
    assert f", none ({ATTENTIONS['none'].meaning}) (default: triaffine)." in text
    assert "--encoder_learning_rate RATE Learning rate of the encoder (default: 3e-5)." in text
    assert "--output_dir FOLDER Folder for checkpoints and the final model. Required." in text


@pytest.mark.parametrize("kind", [ImportError, OutOfMemoryError, StoppedError, OSError])
def test_a_training_that_cannot_go_on_ends_in_one_paragraph(command, monkeypatch, kind):
    def fail(_run):
        raise kind("what is missing")

    monkeypatch.setattr("modeling_triaffine.training.run.prepare_run", lambda _: None)
    monkeypatch.setattr("modeling_triaffine.training.run.train_and_save", fail)
    result = command("train")
    assert (result.code, result.err) == (2, "error: what is missing\n")
