"""Uploads a checkpoint to the Hub in one commit, keeping what was edited there."""

import contextlib
import logging
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import CommitInfo, CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.hf_api import ModelInfo
from transformers.utils import PROCESSOR_NAME

from ..version import __version__
from .hub_requests import download, errors_of_hub, file_names, full_name, names_on_hub
from .model_card import CARD_NAME, card_text, is_draft, merge_cards
from .repository import (
    EDITABLE,
    OF_PROCESSOR,
    Repository,
    assemble_repository,
    is_edited_file,
    is_made,
    is_part,
)

logger = logging.getLogger(__name__)

DEFAULT_MESSAGE = "Publish a nested NER model"


class NotPublishedError(OSError):
    """A saved model could not be published; the message says how to publish it later."""


class Upload(NamedTuple):
    """The commit of an upload, the outdated files it removed, and whether the repository is private."""

    commit: CommitInfo
    removed: list[str]
    private: bool


def publish_folder(
    checkpoint: Path,
    repo_id: str,
    *,
    new_card: bool = False,
    tags: Sequence[str] | str | None = None,
    with_processor: bool = True,
    token: str | bool | None = None,
    **options: Any,
) -> Upload:
    """Publishes a saved model; see [`assemble_repository`] and [`upload_repository`] for the arguments."""
    name = full_name(repo_id, token)
    with tempfile.TemporaryDirectory() as staging:
        repository = assemble_repository(
            checkpoint,
            Path(staging),
            name,
            new_card=new_card,
            tags=tags,
            with_processor=with_processor,
        )
        return upload_repository(repository, new_card=new_card, token=token, **options)


def upload_repository(
    repository: Repository,
    *,
    private: bool | None = True,
    new_card: bool = False,
    token: str | bool | None = None,
    revision: str | None = None,
    create_pr: bool = False,
    commit_message: str | None = None,
    commit_description: str | None = None,
) -> Upload:
    """Uploads the files and removes outdated ones, in one commit.

    Unknown files on the Hub stay. So do a card, a handler or requirements that were edited there, unless those of
    `repository` were edited, too, or `new_card` is set. The front matter of a card without text is merged into the new
    one, and stays: its license, the terms of a gated model. A model without a processor keeps the processor on the Hub.

    Args:
        private: whether a new repository is private; None: as the owner's settings say. An existing one is not changed.
        new_card: whether to replace an edited card.
        token: default: the token of `hf auth login` or `HF_TOKEN`.
        revision: branch to upload to, created if missing; default: main.
        create_pr: whether to make the commit a pull request.
        commit_message, commit_description: texts of the commit.

    Raises:
        ValueError, OSError: no login, no write access, no connection, …; in one paragraph.
    """
    repo_id = repository.repo_id
    api = HfApi(token=token, library_name="modeling_triaffine", library_version=__version__)
    with errors_of_hub(repo_id):
        api.create_repo(repo_id, private=private, exist_ok=True)
        if revision is not None and not revision.startswith("refs/pr"):
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        info = api.model_info(repo_id, revision=revision)
        there = file_names(info)
        added = _without_edited(api, repository, info, new_card)
        removed = _outdated(repository, there)
        additions = [CommitOperationAdd(name, content) for name, content in added.items()]
        commit = api.create_commit(
            repo_id,
            [*additions, *map(CommitOperationDelete, removed)],
            commit_message=commit_message or DEFAULT_MESSAGE,
            commit_description=commit_description,
            revision=revision,
            create_pr=create_pr,
            parent_commit=info.sha,
        )
    return Upload(commit, removed, bool(info.private))


def fetch_checkpoint(name_or_path: str) -> Path:
    """The folder of this name, or a local copy of the Hub repository of this name, without files that stay behind.

    Raises:
        OSError: there is neither.
    """
    if Path(name_or_path).is_dir():
        return Path(name_or_path)
    try:
        names = names_on_hub(name_or_path)
    except (ValueError, OSError) as error:
        raise OSError(f"There is no folder {name_or_path}. {error}") from error
    left_behind = sorted(name for name in names if not (is_part(name) or name.startswith(".")))
    if left_behind:
        logger.warning("Left out, because they are not part of a model: %s.", ", ".join(left_behind))
    return download(name_or_path, filter(is_part, names))


@contextlib.contextmanager
def saved_before(checkpoint: Path, repo_id: str) -> Iterator[None]:
    """Adds to errors of [`publish_folder`] where the model is saved, and how to publish it later.

    Raises:
        NotPublishedError: instead of ValueError or OSError.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        command = shlex.join(["triaffine-ner", "publish", "--model", str(checkpoint), "--repo-id", repo_id])
        raise NotPublishedError(f"{error} The model is saved in {checkpoint}; publish it with: {command}") from error


def _outdated(repository: Repository, there: set[str]) -> list[str]:
    """Files on the Hub that an earlier version wrote and that the repository does not have any more."""
    removed = sorted(name for name in there if is_made(name) and name not in repository.files)
    if PROCESSOR_NAME in repository.files:
        return removed
    if PROCESSOR_NAME not in there:
        logger.warning("%s has no processor yet. Add it: processor.push_to_hub(%r).", *[repository.repo_id] * 2)
    return [name for name in removed if name not in OF_PROCESSOR]


def _without_edited(api: HfApi, repository: Repository, info: ModelInfo, new_card: bool) -> dict[str, Path | bytes]:
    """The files to upload: without those edited on the Hub only, and with the card merged with a draft there."""
    added: dict[str, Path | bytes] = dict(repository.files)
    place = repository.repo_id
    for name in [name for name in EDITABLE if name in repository.files.keys() & file_names(info)]:
        ours = repository.files[name].read_bytes()
        theirs = Path(api.hf_hub_download(place, name, revision=info.sha)).read_bytes()
        is_card, is_edited_here = name == CARD_NAME, name in repository.edited
        if is_card and not is_edited_here:
            added[name] = merge_cards(card_text(ours), card_text(theirs)).encode("utf-8")
        if ours == theirs or (is_card and new_card):
            continue
        if is_card and is_draft(card_text(theirs)):
            logger.warning("The draft of a card in %s is replaced; its history keeps it.", place)
        elif is_edited_file(name, theirs):
            what = "The card" if is_card else name
            if is_edited_here:
                logger.warning("%s in %s is replaced; its history keeps the old one.", what, place)
            else:
                hint = "; --new-card replaces it" if is_card else ""
                logger.warning("%s in %s was edited there and is kept%s.", what, place, hint)
                del added[name]
    return added
