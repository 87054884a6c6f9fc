"""Reads the options of a training: the command line overrides the recipe, and the recipe the defaults.

The options are the fields of the dataclasses in `arguments.py` and of `TriaffineConfig`. Unknown ones are errors.
`options.txt` describes them, for `--help-all` as for the help of the command.
"""

import argparse
import contextlib
import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn

from transformers import HfArgumentParser, PretrainedConfig
from transformers.hf_argparser import string_to_bool

from ..model.configuration_triaffine import TriaffineConfig
from .arguments import WITHOUT_EFFECT, DataArguments, ModelArguments, NestedNERTrainingArguments
from .recipes import CONFIG_FILE, TRAINING_FILE, Recipe, RecipeError, find_recipe, load_recipe

# Fields of the configuration that follow from the encoder and the data.
DERIVED_FIELDS = {
    *("encoder_config", "id2label", "label2id", "num_labels", "hidden_size"),
    *("temperature", "label_thresholds"),
}
# Options of other programs and of earlier versions of transformers, and what to use here.
INSTEAD = {
    **dict.fromkeys(("batch_size", "train_batch_size"), "Give --per_device_train_batch_size"),
    "config_file": "A file of options is a --recipe: a folder with training.yaml",
    "epochs": "Give --num_train_epochs",
    "lr": "Give --encoder_learning_rate, --embeddings_learning_rate and --learning_rate",
    "group_by_length": "Batches have sentences of similar length unless --train_sampling_strategy is random",
    "warmup_ratio": "Give --warmup_steps; below 1, it is a fraction of all updates",
    "no_cuda": "Give --use_cpu",
    "save_safetensors": "Weights are always safetensors; leave it out",
    "overwrite_output_dir": "A run never overwrites another: give another --output_dir, or delete the folder",
}
CONFIG_OPTIONS = {option.name: option.default for option in TriaffineConfig.options()}
# Of those, a recipe may set the encoder, to be trained from scratch, and the order of the labels.
RECIPE_FIELDS = {"encoder_config", "id2label"}
FIELDS_OF_EVERY_CONFIG = {
    *PretrainedConfig().to_dict(),
    *("auto_map", "custom_pipelines", "use_cache"),
    *("pad_token_id", "bos_token_id", "eos_token_id"),
}


class CommandLineError(ValueError):
    """An unknown option, or an invalid value of one."""


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that defines a training.

    Attributes:
        config: the fields of `TriaffineConfig` that the recipe or the command line sets.
        recipe: the recipe's folder, if any.
        options: the fields of `model`, `data` and `training` that the recipe or the command line sets.
    """

    model: ModelArguments
    data: DataArguments
    training: NestedNERTrainingArguments
    config: dict[str, Any]
    recipe: Path | None
    options: dict[str, Any]


def parse_training_plan(arguments: Sequence[str]) -> TrainingPlan:
    """Reads the command line and its recipe. An empty value (`--word_vectors=`) restores the default.

    Raises:
        CommandLineError, RecipeError: an unknown option or an invalid value; the message says where.
        SystemExit: after `--help`.
    """
    parser = _build_parser()
    given = parser.parse_given(arguments)
    name = given.pop("recipe", None)
    recipe = Recipe() if not name else load_recipe(find_recipe(name))
    config = _check_recipe_config(recipe) | {option: given.pop(option) for option in CONFIG_OPTIONS if option in given}
    config = {name: value for name, value in config.items() if value != ""}
    of_recipe = _check_recipe_options(recipe, parser)
    if given.keys() & {"num_train_epochs", "max_steps"}:
        of_recipe = {name: value for name, value in of_recipe.items() if name not in ("max_steps", "min_steps")}
    merged = {**of_recipe, **given}
    options = {name: value for name, value in merged.items() if value != ""}
    if not options.get("output_dir"):
        raise CommandLineError("--output_dir is missing; give a folder for checkpoints and the model.")
    try:
        model, data, training = parser.parse_dict(options)
    except (ValueError, TypeError) as error:  # TypeError: an unknown field of a dictionary, as in accelerator_config
        raise CommandLineError(f"The training arguments do not fit together: {error}") from error
    return TrainingPlan(model, data, training, config, recipe.folder, options)


class _Parser(HfArgumentParser):
    """The parser of all options; its result has only those that were given."""

    def parse_given(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Option → value. Raises CommandLineError, which suggests the right spelling of a misspelt option."""
        dests = {spelling: action.dest for action in self._actions for spelling in action.option_strings}
        emptied = {
            argument: dests[argument[:-1]]
            for argument in arguments
            if argument.endswith("=") and argument[:-1] in dests
        }
        given, unknown = self.parse_known_args([argument for argument in arguments if argument not in emptied])
        if unknown:
            former = unknown[0].lstrip("-").partition("=")[0].replace("-", "_")
            if unknown[0].endswith((".json", ".yaml", ".yml")):
                former = "config_file"
            if former in INSTEAD:
                self.error(f"no such option: {unknown[0]}. {INSTEAD[former]}.")
            names = [action.option_strings[0] for action in self._actions if action.dest not in WITHOUT_EFFECT]
            name = unknown[0].partition("=")[0].replace("-", "_").replace("__", "--", 1)
            near = [n for n in names if n.startswith(name)] or difflib.get_close_matches(name, names, n=1, cutoff=0.8)
            self.error(f"no such option: {unknown[0]}." + (f" Did you mean {near[0]}?" if near else ""))
        return vars(given) | dict.fromkeys(emptied.values(), "")

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith(("?", ".")) else "."
        raise CommandLineError(
            f"{message[:1].upper()}{message[1:]}{end} See `triaffine-ner train --help`; --help-all has all options."
        )

    def describe_and_forget_defaults(self) -> None:
        own = read_descriptions()
        for action in self._actions:
            default = "" if action.default in (argparse.SUPPRESS, None, "") else f" (default: {action.default})"
            text = own.get(action.dest) or " ".join(f"{action.help or ''}{default}".split())
            action.help = argparse.SUPPRESS if action.dest in WITHOUT_EFFECT else text.replace("%", "%%")
            action.default = argparse.SUPPRESS


def read_descriptions() -> dict[str, str]:
    """Option → its description in `options.txt`, as one line."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n  (?=--)", Path(__file__).with_name("options.txt").read_text(encoding="utf-8"))[1:]:
        names, text = re.split(r"\s{2,}", entry.split("\n\n")[0], maxsplit=1)
        found |= dict.fromkeys(re.findall(r"--(\w+)", names), " ".join(text.split()))
    return found


def _build_parser() -> _Parser:
    parser = _Parser(
        [ModelArguments, DataArguments, NestedNERTrainingArguments],  # type: ignore[list-item]
        allow_abbrev=False,
        formatter_class=argparse.HelpFormatter,
        prog="triaffine-ner train",
        usage="%(prog)s [--recipe NAME] --train_file PATH --output_dir FOLDER [OPTIONS]",
        description="All options. The most important ones, and the fields of the model: --help.",
    )
    parser.set_defaults(output_dir=None)  # required here
    parser.add_argument("--recipe")
    group = parser.add_argument_group("model configuration", "Fields of TriaffineConfig; none is Python's None.")
    for option in TriaffineConfig.options():
        spellings = dict.fromkeys([f"--{option.name}", f"--{option.name.replace('_', '-')}"])
        kind: Any = string_to_bool if isinstance(option.default, bool) else _number_or_none
        kind = str if option.choices else kind  # "none" is a word where there are words to choose from
        metavar = "{" + ",".join(option.choices) + "}" if option.choices else "VALUE"
        group.add_argument(*spellings, type=kind, metavar=metavar)
    parser.describe_and_forget_defaults()
    return parser


def _number_or_none(text: str) -> int | float | str | None:
    """A value for the configuration, which refuses what is neither a number nor none."""
    if text.lower() in ("none", "null"):
        return None
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _check_recipe_options(recipe: Recipe, parser: _Parser) -> dict[str, Any]:
    """The options of training.yaml, parsed like those of the command line."""
    checked: dict[str, Any] = {}
    for name, value in recipe.training.items():
        where = f"{recipe.folder}/{TRAINING_FILE}, {name!r}"
        try:
            values = parser.parse_given(as_arguments(name, value))
        except CommandLineError as error:
            raise RecipeError(f"{where}: {error}") from error
        if name not in values or name in CONFIG_OPTIONS or name == "recipe":
            raise RecipeError(f"{where} is not a training option; fields of the model belong in {CONFIG_FILE}.")
        checked[name] = values[name]
    return checked


def _check_recipe_config(recipe: Recipe) -> dict[str, Any]:
    """The fields of config.json that define the model, without those that every configuration has."""
    unknown = sorted(set(recipe.config) - set(CONFIG_OPTIONS) - DERIVED_FIELDS - FIELDS_OF_EVERY_CONFIG)
    if unknown:
        raise RecipeError(f"{recipe.folder}/{CONFIG_FILE} has fields that TriaffineConfig does not know: {unknown}.")
    return {name: value for name, value in recipe.config.items() if name in CONFIG_OPTIONS or name in RECIPE_FIELDS}


def as_arguments(name: str, value: Any) -> list[str]:
    """A value of training.yaml or Python as on the command line; YAML reads a bare `no` as False, nothing as None."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, list | tuple):
        return [f"--{name}", *map(str, value)]
    if isinstance(value, bool | None):
        value = {True: "true", False: "no", None: ""}[value]
    return [f"--{name}={json.dumps(value) if isinstance(value, dict) else value}"]
