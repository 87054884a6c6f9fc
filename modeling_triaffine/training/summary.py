"""The facts of a run: those of its training, which any trainer knows, and those of its plan, corpus and model."""

import dataclasses
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from transformers import Trainer

from ..data.alignment import detokenize
from ..environment import describe_hardware, describe_versions
from ..evaluation.scores import summary_metrics
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import MODEL_OPTIONS
from ..model.pipeline_triaffine import NestedNERPipeline
from ..nesting import nested_spans
from ..publishing.run_summary import Epoch, Evaluation, Example, Label, RunSummary
from .corpora import Corpus
from .options import OWN_OPTIONS, TRAINING
from .plan import TrainingPlan

SPELLINGS = 3  # shown of each label
LONGEST_SPELLING = 60  # characters
LONGEST_SENTENCE = 70  # characters that fit into a line of the drawing

# ---- Of a training ----


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
    settings = {
        **of_training,
        "mixed_precision": trainer.accelerator.mixed_precision,
        **of_model,
    }
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


# ---- Of a run ----


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
