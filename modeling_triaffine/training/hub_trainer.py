"""Publishing by the Trainer: a complete repository in one commit, private by default."""

import dataclasses
from pathlib import Path
from typing import Any

from huggingface_hub import CommitInfo, HfApi
from transformers import Trainer

from ..files import write_text
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..publishing.card_mark import card_text, is_edited, mark_card
from ..publishing.model_card import CARD_NAME, build_model_card, repository_name
from ..publishing.run_summary import SUMMARY_FILE, RunSummary
from ..publishing.upload import errors_of_hub, publish_folder, saved_before
from .arguments import NestedNERTrainingArguments
from .training_facts import summarize_training

# What `transformers.Trainer` names so in `create_model_card` and `push_to_hub` → the same in a summary.
OF_SUMMARY = {
    "language": "language",
    "license": "license",
    "finetuned_from": "base_model",
    "dataset": "dataset",
    "dataset_tags": "dataset",  # the names on the Hub; they replace the titles
}
WITHOUT_EFFECT = ("model_name", "tasks", "dataset_args")  # the repository and the model tell


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
            private: whether a new repository is private; default: `args.hub_private_repo`, or True.
            options: those of `create_model_card`, and of [`publishing.publish_folder`], such as `code_repository`.

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
        summary = self._summary()
        if self.args.should_save and not is_checkpoint:
            folder = Path(output_dir or self.args.output_dir)
            if summary != RunSummary():
                summary.save(folder)
            elif self.state.global_step:  # interrupted: what is there is of another training
                (folder / SUMMARY_FILE).unlink(missing_ok=True)
        super().save_model(output_dir, _internal_call)

    def _summary(self) -> RunSummary:
        return self.run_summary or summarize_training(self)

    def _add_facts(self, options: dict[str, Any]) -> RunSummary:
        """The summary of the model in the output folder, with the facts in `options`, which are taken out of them."""
        summary = self._summary()
        if not (summary.is_trained or self.state.global_step):
            summary = RunSummary.load(self.args.output_dir) or summary
        given = {name: options.pop(name, None) for name in (*OF_SUMMARY, *WITHOUT_EFFECT)}
        facts = {fact: given[name] for name, fact in OF_SUMMARY.items() if given[name]}
        if facts:
            self.run_summary = summary = dataclasses.replace(summary, **facts)
        return summary

    def create_model_card(
        self,
        language: str | list[str] | None = None,
        license: str | None = None,
        tags: str | list[str] | None = None,
        model_name: str | None = None,
        finetuned_from: str | None = None,
        tasks: str | list[str] | None = None,
        dataset_tags: str | None = None,
        dataset: str | None = None,
        dataset_args: str | None = None,
    ) -> None:
        """Writes a card beside the model unless somebody wrote or edited one; the Trainer would overwrite any.

        The arguments are those of `transformers.Trainer`. The next `save_model` saves its facts with the model.
        """
        options = {"language": language, "license": license, "finetuned_from": finetuned_from}
        summary = self._add_facts({**options, "dataset": dataset, "dataset_tags": dataset_tags})
        path = Path(self.args.output_dir) / CARD_NAME
        if self.is_world_process_zero() and not (path.exists() and is_edited(card_text(path.read_bytes()))):
            name = self.hub_model_id or model_name or repository_name(path.parent)
            card = build_model_card(self.model.config, model_name=name, summary=summary, tags=tags or ())
            write_text(path, mark_card(str(card)))
