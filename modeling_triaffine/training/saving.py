"""What a finished run leaves: model, summary and card, scores, predictions, and a recipe that repeats it."""

import json
import os
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import yaml
from datasets import Dataset
from transformers import Trainer

from ..files import write_text
from ..model.kinds_triaffine import WordEntity
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import Option
from ..publishing.run_summary import Evaluation
from ..publishing.upload import NotPublishedError
from .checkpoints import RESULTS_FILE
from .corpora import Corpus
from .hub_trainer import HubTrainer
from .interruptions import explaining_faults
from .plan import TRAINING_FILE, TrainingPlan, training_options
from .summary import main_settings, summarize_run

RECIPE_HEADING = """\
This run as a recipe: --recipe with this folder repeats it, in another --output_dir. Versions and hardware are in
run_summary.json. Paths are those of the machine it ran on; on another machine, give the files again (--train_file ...),
and --dataset_name and --language, which are those of this --train_file.
This file is not published with the model."""


@dataclass
class Scored:
    """What a run has measured and predicted: its metrics by name, predictions and scores by split."""

    metrics: dict[str, float] = field(default_factory=dict)
    predictions: dict[str, list[list[WordEntity]]] = field(default_factory=dict)
    evaluations: dict[str, Evaluation] = field(default_factory=dict)


def save_run(
    plan: TrainingPlan, corpus: Corpus, trainer: HubTrainer, model: TriaffineForNestedNER | None, scored: Scored
) -> None:
    """Saves the files of a run, the model, and last the metrics: a folder with them is that of a finished run.

    Args:
        model: the model of the trainer, with all its weights in this process; None if another one has it.
    """
    files = {
        f"{split}_predictions.jsonl": _as_lines(corpus.given[split], predictions)
        for split, predictions in scored.predictions.items()
    }
    if plan.training.do_train and model is not None and trainer.is_world_process_zero():
        evaluation = scored.evaluations.get("test", scored.evaluations.get("validation"))
        trainer.run_summary = summarize_run(plan, trainer, corpus, model, evaluation)  # saved with the model
        files |= {
            "log_history.json": json.dumps(trainer.state.log_history, indent=2),
            TRAINING_FILE: _as_recipe(plan, corpus.words),
        }
        with explaining_faults(Path(plan.training.output_dir)):
            trainer.create_model_card(model_name=plan.training.hub_model_id)
    _write_files(trainer, files)
    last = {RESULTS_FILE: json.dumps(scored.metrics, indent=2, sort_keys=True)}
    try:
        if plan.training.do_train:
            trainer.save_model()
    except NotPublishedError:  # the model is saved
        _write_files(trainer, last)
        raise
    _write_files(trainer, last)


def _write_files(trainer: Trainer, files: dict[str, str]) -> None:
    folder = Path(str(trainer.args.output_dir))
    if trainer.is_world_process_zero():
        with explaining_faults(folder):
            for name, text in files.items():
                write_text(folder / name, text)


def _as_lines(records: Dataset, predictions: list[list[WordEntity]]) -> str:
    """Returns the records as JSON lines with the predicted entities."""
    lines = (
        json.dumps({"id": name, "tokens": tokens, "entities": entities}, ensure_ascii=False)
        for name, tokens, entities in zip(records["id"], records["tokens"], predictions, strict=True)
    )
    return "".join(f"{line}\n" for line in lines)


# ---- The recipe ----


def _as_recipe(plan: TrainingPlan, words: str) -> str:
    """Returns the training.yaml of the run's folder, whose config.json is that of the model.

    It has the options of the run, and the main settings even if they are defaults, which may change between versions.
    """
    options = {**main_settings(plan.training), **plan.options, "words": words}
    known = training_options()
    kept = {name: value for name, value in options.items() if value is not None and not known[name].is_of_one_run}
    heading = "".join(f"# {line}\n" for line in RECIPE_HEADING.splitlines())
    written = {name: _as_yaml(known[name], value) for name, value in kept.items()}
    return heading + yaml.safe_dump(written, sort_keys=False, allow_unicode=True)


def _as_yaml(option: Option, value: Any) -> Any:
    """Returns an option's value for YAML, with absolute paths."""
    if option.is_path and isinstance(value, str) and os.path.exists(value):  # not Path: of long JSON
        return str(Path(value).resolve())
    return value.value if isinstance(value, Enum) else value
