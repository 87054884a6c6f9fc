"""A whole run, from top to bottom: plan, corpus, start (processor and model), trained, scored, saved."""

import logging
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import datasets
import transformers

from ..data import add_context
from ..data.collator import DataCollatorForNestedNER
from ..evaluation.calibration import fit_temperature, score_spans, shared_threshold
from ..evaluation.prediction import score_raw_text
from ..evaluation.scores import Scores, format_scores
from ..evaluation.scoring import score_entities, scores_by_length, without_labels
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.pipeline_triaffine import NestedNERPipeline
from ..publishing.run_summary import Evaluation
from .checkpoints import choose_checkpoint
from .corpora import Corpus, read_splits
from .interruptions import TrainingFault, explaining_faults
from .optimization import check_optimization
from .plan import TrainingPlan, find_origin, parse_training_plan
from .progress import report_progress
from .saving import Scored, save_run
from .start import Start, build_start
from .trainer import NestedNERTrainer

logger = logging.getLogger(__name__)

# Split → prefix of its metrics' names.
PREFIXES = {"validation": "eval", "test": "test"}
# Difference of F1 between given words and raw text that is warned of.
NOTABLE_LOSS = 0.02
# Share of the training sentences with an entity, below which a model without predictions has learnt what it was shown.
FEW_WITH_ENTITIES = 0.01


@dataclass(frozen=True)
class Run:
    """A run that is ready to start: what it does, and on which data; the trainer has the model."""

    plan: TrainingPlan
    corpus: Corpus
    trainer: NestedNERTrainer


def prepare_run(arguments: Sequence[str]) -> Run:
    """Reads the command line (see [`parse_training_plan`]), the data and the model to start from.

    Raises:
        ValueError, OSError: the user's mistake, in one paragraph.
        TrainingFault: the model does not fit into memory, or the output folder cannot be written to.
    """
    hide_bars: Any = transformers.utils.logging.disable_progress_bar  # untyped in transformers
    hide_bars()
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    plan = parse_training_plan(arguments)
    training = plan.training
    training.resume_from_checkpoint = choose_checkpoint(training)
    with training.main_process_first():
        origin = find_origin(plan)
        corpus = read_splits(plan, origin)
    start = build_start(plan, origin, corpus.to_start_from(), corpus.types, corpus.tagger)
    with training.main_process_first():
        config = start.model.config
        corpus = corpus.change(partial(add_context, context=config.context, max_tokens=config.max_subwords))
    return Run(plan, corpus, _build_trainer(plan, corpus, start))


def train_and_save(run: Run) -> dict[str, float]:
    """Trains, scores validation and test data, and saves, as the plan says; returns all metrics.

    Raises:
        TrainingFault: numbers, memory, disk or a signal stopped the run.
        NotPublishedError: the upload of the saved model failed.
    """
    training, trainer, scored = run.plan.training, run.trainer, Scored()
    if training.do_train:
        scored.metrics |= trainer.train(resume_from_checkpoint=training.resume_from_checkpoint).metrics
    if training.calibrate_threshold:
        _calibrate(run)
    for split, is_wanted in (("validation", training.do_eval), ("test", training.do_predict)):
        if is_wanted and split in run.corpus.given:
            _score(run, split, scored)
    model = trainer.whole_model()
    for evaluation in scored.evaluations.values():
        evaluation.raw_text = _score_raw_text(run, evaluation, model, scored.metrics)
    save_run(run.plan, run.corpus, trainer, model, scored)
    command = f"; try: triaffine-ner predict --model {shlex.quote(training.output_dir)}" if training.do_train else "."
    logger.info("Saved in %s%s", training.output_dir, command)
    return scored.metrics


def start_logging() -> None:
    """Logs this package's messages to standard error: all in the main process, warnings in the others."""
    level = logging.INFO if os.environ.get("RANK", "0") == "0" else logging.WARNING
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger(__package__.split(".")[0]).setLevel(level)


def _build_trainer(plan: TrainingPlan, corpus: Corpus, start: Start) -> NestedNERTrainer:
    model, processor, teacher = start
    dataset = corpus.to_train_on()
    label2id: Any = model.config.label2id
    collator = DataCollatorForNestedNER(processor, label2id, plan.data.flat_annotation, model.config.multi_label)
    try:
        with explaining_faults(plan.training.output_dir, process=plan.training.process_index):
            trainer = NestedNERTrainer(
                model,
                plan.training,
                processing_class=processor,
                data_collator=collator,
                train_dataset=dataset.get("train"),
                eval_dataset=dataset.get("validation"),
            )
        report_progress(trainer)
        if plan.training.do_train:
            check_optimization(trainer)
    except TrainingFault:
        raise
    except RuntimeError as error:  # the Trainer's errors for a tracker that is not installed
        raise ValueError(f"The trainer cannot be set up: {error} See --report_to.") from error
    trainer.teacher = teacher
    return trainer


# ---- Scoring ----


def _calibrate(run: Run) -> None:
    """Sets temperature and threshold of the model, by the validation data as it is read in training."""
    model = run.trainer.whole_model()
    if model is None or "validation" not in run.corpus.given:
        raise ValueError("--calibrate_threshold needs validation data, and a model that one process holds as a whole.")
    processor: Any = run.trainer.processing_class
    records = list(run.corpus.to_train_on()["validation"])
    config: Any = model.config
    spans = score_spans(model, processor, records, run.plan.training.per_device_eval_batch_size)
    config.temperature = fit_temperature(spans, config.multi_label)
    threshold = shared_threshold(spans, config.multi_label, config.temperature)
    config.label_thresholds = None if threshold is None else dict.fromkeys(config.entity_labels, threshold)
    found = "the likeliest label" if threshold is None else f"a threshold of {threshold:.3f}"
    logger.info("Calibrated on the validation data: temperature %.3f, %s.", config.temperature, found)


def _score(run: Run, split: str, scored: Scored) -> None:
    """Adds predictions, metrics and scores of a split in given words to `scored`, and logs a table."""
    output: Any = run.trainer.predict(run.corpus.given[split], metric_key_prefix=PREFIXES[split])
    scored.metrics |= output.metrics
    scored.predictions[split] = output.predictions
    scored.evaluations[split] = evaluation = evaluate(run.trainer, split, output)
    logger.info("Scores on the %s data, given words:\n%s", split, format_scores(evaluation.scores))
    if unscored := evaluation.unscored:
        logger.info("Not scored, because the %s data does not annotate them: %s.", split, ", ".join(unscored))
    finds_nothing = evaluation.scores["gold"] and not evaluation.scores["predicted"]
    if finds_nothing and run.trainer.is_world_process_zero():
        logger.warning("The model predicts no entity in the %s data: %s", split, _why_nothing_is_predicted(run))


def evaluate(trainer: NestedNERTrainer, split: str, output: Any) -> Evaluation:
    """All scores of a split in given words, from the `output` of the trainer's `predict`."""
    references, metrics = output.label_ids, output.metrics
    unscored = trainer.unscored_labels(references)
    predictions = without_labels(output.predictions, unscored)
    scores = score_entities(predictions, references)
    recall, gold = metrics.get(f"{PREFIXES[split]}_candidate_recall"), scores["gold"]
    return Evaluation(
        split=split,
        sentences=len(references),
        scores=scores,
        by_length=scores_by_length(predictions, references),
        candidate_recall=None if recall is None else {"found": round(recall * gold), "gold": gold, "recall": recall},
        unscored=unscored,
    )


def _score_raw_text(
    run: Run, evaluation: Evaluation, model: TriaffineForNestedNER | None, metrics: dict[str, float]
) -> Scores | None:
    """Scores of an evaluated split's texts by characters, if it has texts; added to `metrics` and logged, too.

    Runs in the main process, which has the whole `model`.
    """
    if model is None or not run.trainer.is_world_process_zero():
        return None
    split = evaluation.split
    texts = run.corpus.texts.get(split)
    if not texts:
        why = "has words only" if texts is None else "has no text within the sentences that are scored"
        logger.info("Raw text is not scored: the %s data %s.", split, why)
        return None
    processor: Any = run.trainer.processing_class
    scores = score_raw_text(NestedNERPipeline(model=model, processor=processor), texts, evaluation.unscored)
    prefix = PREFIXES[split]
    metrics |= {f"{prefix}_raw_text_{name}": value for name, value in scores.metrics().items()}
    logger.info("Scores on the %s data, raw text (correct by characters):\n%s", split, format_scores(scores))
    loss = metrics[f"{prefix}_f1"] - scores["f1"]
    if run.corpus.words == "corpus" and loss > NOTABLE_LOSS:
        logger.warning(
            "F1 is %.1f points lower on raw text than on given words, on which the model was trained. For raw text, "
            "train with --words text.",
            100 * loss,
        )
    return scores


def _why_nothing_is_predicted(run: Run) -> str:
    if not run.plan.training.do_train:
        return "check that it was trained long enough, and on similar sentences."
    entities = run.corpus.given["train"]["entities"]
    with_entities = sum(map(bool, entities))
    if with_entities < FEW_WITH_ENTITIES * len(entities):
        return (
            f"only {with_entities:,} of the {len(entities):,} training sentences have an entity, "
            f"{sum(map(len, entities)):,} entities in all. Annotate more, or leave out sentences without entities."
        )
    more = "--max_steps" if run.plan.training.max_steps > 0 else "--num_train_epochs"
    return f"{run.trainer.state.global_step} updates are too few. Raise {more} or the learning rates."
