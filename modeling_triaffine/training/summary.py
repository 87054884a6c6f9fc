"""The facts of a run's summary that are known before training."""

from enum import Enum
from pathlib import Path
from typing import Any

from ..publishing.run_summary import RunSummary
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
        "mixed_precision": trainer.accelerator.mixed_precision,
        "words": words,
        **of_model,
    }
    return {name: value.value if isinstance(value, Enum) else value for name, value in settings.items()}
