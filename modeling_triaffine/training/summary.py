"""The summary of a run: which facts, and from where. Their form is in `publishing/run_summary.py`.

What names a folder of this machine stays out: the summary is published with the model.
"""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from datasets import DatasetDict

from ..evaluation.breakdowns import scores_by_length
from ..evaluation.candidates import sweep_candidates
from ..evaluation.scoring import score_entities
from ..model.configuration_triaffine import NONE_LABEL
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.pipeline_triaffine import NestedNERPipeline
from ..publishing import run_facts
from ..publishing.run_summary import Evaluation, Example, RunSummary
from .command_line import CONFIG_OPTIONS, TrainingPlan
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


def summarize_plan(plan: TrainingPlan, trainer: NestedNERTrainer) -> RunSummary:
    """What can be said of a run before it starts: what it starts from, its data and its settings.

    Raises:
        ValueError: the data is called by a folder of this machine.
    """
    encoder, dataset = plan.model.model_name_or_path, plan.data.dataset_name
    if dataset and _looks_like_a_folder(dataset):
        raise ValueError(
            f"--dataset_name is {dataset!r}, which looks like a folder of this machine and says nothing to the readers "
            "of the model card. Give the data set's id on the Hub, or its title."
        )
    return RunSummary(
        base_model=encoder if encoder and not Path(encoder).exists() else None,
        from_scratch=encoder is None,
        dataset=dataset,
        language=plan.data.language,
        license=plan.model.license,
        recipe=plan.recipe.resolve().name if plan.recipe else None,
        settings=_settings(plan, trainer),
    )


def summarize_run(
    plan: TrainingPlan,
    dataset: DatasetDict,
    trainer: NestedNERTrainer,
    model: TriaffineForNestedNER,
    outputs: Mapping[str, Any],
    *,
    seconds: float,
    resumed: bool,
) -> RunSummary:
    """The facts of a finished run. Runs the model once more: for the main process only.

    Args:
        plan, dataset, trainer: those of the run.
        model: the trainer's, with all its weights in this process.
        outputs: split → what the trainer's `predict` returned for it.
        seconds: duration of the training, since it was last `resumed` if it was.
    """
    training, state, records = plan.training, trainer.state, dataset["train"]
    best_step = state.best_global_step if training.load_best_model_at_end else None
    id2label: Any = model.config.id2label
    labels = [label for label in id2label.values() if label != NONE_LABEL]
    spellings = run_facts.SPELLINGS if plan.data.card_examples else 0
    return dataclasses.replace(
        summarize_plan(plan, trainer),
        training_table=run_facts.read_training_table(state.log_history, best_step or state.global_step),
        evaluation=_evaluate(dataset, trainer, model, outputs),
        training_sentences=len(records),
        labels=run_facts.describe_labels(records, labels, spellings),
        examples=_predict_examples(dataset, trainer, model, plan.data.card_examples),
        hardware=run_facts.describe_hardware(),
        versions=run_facts.describe_versions(),
        training_seconds=seconds,
        resumed=resumed,
        processes=training.world_size,
        gpus=training.world_size if training.device.type == "cuda" else 0,
        parameters=sum(weights.numel() for weights in model.parameters()),
    )


def _looks_like_a_folder(name: str) -> bool:
    return Path(name).is_absolute() or name.startswith((".", "~")) or "\\" in name


def _settings(plan: TrainingPlan, trainer: NestedNERTrainer) -> dict[str, Any]:
    """Of the training those that matter most, of the model all that differ from their default."""
    config = trainer.model.config
    of_training = {name: getattr(plan.training, name) for name in TRAINING_SETTINGS}
    of_model = {
        name: getattr(config, name)
        for name, default in CONFIG_OPTIONS.items()
        if name not in VOCABULARY_SIZES.values() and getattr(config, name) != default
    }
    settings = {
        **of_training,
        "mixed_precision": trainer.accelerator.mixed_precision,
        "retokenize": plan.data.retokenize,
        **of_model,
    }
    return {name: value.value if isinstance(value, Enum) else value for name, value in settings.items()}


def _evaluate(
    dataset: DatasetDict, trainer: NestedNERTrainer, model: TriaffineForNestedNER, outputs: Mapping[str, Any]
) -> Evaluation | None:
    """All there is to say of the test data, or else of the validation data; None where neither was scored."""
    split = next((split for split in ("test", "validation") if split in outputs), None)
    if split is None:
        return None
    predictions, references = outputs[split].predictions, outputs[split].label_ids
    return Evaluation(
        split=split,
        sentences=len(dataset[split]),
        scores=score_entities(predictions, references),
        by_length=scores_by_length(predictions, references),
        candidate_recall=_candidate_recall(dataset[split], trainer, model),
    )


def _candidate_recall(records: Any, trainer: NestedNERTrainer, model: TriaffineForNestedNER) -> dict[str, float] | None:
    """How much of gold is among the candidates; None for a model that filters none."""
    processor: Any = trainer.processing_class
    if not model.config.cross_span:
        return None
    with trainer.accelerator.autocast():
        (row,) = sweep_candidates(
            model, processor, records, counts=[model.config.max_candidates], batch_size=trainer.args.eval_batch_size
        )
    recall: dict[str, float] = row["candidates"]
    return recall


def _predict_examples(
    dataset: DatasetDict, trainer: NestedNERTrainer, model: TriaffineForNestedNER, count: int
) -> list[Example]:
    """Validation sentences as raw text, and what the trained model finds in them."""
    if "validation" not in dataset or count == 0:
        return []
    texts = run_facts.choose_sentences(list(dataset["validation"].select_columns(["tokens", "entities"])), count)
    find_entities = NestedNERPipeline(model=model, processor=trainer.processing_class)
    return [Example(text, found) for text, found in zip(texts, find_entities(texts), strict=True)]
