"""Repositories to and from the Hub: a checkpoint or a model published in one commit, and its errors in plain words."""

import contextlib
import filecmp
import logging
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import (
    CommitInfo,
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    ModelCard,
    constants,
    snapshot_download,
)
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError, LocalTokenNotFoundError
from transformers.utils import cached_file

from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor
from ..model.repository_triaffine import HANDLER_FILE, REMOTE_CODE_FILES, REQUIREMENTS_FILE
from ..version import __version__
from .card_mark import is_draft, is_ours, mark_card, take_over_metadata, unmarked
from .contents import CONFIG_FILE, OF_PROCESSOR, PROCESSOR_FILE, is_code_repository, is_made, refuse_unknown, sort_out
from .model_card import CARD_NAME
from .repository import Repository, assemble_repository, is_own_endpoint
from .run_summary import SUMMARY_FILE

logger = logging.getLogger(__name__)

DEFAULT_MESSAGE = "Publish a nested NER model"


class NotPublishedError(OSError):
    """A model that is saved could not be published. The message is one paragraph, and says how to do it later."""


class Upload(NamedTuple):
    """What came of an upload: its commit, the outdated files that it removed, and who can see the repository."""

    commit: CommitInfo
    removed: list[str]
    private: bool


def push_model(
    model: TriaffineForNestedNER,
    repo_id: str,
    *,
    processor: TriaffineProcessor | None = None,
    max_shard_size: int | str = "50GB",
    token: str | bool | None = None,
    **options: Any,
) -> CommitInfo:
    """Publishes a model that is in memory; `model.push_to_hub`.

    Its card is the one that lies where the model was loaded from, if its weights are still those: what the card says of
    them would else be untrue. Otherwise it is a card without numbers.

    Args:
        model: the model.
        repo_id: `"owner/name"`, or the name alone for a repository of one's own.
        processor: default: the one saved where the model was loaded from. Without either, the model is published
            alone, and a processor that is in the repository, pushed before or after, stays.
        max_shard_size: larger weights are cut into several files.
        token: of the Hub; default: that of `hf auth login` or `HF_TOKEN`.
        options: of [`upload_repository`], `private` and `commit_message` for instance, and of [`publish_folder`].

    Raises:
        ValueError, OSError: model and processor do not fit, or the Hub refuses; in one paragraph.
    """
    processor = processor or _find_processor(model, token)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, max_shard_size=max_shard_size)
        if processor is not None:
            processor.save_pretrained(folder)
        _bring_card(Path(folder), str(model.config.name_or_path), token)
        options |= {"with_processor": processor is not None, "token": token}
        return publish_folder(Path(folder), repo_id, **options).commit


def publish_folder(
    checkpoint: Path,
    repo_id: str,
    *,
    code_repository: str | None = None,
    new_card: bool = False,
    tags: Sequence[str] | None = None,
    with_processor: bool = True,
    token: str | bool | None = None,
    **options: Any,
) -> Upload:
    """Publishes a saved model; arguments as of [`assemble_repository`] and [`upload_repository`]."""
    name = full_name(repo_id, token)
    with tempfile.TemporaryDirectory() as staging:
        repository = assemble_repository(
            checkpoint,
            Path(staging),
            name,
            code_repository=code_repository,
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
    """Uploads the files and removes those of older versions, in one commit: nobody ever sees half of it.

    Files that publishing does not know stay. So does a card that was edited on the Hub, unless the repository's own was
    edited, too, or `new_card` says otherwise, and what an endpoint reads, in the same way. A card without a text gives
    way; what its front matter says goes into the new one. A model without its processor leaves the one that is there.

    Args:
        repository: the files.
        private: whether a new repository is private; None: as its owner's settings say. An existing one stays as it is.
        new_card: replace a card in any case.
        token: of the Hub; default: that of `hf auth login` or `HF_TOKEN`.
        revision: branch to upload to, made if there is none; default: main.
        create_pr: make a pull request of the commit.
        commit_message, commit_description: of the commit.

    Raises:
        ValueError, OSError: not logged in, no right to write, no connection, …; in one paragraph.
    """
    repo_id = repository.repo_id
    api = HfApi(token=token, library_name="modeling_triaffine", library_version=__version__)
    if repository.code_repository is not None:
        _check_code_repository(api, repository.code_repository)
    with errors_of_hub(repo_id):
        api.create_repo(repo_id, private=private, exist_ok=True)
        if revision is not None and not revision.startswith("refs/pr"):
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        info = api.model_info(repo_id, revision=revision)
        there = {file.rfilename for file in info.siblings or []}
        _refuse_mixture(repository, there)
        added: dict[str, Path | bytes] = dict(repository.files)
        if CARD_NAME in there and not new_card:
            _merge_card(api, repository, info.sha, added)
        _keep_endpoint(api, repository, info.sha, added, there)
        removed = sorted(name for name in there if is_made(name) and name not in repository.files)
        if CONFIG_FILE in repository.files and PROCESSOR_FILE not in repository.files:
            removed = [name for name in removed if name not in OF_PROCESSOR]
            if PROCESSOR_FILE not in there:
                logger.warning("%s has no processor yet: processor.push_to_hub(%r).", repo_id, repo_id)
        additions = [CommitOperationAdd(name, path) for name, path in added.items()]
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


def fetch_checkpoint(name_or_path: str, token: str | bool | None = None) -> Path:
    """The folder of a checkpoint: the one of that name, or a copy of a Hub repository's parts.

    Raises:
        OSError: there is neither.
        ValueError: the repository holds unknown files.
    """
    if Path(name_or_path).is_dir():
        return Path(name_or_path)
    try:
        with errors_of_hub(name_or_path):
            names = HfApi(token=token).list_repo_files(name_or_path)
    except (ValueError, OSError) as error:
        raise OSError(f"There is no folder {name_or_path}. {error}") from error
    contents = sort_out({name.split("/")[0] for name in names})
    refuse_unknown(contents.unknown, name_or_path)
    with errors_of_hub(name_or_path):
        return Path(snapshot_download(name_or_path, token=token, allow_patterns=contents.parts))


def full_name(repo_id: str, token: str | bool | None = None) -> str:
    """The name with its owner, who is the user where none is given."""
    if "/" in repo_id:
        return repo_id
    with errors_of_hub(repo_id):
        return f"{HfApi(token=token).whoami()['name']}/{repo_id}"


@contextlib.contextmanager
def errors_of_hub(repo_id: str) -> Iterator[None]:
    """Turns the errors of the Hub's client into one paragraph each: what is wrong, what to do.

    Raises:
        ValueError: the name is none of a repository.
        PermissionError: not logged in, or no right to write.
        ConnectionError: the Hub cannot be reached.
        OSError: anything else that the Hub refuses.
    """
    try:
        yield
    except HFValidationError as error:
        raise ValueError(f"{repo_id!r} cannot be a repository on the Hub ({error}). Give owner/name.") from error
    except LocalTokenNotFoundError as error:
        raise PermissionError(_not_logged_in(repo_id)) from error
    except HfHubHTTPError as error:
        raise _explain(error, repo_id) from error
    except (HTTPError, ConnectionError) as error:
        raise ConnectionError(
            f"The Hub ({constants.ENDPOINT}) cannot be asked for {repo_id} ({error}). See whether this machine is "
            "online and HF_HUB_OFFLINE is not set."
        ) from error
    except RuntimeError as error:  # the client's word for large files that break off
        reason = " ".join(str(error.__cause__ or error).split())
        raise ConnectionError(
            f"Files of {repo_id} could not be sent or fetched ({reason}). See to the connection, and try again."
        ) from error


@contextlib.contextmanager
def saved_before(checkpoint: Path, repo_id: str) -> Iterator[None]:
    """Around the publishing of a model that is saved in `checkpoint`: its errors say so, and how to publish it later.

    Raises:
        NotPublishedError: instead of the ValueError or OSError that [`publish_folder`] raises.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        command = shlex.join(["triaffine-ner", "publish", "--checkpoint", str(checkpoint), "--repo-id", repo_id])
        raise NotPublishedError(f"{error} The model is saved in {checkpoint}; publish it with: {command}") from error


def _explain(error: HfHubHTTPError, repo_id: str) -> OSError:
    status = error.response.status_code
    if status == 401:
        return PermissionError(_not_logged_in(repo_id))
    if status == 403:
        return PermissionError(
            f"The Hub does not let you write to {repo_id}. The owner must be you or an organization that you may write "
            "for (`hf auth whoami` tells), and the token one that may write."
        )
    if status == 404:
        return FileNotFoundError(f"The Hub has no model {repo_id} that you may read; see whether it is spelled right.")
    if status == 412:
        return OSError(f"{repo_id} was changed by somebody else just now, and nothing was uploaded; publish again.")
    return OSError(f"The Hub refuses {repo_id}: {' '.join(str(error).split())}")


def _not_logged_in(repo_id: str) -> str:
    return (
        f"The Hub lets only those it knows at {repo_id}, and there is no valid token. Log in with `hf auth login`, or "
        "set HF_TOKEN; to publish, take a token that may write."
    )


def _check_code_repository(api: HfApi, code_repository: str) -> None:
    """The repository referred to must be there and hold all the code: else nobody could load the model."""
    with errors_of_hub(code_repository):
        missing = sorted(set(REMOTE_CODE_FILES) - set(api.list_repo_files(code_repository)))
    if missing:
        raise ValueError(
            f"The code repository {code_repository} lacks {', '.join(missing)}. Publish the code first: "
            f"triaffine-ner publish --code-only --repo-id {code_repository}."
        )


def _refuse_mixture(repository: Repository, there: set[str]) -> None:
    """A model in the place of shared code would remove that code, code in the place of a model the model."""
    is_code, replaces_code = is_code_repository(repository.files), is_code_repository(there)
    replaces_model = not there.isdisjoint({CONFIG_FILE, PROCESSOR_FILE})
    if (is_code and replaces_model) or (replaces_code and not is_code):
        kind = "a model" if replaces_model else "the code that models in other repositories refer to"
        raise ValueError(f"{repository.repo_id} holds {kind}, which would be replaced; give another name.")


def _merge_card(api: HfApi, repository: Repository, revision: str | None, added: dict[str, Path | bytes]) -> None:
    """Leaves out the card where the one on the Hub stays, and takes over the front matter of a draft there."""
    there = Path(api.hf_hub_download(repository.repo_id, CARD_NAME, revision=revision)).read_text(encoding="utf-8")
    ours = repository.files[CARD_NAME].read_text(encoding="utf-8")
    if is_ours(there) or there == ours:
        return
    if is_draft(there):
        logger.warning("The draft of a card in %s is replaced; its history keeps it.", repository.repo_id)
        if not repository.card_is_edited:
            card = ModelCard(unmarked(ours))
            take_over_metadata(card, there)
            added[CARD_NAME] = mark_card(str(card)).encode("utf-8")
    elif repository.card_is_edited:
        logger.warning("The card in %s is replaced; its history keeps the old one.", repository.repo_id)
    else:
        logger.warning(
            "The card in %s was edited there and stays; a new one (--new-card) replaces it.", repository.repo_id
        )
        del added[CARD_NAME]


def _keep_endpoint(
    api: HfApi, repository: Repository, revision: str | None, added: dict[str, Path | bytes], there: set[str]
) -> None:
    """Leaves out what an endpoint reads where somebody's own is on the Hub, and none with the model."""
    for name in {HANDLER_FILE, REQUIREMENTS_FILE} & there & set(added) - set(repository.own_endpoint):
        if is_own_endpoint(Path(api.hf_hub_download(repository.repo_id, name, revision=revision))):
            logger.warning("%s in %s is not as publishing wrote it and stays.", name, repository.repo_id)
            del added[name]


def _find_processor(model: TriaffineForNestedNER, token: str | bool | None) -> TriaffineProcessor | None:
    """The processor saved where the model was loaded from; None where there is none."""
    origin = model.config.name_or_path
    try:
        return TriaffineProcessor.from_pretrained(origin, token=token) if origin else None
    except OSError as error:
        logger.warning("The model is published without a processor: %s", error)
        return None


def _bring_card(folder: Path, origin: str, token: str | bool | None) -> None:
    """Puts the card and the summary from where a model was loaded beside the saved model, if it is still the same."""
    found = {name: _find_file(origin, name, token) for name in (CARD_NAME, SUMMARY_FILE)}
    if not any(found.values()):
        return
    for path in folder.glob("*.safetensors"):
        source = _find_file(origin, path.name, token)
        if source is None or not filecmp.cmp(source, path, shallow=False):
            logger.warning("The weights are not those in %s any more: its card and scores are left out.", origin)
            return
    for name, source in found.items():
        if source is not None:
            shutil.copyfile(source, folder / name)


def _find_file(origin: str, name: str, token: str | bool | None) -> str | None:
    """A file in a folder or Hub repository; None where there is none, or where the place itself is gone."""
    try:
        return cached_file(origin, name, token=token) if origin else None
    except OSError:
        return None
