"""Collects the facts of a training run for its summary: those known before it, and those of the finished run."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from datasets import DatasetDict

from ..data.alignment import detokenize
from ..data.statistics import nested_spans
from ..evaluation.breakdowns import scores_by_length
from ..evaluation.scoring import score_entities, without_labels
from ..machine import describe_hardware, describe_versions
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.pipeline_triaffine import NestedNERPipeline
from ..publishing.run_summary import Epoch, Evaluation, Example, Label, RunSummary
from .command_line import CONFIG_OPTIONS, TrainingPlan
from .corpora import Corpus
from .preparation import VOCABULARY_SIZES
from .trainer import NestedNERTrainer

TRAINING_SETTINGS = (
    "encoder_learning_rate",
    "embeddings_learning_rate",
    "learning_rate",
    "lr_scheduler_type",
    "warmup_steps",
    "optim",
    "weight_decay",
    "max_grad_norm",
    "num_train_epochs",
    "per_device_train_batch_size",
    "max_subwords_per_batch",
    "gradient_accumulation_steps",
    "seed",
)
SPELLINGS = 3  # shown of each label
LONGEST_SPELLING = 60  # characters
LONGEST_SENTENCE = 70  # characters that fit into a line of the drawing


def summarize_plan(plan: TrainingPlan, trainer: NestedNERTrainer, words: str) -> RunSummary:
    """A summary with base model, data and settings; `words` as in [`Corpus`].

    Raises:
        ValueError: `--dataset_name` is a folder.
    """
    encoder, dataset = plan.model.model_name_or_path, plan.data.dataset_name
    if dataset and (Path(dataset).is_absolute() or dataset.startswith((".", "~")) or "\\" in dataset):
        raise ValueError(
            f"--dataset_name is {dataset!r}, which looks like a folder of this machine and tells readers of the model "
            "card nothing. Give the dataset's id on the Hub, or its title."
        )
    return RunSummary(
        base_model=encoder if encoder and not Path(encoder).exists() else None,
        from_scratch=encoder is None,
        dataset=dataset,
        language=plan.data.language,
        license=plan.model.license,
        recipe=plan.recipe.resolve().name if plan.recipe else None,
        settings=_settings(plan, trainer, words),
    )


def summarize_run(
    plan: TrainingPlan,
    trainer: NestedNERTrainer,
    corpus: Corpus,
    model: TriaffineForNestedNER,
    outputs: Mapping[str, Any],
    raw_text: Mapping[str, dict[str, Any] | None],
    seconds: float,
) -> RunSummary:
    """The summary of a finished run.

    The model runs again, on the example sentences. To be called in the main process only.

    Args:
        model: the model of the trainer, with all its weights in this process.
        outputs: result of the trainer's `predict` for each scored split.
        raw_text: result of `score_raw_text` for each scored split; None without texts.
        seconds: duration of the training, since it was last resumed if it was.
    """
    arguments, state, records = trainer.args, trainer.state, corpus.given["train"]
    examples = plan.data.card_examples
    best_step = state.best_global_step if arguments.load_best_model_at_end else None
    return dataclasses.replace(
        summarize_plan(plan, trainer, corpus.words),
        training_table=read_training_table(state.log_history, best_step or state.global_step),
        evaluation=_evaluate(trainer, outputs, raw_text),
        training_sentences=len(records),
        labels=describe_labels(records, model.config.entity_labels, SPELLINGS if examples else 0),
        examples=_predict_examples(trainer, corpus.given, model, examples),
        hardware=describe_hardware(),
        versions=describe_versions(),
        training_seconds=seconds,
        resumed=arguments.resume_from_checkpoint is not None,
        processes=arguments.world_size,
        gpus=arguments.world_size if arguments.device.type == "cuda" else 0,
        parameters=sum(weights.numel() for weights in model.parameters()),
    )


def read_training_table(log_history: Iterable[Mapping[str, Any]], kept_step: int) -> list[Epoch]:
    """The evaluations of a training, from the Trainer's log.

    Args:
        log_history: `state.log_history` of a `NestedNERTrainer`.
        kept_step: the update whose weights the training ended with.
    """
    rows: list[Epoch] = []
    losses: list[float] = []  # logged since the previous evaluation
    for entry in log_history:
        if "loss" in entry:
            losses.append(entry["loss"])
        if "eval_loss" not in entry:
            continue
        scores = {name: entry.get(f"eval_{name}") for name in ("precision", "recall", "f1", "flat_f1", "nested_f1")}
        rows.append(
            Epoch(
                epoch=round(entry["epoch"], 2),
                update=entry["step"],
                training_loss=sum(losses) / len(losses) if losses else None,
                validation_loss=entry["eval_loss"],
                kept=entry["step"] == kept_step,
                **scores,
            )
        )
        losses = []
    return rows


def describe_labels(
    records: Iterable[Mapping[str, Any]], names: Iterable[str], spellings: int = SPELLINGS
) -> dict[str, Label]:
    """The number of entities of the labels `names`, and their most frequent spellings, short ones first.

    `spellings` is the number of spellings per label; 0 publishes no text of the corpus.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for entity in record["entities"]:
            counts[entity["type"]][detokenize(record["tokens"][entity["start"] : entity["end"]])] += 1
    return {name: Label(counts[name].total(), _most_frequent(counts[name], spellings)) for name in names}


def choose_sentences(records: Sequence[Mapping[str, Any]], count: int) -> list[str]:
    """The `count` sentences with the most nested entities, as running text; those that fit into a line first."""

    def merit(record: Mapping[str, Any]) -> tuple[bool, int, int]:
        nested = nested_spans((entity["start"], entity["end"]) for entity in record["entities"])
        return len(detokenize(record["tokens"])) <= LONGEST_SENTENCE, len(nested), len(record["entities"])

    return [detokenize(record["tokens"]) for record in sorted(records, key=merit, reverse=True)[:count]]


def _settings(plan: TrainingPlan, trainer: NestedNERTrainer, words: str) -> dict[str, Any]:
    """The main settings of the training, and those of the model that differ from their defaults."""
    config = trainer.model.config
    of_training = {name: getattr(plan.training, name) for name in TRAINING_SETTINGS}
    of_model = {
        name: getattr(config, name)
        for name, default in CONFIG_OPTIONS.items()
        if name not in VOCABULARY_SIZES.values() and getattr(config, name) != default
    }
    settings = {
        **of_training,
        "min_steps": plan.training.min_steps or None,
        "mixed_precision": trainer.accelerator.mixed_precision,
        "words": words,
        **of_model,
    }
    return {name: value.value if isinstance(value, Enum) else value for name, value in settings.items()}


def _evaluate(
    trainer: NestedNERTrainer, outputs: Mapping[str, Any], raw_text: Mapping[str, dict[str, Any] | None]
) -> Evaluation | None:
    """All scores on the test data, else on the validation data; None if neither was scored."""
    split = next((split for split in ("test", "validation") if split in outputs), None)
    if split is None:
        return None
    predictions, references, metrics = outputs[split]
    unscored = trainer.unscored_labels(references)
    predictions = without_labels(predictions, unscored)
    scores = score_entities(predictions, references)
    recall = metrics.get(f"{'test' if split == 'test' else 'eval'}_candidate_recall")
    gold = scores["gold"]
    candidates = None if recall is None else {"found": round(recall * gold), "gold": gold, "recall": recall}
    return Evaluation(
        split=split,
        sentences=len(references),
        scores=scores,
        by_length=scores_by_length(predictions, references),
        candidate_recall=candidates,
        raw_text=raw_text.get(split),
        unscored=unscored,
    )


def _predict_examples(
    trainer: NestedNERTrainer, dataset: DatasetDict, model: TriaffineForNestedNER, count: int
) -> list[Example]:
    """Validation sentences as raw text, with the predictions of the trained model."""
    if "validation" not in dataset or count == 0:
        return []
    texts = choose_sentences(list(dataset["validation"].select_columns(["tokens", "entities"])), count)
    processor: Any = trainer.processing_class
    find_entities = NestedNERPipeline(model=model, processor=processor)
    return [Example(text, found) for text, found in zip(texts, find_entities(texts), strict=True)]


def _most_frequent(spelled: Counter[str], number: int) -> list[str]:
    ordered = sorted(spelled, key=lambda spelling: (len(spelling) > LONGEST_SPELLING, -spelled[spelling]))
    return ordered[:number]
