"""What a training leaves: the facts of its run, from which its card is written, scores, predictions, and a recipe."""

import dataclasses
import itertools
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import yaml
from datasets import Dataset
from transformers import Trainer

from ..data.alignment import detokenize
from ..environment import describe_hardware, describe_versions
from ..evaluation.scores import summary_metrics
from ..files import write_text
from ..model.kinds_triaffine import WordEntity
from ..model.options_triaffine import MODEL_OPTIONS, Option
from ..model.pipeline_triaffine import NestedNERPipeline
from ..nesting import nested_spans
from ..publishing.run_summary import Epoch, Evaluation, Example, Label, RunSummary
from ..publishing.upload import NotPublishedError
from .callbacks import KEPT
from .checkpoints import RESULTS_FILE
from .corpora import Corpus
from .options import OWN_OPTIONS, TRAINING
from .plan import TRAINING_FILE, TrainingPlan, training_options

RECIPE_HEADING = """\
# --recipe with this folder repeats the run, in another --output_dir. Versions and hardware are in run_summary.json.
# On another machine, give the files again, and --dataset_name and --language. This file is not published.
"""
SPELLINGS = 3  # shown of each label
LONGEST_SPELLING = 60  # characters
LONGEST_SENTENCE = 70  # characters that fit into a line of the drawing


@dataclass
class RunResults:
    """What a run has measured and predicted: its metrics by name, predictions and scores by split."""

    metrics: dict[str, float] = field(default_factory=dict)
    predictions: dict[str, list[list[WordEntity]]] = field(default_factory=dict)
    evaluations: dict[str, Evaluation] = field(default_factory=dict)


def save_run(plan: TrainingPlan, corpus: Corpus, trainer: Any, results: RunResults) -> None:
    """Saves the files of a run, the model, and last the metrics: a folder with them is that of a finished run."""
    files = {
        f"{split}_predictions.jsonl": _as_lines(corpus.given[split], predictions)
        for split, predictions in results.predictions.items()
    }
    if plan.training.do_train and trainer.is_world_process_zero():
        evaluation = results.evaluations.get("test", results.evaluations.get("validation"))
        trainer.run_summary = summarize_run(plan, trainer, corpus, evaluation)  # saved with the model
        files |= {
            "log_history.json": json.dumps(trainer.state.log_history, indent=2),
            TRAINING_FILE: _as_recipe(plan, trainer, corpus.words),
        }
        trainer.create_model_card(model_name=plan.training.hub_model_id)
    _write_files(trainer, files)
    last = {RESULTS_FILE: json.dumps(results.metrics, indent=2, sort_keys=True)}
    try:
        if plan.training.do_train:
            trainer.save_model()
    except NotPublishedError:  # the model is saved
        _write_files(trainer, last)
        raise
    _write_files(trainer, last)


def _write_files(trainer: Trainer, files: dict[str, str]) -> None:
    for name, text in files.items() if trainer.is_world_process_zero() else ():
        write_text(Path(str(trainer.args.output_dir)) / name, text)


def _as_lines(records: Dataset, predictions: list[list[WordEntity]]) -> str:
    """Returns the records as JSON lines with the predicted entities."""
    lines = (
        json.dumps({"id": name, "tokens": tokens, "entities": entities}, ensure_ascii=False)
        for name, tokens, entities in zip(records["id"], records["tokens"], predictions, strict=True)
    )
    return "".join(f"{line}\n" for line in lines)


def _as_recipe(plan: TrainingPlan, trainer: Trainer, words: str) -> str:
    """The training.yaml of the run's folder: the options at its end, and the main settings, defaults included."""
    kept_by_checkpoint = {name: getattr(trainer.args, name) for name in KEPT if name in plan.options}
    options = {**main_settings(trainer.args), **plan.options, **kept_by_checkpoint, "words": words}
    known = training_options()
    kept = {name: value for name, value in options.items() if value is not None and not known[name].is_of_one_run}
    written = {name: _as_yaml(known[name], value) for name, value in kept.items()}
    return RECIPE_HEADING + yaml.safe_dump(written, sort_keys=False, allow_unicode=True)


def _as_yaml(option: Option, value: Any) -> Any:
    """Returns an option's value for YAML, with absolute paths."""
    if option.is_path and isinstance(value, str) and os.path.exists(value):  # not Path: of long JSON
        return str(Path(value).resolve())
    return value.value if isinstance(value, Enum) else value


# ---- Facts of a training ----


def summarize_training(trainer: Trainer) -> RunSummary:
    """The summary of the trainer's last training, without scores; `RunSummary()` before it."""
    arguments, state = trainer.args, trainer.state
    seconds = next((entry["train_runtime"] for entry in state.log_history if "train_runtime" in entry), None)
    if seconds is None:
        return RunSummary()
    best_step = state.best_global_step if arguments.load_best_model_at_end else None
    return RunSummary(
        settings=describe_settings(trainer),
        training_table=read_training_table(state.log_history, best_step or state.global_step),
        hardware=describe_hardware(),
        versions=describe_versions(),
        training_seconds=seconds,
        resumed=getattr(trainer, "is_resumed", False),
        processes=arguments.world_size,
        gpus=arguments.world_size if arguments.device.type == "cuda" else 0,
    )


def describe_settings(trainer: Trainer) -> dict[str, Any]:
    """The main settings of the training, and those of the model that differ from their defaults."""
    config: Any = trainer.model.config  # type: ignore[union-attr]
    args: Any = trainer.args
    of_training = main_settings(args) | {
        name: getattr(args, name)
        for name, option in OWN_OPTIONS.items()
        if (option.section, option.in_card) == (TRAINING, "if set")
        and getattr(args, name, option.default) != option.default
    }
    if args.max_steps > 0:
        of_training |= {"max_steps": args.max_steps, "num_train_epochs": None}
    if trainer.args.auto_find_batch_size and trainer.state.train_batch_size:
        of_training["per_device_train_batch_size"] = trainer.state.train_batch_size
    of_model = {
        name: getattr(config, name)
        for name, option in MODEL_OPTIONS.items()
        if option.in_card != "never" and getattr(config, name) != option.default
    }
    settings = {**of_training, "mixed_precision": trainer.accelerator.mixed_precision, **of_model}
    return {name: value.value if isinstance(value, Enum) else value for name, value in settings.items()}


def main_settings(arguments: Any) -> dict[str, Any]:
    """The options of the training that a card always shows."""
    shown = [name for name, option in OWN_OPTIONS.items() if option.in_card == "always"]
    return {name: getattr(arguments, name, None) for name in (*shown, "optim")}  # whose default depends on torch


def read_training_table(log_history: Iterable[Mapping[str, Any]], kept_step: int) -> list[Epoch]:
    """The evaluations of a run, from the Trainer's log; `kept_step` is the update whose weights it ended with."""
    rows: list[Epoch] = []
    losses: list[float] = []  # logged since the previous evaluation
    for entry in itertools.takewhile(lambda entry: "train_runtime" not in entry, log_history):
        if "loss" in entry:
            losses.append(entry["loss"])
        if "eval_loss" in entry:
            row = Epoch(
                epoch=round(entry["epoch"], 2),
                update=entry["step"],
                training_loss=sum(losses) / len(losses) if losses else None,
                validation_loss=entry["eval_loss"],
                kept=entry["step"] == kept_step,
                scores={name: entry.get(f"eval_{name}") for name in summary_metrics()},
            )
            rows.append(row)
            losses = []
    return rows


# ---- Facts of a run ----


def summarize_run(
    plan: TrainingPlan,
    trainer: Trainer,
    corpus: Corpus,
    evaluation: Evaluation | None,
) -> RunSummary:
    """The summary of a finished run, whose model runs again, on the example sentences."""
    model: Any = trainer.model
    encoder, records, examples = plan.model.model_name_or_path, corpus.given["train"], plan.data.card_examples
    return dataclasses.replace(
        summarize_training(trainer),
        base_model=encoder if encoder and not Path(encoder).exists() else None,
        from_scratch=encoder is None,
        dataset=plan.data.dataset_name,
        language=plan.data.language,
        license=plan.model.license,
        recipe=plan.recipe.resolve().name if plan.recipe else None,
        settings={**describe_settings(trainer), **_of_start_and_data(plan), "words": corpus.words},
        evaluation=evaluation,
        training_sentences=len(records),
        labels=describe_labels(records, model.config.entity_labels, SPELLINGS if examples else 0),
        examples=_predict_examples(trainer, corpus, examples),
        parameters=sum(weights.numel() for weights in model.parameters()),
    )


def _of_start_and_data(plan: TrainingPlan) -> dict[str, Any]:
    """The options of start and data that the run was given and that a card may have: no files of this machine."""
    given = {name: value for name, value in (vars(plan.model) | vars(plan.data)).items() if name in plan.options}
    return {
        name: value
        for name, value in given.items()
        if OWN_OPTIONS[name].in_card == "if set" and not OWN_OPTIONS[name].is_path
    }


def describe_labels(records: Iterable[Mapping[str, Any]], names: Iterable[str], spellings: int) -> dict[str, Label]:
    """The number of entities of the labels `names`, and their most frequent spellings, short ones first.

    `spellings` is the number of spellings per label; 0 publishes no text of the corpus.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for entity in record["entities"]:
            counts[entity["type"]][detokenize(record["tokens"][entity["start"] : entity["end"]])] += 1
    labels = {}
    for name in names:
        ordered = [spelling for spelling, _ in counts[name].most_common()]
        ordered.sort(key=lambda spelling: len(spelling) > LONGEST_SPELLING)
        labels[name] = Label(counts[name].total(), ordered[:spellings])
    return labels


def choose_sentences(records: Sequence[Mapping[str, Any]], count: int) -> list[str]:
    """The `count` sentences with the most nested entities, as running text; those that fit into a line first."""

    def merit(record: Mapping[str, Any]) -> tuple[bool, int, int]:
        nested = nested_spans((entity["start"], entity["end"]) for entity in record["entities"])
        return len(detokenize(record["tokens"])) <= LONGEST_SENTENCE, len(nested), len(record["entities"])

    return [detokenize(record["tokens"]) for record in sorted(records, key=merit, reverse=True)[:count]]


def _predict_examples(trainer: Trainer, corpus: Corpus, count: int) -> list[Example]:
    """Validation sentences that are not training sentences, as raw text, with the model's predictions."""
    dataset = corpus.given
    if "validation" not in dataset or count == 0:
        return []
    records = dataset["validation"].select_columns(["tokens", "entities"])
    known = set(map(tuple, dataset["train"]["tokens"]))
    new = [record for record in records if tuple(record["tokens"]) not in known]
    texts = choose_sentences(new, count)
    model: Any = trainer.model
    processor: Any = trainer.processing_class
    find_entities = NestedNERPipeline(model=model, processor=processor)
    return [Example(text, found) for text, found in zip(texts, find_entities(texts), strict=True)]
