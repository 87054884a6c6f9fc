"""Publishing by the Trainer: the facts of its training, and a complete repository in one commit, private by default."""

import contextlib
import dataclasses
import itertools
import os
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from huggingface_hub import CommitInfo, HfApi
from transformers import Trainer
from transformers.utils import logging

from ..environment import describe_hardware, describe_versions
from ..evaluation.scores import summary_metrics
from ..files import write_text
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import MODEL_OPTIONS
from ..publishing.hub_requests import errors_of_hub
from ..publishing.model_card import CARD_NAME, card_text, is_edited, renew_card, repository_name
from ..publishing.repository import CALIBRATION_DIAGRAM
from ..publishing.run_summary import SUMMARY_FILE, Epoch, RunSummary
from ..publishing.upload import publish_folder, saved_before
from .arguments import NestedNERTrainingArguments
from .options import OWN_OPTIONS, TRAINING

logger = logging.get_logger(__name__)


class HubTrainer(Trainer):
    """The part of [`NestedNERTrainer`] that publishes."""

    args: NestedNERTrainingArguments
    model: TriaffineForNestedNER

    run_summary: RunSummary | None = None  # of the run that this trainer is part of; else it knows its training only

    def init_hf_repo(self, token: str | None = None, private: bool | None = None) -> None:
        """Creates the repository if needed, a private one unless `args.hub_private_repo` is False."""
        if private is None:
            private = self.args.hub_private_repo is not False
        self.args.hub_private_repo = private  # where transformers before 5.23 looks for it
        with errors_of_hub(self.args.hub_model_id or Path(self.args.output_dir).name):
            super().init_hf_repo(token)

    def push_to_hub(
        self,
        commit_message: str | None = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        private: bool | None = None,
        **options: Any,
    ) -> Any:
        """Saves the model and publishes its repository in one commit, without other files of the output folder.

        Args:
            commit_message: message of the commit.
            blocking: whether to wait for the upload; otherwise the result is a `Future`.
            token: default: `args.hub_token`, or the token of `hf auth login`.
            revision: branch; default: `args.hub_revision`.
            private: whether a repository that this call makes is private; default: `args.hub_private_repo`, or True.
                With `args.push_to_hub`, the trainer has made it already.
            options: those of `create_model_card`, and of [`publishing.publish_folder`].

        Returns:
            The `CommitInfo`; None on all processes but the first.

        Raises:
            NotPublishedError: the upload failed; the message says how to publish the saved model.
        """
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        token = token or self.args.hub_token
        self._add_facts(options)
        if self.hub_model_id is None:
            self.init_hf_repo(token, private)
        self.save_model(_internal_call=True)
        if not self.is_world_process_zero():
            return None
        options |= {"commit_message": commit_message, "revision": revision or self.args.hub_revision, "token": token}

        def publish() -> CommitInfo:
            folder, name = Path(self.args.output_dir), str(self.hub_model_id)
            with saved_before(folder, name):
                return publish_folder(folder, name, **options).commit

        return publish() if blocking else HfApi().run_as_future(publish)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Saves the model and, with a finished one, the facts of its training, from which its card is written."""
        is_checkpoint = _internal_call and output_dir is not None
        if self.args.should_save and not is_checkpoint:
            folder, summary = Path(output_dir or self.args.output_dir), self.run_summary or summarize_training(self)
            if summary != RunSummary():
                self._save_summary(summary, folder)
            elif self.state.global_step:  # interrupted: what is there is of another run
                (folder / SUMMARY_FILE).unlink(missing_ok=True)
        super().save_model(output_dir, _internal_call)

    def _save_summary(self, summary: RunSummary, folder: Path) -> None:
        """Saves the summary; a calibration of the model that was in the folder does not outlast it."""
        with contextlib.suppress(ValueError):  # a damaged summary is replaced
            earlier = RunSummary.load(folder)
            if earlier and earlier.calibration and not summary.calibration:
                logger.warning("The model in %s was calibrated; calibrate the new one again.", folder)
                (folder / CALIBRATION_DIAGRAM).unlink(missing_ok=True)
        summary.save(folder)

    def _add_facts(self, options: dict[str, Any]) -> RunSummary:
        """The summary of the model in the output folder, with the facts in `options`, which are taken out of them.

        The facts are keywords of `Trainer.create_model_card`.
        """
        summary = self.run_summary or summarize_training(self)
        if not (summary.is_trained or self.state.global_step):
            summary = RunSummary.load(self.args.output_dir) or summary
        title, names_on_hub = options.pop("dataset", None), options.pop("dataset_tags", None)
        dataset, encoder = names_on_hub or title or "", options.pop("finetuned_from", None) or ""
        given = {
            "language": options.pop("language", None),
            "license": options.pop("license", None),
            "dataset": dataset if isinstance(dataset, str) else ", ".join(dataset),
            "base_model": "" if os.path.isdir(encoder) else encoder,  # a folder says nothing to readers of the card
        }
        for name in ("model_name", "tasks", "dataset_args"):  # repository, model and run say it
            options.pop(name, None)
        if facts := {name: value for name, value in given.items() if value}:
            self.run_summary = summary = dataclasses.replace(summary, **facts)
        return summary

    def create_model_card(  # type: ignore[override]  # the other arguments are given by name
        self,
        language: str | list[str] | None = None,
        license: str | None = None,
        tags: str | list[str] | None = None,
        model_name: str | None = None,
        **options: Any,
    ) -> None:
        """Writes a card beside the model unless somebody edited the one there, which the Trainer would overwrite.

        The arguments are those of `transformers.Trainer`; its facts are saved for the model's later cards, too.
        """
        path = Path(self.args.output_dir) / CARD_NAME
        summary = self._add_facts({**options, "language": language, "license": license})
        own = card_text(path.read_bytes()) if path.is_file() else ""
        if not self.is_world_process_zero():
            return
        if self.run_summary is not None:
            self._save_summary(summary, path.parent)
        if is_edited(own):
            logger.warning("%s was not written by training, or edited since, so it stays as it is.", path)
        else:
            name = self.hub_model_id or model_name or repository_name(path.parent)
            write_text(path, renew_card(own, self.model.config, model_name=name, summary=summary, tags=tags))


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
