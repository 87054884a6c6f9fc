"""Collects the facts of a finished training run for its summary."""

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datasets import DatasetDict
from transformers import Trainer

from ..data.alignment import detokenize
from ..data.statistics import nested_spans
from ..evaluation.breakdowns import scores_by_length
from ..evaluation.scoring import score_entities
from ..machine import describe_hardware, describe_versions
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.pipeline_triaffine import NestedNERPipeline
from .run_summary import Epoch, Evaluation, Example, Label, RunSummary

SPELLINGS = 3  # shown of each label
LONGEST_SPELLING = 60  # characters
LONGEST_SENTENCE = 70  # characters that fit into a line of the drawing


def summarize_run(
    planned: RunSummary,
    trainer: Trainer,
    dataset: DatasetDict,
    model: TriaffineForNestedNER,
    outputs: Mapping[str, Any],
    raw_text: Mapping[str, dict[str, Any] | None],
    *,
    seconds: float,
    resumed: bool,
    examples: int,
) -> RunSummary:
    """Completes the summary that was `planned` before the run.

    The model runs again, on the example sentences. To be called in the main process only.

    Args:
        planned: summary with data, recipe and settings.
        dataset: the splits of the run, in the words of the corpus.
        model: the model of the trainer, with all its weights in this process.
        outputs: result of the trainer's `predict` for each scored split.
        raw_text: result of `score_raw_text` for each scored split; None without texts.
        seconds: duration of the training, since it was last `resumed` if it was.
        examples: number of validation sentences shown in the card; 0 for no text of the corpus at all.
    """
    arguments, state, records = trainer.args, trainer.state, dataset["train"]
    best_step = state.best_global_step if arguments.load_best_model_at_end else None
    return dataclasses.replace(
        planned,
        training_table=read_training_table(state.log_history, best_step or state.global_step),
        evaluation=_evaluate(outputs, raw_text),
        training_sentences=len(records),
        labels=describe_labels(records, model.config.entity_labels, SPELLINGS if examples else 0),
        examples=_predict_examples(trainer, dataset, model, examples),
        hardware=describe_hardware(),
        versions=describe_versions(),
        training_seconds=seconds,
        resumed=resumed,
        processes=arguments.world_size,
        gpus=arguments.world_size if arguments.device.type == "cuda" else 0,
        parameters=sum(weights.numel() for weights in model.parameters()),
    )


def read_training_table(log_history: Iterable[Mapping[str, Any]], kept_step: int) -> list[Epoch]:
    """The evaluations of a training, one per epoch, from the Trainer's log.

    Of several evaluations in an epoch, it is the last, or the one whose weights were kept.

    Args:
        log_history: `state.log_history` of a `NestedNERTrainer`.
        kept_step: the update whose weights the training ended with.
    """
    rows: dict[int, Epoch] = {}
    losses: list[float] = []  # logged since the previous evaluation
    for entry in log_history:
        if "loss" in entry:
            losses.append(entry["loss"])
        if "eval_loss" not in entry:
            continue
        scores = {name: entry.get(f"eval_{name}") for name in ("precision", "recall", "f1", "flat_f1", "nested_f1")}
        row = Epoch(
            epoch=entry["epoch"],
            training_loss=sum(losses) / len(losses) if losses else None,
            validation_loss=entry["eval_loss"],
            kept=entry["step"] == kept_step,
            **scores,
        )
        number = math.ceil(row.epoch)
        if number not in rows or not rows[number].kept:
            rows[number] = row
        losses = []
    return list(rows.values())


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


def _evaluate(outputs: Mapping[str, Any], raw_text: Mapping[str, dict[str, Any] | None]) -> Evaluation | None:
    """All scores on the test data, else on the validation data; None if neither was scored."""
    split = next((split for split in ("test", "validation") if split in outputs), None)
    if split is None:
        return None
    predictions, references, metrics = outputs[split]
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
    )


def _predict_examples(
    trainer: Trainer, dataset: DatasetDict, model: TriaffineForNestedNER, count: int
) -> list[Example]:
    """Validation sentences as raw text, with the predictions of the trained model."""
    if "validation" not in dataset or count == 0:
        return []
    texts = choose_sentences(list(dataset["validation"].select_columns(["tokens", "entities"])), count)
    find_entities = NestedNERPipeline(model=model, processor=trainer.processing_class)
    return [Example(text, found) for text, found in zip(texts, find_entities(texts), strict=True)]


def _most_frequent(spelled: Counter[str], number: int) -> list[str]:
    ordered = sorted(spelled, key=lambda spelling: (len(spelling) > LONGEST_SPELLING, -spelled[spelling]))
    return ordered[:number]
