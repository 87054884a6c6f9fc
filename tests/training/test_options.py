"""The options of a training: how values, command lines and recipes are read, and that choices are those of the code."""

import re
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers
from transformers import HfArgumentParser, IntervalStrategy

from modeling_triaffine.data.collator import FLAT_ANNOTATIONS
from modeling_triaffine.model.text_triaffine import _WORDS, SENTENCE_SPLITTERS
from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.options import OWN_OPTIONS, read_value
from modeling_triaffine.training.plan import parse_training_plan, training_options
from modeling_triaffine.training.start import SPECIAL_TOKENS
from tests.helpers.micro_training import write_recipe

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


def parse(recipe: Path, *arguments: str):
    return parse_training_plan(["--recipe", str(recipe), "--output_dir", str(recipe / "out"), *arguments])


RECIPE = {"learning_rate": "1e-3", "num_train_epochs": 7, "weight_decay": 0.5, "do_eval": False, "do_predict": True}
FROM_IT = {"learning_rate": 1e-3, "num_train_epochs": 7, "do_predict": True, "max_grad_norm": 0.1, "triaffine_rank": 4}
LEARNED = {"learn_span_width": True, "min_steps": 1000}
OFF = {"eval_strategy": False, "language": False, "do_eval": False, "bf16": False, "word_vectors": None}


@pytest.mark.parametrize(
    ("training", "arguments", "expected"),
    [
        (RECIPE, "", FROM_IT),
        (
            *(RECIPE, "--learning_rate 0.5 --triaffine_rank=none --attention label"),
            {**FROM_IT, "learning_rate": 0.5, "triaffine_rank": None, "attention": "label", "triaffine_dim": 8},
        ),
        (
            *(RECIPE, "--weight_decay 0.01 --do_eval --triaffine_dim 256"),
            {"weight_decay": 0.01, "do_eval": True, "triaffine_dim": 256},
        ),
        (RECIPE, "--recipe= --seed= --auxiliary_labels=", {"recipe": None, "seed": 42, "auxiliary_labels": None}),
        (RECIPE, "--num_train_epochs= --triaffine-dim= --language=", {"num_train_epochs": 15, "triaffine_dim": None}),
        *(
            (LEARNED, arguments, {**LEARNED, **changed})
            for arguments, changed in [
                ("--seed 1", {}),
                ("--num_train_epochs 2", {"min_steps": 0}),
                ("--max_steps 9", {"min_steps": 0}),
                ("--num_train_epochs 2 --min_steps 5", {"min_steps": 5}),
                ("--max_span_width=", {"learn_span_width": False}),  # its default, all spans
                ("--max_span_width 12", {"learn_span_width": False}),
                ("--max_span_width none --learn_span_width", {}),
            ]
        ),
        (OFF, "", {**OFF, "eval_strategy": "no", "language": "no"}),
        (
            *({}, "--aux_loss_weight .5 --lstm_layers +2 --multi_label yes --cross_span 0"),
            {"aux_loss_weight": 0.5, "lstm_layers": 2, "multi_label": True, "cross_span": False},
        ),
        ({}, "--resume_from_checkpoint", {"resume_from_checkpoint": "latest"}),
    ],
    ids=str,
)
def test_the_command_line_comes_before_the_recipe_and_this_before_defaults(tmp_path, training, arguments, expected):
    plan = parse(write_recipe(tmp_path / "recipe", training=training), *arguments.split())
    found = {**vars(plan), **vars(plan.training), **plan.config}
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("--learning_rate fast", "learning_rate is 'fast'; it must be a number."),
        ("--learning_rate -1", "learning_rate is -1; it must be at least 0"),
        ("--num_train_epochs nan", "num_train_epochs is nan; it must be a finite number."),
        ("--seed 7.5", "seed is 7.5; it must be a whole number."),
        ("--per_device_train_batch_size 0", "per_device_train_batch_size is 0; it must be at least 1"),
        ("--words nonesuch", "words is 'nonesuch'; choose one of 'auto', 'corpus', 'text', 'both'."),
        ("--do_train perhaps", "do_train is 'perhaps'; it must be true or false."),
        ("--no_do_train", "do_train is false"),
        ("--optim adamm", "optim is 'adamm'; choose one of 'adamw_torch', "),
        ("--label_smoothing_factor 0.1", "No such option: label_smoothing_factor."),
        ("--fp16 --use_cpu", "The training arguments do not fit together: fp16 needs a GPU"),
        ('--lr_scheduler_kwargs {"x":1}', "The training arguments do not fit together: "),
        ("--auto_find_batch_size --max_subwords_per_batch 9", "The training arguments do not fit together: max_sub"),
        ("--report_to nonesuch", "The training arguments do not fit together: nonesuch is not supported"),
        ("--encoder x", "No such option: encoder. Did you mean encoder_learning_rate"),
        ("--lr 1", "No such option: lr. Did you mean learning_rate, "),
        ("--batch_size 1", "No such option: batch_size. Did you mean per_device_train_batch_size, "),
        ("train.jsonl", "No such option: train.jsonl"),
        ("--seed", "--seed needs a value"),
        ("--output_dir=", "--output_dir is missing"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(tmp_path, arguments, problem):
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}"):
        parse(write_recipe(tmp_path / "recipe"), *arguments.split())


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("training.yaml", "learning_rate: fast", "training.yaml, 'learning_rate'.*it must be a number"),
        ("training.yaml", "triaffine_dim: 3", "training.yaml, 'triaffine_dim'.*config.json"),
        ("training.yaml", "- a list", r"training\.yaml must be a mapping"),
        ("config.json", '{"triafine_dim": 3}', "config.json has fields .*triafine_dim"),
        ("config.json", "{", r"config\.json cannot be read"),
    ],
)
def test_bad_recipes_name_file_and_field(tmp_path, file, content, message):
    recipe = write_recipe(tmp_path / "recipe")
    (recipe / file).write_text(content, encoding="utf-8-sig")  # as Windows saves it
    with pytest.raises(ValueError, match=message):
        parse(recipe)


def test_the_arguments_are_read_by_transformers_own_parser(tmp_path):
    parser = HfArgumentParser((NestedNERTrainingArguments,))
    (read,) = parser.parse_args_into_dataclasses(["--output_dir", str(tmp_path), "--ema_decay", "0.5", "--use_cpu"])
    assert (read.ema_decay, read.output_dir) == (0.5, str(tmp_path))
    assert OWN_OPTIONS["ema_decay"].doc[:40] in parser.format_help()


def test_a_new_repository_is_private_unless_the_command_line_declines(tmp_path):
    given = ["--train_file", str(tmp_path), "--output_dir", str(tmp_path)]
    assert parse_training_plan(given).training.hub_private_repo is True
    assert parse_training_plan([*given, "--no_hub_private_repo"]).training.hub_private_repo is False
    assert parse_training_plan([*given, "--label_names", "a", "b", "--label_names=c"]).training.label_names == [*"abc"]


def test_choices_are_those_of_the_code_behind_them():
    behind = {"flat_annotation": FLAT_ANNOTATIONS, "word_splitter": _WORDS, "sentence_splitter": SENTENCE_SPLITTERS}
    for name, known in behind.items():
        assert OWN_OPTIONS[name].choices == tuple(known), f"declare the choices of {name} where the option is declared"
    assert OWN_OPTIONS["tokenizer_vocab_size"].least == len(SPECIAL_TOKENS) + len(pre_tokenizers.ByteLevel.alphabet())
