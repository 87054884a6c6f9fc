"""The facts of a training and of a whole run, from which the card of the model is written."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import Trainer

from ..data.texts import detokenize
from ..environment import describe_hardware, describe_versions
from ..evaluation.scores import summary_metrics
from ..model.options_triaffine import MODEL_OPTIONS, options_of
from ..model.pipeline_triaffine import NestedNERPipeline
from ..nesting import nested_spans
from ..publishing.run_summary import Epoch, Evaluation, Example, RunSummary
from .corpora import Corpus
from .options import OWN_OPTIONS, TRAINING, RunOptions
from .plan import TrainingPlan

LONGEST_SENTENCE = 70  # characters that fit into a line of the drawing


# ---- Facts of a training ----


def summarize_training(trainer: Trainer, seconds: float) -> RunSummary:
    """Returns the summary of a training that has just ended after so many seconds, without scores."""
    arguments, state = trainer.args, trainer.state
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


def describe_settings(trainer: Trainer, plan: TrainingPlan | None = None) -> dict[str, Any]:
    """The main settings of the training, and those of model, start and data that differ from their defaults."""
    args, config = trainer.args, trainer.model.config  # type: ignore[union-attr]
    values = {name: getattr(args, name, None) for name, option in OWN_OPTIONS.items() if option.section == TRAINING}
    values |= {name: getattr(config, name) for name in MODEL_OPTIONS}
    values |= {} if plan is None else {name: getattr(plan, name) for name in options_of(RunOptions)}
    settings = {}
    for name, value in values.items():
        option = OWN_OPTIONS.get(name) or MODEL_OPTIONS[name]
        is_set = value is not None and value != option.default and not option.is_path
        if option.in_card == "always" or (option.in_card == "if set" and is_set):
            settings[name] = value
    if args.max_steps > 0:
        settings |= {"max_steps": args.max_steps, "num_train_epochs": None}
    if args.auto_find_batch_size and trainer.state.train_batch_size:
        settings["per_device_train_batch_size"] = trainer.state.train_batch_size
    settings |= {"optim": args.optim, "mixed_precision": trainer.accelerator.mixed_precision}  # by torch and machine
    return {name: getattr(value, "value", value) for name, value in settings.items()}


def read_training_table(log_history: Iterable[Mapping[str, Any]], kept_step: int) -> list[Epoch]:
    """The evaluations of a run, from the Trainer's log; `kept_step` is the update whose weights it ended with."""
    rows: list[Epoch] = []
    losses: list[float] = []  # logged since the previous evaluation
    for entry in log_history:
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


def summarize_run(plan: TrainingPlan, trainer: Any, corpus: Corpus, evaluation: Evaluation | None) -> RunSummary:
    """Returns the summary of a finished run, whose model runs again, on the example sentences."""
    model: Any = trainer.model
    encoder, records, examples = plan.model_name_or_path, corpus.given["train"], plan.card_examples
    return dataclasses.replace(
        trainer.run_summary,
        base_model=encoder if encoder and not Path(encoder).exists() else None,
        from_scratch=encoder is None,
        dataset=plan.dataset_name,
        language=plan.language,
        license=plan.license,
        recipe=plan.recipe.resolve().name if plan.recipe else None,
        settings={**describe_settings(trainer, plan), "words": corpus.words},
        evaluation=evaluation,
        training_sentences=len(records),
        label_counts=count_labels(records, model.config.entity_labels),
        examples=_predict_examples(trainer, corpus, examples),
        parameters=sum(weights.numel() for weights in model.parameters()),
    )


def count_labels(records: Iterable[Mapping[str, Any]], names: Iterable[str]) -> dict[str, int]:
    """The number of entities of each of the labels `names`."""
    counts = Counter(entity["type"] for record in records for entity in record["entities"])
    return {name: counts[name] for name in names}


def choose_sentences(records: Sequence[Mapping[str, Any]], count: int) -> list[str]:
    """The `count` sentences with the most nested entities, as running text; those that fit into a line first."""

    def merit(record: Mapping[str, Any]) -> tuple[bool, int, int]:
        nested = nested_spans((entity["start"], entity["end"]) for entity in record["entities"])
        return len(detokenize(record["tokens"])) <= LONGEST_SENTENCE, len(nested), len(record["entities"])

    return [detokenize(record["tokens"]) for record in sorted(records, key=merit, reverse=True)[:count]]


def _predict_examples(trainer: Trainer, corpus: Corpus, count: int) -> list[Example]:
    """Validation sentences that are not training sentences, as raw text, with the model's predictions."""
    if "validation" not in corpus.given or count == 0:
        return []
    records = corpus.given["validation"].select_columns(["tokens", "entities"])
    known = set(map(tuple, corpus.given["train"]["tokens"]))
    texts = choose_sentences([record for record in records if tuple(record["tokens"]) not in known], count)
    model: Any = trainer.model
    processor: Any = trainer.processing_class
    found = NestedNERPipeline(model=model, processor=processor)(texts)
    return [Example(text, entities) for text, entities in zip(texts, found, strict=True)]
