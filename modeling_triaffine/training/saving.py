"""What a finished run leaves: model, summary and card, scores, predictions, and a recipe that repeats it."""

import dataclasses
import json
import os
import re
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
from ..data.statistics import nested_spans
from ..evaluation.prediction import Entities
from ..files import write_text
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import Option
from ..model.pipeline_triaffine import NestedNERPipeline
from ..publishing.run_summary import Evaluation, Example, Label, RunSummary
from ..publishing.upload import NotPublishedError
from .corpora import Corpus
from .hub_trainer import HubTrainer, describe_settings, main_settings, summarize_training
from .interruptions import RESULTS_FILE, explaining_faults
from .options import OWN_OPTIONS
from .plan import TRAINING_FILE, TrainingPlan, training_options

SPELLINGS = 3  # shown of each label
LONGEST_SPELLING = 60  # characters
LONGEST_SENTENCE = 70  # characters that fit into a line of the drawing
RECIPE_HEADING = """\
This run as a recipe: --recipe with this folder repeats it, in another --output_dir. Versions and hardware are in
run_summary.json. Paths are those of the machine it ran on; on another machine, give the files again (--train_file ...).
This file is not published with the model."""


@dataclass
class Scored:
    """What a run has measured and predicted: its metrics by name, predictions and scores by split."""

    metrics: dict[str, float] = field(default_factory=dict)
    predictions: dict[str, list[Entities]] = field(default_factory=dict)
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


def _as_lines(records: Dataset, predictions: list[Entities]) -> str:
    """Returns the records as JSON lines with the predicted entities."""
    lines = (
        json.dumps({"id": name, "tokens": tokens, "entities": entities}, ensure_ascii=False)
        for name, tokens, entities in zip(records["id"], records["tokens"], predictions, strict=True)
    )
    return "".join(f"{line}\n" for line in lines)


# ---- The summary ----


def summarize_run(
    plan: TrainingPlan,
    trainer: Trainer,
    corpus: Corpus,
    model: TriaffineForNestedNER,
    evaluation: Evaluation | None,
) -> RunSummary:
    """The summary of a finished run.

    The `model`, which has all its weights in this process, runs again, on the example sentences. To be called in the
    main process only.
    """
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
        examples=_predict_examples(trainer, corpus, model, examples),
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


def choose_sentences(records: Sequence[Mapping[str, Any]], count: int, texts: Mapping[str, str]) -> list[str]:
    """The `count` sentences with the most nested entities, as running text; those that fit into a line first.

    texts: the texts of the records' documents, by `doc_id`; without its text, a sentence is its words joined by rules.
    """

    def merit(record: Mapping[str, Any]) -> tuple[bool, int, int]:
        nested = nested_spans((entity["start"], entity["end"]) for entity in record["entities"])
        return len(detokenize(record["tokens"])) <= LONGEST_SENTENCE, len(nested), len(record["entities"])

    return [_as_written(record, texts) for record in sorted(records, key=merit, reverse=True)[:count]]


def _as_written(record: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    words = r"\s*".join(map(re.escape, record["tokens"]))
    found = re.search(words, texts.get(record.get("doc_id", ""), ""))
    return " ".join(found[0].split()) if found else detokenize(record["tokens"])


def _predict_examples(trainer: Trainer, corpus: Corpus, model: TriaffineForNestedNER, count: int) -> list[Example]:
    """Validation sentences that are not training sentences, as raw text, with the model's predictions."""
    dataset = corpus.given
    if "validation" not in dataset or count == 0:
        return []
    records = dataset["validation"].select_columns(["doc_id", "tokens", "entities"])
    documents = {text["doc_id"]: text["text"] for text in corpus.texts.get("validation", ())}
    known = set(map(tuple, dataset["train"]["tokens"]))
    new = [record for record in records if tuple(record["tokens"]) not in known]
    texts = choose_sentences(new, count, documents)
    processor: Any = trainer.processing_class
    find_entities = NestedNERPipeline(model=model, processor=processor)
    return [Example(text, found) for text, found in zip(texts, find_entities(texts), strict=True)]


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
