"""The plan of a run: the command line, or keyword arguments, override the recipe, and the recipe the defaults.

The options are those that `options.py` and `model/options_triaffine.py` declare, and the others of transformers'
`TrainingArguments`. Unknown ones are errors. A recipe is a folder:

    config.json     fields of `TriaffineConfig`, with the full configuration of the encoder
    training.yaml   options of the training, and `purpose`, a description in Markdown
    README.md       the card, generated from the two (`recipe_cards.py`)

The training data determines the sizes of vocabularies, whatever config.json says. A finished run has its own
config.json and training.yaml beside the model, so its folder is a recipe that repeats it.
"""

import argparse
import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import cache
from os import fspath
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

import yaml
from transformers import PretrainedConfig
from transformers.utils import CONFIG_NAME

from ..model.configuration_triaffine import TriaffineConfig, unknown_fields
from ..model.options_triaffine import MODEL_OPTIONS, Option
from ..model.processing_triaffine import TriaffineProcessor
from ..publishing.model_card import check_repo_id
from .arguments import WITHOUT_EFFECT, NestedNERTrainingArguments, without_effect
from .options import INHERITED, RECIPE, TRAIN_OPTIONS, DataArguments, ModelArguments, parse_value, read_value

TRAINING_FILE = "training.yaml"
PURPOSE = "purpose"
LIBRARY = "hub_configs"
# Options of other programs and of earlier versions of transformers, and what to use here.
INSTEAD = {
    **dict.fromkeys(("batch_size", "train_batch_size"), "Give --per_device_train_batch_size"),
    "eval_batch_size": "Give --per_device_eval_batch_size",
    **dict.fromkeys(("dev_file", "eval_file"), "Give --validation_file"),
    **dict.fromkeys(("epochs", "num_epochs"), "Give --num_train_epochs"),
    "encoder": "Give --model_name_or_path",
    "max_seq_length": "Give --max_subwords; longer sentences are read in windows",
    "no_eval": "Give --no_do_eval to leave out the scores of the final model, or --eval_strategy no",
    "device": "Give --use_cpu, or choose GPUs with the environment variable CUDA_VISIBLE_DEVICES",
    "logging_dir": "Set the environment variable TENSORBOARD_LOGGING_DIR",
    "token": "Set the environment variable HF_TOKEN, or give --hub_token",
    "config_file": "A file of options is a --recipe: a folder with training.yaml",
    "format": "Give --data_format",
    "lr": "Give --encoder_learning_rate, --embeddings_learning_rate and --learning_rate",
    "group_by_length": "Batches have sentences of similar length unless --train_sampling_strategy is random",
    "warmup_ratio": "Give --warmup_steps; below 1, it is a fraction of all updates",
    "no_cuda": "Give --use_cpu",
    "save_safetensors": "Weights are always safetensors; leave it out",
    "overwrite_output_dir": "A run never overwrites another: give another --output_dir, or delete the folder",
}
# Given option → the other options of a recipe that it replaces, which could prevail over it.
REPLACED = {
    **dict.fromkeys(("num_train_epochs", "max_steps"), ("max_steps", "min_steps")),
    "max_span_width": ("learn_span_width",),
}
# Fields of the configuration that a recipe sets beside the options: the encoder, to be trained from scratch, and the
# order of the labels.
RECIPE_FIELDS = ("encoder_config", "id2label")


class CommandLineError(ValueError):
    """An unknown option, or an invalid value of one."""


class RecipeError(ValueError):
    """A recipe that cannot be found or read."""


@dataclass(frozen=True)
class Recipe:
    """The unchecked contents of the two files in `folder`; None for the empty recipe."""

    folder: Path | None = None
    config: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    purpose: str | None = None


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that defines a run.

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


@dataclass(frozen=True)
class Origin:
    """What a run starts from; of a trained model, configuration and processor, which decide how its corpus is read.

    Attributes:
        name: folder or Hub name of a trained model, of a checkpoint or of an encoder; None for a new encoder.
    """

    name: str | None
    config: TriaffineConfig | None = None
    processor: TriaffineProcessor | None = None


@cache
def training_options() -> dict[str, Option]:
    """All options of `triaffine-ner train`: those declared here, and those of transformers that have an effect."""
    types = get_type_hints(NestedNERTrainingArguments)
    inherited = {
        one.name: _read_field(one, types[one.name])
        for one in fields(NestedNERTrainingArguments)
        if one.init and one.name not in TRAIN_OPTIONS.keys() | WITHOUT_EFFECT.keys()
    }
    return TRAIN_OPTIONS | inherited


def _read_field(one: Any, annotation: Any) -> Option:
    """The option that a field of transformers' `TrainingArguments` is."""
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    choices = [choice.value for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum) for choice in kind]
    choices = choices or one.metadata.get("choices") or []
    plain = {*kinds} - {NoneType}
    known = next((kind for kind in (float, int, bool, str) if plain <= {kind, int} and kind in plain), object)
    return Option(
        one.name,
        str if choices else known,
        None if one.default is MISSING else getattr(one.default, "value", one.default),
        " ".join(one.metadata.get("help", "").replace("%%", "%").split()).removesuffix("."),  # written for argparse
        dict.fromkeys(choices, ""),
        optional=NoneType in kinds,
        section=INHERITED,
        is_path=dict in {get_origin(kind) or kind for kind in kinds},  # or a file with one
        is_of_one_run=one.name.startswith("hub_"),
        bare=str(one.metadata.get("const", "")),
        many=known is object and any(get_origin(kind) is list for kind in kinds) and str not in kinds,
    )


def parse_training_plan(arguments: Sequence[str]) -> TrainingPlan:
    """The plan of a command line. An empty value (`--word_vectors=`) restores the default.

    Raises:
        CommandLineError, RecipeError: an unknown option or an invalid value; the message says where.
    """
    return make_plan(parse_given(arguments))


def make_plan(given: Mapping[str, Any]) -> TrainingPlan:
    """The plan of options by name. None and an empty text restore the default of what the recipe sets.

    Raises:
        CommandLineError, RecipeError: as [`parse_training_plan`].
        ValueError: the model card cannot have the name of the data or of the repository.
    """
    recipe = load_recipe(find_recipe(fspath(given["recipe"]))) if given.get("recipe") else Recipe()
    options = {**_read_config(recipe), **_read_training(recipe)}
    for name in given:
        others = _facts_of_data(options, given) if name == "train_file" else REPLACED.get(name, ())
        for replaced in (name, *others):
            options.pop(replaced, None)
    for name, value in given.items():
        if value not in (None, "") and name != RECIPE.name:
            options[name] = _read(name, value)
    config = {name: options.pop(name) for name in [*options] if name in MODEL_OPTIONS or name in RECIPE_FIELDS}
    if not options.get("output_dir"):
        raise CommandLineError("--output_dir is missing; give a folder for checkpoints and the model.")
    of_start = {one.name: options[one.name] for one in fields(ModelArguments) if one.name in options}
    of_data = {one.name: options[one.name] for one in fields(DataArguments) if one.name in options}
    of_training = {name: value for name, value in options.items() if name not in of_start and name not in of_data}
    try:
        training = NestedNERTrainingArguments(**of_training)
    except (ValueError, TypeError) as error:  # TypeError: an unknown field of a dictionary, as in accelerator_config
        raise CommandLineError(f"The training arguments do not fit together: {error}") from error
    plan = TrainingPlan(ModelArguments(**of_start), DataArguments(**of_data), training, config, recipe.folder, options)
    _check_names_in_card(plan)
    return plan


def _facts_of_data(options: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[str, ...]:
    """The options of a recipe that describe its own training data (of a finished run), if other data is given."""
    own, other = options.get("train_file"), given["train_file"]
    if own is None or (other and Path(other).resolve() == Path(own).resolve()):
        return ()
    learned = ("max_span_width",) if options.get("learn_span_width") else ()
    return ("dataset_name", "language", "id2label", *learned)


def _check_names_in_card(plan: TrainingPlan) -> None:
    """Raises ValueError for names of repository and data that the model card, written after training, cannot have."""
    repository, dataset = plan.training.hub_model_id, plan.data.dataset_name
    if repository:
        check_repo_id("hub_model_id", repository)
    if plan.model.license and not re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", plan.model.license):
        raise ValueError(
            f"--license is {plan.model.license!r}, which the Hub refuses. Give its identifier, such as apache-2.0, "
            "cc-by-4.0 or other."
        )
    if plan.data.language and not re.fullmatch(r"[a-z]{2,3}|code|multilingual", plan.data.language):
        raise ValueError(
            f"--language is {plan.data.language!r}, which the Hub refuses. Give the code of ISO 639, such as en, or "
            "multilingual."
        )
    if dataset and (Path(dataset).is_absolute() or dataset.startswith((".", "~")) or "\\" in dataset):
        raise ValueError(
            f"--dataset_name is {dataset!r}, which looks like a folder on this machine and means nothing to readers "
            "of the model card. Give the dataset's id on the Hub, or its title."
        )


def _read(name: str, value: Any) -> Any:
    """The value of an option, given by name; TriaffineConfig checks those of the model."""
    if name in WITHOUT_EFFECT:
        raise CommandLineError(without_effect(name))
    known = training_options().get(name)
    if known is None:
        raise CommandLineError(f"No such option: {name}={value}.{suggestion(name, training_options())}")
    try:
        return parse_value(known, value) if name in MODEL_OPTIONS else read_value(known, value)
    except ValueError as error:
        raise CommandLineError(str(error)) from error


def suggestion(name: str, known: Iterable[str], dashes: str = "") -> str:
    """A question, `Did you mean NAME?`, for a known name that begins so or is spelled alike; empty without any."""
    names = list(known)
    near = [one for one in names if one.startswith(name)] or difflib.get_close_matches(name, names, 1, cutoff=0.8)
    return f" Did you mean {dashes}{near[0]}?" if near else ""


# ---- The model to start from ----


def find_origin(plan: TrainingPlan) -> Origin:
    """What the run starts from, without the weights.

    Raises:
        ValueError, OSError: it cannot be read, or options of the run need another one.
    """
    name = plan.training.resume_from_checkpoint or plan.model.model_name_or_path
    origin = Origin(name)
    if name is not None and _is_trained_model(name):
        origin = Origin(name, TriaffineConfig.from_pretrained(name), TriaffineProcessor.from_pretrained(name))
    _check_origin(plan, origin)
    return origin


def _check_origin(plan: TrainingPlan, origin: Origin) -> None:
    """Raises ValueError if there is no model to start from, or options need another one."""
    is_trained, model = plan.training.do_train, plan.model
    if model.keep_labels and not (origin.config and is_trained and model.model_name_or_path):
        raise ValueError("--keep_labels is for training a trained model further; give it as --model_name_or_path.")
    if not is_trained and origin.config is None:
        raise ValueError("There is no trained model to score without training; give one as --model_name_or_path.")
    if model.keep_all_word_vectors and model.word_vectors is None:
        raise ValueError("--keep_all_word_vectors needs a file of vectors; give it as --word_vectors.")
    if origin.name is None and "encoder_config" not in plan.config:
        raise ValueError(
            "There is no model to start from: give a pretrained encoder as --model_name_or_path, or a --recipe."
        )
    # What the data decided on when the model was built.
    of_data = {option for option in MODEL_OPTIONS if option.endswith("_vocab_size")}
    if model.learn_span_width and not plan.config.get("max_span_width"):
        of_data.add("max_span_width")
    if model.word_vectors and not plan.config.get("word_embedding_size"):
        of_data.add("word_embedding_size")
    for option, value in plan.config.items() if origin.config else ():
        if option in MODEL_OPTIONS and option not in of_data and getattr(origin.config, option) != value:
            raise ValueError(
                f"{option} is {value!r}, but the model in {origin.name} was trained with "
                f"{getattr(origin.config, option)!r}. Leave {option} out, or start a new model."
            )


def _is_trained_model(name_or_path: str) -> bool:
    config, _ = PretrainedConfig.get_config_dict(name_or_path)
    return config.get("model_type") == TriaffineConfig.model_type


# ---- The command line ----


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith(("?", ".")) else "."
        raise CommandLineError(
            f"{message[:1].upper()}{message[1:]}{end} See `triaffine-ner train --help`; --help-all has all options."
        )


def parse_given(arguments: Sequence[str]) -> dict[str, Any]:
    """Option → what a command line gives for it, as written. Raises CommandLineError for unknown options."""
    parser = _Parser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for name, known in training_options().items():
        bare = known.bare or ("true" if known.type is bool else None)
        values: dict[str, Any] = {}
        if known.many:
            values = {"nargs": "+"}
        elif bare:
            values = {"nargs": "?", "const": bare}
        parser.add_argument(*_spellings(name), dest=name, **values)
        if known.type is bool and known.default is True:
            parser.add_argument(*_spellings(f"no_{name}"), dest=name, action="store_const", const="false")
    given, unknown = parser.parse_known_args(arguments)
    if unknown:
        _refuse(parser, unknown[0])
    return vars(given)


def _spellings(name: str) -> list[str]:
    return [*dict.fromkeys((f"--{name}", f"--{name.replace('_', '-')}"))]


def _refuse(parser: _Parser, argument: str) -> NoReturn:
    """Raises the error for an unknown argument, with what to give instead."""
    name = argument.lstrip("-").partition("=")[0].replace("-", "_")
    if not argument.startswith("-") and argument.endswith((".json", ".yaml", ".yml")):
        name = "config_file"
    instead = f" {INSTEAD[name]}." if name in INSTEAD else suggestion(name, training_options(), "--")
    parser.error(f"--{without_effect(name)}" if name in WITHOUT_EFFECT else f"no such option: {argument}.{instead}")


# ---- Recipes ----


def recipe_library() -> Path:
    """The folder `hub_configs` of the package: inside it when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / LIBRARY
    return installed if installed.is_dir() else package.parent / LIBRARY


def find_recipe(name_or_folder: str) -> Path:
    """The folder of a recipe, given as a folder with a training.yaml or by its name in the package's library.

    A name alone is first one of the library: a run in ./demo, which has a training.yaml too, is given as `./demo`.

    Raises:
        RecipeError: there is no such recipe; the message lists those of the library.
    """
    library = recipe_library()
    given, named = Path(name_or_folder), library / name_or_folder
    for folder in (named, given) if given.name == name_or_folder else (given, named):
        if (folder / TRAINING_FILE).is_file():
            return folder
    known = sorted(path.parent.name for path in library.glob(f"*/{TRAINING_FILE}"))
    raise RecipeError(
        f"There is no recipe {name_or_folder!r}: it is neither a folder of that name with a {TRAINING_FILE}, nor one "
        f"of the recipes in {library}: {', '.join(known) or 'none'}.{suggestion(name_or_folder, known)}"
    )


def load_recipe(folder: Path) -> Recipe:
    """Reads a recipe's files.

    Raises:
        RecipeError: a file is missing, not valid JSON or YAML, or not a mapping.
    """
    config = _read_mapping(folder / CONFIG_NAME, json.loads)
    training = _read_mapping(folder / TRAINING_FILE, yaml.safe_load)
    purpose = training.pop(PURPOSE, None)
    return Recipe(folder, config, training, None if purpose is None else str(purpose))


def _read_mapping(path: Path, parse: Any) -> dict[str, Any]:
    files = f"A recipe has the files {CONFIG_NAME} and {TRAINING_FILE}."
    try:
        content = parse(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RecipeError(f"{path} cannot be read: {' '.join(str(error).split())}. {files}") from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise RecipeError(
            f"{path} must be a mapping of options (`name: value` in YAML); it is {content!r:.80}. {files}"
        )
    return content


def _read_training(recipe: Recipe) -> dict[str, Any]:
    """The options of training.yaml, where None is no value."""
    read: dict[str, Any] = {}
    for name, value in recipe.training.items():
        where = f"{recipe.folder}/{TRAINING_FILE}, {name!r}"
        if name in MODEL_OPTIONS or name == RECIPE.name:
            raise RecipeError(f"{where} is not a training option; fields of the model belong in {CONFIG_NAME}.")
        if value is not None:
            try:
                read[name] = _read(name, value)
            except CommandLineError as error:
                raise RecipeError(f"{where}: {error}") from error
    return read


def _read_config(recipe: Recipe) -> dict[str, Any]:
    """The fields of config.json that define the model, without those that every configuration has."""
    if unknown := unknown_fields(recipe.config):
        raise RecipeError(f"{recipe.folder}/{CONFIG_NAME} has fields that TriaffineConfig does not know: {unknown}.")
    return {name: value for name, value in recipe.config.items() if name in MODEL_OPTIONS or name in RECIPE_FIELDS}
