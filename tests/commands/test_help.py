"""The command line before a command runs: help, completion, usage errors, and the list of all options."""

import importlib
import re
import subprocess
import sys

import pytest

from modeling_triaffine.commands import convert, convert_published, preannotate, train
from modeling_triaffine.commands.application import COMMANDS, COMPLETION
from modeling_triaffine.commands.reference import describe_commands
from modeling_triaffine.conversion import CORPORA
from modeling_triaffine.data import WRITERS
from modeling_triaffine.data.writing_texts import PREDICTION_WRITERS
from modeling_triaffine.errors import INTERRUPTED
from modeling_triaffine.evaluation.uncertainty import MEASURES
from modeling_triaffine.model.kinds_triaffine import ATTENTIONS, OVERLAPS
from modeling_triaffine.model.options_triaffine import MODEL_OPTIONS
from modeling_triaffine.publishing.upload import NotPublishedError
from modeling_triaffine.training.interruptions import OutOfMemoryError
from modeling_triaffine.training.options import INHERITED, DataArguments, ModelArguments, TrainingOptions
from modeling_triaffine.training.plan import parse_training_plan
from tests.helpers.processes import PATIENCE

OWN_OPTIONS = (ModelArguments, DataArguments, TrainingOptions)


@pytest.mark.contract
def test_help_lists_every_command(command):
    result = command("--help")
    assert result.code == 0
    listed = [line.split()[0] for line in result.out.splitlines() if line.startswith("  ") and not line[2].isspace()]
    assert set(COMMANDS) <= set(listed)
    assert command("--version").out.startswith("triaffine-ner ")


def test_the_package_is_the_program():
    program = [sys.executable, "-m", "modeling_triaffine", "--version"]
    result = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert result.stdout.startswith("triaffine-ner ")


@pytest.mark.contract
@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_an_example(command, name):
    result = command(name, "--help")
    assert result.code == 0
    assert re.search(rf"^ .*triaffine-ner {name} ", result.out, re.MULTILINE)


def test_help_and_usage_errors_load_no_library():
    """As these take seconds to import."""
    program = """
import sys
from modeling_triaffine.commands import main
for arguments in (["--help"], ["predict", "--help"], ["train", "--help"], ["predict", "--modle", "x"], ["predict"]):
    try:
        main(arguments)
    except SystemExit:
        pass
print(sorted({"torch", "transformers", "datasets", "numpy", "huggingface_hub"} & set(sys.modules)))
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ([], ["Missing command"]),
        (["predicct"], ["'predicct'", "Did you mean 'predict'?"]),
        (["predict"], ["Missing option '--model'", "`triaffine-ner predict --help`"]),
        (["predict", "--modle", "x"], ["--modle", "Did you mean --model?"]),
        (["predict", "--model", "x", "--batch_size", "0"], ["'--batch-size'", "1."]),
        (
            ["predict", "--model", "x", "--overlap", "nonesuch"],
            ["'--overlap': 'nonesuch'", "'all', 'nested', 'flat'"],
        ),
        (["predict", "--model", "x", "--threshold", "DNA=high"], ["'--threshold'", "'DNA=high'", "DNA=0.6"]),
        (["predict", "--model", "x", "--threshold", "1.5"], ["'--threshold'", "'1.5'", "from 0 to 1"]),
        (
            ["predict", "--threshold", "a=1", "--threshold=b=1"],
            ["given twice", "protein=0.4,DNA=0.6", "predict --help"],
        ),
        (["explain", "--model", "x", "--text", "y"], ["--span", "--offsets"]),
        (["publish", "--repo-id", "a/b"], ["Missing option '--model'"]),
        (["analyse", "--model", "x", "--candidates", "3", "in/"], ["--candidates takes all", "give corpus before it"]),
        (["statistics", "--splits", "train", "in/"], ["--splits takes all", "give paths before it"]),
        (["convert", "x", "y", "--columns", "tokens=1,2"], ["--columns", "'tokens=1,2'"]),
        (["train", "--train-fil", "x", "--output_dir", "y"], ["--train-fil", "Did you mean --train_file?"]),
        (["train", "--train_fil=x.json", "--output_dir", "y"], ["--train_fil=x.json", "Did you mean --train_file?"]),
        (["train", "--model_name", "x", "--output_dir", "y"], ["--model_name", "Did you mean --model_name_or_path?"]),
        (["train", "--lr", "0.1", "--output_dir", "y"], ["--lr", "Give --encoder_learning_rate"]),
        (["train", "--warmup_ratio", "0.1", "--output_dir", "y"], ["--warmup_ratio", "Give --warmup_steps"]),
        (["train", "--train_batch_size", "8", "--output_dir", "y"], ["Give --per_device_train_batch_size"]),
        (["train", "options.yaml", "--output_dir", "y"], ["options.yaml", "--recipe: a folder with training.yaml"]),
        (["train", "--format", "brat", "--output_dir", "y"], ["--format", "Give --data_format"]),
        (["train", "--recipe", "demmo", "--output_dir", "y"], ["'demmo'", "hub_configs", "Did you mean demo?"]),
    ],
)
def test_mistakes_on_the_command_line_are_one_paragraph(command, arguments, facts):
    result = command(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert [fact for fact in facts if fact not in result.err] == []


@pytest.mark.parametrize("option", ["--early_stopping_patience", "--labels", "--max_length", "--label_column_name"])
def test_options_without_a_likely_spelling_get_no_suggestion(command, option):
    result = command("train", option, "3", "--output_dir", "y")
    assert f"error: No such option: {option}. See" in result.err


def test_interrupted_while_a_command_is_imported(command, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupt)
    result = command("predict", "--help")
    assert (result.code, result.out, result.err.count("\n")) == (INTERRUPTED, "", 1)


@pytest.mark.contract
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("pred", ["predict"]),
        ("predict --ba", ["--batch-size"]),
        ("predict --overlap ", [*OVERLAPS]),
        ("train --triaffine_r", ["--triaffine_rank"]),
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
def test_choices_are_those_of_the_other_folders():
    """`commands/` names them with what they mean, so that help needs no imports."""
    behind = [
        (convert.TARGETS, WRITERS),
        (convert_published.PUBLISHED_CORPORA, CORPORA),
        (preannotate.TOOLS, PREDICTION_WRITERS),
        (preannotate.MEASURES, MEASURES),
    ]
    for choices, names in behind:
        assert [*choices] == [*names], "the command names its choices with their meaning"


@pytest.mark.contract
def test_all_options_of_all_commands_are_listed_with_default_bounds_choices_and_meaning():
    described = {one.name: one for one in describe_commands()}
    assert [*described] == [*COMMANDS]
    for one in described.values():
        for known in (*one.arguments, *one.options):
            assert known.doc or known.section == INHERITED, f"{one.name} {known.name}"
            assert known.default is None or known.type is object or not known.problem(known.default), known
    options = {name: {known.name: known for known in one.options} for name, one in described.items()}
    assert options["train"]["attention"].meanings == {name: kind.meaning for name, kind in ATTENTIONS.items()}
    assert options["train"]["mlp_dropout"].bounds == "at least 0 and below 1"
    assert "gradient_checkpointing" in options["train"]
    assert options["preannotate"]["sort"].meanings["uncertain"] == "least certain first"
    assert options["predict"]["batch-size"].bounds == "from 1 to 1048576"
    assert options["predict"]["format"].unset == "by its name"
    assert options["predict"]["model"].required
    assert options["statistics"]["splits"].many
    assert [known.name for known in described["convert"].arguments] == ["corpus", "output"]


# ---- train: its help


@pytest.mark.contract
def test_the_help_of_train_has_every_option_of_this_package_and_all_help_those_of_transformers(command):
    short, everything = command("train", "--help").out, command("train", "--help-all").out
    own = {name for holder in OWN_OPTIONS for name in holder.__annotations__} | {*MODEL_OPTIONS, "recipe"}
    assert [name for name in own if f"\n  --{name} " not in short.replace("\n", " \n")] == []
    assert "--gradient_checkpointing" not in short
    assert all(f"\n  --{name}" in everything for name in (*own, "gradient_checkpointing"))
    assert "--label_smoothing_factor" not in everything


@pytest.mark.contract
def test_help_says_what_choices_and_none_mean_and_which_is_the_default(command):
    text = " ".join(command("train", "--help").out.split())
    assert f"or none ({ATTENTIONS['none'].meaning}) (default: triaffine)." in text
    assert "(default: none, for full tensors)" in text
    assert "--encoder_learning_rate RATE Learning rate of the encoder (default: 3e-5)." in text
    assert "--validation_file PATH Validation data (default: that in --train_file)." in text
    assert "--output_dir FOLDER Folder for checkpoints and the final model. Required." in text


@pytest.mark.parametrize("option", ["attention", "context"])
def test_none_is_a_choice_where_choices_are_words(option, tmp_path):
    assert parse_training_plan([f"--{option}", "none", "--output_dir", str(tmp_path)]).config[option] == "none"


def test_full_tensors_and_forty_candidates_by_the_help_text_alone(tmp_path):
    command = re.search(r"triaffine-ner train (.* --triaffine_rank none \\\n.*)\n", train.__doc__)[1]
    plan = parse_training_plan(command.replace("\\\n", "").split())
    assert (plan.config["triaffine_rank"], plan.config["max_candidates"]) == (None, 40)


@pytest.mark.parametrize("kind", [ImportError, OutOfMemoryError, NotPublishedError])
def test_a_training_that_cannot_go_on_ends_in_one_paragraph(command, monkeypatch, kind):
    def fail(_run):
        raise kind("what is missing")

    monkeypatch.setattr("modeling_triaffine.training.run.prepare_run", lambda _: None)
    monkeypatch.setattr("modeling_triaffine.training.run.train_and_save", fail)
    result = command("train")
    assert (result.code, result.err) == (2, "error: what is missing\n")


def test_a_mistake_of_the_program_in_training_keeps_its_traceback(command, monkeypatch):
    monkeypatch.setattr("modeling_triaffine.training.run.prepare_run", lambda _: None)
    monkeypatch.setattr("modeling_triaffine.training.run.train_and_save", lambda _: int("x"))
    with pytest.raises(RuntimeError) as caught:
        command("train")
    assert isinstance(caught.value.__cause__, ValueError)
