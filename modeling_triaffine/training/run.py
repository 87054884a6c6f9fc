"""A whole run, from top to bottom: plan, corpus and model, training, scores, and what is saved."""

import contextlib
import dataclasses
import json
import logging
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import transformers
from datasets import DatasetDict
from transformers import PrinterCallback, ProgressCallback

from ..data.texts import detokenize
from ..evaluation.prediction import score_raw_text
from ..evaluation.scores import format_scores, score_entities, scores_by_length, without_labels
from ..files import locked, write_text
from ..model.pipeline_triaffine import NestedNERPipeline
from ..nesting import nested_spans
from ..publishing.run_summary import Evaluation, Example, RunSummary
from .interruptions import RESULTS_FILE, choose_checkpoint, format_metrics
from .new_labels import load_teacher
from .plan import TrainingPlan, parse_training_plan
from .start import Corpus, count_types, find_base_model, read_corpus, start_model
from .trainer import NestedNERTrainer

logger = logging.getLogger(__name__)

PREFIXES = {"validation": "eval", "test": "test"}  # split → prefix of its metrics' names
LONGEST_SENTENCE = 70  # characters; longer ones are wrapped in the drawing of the card


@dataclass(frozen=True)
class Run:
    """A run that is ready to start: what it does, and on which data; the trainer has the model."""

    plan: TrainingPlan
    corpus: Corpus
    trainer: NestedNERTrainer
    lock: contextlib.ExitStack


def prepare_run(arguments: Sequence[str]) -> Run:
    """Reads the command line, the data and the model to start from; a ValueError or OSError is the user's mistake."""
    transformers.utils.logging.disable_progress_bar()
    plan = parse_training_plan(arguments)
    training = plan.training
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
        training.disable_tqdm = True
    lock = contextlib.ExitStack()
    if training.should_save:
        lock.enter_context(locked(Path(training.output_dir)))
    training.resume_from_checkpoint = choose_checkpoint(training.resume_from_checkpoint, training.output_dir)
    with training.main_process_first():
        base = find_base_model(plan)
        corpus = read_corpus(plan, base)
    # To score, in the words of the corpus: a type may have all of its entities dropped in those of raw text.
    to_start_from = DatasetDict({**corpus.given, "train": corpus.to_train_on["train"]})
    model, processor = start_model(plan, base, to_start_from, corpus.types)
    teacher = load_teacher(plan, model, processor, corpus.types)
    trainer = NestedNERTrainer(
        model,
        training,
        processing_class=processor,
        train_dataset=corpus.to_train_on["train"],
        eval_dataset=corpus.to_train_on.get("validation"),
    )
    # These print each log as a dictionary; `TrainingCallback` logs it in words.
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    if not training.disable_tqdm:
        trainer.add_callback(_ProgressBar)
    trainer.teacher, trainer.data_collator.flat_annotation = teacher, plan.flat_annotation
    return Run(plan, corpus, trainer, lock)


def train_and_save(run: Run) -> dict[str, float]:
    """Trains, scores the validation and test data, and saves, as planned; returns all metrics."""
    training = run.plan.training
    evaluations: dict[str, Evaluation] = {}
    with run.lock:
        metrics: dict[str, float] = {**run.trainer.train(training.resume_from_checkpoint).metrics}
        for split, is_wanted in (("validation", training.do_eval), ("test", training.do_predict)):
            if is_wanted and split in run.corpus.given:
                evaluations[split] = score(run, split, metrics)
        save(run, metrics, evaluations)
        log_next_steps(run, metrics, evaluations)
        return metrics


def start_logging() -> None:
    """Logs this package's messages to standard error: all in the main process, warnings in the others."""
    level = logging.INFO if os.environ.get("RANK", "0") == "0" else logging.WARNING
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger(__package__.split(".")[0]).setLevel(level)


class _ProgressBar(ProgressCallback):
    def on_log(self, *arguments: Any, **options: Any) -> None:
        """Prints nothing: `TrainingCallback` logs the scores."""


def score(run: Run, split: str, metrics: dict[str, float]) -> Evaluation:
    """Scores a split in given words and, if it has texts, on raw text; extends `metrics`, and saves predictions."""
    trainer, prefix = run.trainer, PREFIXES[split]
    output: Any = trainer.predict(run.corpus.given[split], metric_key_prefix=prefix)
    metrics |= output.metrics
    unscored = trainer.unscored_labels(output.label_ids)
    predictions = without_labels(output.predictions, unscored)
    scores = score_entities(predictions, output.label_ids)
    logger.info("Scores on the %s data, given words:\n%s", split, format_scores(scores))
    if unscored:
        logger.info("Not scored, because the %s data does not annotate them: %s.", split, ", ".join(unscored))
    raw_text = None
    if trainer.is_world_process_zero():
        records = run.corpus.given[split]
        rows = zip(records["id"], records["tokens"], output.predictions, strict=True)
        lines = [{"id": name, "tokens": tokens, "entities": entities} for name, tokens, entities in rows]
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        write_text(Path(run.plan.training.output_dir, f"{split}_predictions.jsonl"), text)
        if texts := run.corpus.texts.get(split):
            pipeline = NestedNERPipeline(model=trainer.model, processor=trainer.processing_class)
            raw_text = score_raw_text(pipeline, texts, unscored)
            metrics |= {f"{prefix}_raw_text_{name}": value for name, value in raw_text.metrics().items()}
            table = format_scores(raw_text)
            shown = "the same." if table == format_scores(scores) else f"\n{table}"
            logger.info("Scores on the %s data, raw text (correct by characters): %s", split, shown)
    recall, gold = output.metrics.get(f"{prefix}_candidate_recall"), scores["gold"]
    return Evaluation(
        split=split,
        sentences=len(predictions),
        scores=scores,
        by_length=scores_by_length(predictions, output.label_ids),
        candidate_recall=None if recall is None else {"found": round(recall * gold), "gold": gold, "recall": recall},
        raw_text=raw_text,
        unscored=unscored,
    )


def save(run: Run, metrics: Mapping[str, float], evaluations: Mapping[str, Evaluation]) -> None:
    """Saves the files of a run, the model, and last the metrics, which mark a finished run."""
    plan, trainer = run.plan, run.trainer
    folder, is_writer = Path(trainer.args.output_dir), trainer.is_world_process_zero()
    if is_writer:
        evaluation = evaluations.get("test", evaluations.get("validation"))
        trainer.run_summary = summarize_run(run, evaluation)  # saved with the model
        write_text(folder / "log_history.json", json.dumps(trainer.state.log_history, indent=2))
        trainer.create_model_card(model_name=plan.training.hub_model_id)
    trainer.save_model(_internal_call=True)  # which publishes nothing
    if is_writer:
        write_text(folder / RESULTS_FILE, json.dumps(metrics, indent=2, sort_keys=True))
    if plan.training.push_to_hub:
        trainer.push_to_hub(commit_message="Model save")


def summarize_run(run: Run, evaluation: Evaluation | None) -> RunSummary:
    """Returns the facts of a finished run. Predicts the entities of the example sentences."""
    plan, trainer, records = run.plan, run.trainer, run.corpus.given["train"]
    summary: Any = trainer.run_summary
    encoder, counts = plan.model_name_or_path, count_types(records)
    return dataclasses.replace(
        summary,
        base_model=encoder if encoder and not Path(encoder).exists() else None,
        from_scratch=encoder is None,
        dataset=plan.dataset_name,
        language=plan.language,
        license=plan.license,
        recipe=Path(plan.recipe).resolve().name if plan.recipe else None,
        settings={**trainer.describe_settings(plan), "words": run.corpus.words},
        evaluation=evaluation,
        training_sentences=len(records),
        label_counts={name: counts[name] for name in trainer.model.config.entity_labels},
        examples=predict_examples(trainer, run.corpus, plan.card_examples),
        parameters=sum(weights.numel() for weights in trainer.model.parameters()),
    )


def choose_sentences(records: Sequence[Mapping[str, Any]], count: int) -> list[str]:
    """The `count` sentences with the most nested entities, as text; first those that fit into a line of the card."""

    def rank(record: Mapping[str, Any]) -> tuple[bool, int, int]:
        nested = nested_spans((entity["start"], entity["end"]) for entity in record["entities"])
        return len(detokenize(record["tokens"])) <= LONGEST_SENTENCE, len(nested), len(record["entities"])

    return [detokenize(record["tokens"]) for record in sorted(records, key=rank, reverse=True)[:count]]


def predict_examples(trainer: Any, corpus: Corpus, count: int) -> list[Example]:
    """Example sentences for the card: validation sentences that are not in the training data, with predictions."""
    if "validation" not in corpus.given or count == 0:
        return []
    records = corpus.given["validation"].select_columns(["tokens", "entities"])
    known = set(map(tuple, corpus.given["train"]["tokens"]))
    texts = choose_sentences([record for record in records if tuple(record["tokens"]) not in known], count)
    found = NestedNERPipeline(model=trainer.model, processor=trainer.processing_class)(texts)
    return [Example(text, entities) for text, entities in zip(texts, found, strict=True)]


def log_next_steps(run: Run, metrics: Mapping[str, float], splits: Iterable[str]) -> None:
    """Logs where the model is, its scores, and commands to run next."""
    plan, folder = run.plan, shlex.quote(run.plan.training.output_dir)
    scored = [f"{split.capitalize()} data: {format_metrics(metrics, PREFIXES[split])}." for split in splits]
    logger.info("Saved in %s. %s", plan.training.output_dir, " ".join(scored))
    commands = [f"predict --model {folder}", f"page --model {folder}"]
    # Not --train_file with --dev_share: `evaluate` would score sentences that the model was trained on.
    if corpus := plan.test_file or plan.validation_file or (not plan.dev_share and plan.train_file):
        read_as = f" --format {plan.data_format}" if plan.data_format else ""
        commands.insert(1, f"evaluate --model {folder} {shlex.quote(str(Path(corpus)))}{read_as}")
    logger.info("Next:%s", "".join(f"\n  triaffine-ner {command}" for command in commands))
