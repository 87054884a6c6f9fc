"""A whole run, from top to bottom: read the plan, prepare data, model and trainer, train, score, save.

Beside the model, a run saves scores, predictions, a summary, the model card, and a recipe that repeats the run.
"""

import json
import logging
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict

from ..data import add_context
from ..data.collator import DataCollatorForNestedNER
from ..data.demo import write_demo_corpus
from ..evaluation.prediction import Entities, score_raw_text
from ..evaluation.scores import Scores, format_scores
from ..evaluation.scoring import score_entities, scores_by_length, without_labels
from ..files import write_text
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import Option
from ..model.pipeline_triaffine import NestedNERPipeline
from ..publishing.model_card import CARD_NAME, renew_card, repository_name
from ..publishing.run_summary import SUMMARY_FILE, Evaluation, RunSummary
from ..publishing.upload import NotPublishedError
from .callbacks import quieten, report_progress
from .corpora import Corpus, check_entities, check_splits, label_names, limit_splits, texts_to_score
from .facts import main_settings, summarize_plan, summarize_run
from .interruptions import TrainingFault, check_writable, explaining_faults, find_checkpoint, list_checkpoints
from .optimization import check_optimization
from .plan import TRAINING_FILE, TrainingPlan, format_training, parse_training_plan, recipe_library, training_options
from .sharding import whole_model
from .start import Start, build_start, find_origin, read_splits
from .trainer import NestedNERTrainer

logger = logging.getLogger(__name__)

# The recipe that has data of its own, and the name of the data.
DEMO, DEMO_NAME = "demo", "made-up demo corpus"
# Split → prefix of its metrics' names.
PREFIXES = {"validation": "eval", "test": "test"}
RESULTS_FILE = "all_results.json"
# Difference of F1 between given words and raw text that is warned of.
NOTABLE_LOSS = 0.02
# Share of the training sentences with an entity, below which a model without predictions has learnt what it was shown.
FEW_WITH_ENTITIES = 0.01
RECIPE_HEADING = """\
This run as a recipe: --recipe with this folder repeats it, in another --output_dir. Versions and hardware are in
run_summary.json. Paths are those of the machine it ran on; on another machine, give the files again (--train_file ...).
This file is not published with the model."""


@dataclass(frozen=True)
class Run:
    """A run that is ready to start.

    Attributes:
        dataset: the splits, with context, in the words that the model is trained on.
        corpus: the splits in the words of the corpus, on which the model is scored, and in those of raw text.
    """

    plan: TrainingPlan
    dataset: DatasetDict
    trainer: NestedNERTrainer
    corpus: Corpus


def prepare_run(arguments: Sequence[str]) -> Run:
    """Reads the command line (see [`parse_training_plan`]), the data and the model to start from.

    Raises:
        ValueError, OSError: the user's mistake, in one paragraph.
        TrainingFault: the model does not fit into memory, or the output folder cannot be written to.
    """
    plan = parse_training_plan(arguments)
    quieten(plan.training)
    _choose_checkpoint(plan)
    with plan.training.main_process_first():
        _provide_corpus(plan)
        origin = find_origin(plan)
        corpus = read_splits(plan, origin)
    labels = label_names(corpus.given["train"]) if "train" in corpus.given else []
    corpus = corpus.change(partial(limit_splits, data=plan.data))
    check_splits(plan.training, corpus.given)
    sizes = (f"{len(records):,} {split} sentences" for split, records in corpus.given.items())
    logger.info("Read %s.", ", ".join(sizes))
    if plan.training.do_train:
        logger.info("%s", corpus.describe_words())
    to_score = {split: records for split, records in corpus.given.items() if split != "train"}
    splits = DatasetDict({**corpus.to_train_on(), **to_score})  # raw text may lack the entities of a type
    start = build_start(plan, origin, splits, labels)
    config = start.model.config
    check_entities(config, start.processor, splits)
    with plan.training.main_process_first():
        add = partial(add_context, context=config.context, max_tokens=config.max_subwords)
        corpus = corpus.change(add)
    dataset = corpus.to_train_on()
    run = Run(plan, dataset, _build_trainer(plan, dataset, start), corpus)
    # An error in the card's facts is raised before training.
    _model_card(run, summarize_plan(run.plan, run.trainer, run.corpus.words))
    return run


def train_and_save(run: Run) -> dict[str, float]:
    """Trains, scores validation and test data, and saves, as the plan says; returns all metrics.

    Raises:
        TrainingFault: numbers, memory or disk stopped the run.
        NotPublishedError: the upload of the saved model failed.
    """
    training, trainer = run.plan.training, run.trainer
    metrics: dict[str, float] = {}
    files: dict[str, str] = {}
    evaluations: dict[str, Evaluation] = {}
    if training.do_train:
        metrics |= trainer.train(resume_from_checkpoint=training.resume_from_checkpoint).metrics
    splits = ["validation"] if training.do_eval and "validation" in run.dataset else []
    splits += ["test"] if training.do_predict else []
    for split in splits:
        predictions, evaluations[split] = _score(run, split, metrics)
        files[f"{split}_predictions.jsonl"] = _as_lines(run.corpus.given[split], predictions)
    model = whole_model(trainer)
    for evaluation in evaluations.values():
        evaluation.raw_text = _score_raw_text(run, evaluation, model, metrics)
    if training.do_train and model is not None:
        # The scores on the test data, else those on the validation data.
        files |= _describe(run, model, evaluations.get("test", evaluations.get("validation")))
    _save(run, files, metrics)
    command = f"; try: triaffine-ner predict --model {shlex.quote(training.output_dir)}" if training.do_train else "."
    logger.info("Saved in %s%s", training.output_dir, command)
    return metrics


# ---- Preparing ----


def _choose_checkpoint(plan: TrainingPlan) -> None:
    """Resolves --resume_from_checkpoint, and raises ValueError rather than overwrite an earlier run."""
    training, folder = plan.training, Path(plan.training.output_dir)
    if training.push_to_hub and not training.do_train:
        raise ValueError(
            "--push_to_hub publishes the trained model, but with --no_do_train there is none. Publish an existing "
            "model with triaffine-ner publish."
        )
    if training.should_save:
        check_writable(training.output_dir)
    resumes = bool(training.resume_from_checkpoint)
    found = list_checkpoints(folder)
    if found and training.do_train and not resumes:
        raise ValueError(
            f"--output_dir {folder} has {found[-1].name} of an earlier run. Add --resume_from_checkpoint to continue "
            "that run, or give another folder."
        )
    training.resume_from_checkpoint = find_checkpoint(training.resume_from_checkpoint, folder)
    # A run that was killed while it saved can be begun again; one that has its results is finished.
    has_model = (folder / SUMMARY_FILE).exists() and not (resumes and not (folder / RESULTS_FILE).exists())
    if training.do_train and not training.resume_from_checkpoint and has_model:
        missing = ", and no checkpoint to resume from" if resumes else ""
        raise ValueError(
            f"--output_dir {folder} has the model of an earlier run{missing}. Give another folder, or delete it."
        )


def _provide_corpus(plan: TrainingPlan) -> None:
    """Writes the embedded corpus beside the model if the recipe is that of the demo, and no data is given."""
    data = plan.data
    if plan.recipe != recipe_library() / DEMO or data.train_file or data.validation_file or data.test_file:
        return
    folder = Path(plan.training.output_dir, "corpus")
    if plan.training.should_save:
        with explaining_faults(plan.training.output_dir):
            write_demo_corpus(folder)
    logger.info("No data is given: the recipe %s trains on this package's synthetic corpus, in %s.", DEMO, folder)
    of_demo = {"train_file": str(folder), "dataset_name": DEMO_NAME, "language": "en"}
    for option, value in of_demo.items():
        if getattr(data, option) is None:
            setattr(data, option, value)
            plan.options[option] = value


def _build_trainer(plan: TrainingPlan, dataset: DatasetDict, start: Start) -> NestedNERTrainer:
    model, processor, teacher = start
    label2id: Any = model.config.label2id
    collator = DataCollatorForNestedNER(processor, label2id, plan.data.flat_annotation, model.config.multi_label)
    try:
        with explaining_faults(plan.training.output_dir):
            trainer = NestedNERTrainer(
                model,
                plan.training,
                processing_class=processor,
                data_collator=collator,
                train_dataset=dataset.get("train"),
                eval_dataset=dataset.get("validation"),
            )
        if plan.training.do_train:
            check_optimization(trainer)
    except TrainingFault:
        raise
    except (RuntimeError, ImportError) as error:  # the Trainer's errors for a tracker that is not installed
        raise ValueError(f"The trainer cannot be set up: {error} See --report_to.") from error
    trainer.teacher = teacher
    report_progress(trainer)
    return trainer


# ---- Scoring ----


def _score(run: Run, split: str, metrics: dict[str, float]) -> tuple[list[Entities], Evaluation]:
    """Predictions and scores of a split in given words; adds its metrics to `metrics` and logs a table."""
    output: Any = run.trainer.predict(run.corpus.given[split], metric_key_prefix=PREFIXES[split])
    metrics |= output.metrics
    evaluation = evaluate(run.trainer, split, output)
    logger.info("Scores on the %s data, given words:\n%s", split, format_scores(evaluation.scores))
    if unscored := evaluation.unscored:
        logger.info("Not scored, because the %s data does not annotate them: %s.", split, ", ".join(unscored))
    finds_nothing = evaluation.scores["gold"] and not evaluation.scores["predicted"]
    if finds_nothing and run.trainer.is_world_process_zero():
        logger.warning("The model predicts no entity in the %s data: %s", split, _why_nothing_is_predicted(run))
    return output.predictions, evaluation


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
    texts = texts_to_score(run.corpus, run.plan.data, split, run.corpus.given[split])
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


def _as_lines(records: Dataset, predictions: list[Entities]) -> str:
    """Returns the records as JSON lines with the predicted entities."""
    lines = (
        json.dumps({"id": name, "tokens": tokens, "entities": entities}, ensure_ascii=False)
        for name, tokens, entities in zip(records["id"], records["tokens"], predictions, strict=True)
    )
    return "".join(f"{line}\n" for line in lines)


# ---- Saving ----


def _describe(run: Run, model: TriaffineForNestedNER, evaluation: Evaluation | None) -> dict[str, str]:
    """Summarizes the run, and returns card, history and recipe by file name; empty but on the main process."""
    if not run.trainer.is_world_process_zero():
        return {}
    summary = summarize_run(run.plan, run.trainer, run.corpus, model, evaluation)
    run.trainer.run_summary = summary  # saved with the model
    return {
        "log_history.json": json.dumps(run.trainer.state.log_history, indent=2),
        # With the mark, publishing may rewrite the card unless somebody edits it.
        CARD_NAME: _model_card(run, summary),
        TRAINING_FILE: _as_recipe(run.plan, run.corpus.words),
    }


def _save(run: Run, files: dict[str, str], metrics: dict[str, float]) -> None:
    """Saves the files, the model, and last the metrics: a folder with them is that of a finished run."""
    _write_files(run, files)
    last = {RESULTS_FILE: json.dumps(metrics, indent=2, sort_keys=True)}
    try:
        if run.plan.training.do_train:
            run.trainer.save_model()
    except NotPublishedError:  # the model is saved
        _write_files(run, last)
        raise
    _write_files(run, last)


def _write_files(run: Run, files: dict[str, str]) -> None:
    folder = Path(run.plan.training.output_dir)
    if run.trainer.is_world_process_zero():
        with explaining_faults(folder):
            for name, text in files.items():
                write_text(folder / name, text)


def _as_recipe(plan: TrainingPlan, words: str) -> str:
    """Returns the training.yaml of the run's folder, whose config.json is that of the model.

    It has the options of the run, and the main settings even if they are defaults, which may change between versions.
    """
    options = {**main_settings(plan.training), **plan.options, "words": words}
    known = training_options()
    kept = {name: value for name, value in options.items() if value is not None and not known[name].is_of_one_run}
    return format_training({name: _as_written(known[name], value) for name, value in kept.items()}, RECIPE_HEADING)


def _as_written(option: Option, value: Any) -> Any:
    """Returns an option's value for YAML, with absolute paths."""
    if option.is_path and isinstance(value, str) and Path(value).exists():
        return str(Path(value).resolve())
    return value.value if isinstance(value, Enum) else value


def _model_card(run: Run, summary: RunSummary) -> str:
    training = run.plan.training
    name = training.hub_model_id or repository_name(training.output_dir)
    return renew_card("", run.trainer.model.config, model_name=name, summary=summary)


def start_logging() -> None:
    """Logs this package's messages to standard error: all in the main process, warnings in the others."""
    level = logging.INFO if os.environ.get("RANK", "0") == "0" else logging.WARNING
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger(__package__.split(".")[0]).setLevel(level)
