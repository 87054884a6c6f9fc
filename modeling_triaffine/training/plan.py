"""The plan of a run: the command line, or keyword arguments, override the recipe, and the recipe the defaults.

The options are those that `options.py` and `model/options_triaffine.py` declare, and the others of transformers'
`TrainingArguments`. Unknown ones are errors. A recipe is a folder:

    config.json     fields of `TriaffineConfig`, with the full configuration of the encoder
    training.yaml   options of the training, and `purpose`, a description in Markdown
    README.md       the card, generated from the two

The training data determines the sizes of vocabularies.
"""

import difflib
import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import cache
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import torch
import yaml
from transformers import TrainingArguments, get_scheduler
from transformers.integrations import get_reporting_integration_callbacks
from transformers.trainer_utils import IntervalStrategy, SaveStrategy
from transformers.utils import CONFIG_NAME, is_torch_tf32_available

from ..installed_models import find_model, installed_models, library
from ..model.options_triaffine import MODEL_OPTIONS, Option
from ..model.triaffine_blocks import multiplies_bfloat16
from .options import INHERITED, OWN_OPTIONS, TRAIN_OPTIONS, RunOptions, TrainingOptions, read_value

logger = logging.getLogger(__name__)

TRAINING_FILE = "training.yaml"

# Given option → options that are then not taken from the recipe, because they would override it.
REPLACED = {
    **dict.fromkeys(("num_train_epochs", "max_steps"), ("max_steps", "min_steps")),
    "max_span_width": ("learn_span_width",),
}

# Fields of the configuration that a recipe sets beside the options: the encoder, to be trained from scratch, and the
# order of the labels.
RECIPE_FIELDS = ("encoder_config", "id2label")

# Arguments of transformers' Trainer that would have no effect: it scores tensors, ours lists of entities.
INEFFECTIVE = ["label_smoothing_factor", "preprocess_logits_for_metrics", "batch_eval_metrics", "include_for_metrics"]
INEFFECTIVE += ["prediction_loss_only", "bf16_full_eval", "fp16_full_eval", "eval_accumulation_steps"]


@dataclass
class NestedNERTrainingArguments(TrainingOptions, TrainingArguments):
    """`TrainingArguments` with three learning rates and the paper's defaults (the rates are those for GENIA).

    By default the rates decay linearly to zero, and training ends with the checkpoint of the best F1 on the validation
    data. `triaffine-ner train --help` describes the options that differ from transformers', [`TrainingOptions`].
    A value out of its bounds raises ValueError.

    Examples:
        >>> from modeling_triaffine import NestedNERTrainingArguments
        >>> arguments = NestedNERTrainingArguments("outputs/mine", encoder_learning_rate=5e-5, use_cpu=True)
        >>> arguments.learning_rate, arguments.num_train_epochs
        (3e-05, 15.0)
    """

    output_dir: str = TrainingOptions.output_dir  # never None, which transformers allows
    label_names: list[str] | None = field(default_factory=lambda: ["labels"], metadata={"help": "Inputs with labels."})
    remove_unused_columns: bool = field(default=False, metadata={"help": "Batches are encoded from all columns."})
    logging_nan_inf_filter: bool = field(default=False, metadata={"help": "A loss that is not finite is an error."})
    ddp_find_unused_parameters: bool | None = field(default=False, metadata={"help": "Every weight is always used."})

    def __post_init__(self) -> None:
        if self.accelerator_config is None and torch.cuda.is_available():
            # Copies pinned batches to the GPU during the previous step.
            self.accelerator_config = {"non_blocking": True}
        # Accelerate joins several processes on a CPU only if this is set; without it, each would train alone.
        self.use_cpu |= not torch.accelerator.is_available()
        if self.fp16 and self.use_cpu:
            raise ValueError("fp16 needs a GPU, without which accelerate ignores it; use bf16.")
        if self.bf16 and self.use_cpu and not multiplies_bfloat16():
            self.bf16 = False
            logger.warning("This processor multiplies float32 faster than bfloat16; training computes in float32.")
        if self.tf32 is None and not (self.use_cpu or self.bf16 or self.fp16):
            # TF32 has no casts. In bfloat16, they outweigh the faster products of a small encoder.
            self.tf32 = is_torch_tf32_available() or None
        for name, declared in OWN_OPTIONS.items():
            value = getattr(self, name, None)
            if value is not None and (declared.meanings or declared.type in (int, float)):
                setattr(self, name, read_value(declared, value))
        is_evaluated = self.eval_strategy != IntervalStrategy.NO
        if self.save_strategy is None:
            self.save_strategy = self.eval_strategy if is_evaluated else "epoch"
        in_steps = self.save_strategy == self.eval_strategy == IntervalStrategy.STEPS
        eval_steps = self.eval_steps or self.logging_steps
        if self.save_steps is None:
            self.save_steps = eval_steps if in_steps else 500
        if self.load_best_model_at_end is None:
            ratio = self.save_steps / (eval_steps or 1) if in_steps else 1
            is_scored = self.save_strategy in (self.eval_strategy, SaveStrategy.BEST)
            self.load_best_model_at_end = is_scored and math.isclose(ratio, round(ratio))
        self.load_best_model_at_end &= is_evaluated
        is_scored_at_end = self.do_eval
        super().__post_init__()
        self.do_eval = is_scored_at_end  # which transformers turns on where training evaluates
        if self.greater_is_better and self.lr_scheduler_type in ("reduce_lr_on_plateau", "greedy"):
            self.lr_scheduler_kwargs = {"mode": "max", **(self.lr_scheduler_kwargs or {})}  # type: ignore[dict-item]
        makes_others = self.auto_find_batch_size or self.train_sampling_strategy != "group_by_length"
        if self.max_subwords_per_batch and makes_others:
            raise ValueError("max_subwords_per_batch excludes train_sampling_strategy and auto_find_batch_size.")


# ---- The plan ----


@dataclass(frozen=True)
class Recipe:
    """The contents of the two files of a recipe."""

    config: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    purpose: str | None = None


@dataclass(kw_only=True)
class TrainingPlan(RunOptions):
    """Everything that defines a run; `config` is what the recipe, for a new model, or the command line sets of it."""

    training: NestedNERTrainingArguments
    config: dict[str, Any]
    of_recipe: frozenset[str]


@cache
def training_options() -> dict[str, Option]:
    """All options of `triaffine-ner train`: `TRAIN_OPTIONS`, and the others of transformers' `TrainingArguments`."""
    types = get_type_hints(NestedNERTrainingArguments)
    others = {*TRAIN_OPTIONS, *INEFFECTIVE}
    own = [member for member in fields(NestedNERTrainingArguments) if member.init and member.name not in others]
    return TRAIN_OPTIONS | {member.name: _option_of_field(member, types[member.name]) for member in own}


def _option_of_field(member: Any, annotation: Any) -> Option:
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    choices = [choice.value for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum) for choice in kind]
    choices = choices or member.metadata.get("choices") or []
    plain = {*kinds} - {NoneType}
    known = next((kind for kind in (float, int, bool, str) if plain <= {kind, int} and kind in plain), object)
    return Option(
        member.name,
        str if choices else known,
        None if member.default is MISSING else getattr(member.default, "value", member.default),
        " ".join(member.metadata.get("help", "").replace("%%", "%").split()).removesuffix("."),  # written for argparse
        dict.fromkeys(choices, ""),
        optional=NoneType in kinds,
        section=INHERITED,
        is_path=dict in {get_origin(kind) or kind for kind in kinds},  # or a file with one
        bare=str(member.metadata.get("const", "")),
        many=known is object and any(get_origin(kind) is list for kind in kinds) and str not in kinds,
    )


def parse_training_plan(arguments: Sequence[str]) -> TrainingPlan:
    """Returns the plan of a command line. An empty value (`--word_vectors=`) restores the default."""
    known = training_options()
    given: dict[str, Any] = {}
    waiting = [*arguments]
    while waiting:
        written, equals, value = waiting.pop(0).partition("=")
        name = written.removeprefix("--").replace("-", "_")
        name = "data_format" if name == "format" else name  # as every other command calls it
        if not written.startswith("--"):
            raise ValueError(f"No such option: {written}. Options begin with two dashes, patterns stand in quotes.")
        negated = known.get(name.removeprefix("no_")) if name not in known else None
        option = negated or find_option(name)
        values = [value] if equals else []
        while waiting and not waiting[0].startswith("--") and not negated and (not values or option.many):
            values.append(waiting.pop(0))
        bare = "false" if negated else option.bare or ("true" if option.type is bool else "")
        if not (values or bare):
            raise ValueError(f"{written} needs a value.")
        given[option.name] = [*given.get(option.name, ()), *values] if option.many else [*values, bare][0]
    return make_plan(given)


def make_plan(given: Mapping[str, Any]) -> TrainingPlan:
    """Returns the plan of options by name. None and "" restore the default of an option that the recipe sets."""
    recipe = load_recipe(given["recipe"]) if given.get("recipe") else Recipe()
    options, of_recipe = {**recipe.config, **recipe.training}, frozenset(recipe.config.keys() - given.keys())
    for name in given:
        for replaced in (name, *REPLACED.get(name, ())):
            options.pop(replaced, None)
    for name, value in given.items():
        option = find_option(name)
        if value not in (None, "", [""]):
            options[name] = read_value(option, value)
    for name in ("model_name_or_path", "teacher"):
        if (given_name := options.get(name)) and ("/" in given_name or given_name in installed_models()):
            options[name] = find_model(given_name)  # other names: a folder, or an encoder such as `bert-base-cased`
    config = {name: options.pop(name) for name in [*options] if name in MODEL_OPTIONS or name in RECIPE_FIELDS}
    if not options.get("output_dir"):
        raise ValueError("--output_dir is missing; give a folder for checkpoints and the model.")
    of_run = {member.name: options[member.name] for member in fields(RunOptions) if member.name in options}
    try:
        training: Any = NestedNERTrainingArguments(**{name: options[name] for name in options if name not in of_run})
        for tracker in get_reporting_integration_callbacks(training.report_to):
            tracker()
        get_scheduler(training.lr_scheduler_type, torch.optim.SGD([torch.zeros(1)]), 0, 1, training.lr_scheduler_kwargs)
    # TypeError: a field of a dictionary, as in lr_scheduler_kwargs; RuntimeError: a tracker is not installed
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"The training arguments do not fit together: {error}") from error
    if not training.do_train:
        raise ValueError("do_train is false, and there is nothing else to do; `triaffine-ner evaluate` scores a model.")
    return TrainingPlan(**of_run, training=training, config=config, of_recipe=of_recipe)


def find_option(name: str) -> Option:
    """The option of this name; raises ValueError, with the nearest name, if there is none."""
    known = training_options()
    if name in known:
        return known[name]
    initials = [key for key in known if name == "".join(word[:1] for word in key.split("_"))]
    near = initials + [key for key in known if name in key] or difflib.get_close_matches(name, known, 1, cutoff=0.8)
    hint = f"Did you mean {', '.join(near[:3])}?" if near else "See `triaffine-ner train --help-all`."
    raise ValueError(f"No such option: {name}. {hint}")


# ---- Recipes ----


def load_recipe(name_or_folder: str | PathLike[str]) -> Recipe:
    """Reads a recipe, by its name in the package's library or from its folder; a ValueError names file and field."""
    folder = Path(name_or_folder)
    if not (folder / TRAINING_FILE).is_file():
        folder = library() / folder
    if not (folder / TRAINING_FILE).is_file():
        known = ", ".join(sorted(path.parent.name for path in library().glob(f"*/{TRAINING_FILE}")))
        raise ValueError(f"There is no recipe '{name_or_folder}'. Those in {library()}: {known}.")
    config = _read_mapping(folder / CONFIG_NAME, json.loads)
    others = [name for name in config if name not in MODEL_OPTIONS]
    if unknown := [name for name in others if difflib.get_close_matches(name, MODEL_OPTIONS, 1, cutoff=0.85)]:
        raise ValueError(f"{folder}/{CONFIG_NAME} has fields that TriaffineConfig does not know: {unknown}.")
    # Fields of all configurations, such as `transformers_version`, have no effect.
    config = {name: value for name, value in config.items() if name in MODEL_OPTIONS or name in RECIPE_FIELDS}
    training = _read_mapping(folder / TRAINING_FILE, yaml.safe_load)
    purpose = training.pop("purpose", None)
    read: dict[str, Any] = {}
    for name, value in training.items():
        try:
            if name in MODEL_OPTIONS or name == "recipe":
                raise ValueError(f"it is not a training option; fields of the model belong in {CONFIG_NAME}.")
            if value is not None:
                read[name] = read_value(find_option(name), value)
        except ValueError as error:
            raise ValueError(f"{folder}/{TRAINING_FILE}, {name!r}: {error}") from error
    return Recipe(config, read, None if purpose is None else str(purpose))


def _read_mapping(path: Path, parse: Any) -> dict[str, Any]:
    try:
        content = parse(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())}.") from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise ValueError(f"{path} must be a mapping of options (`name: value` in YAML); it is {content!r:.80}.")
    return content
