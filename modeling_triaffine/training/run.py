"""A whole run, once the trainer is ready: train, score, save. And how a user's mistake is told.

Also holds what is written beside the model: scores as JSON, predictions on the test data, the model card.
"""

import json
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict
from huggingface_hub import ModelCard

from ..data import add_context
from ..data.alignment import detokenize
from ..evaluation.scoring import format_scores, score_entities
from ..pipeline_triaffine import NestedNERPipeline
from ..publishing import build_model_card
from .checkpoints import remove_leftovers, write_whole
from .command_line import TrainingPlan, parse_training_plan
from .preparation import build_model, label_names, limit_splits, load_splits
from .trainer import Entities, NestedNERTrainer

logger = logging.getLogger(__name__)

# Hyper-parameters that the model card lists.
CARD_SETTINGS = (
    "encoder_learning_rate",
    "embeddings_learning_rate",
    "learning_rate",
    "per_device_train_batch_size",
    "max_subwords_per_batch",
    "gradient_accumulation_steps",
    "num_train_epochs",
    "weight_decay",
    "max_grad_norm",
    "seed",
)


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
    run = Run(plan, dataset, trainer)
    _model_card(run, scores=None, examples=[])  # a name that the card cannot take is noticed now, not after training
    return run


def train_and_save(run: Run) -> dict[str, float]:
    """Trains, scores validation and test data, and saves, as far as the plan asks for it; returns all metrics."""
    training, trainer = run.plan.training, run.trainer
    metrics: dict[str, float] = {}
    files: dict[str, str] = {}
    scores = None
    if training.do_train:
        metrics |= trainer.train(resume_from_checkpoint=training.resume_from_checkpoint).metrics
    if training.do_eval:
        scores, _ = _score(run, "validation", "eval", metrics)
    if training.do_predict:
        scores, predictions = _score(run, "test", "test", metrics)
        files["test_predictions.jsonl"] = _as_lines(run.dataset["test"], predictions)
    files["all_results.json"] = json.dumps(metrics, indent=2, sort_keys=True)
    if training.do_train:
        files["log_history.json"] = json.dumps(trainer.state.log_history, indent=2)
        files["README.md"] = str(_model_card(run, scores, _card_examples(run)))
        trainer.save_model(extra_files=files)
    elif trainer.is_world_process_zero():
        for name, text in files.items():
            write_whole(Path(training.output_dir) / name, text)
        remove_leftovers(training.output_dir)
    return metrics


def _score(run: Run, split: str, prefix: str, metrics: dict[str, float]) -> tuple[dict[str, Any], list[Entities]]:
    """Scores a split: adds its metrics to those there are, logs a table, returns all scores and the predictions."""
    output: Any = run.trainer.predict(run.dataset[split], metric_key_prefix=prefix)
    metrics |= output.metrics
    scores = score_entities(output.predictions, output.label_ids)
    logger.info("Scores on the %s data:\n%s", split, format_scores(scores))
    return scores, output.predictions


def _as_lines(records: Dataset, predictions: list[Entities]) -> str:
    """The records with the predicted entities in place of their own, one as JSON a line."""
    lines = (
        json.dumps({"id": name, "tokens": tokens, "entities": entities}, ensure_ascii=False)
        for name, tokens, entities in zip(records["id"], records["tokens"], predictions, strict=True)
    )
    return "".join(f"{line}\n" for line in lines)


def _card_examples(run: Run) -> list[dict[str, Any]]:
    """Validation sentences as raw text, those with most entities, and what the trained model finds in them."""
    wanted = run.plan.data.card_examples
    if "validation" not in run.dataset or wanted == 0 or not run.trainer.is_world_process_zero():
        return []
    records = run.dataset["validation"].remove_columns(["pos", "left_tokens", "right_tokens"])
    chosen = sorted(records, key=lambda record: len(record["entities"]), reverse=True)[:wanted]
    texts = [detokenize(record["tokens"]) for record in chosen]
    find_entities = NestedNERPipeline(model=run.trainer.model, processor=run.trainer.processing_class)
    return [{"text": text, "entities": found} for text, found in zip(texts, find_entities(texts), strict=True)]


def _model_card(run: Run, scores: dict[str, Any] | None, examples: list[dict[str, Any]]) -> ModelCard:
    plan, training = run.plan, run.plan.training
    encoder = plan.model.model_name_or_path
    return build_model_card(
        run.trainer.model.config,
        model_name=training.hub_model_id or _repository_name(training.output_dir),
        # A folder of this machine says nothing to the reader of the card.
        base_model=encoder if encoder and not Path(encoder).exists() else None,
        dataset_name=plan.data.dataset_name or Path(plan.data.train_file or "data").stem,
        language=plan.data.language,
        license=plan.model.license,
        scores=scores,
        examples=examples,
        training=_settings_of_interest(plan),
    )


def _settings_of_interest(plan: TrainingPlan) -> dict[str, Any]:
    recipe = {"recipe": plan.recipe.name} if plan.recipe else {}
    recipe["scores on"] = "test data" if plan.training.do_predict else "validation data"
    return recipe | {name: getattr(plan.training, name) for name in CARD_SETTINGS}


def _repository_name(folder: str) -> str:
    """What a model is called that is not on the Hub yet: its folder's name, as far as the Hub allows it."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", Path(folder).resolve().name).strip("-")
    return name[:96].strip("-") or "model"


def start_logging() -> None:
    """Messages of this package on standard error: all of the main process, only warnings of the others."""
    level = logging.INFO if os.environ.get("RANK", "0") == "0" else logging.WARNING
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger(__package__.split(".")[0]).setLevel(level)
