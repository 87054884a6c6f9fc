"""The declared options of a training: how values are read, and that their choices are those of the code behind them."""

import math
import re
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers
from transformers import HfArgumentParser, IntervalStrategy

from modeling_triaffine.data.collator import FLAT_ANNOTATIONS
from modeling_triaffine.model.text_triaffine import _WORDS, SENTENCE_SPLITTERS
from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.options import OWN_OPTIONS, read_value
from modeling_triaffine.training.plan import make_plan, parse_training_plan, training_options
from modeling_triaffine.training.start import SPECIAL_TOKENS

pytestmark = pytest.mark.contract


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("learning_rate", "3e-5", 3e-5),
        ("seed", "7", 7),
        ("seed", "7.0", 7),
        ("num_train_epochs", 3, 3.0),
        ("ema_decay", "none", None),
        ("do_train", "no", False),
        ("bf16", "True", True),
        ("eval_strategy", False, "no"),
        ("eval_strategy", IntervalStrategy.STEPS, "steps"),
        ("metric_for_best_model", "none", None),
        ("flat_annotation", "None", None),
        ("sentence_splitter", "none", "none"),
        ("language", False, "no"),
        ("train_file", Path("a") / "b", str(Path("a") / "b")),
        ("label_names", ("labels",), ["labels"]),
        ("lr_scheduler_kwargs", {"num_cycles": 2}, {"num_cycles": 2}),
        ("disable_tqdm", "1", True),
        ("optim", "adamw_torch", "adamw_torch"),
    ],
)
def test_values_are_read_as_yaml_python_and_the_command_line_give_them(name, value, read):
    found = read_value(training_options()[name], value)
    assert found == read
    assert type(found) is type(read)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("learning_rate", "fast", "learning_rate is 'fast'; it must be a number."),
        ("learning_rate", -1, "learning_rate is -1; it must be at least 0"),
        ("seed", "7.5", "seed is 7.5; it must be a whole number."),
        ("words", "nonesuch", "words is 'nonesuch'; choose one of 'auto', 'corpus', 'text', 'both'."),
        ("do_train", "perhaps", "do_train is 'perhaps'; it must be true or false."),
        ("train_file", 3, "train_file is 3; it must be a string."),
        ("optim", "adamm", "optim is 'adamm'; choose one of 'adamw_torch', "),
        ("per_device_train_batch_size", 0, "per_device_train_batch_size is 0; it must be at least 1"),
        ("encoder_learning_rate", math.nan, "encoder_learning_rate is nan"),
        ("label_smoothing_factor", 0.1, "The training arguments do not fit together: label_smoothing_factor and "),
    ],
)
def test_other_values_are_refused_by_name(tmp_path, name, value, problem):
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}"):
        make_plan({"output_dir": tmp_path, name: value})


def test_the_arguments_are_read_by_transformers_own_parser(tmp_path):
    parser = HfArgumentParser((NestedNERTrainingArguments,))
    (arguments,) = parser.parse_args_into_dataclasses(
        ["--output_dir", str(tmp_path), "--ema_decay", "0.5", "--use_cpu"]
    )
    assert (arguments.ema_decay, arguments.output_dir) == (0.5, str(tmp_path))
    assert OWN_OPTIONS["ema_decay"].doc[:40] in parser.format_help()


def test_a_new_repository_is_private_unless_the_command_line_declines(tmp_path):
    given = ["--train_file", str(tmp_path), "--output_dir", str(tmp_path)]
    assert parse_training_plan(given).training.hub_private_repo is True
    assert parse_training_plan([*given, "--no_hub_private_repo"]).training.hub_private_repo is False
    assert parse_training_plan([*given, "--label_names", "a", "b", "--label_names=c"]).training.label_names == [*"abc"]


def test_choices_are_those_of_the_code_behind_them():
    behind = {
        "flat_annotation": FLAT_ANNOTATIONS,
        "word_splitter": _WORDS,
        "sentence_splitter": SENTENCE_SPLITTERS,
    }
    for name, known in behind.items():
        assert OWN_OPTIONS[name].choices == tuple(known), f"declare the choices of {name} where the option is declared"
    assert OWN_OPTIONS["tokenizer_vocab_size"].least == len(SPECIAL_TOKENS) + len(pre_tokenizers.ByteLevel.alphabet())
