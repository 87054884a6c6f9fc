"""The facts of a training that its trainer knows; `run_facts.py` adds those of a whole run."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from transformers import Trainer

from ..evaluation.scores import summary_metrics
from ..machine import describe_hardware, describe_versions
from ..model.options_triaffine import MODEL_OPTIONS
from ..publishing.run_summary import Epoch, RunSummary
from .options import OWN_OPTIONS


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
    of_training = main_settings(trainer.args)
    if trainer.args.auto_find_batch_size and trainer.state.train_batch_size:
        of_training["per_device_train_batch_size"] = trainer.state.train_batch_size
    of_model = {
        name: getattr(config, name)
        for name, option in MODEL_OPTIONS.items()
        if option.in_card != "never" and getattr(config, name) != option.default
    }
    settings = {
        **of_training,
        "min_steps": getattr(trainer.args, "min_steps", None) or None,
        "mixed_precision": trainer.accelerator.mixed_precision,
        **of_model,
    }
    return {name: value.value if isinstance(value, Enum) else value for name, value in settings.items()}


def main_settings(arguments: Any) -> dict[str, Any]:
    """The options of the training that a card always shows."""
    shown = [name for name, option in OWN_OPTIONS.items() if option.in_card == "always"]
    return {name: getattr(arguments, name, None) for name in (*shown, "optim")}  # whose default depends on torch


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
