"""The facts of a training that its trainer knows; `run_facts.py` adds those of a whole run."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from transformers import Trainer

from ..evaluation.scores import summary_metrics
from ..machine import describe_hardware, describe_versions
from ..publishing.run_summary import Epoch, RunSummary
from .command_line import CONFIG_OPTIONS
from .preparation import VOCABULARY_SIZES

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
    of_training = {name: getattr(trainer.args, name, None) for name in TRAINING_SETTINGS}
    if trainer.args.auto_find_batch_size and trainer.state.train_batch_size:
        of_training["per_device_train_batch_size"] = trainer.state.train_batch_size
    of_model = {
        name: getattr(config, name)
        for name, default in CONFIG_OPTIONS.items()
        if name not in VOCABULARY_SIZES.values() and getattr(config, name) != default
    }
    settings = {
        **of_training,
        "min_steps": getattr(trainer.args, "min_steps", None) or None,
        "mixed_precision": trainer.accelerator.mixed_precision,
        **of_model,
    }
    return {name: value.value if isinstance(value, Enum) else value for name, value in settings.items()}


def read_training_table(log_history: Iterable[Mapping[str, Any]], kept_step: int) -> list[Epoch]:
    """The evaluations of a training, from the Trainer's log.

    Args:
        log_history: `state.log_history` of a `NestedNERTrainer`.
        kept_step: the update whose weights the training ended with.
    """
    rows: list[Epoch] = []
    losses: list[float] = []  # logged since the previous evaluation
    for entry in log_history:
        if "train_runtime" in entry:
            break
        if "loss" in entry:
            losses.append(entry["loss"])
        if "eval_loss" not in entry:
            continue
        rows.append(
            Epoch(
                epoch=round(entry["epoch"], 2),
                update=entry["step"],
                training_loss=sum(losses) / len(losses) if losses else None,
                validation_loss=entry["eval_loss"],
                kept=entry["step"] == kept_step,
                scores={name: entry.get(f"eval_{name}") for name in summary_metrics()},
            )
        )
        losses = []
    return rows
