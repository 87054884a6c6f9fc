"""A whole run, once the trainer is ready: train, score, save. And how a user's mistake is told.

Also holds what is written beside the model: scores as JSON, predictions on the test data, the run's summary, the model
card, and the run as a recipe that trains the model again.
"""

import json
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict
from huggingface_hub import ModelCard

from ..data import add_context
from ..evaluation.scoring import format_scores, score_entities
from ..publishing.contents import refuse_unknown, sort_out
from ..publishing.model_card import CARD_NAME, build_model_card
from ..publishing.run_summary import SUMMARY_FILE, RunSummary
from .checkpoints import find_checkpoint, remove_leftovers, write_whole
from .command_line import TrainingPlan, parse_training_plan
from .faults import check_whole, check_writable, saving
from .preparation import build_model, label_names, limit_splits, load_splits
from .progress import quieten, tell_scores_in_lines
from .recipes import TRAINING_FILE, format_training
from .sharding import whole_model
from .summary import TRAINING_SETTINGS, summarize_plan, summarize_run
from .trainer import Entities, NestedNERTrainer

logger = logging.getLogger(__name__)

# Options of one run that another must not take over: where it is written and uploaded to, and what it went on from.
OF_ONE_RUN = re.compile(r"output_dir|resume_from_checkpoint|push_to_hub|hub_.*")
# Options that may name a file or folder of this machine.
FILE_OPTIONS = ("train_file", "validation_file", "test_file", "word_vectors", "model_name_or_path", "pos_tagger")
RECIPE_HEADING = """\
This run as a recipe: --recipe with this folder trains the model again, into another --output_dir.
What it was made with is in run_summary.json. Files are named by their place on the machine it ran on; on another, give
them anew (--train_file ...). This file is not published with the model."""


@dataclass(frozen=True)
class Run:
    """A run that only has to be started.

    Attributes:
        plan: what was asked for.
        dataset: the splits there are of train, validation and test, with their context.
        trainer: the trainer, holding model and processor.
    """

    plan: TrainingPlan
    dataset: DatasetDict
    trainer: NestedNERTrainer


def prepare_run(arguments: Sequence[str], library: Path | None = None) -> Run:
    """Reads the command line and makes everything ready.

    Args:
        arguments: the command line without the program's name.
        library: folder with the recipes that can be called by name.

    Raises:
        ValueError, OSError: a mistake of the user, told in one paragraph.
    """
    plan = parse_training_plan(arguments, library)
    quieten(plan.training)
    _check_folders(plan)
    with plan.training.main_process_first():
        dataset = load_splits(plan.data)
    labels = label_names(dataset["train"]) if "train" in dataset else []
    dataset = limit_splits(dataset, plan.data)
    model, processor = build_model(plan, dataset, labels)
    with plan.training.main_process_first():
        dataset = add_context(dataset, model.config.context, max_tokens=model.config.max_subwords)
    try:
        trainer = NestedNERTrainer(
            model,
            plan.training,
            processing_class=processor,
            train_dataset=dataset.get("train"),
            eval_dataset=dataset.get("validation"),
        )
    except (RuntimeError, ImportError) as error:  # so the Trainer tells of a tracker that is not installed
        raise ValueError(f"The trainer cannot be set up: {error} See --report_to.") from error
    tell_scores_in_lines(trainer)
    run = Run(plan, dataset, trainer)
    # A name that the card cannot take is noticed now, not after training.
    _model_card(run, summarize_plan(plan, trainer))
    if plan.training.push_to_hub and Path(plan.training.output_dir).is_dir():
        # So are files that publishing would refuse.
        refuse_unknown(sort_out(os.listdir(plan.training.output_dir)).unknown, plan.training.output_dir)
    return run


def train_and_save(run: Run) -> dict[str, float]:
    """Trains, scores validation and test data, and saves, as far as the plan asks for it; returns all metrics.

    Raises:
        TrainingFault: numbers, memory or disk made an end of it; told in one paragraph.
    """
    training, trainer = run.plan.training, run.trainer
    resumed = find_checkpoint(training.resume_from_checkpoint, training.output_dir) is not None
    metrics: dict[str, float] = {}
    outputs: dict[str, Any] = {}
    files: dict[str, str] = {}
    if training.do_train:
        metrics |= trainer.train(resume_from_checkpoint=training.resume_from_checkpoint).metrics
    if training.do_eval:
        outputs["validation"] = _score(run, "validation", "eval", metrics)
    if training.do_predict:
        outputs["test"] = _score(run, "test", "test", metrics)
        files["test_predictions.jsonl"] = _as_lines(run.dataset["test"], outputs["test"].predictions)
    files["all_results.json"] = json.dumps(metrics, indent=2, sort_keys=True)
    if training.do_train:
        files["log_history.json"] = json.dumps(trainer.state.log_history, indent=2)
        model = whole_model(trainer)
        if trainer.is_world_process_zero():
            assert model is not None
            summary = summarize_run(
                run.plan, run.dataset, trainer, model, outputs, seconds=metrics["train_runtime"], resumed=resumed
            )
            files |= {SUMMARY_FILE: summary.to_json(), CARD_NAME: str(_model_card(run, summary))}
            files[TRAINING_FILE] = _as_recipe(run.plan)
        trainer.save_model(extra_files=files)
    elif trainer.is_world_process_zero():
        with saving("The scores", training.output_dir):
            for name, text in files.items():
                write_whole(Path(training.output_dir) / name, text)
            remove_leftovers(training.output_dir)
    return metrics


def _check_folders(plan: TrainingPlan) -> None:
    """Notices a folder that cannot be written to, or a checkpoint that cannot be read, before the long work."""
    if plan.training.should_save:
        check_writable(plan.training.output_dir)
    checkpoint = find_checkpoint(plan.training.resume_from_checkpoint, plan.training.output_dir)
    if checkpoint is not None:
        check_whole(checkpoint)


def _score(run: Run, split: str, prefix: str, metrics: dict[str, float]) -> Any:
    """Scores a split: adds its metrics to those there are, logs a table, returns the trainer's output.

    Of that, `predictions` are the entities found, and `label_ids` those of the records.
    """
    output: Any = run.trainer.predict(run.dataset[split], metric_key_prefix=prefix)
    metrics |= output.metrics
    scores = score_entities(output.predictions, output.label_ids)
    logger.info("Scores on the %s data:\n%s", split, format_scores(scores))
    if not any(output.predictions) and any(output.label_ids) and run.trainer.is_world_process_zero():
        logger.warning("The model marks no entity in the %s data: %s", split, _why_nothing_is_marked(run))
    return output


def _why_nothing_is_marked(run: Run) -> str:
    if not run.plan.training.do_train:
        return "was it trained on such sentences, and long enough?"
    updates = run.trainer.state.global_step
    return f"{updates} updates were too few; raise --num_train_epochs, or the learning rates."


def _as_lines(records: Dataset, predictions: list[Entities]) -> str:
    """The records with the predicted entities in place of their own, one as JSON a line."""
    lines = (
        json.dumps({"id": name, "tokens": tokens, "entities": entities}, ensure_ascii=False)
        for name, tokens, entities in zip(records["id"], records["tokens"], predictions, strict=True)
    )
    return "".join(f"{line}\n" for line in lines)


def _as_recipe(plan: TrainingPlan) -> str:
    """The training.yaml of the run's folder, whose config.json is the model's own.

    It says what was given, and the settings that matter most even where they were left to their defaults, which another
    version may change.
    """
    settings = {name: getattr(plan.training, name) for name in TRAINING_SETTINGS}
    options = {**settings, **plan.options}
    kept = {name: value for name, value in options.items() if value is not None and not OF_ONE_RUN.fullmatch(name)}
    return format_training({name: _as_written(name, value) for name, value in kept.items()}, RECIPE_HEADING)


def _as_written(option: str, value: Any) -> Any:
    """An option's value as YAML can hold it, and as it means the same in every working directory."""
    if option in FILE_OPTIONS and Path(value).exists():
        return str(Path(value).resolve())
    return value.value if isinstance(value, Enum) else value


def _model_card(run: Run, summary: RunSummary) -> ModelCard:
    training = run.plan.training
    name = training.hub_model_id or _repository_name(training.output_dir)
    return build_model_card(run.trainer.model.config, model_name=name, summary=summary)


def _repository_name(folder: str) -> str:
    """What a model is called that is not on the Hub yet: its folder's name, as far as the Hub allows it."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", Path(folder).resolve().name).strip("-")
    return name[:96].strip("-") or "model"


def start_logging() -> None:
    """Messages of this package on standard error: all of the main process, only warnings of the others."""
    level = logging.INFO if os.environ.get("RANK", "0") == "0" else logging.WARNING
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger(__package__.split(".")[0]).setLevel(level)
