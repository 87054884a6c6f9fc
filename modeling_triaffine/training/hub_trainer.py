"""Publishing by the Trainer: the facts of its training, and a complete repository in one commit, private by default."""

import dataclasses
import os
from pathlib import Path
from typing import Any

from huggingface_hub import CommitInfo, HfApi
from transformers import Trainer
from transformers.utils import logging

from ..files import write_text
from ..model.model_triaffine import TriaffineForNestedNER
from ..publishing.hub_requests import errors_of_hub
from ..publishing.model_card import CARD_NAME, build_model_card, repository_name
from ..publishing.run_summary import SUMMARY_FILE, RunSummary
from ..publishing.upload import publish_folder, saved_before
from .arguments import NestedNERTrainingArguments
from .summary import summarize_training

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
            options: those of `create_model_card`, which then writes a new card.

        Returns:
            The `CommitInfo`; None on all processes but the first.

        Raises:
            NotPublishedError: the encoder has adapters, or the upload failed; the message says how to publish the
                saved model.
        """
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        token = token or self.args.hub_token
        if self.hub_model_id is None:
            self.init_hf_repo(token, private)
        folder, name = Path(self.args.output_dir), str(self.hub_model_id)
        if options or not (folder / CARD_NAME).exists():
            self.create_model_card(**options)
        self.save_model(_internal_call=True)
        if not self.is_world_process_zero():
            return None
        of_commit = {"commit_message": commit_message, "revision": revision or self.args.hub_revision}

        def publish() -> CommitInfo:
            with saved_before(folder, name):
                return publish_folder(folder, name, token=token, **of_commit).commit

        return publish() if blocking else HfApi().run_as_future(publish)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Saves the model and, with a finished one, the facts of its training, from which its card is written."""
        is_checkpoint = _internal_call and output_dir is not None
        if self.args.should_save and not is_checkpoint:
            folder, summary = Path(output_dir or self.args.output_dir), self.run_summary or summarize_training(self)
            if summary != RunSummary():
                summary.save(folder)
            elif self.state.global_step:  # interrupted: what is there is of another run
                (folder / SUMMARY_FILE).unlink(missing_ok=True)
        super().save_model(output_dir, _internal_call)

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
        """Writes the card beside the model, in place of one that is there, as transformers does.

        The arguments are those of `transformers.Trainer`; its facts are saved for the model's later cards, too.
        """
        path = Path(self.args.output_dir) / CARD_NAME
        summary = self._add_facts({**options, "language": language, "license": license})
        if self.is_world_process_zero():
            if self.run_summary is not None:
                summary.save(path.parent)
            name = self.hub_model_id or model_name or repository_name(path.parent)
            write_text(path, str(build_model_card(self.model.config, model_name=name, summary=summary, tags=tags)))
