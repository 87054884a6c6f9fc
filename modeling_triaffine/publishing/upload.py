"""Uploads a checkpoint or a model to the Hub in one commit, and explains the errors of the Hub."""

import contextlib
import logging
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from huggingface_hub import CommitInfo, CommitOperationAdd, CommitOperationDelete, HfApi, constants, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,
    LocalTokenNotFoundError,
)
from huggingface_hub.hf_api import ModelInfo
from safetensors import safe_open

from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor
from ..model.repository_triaffine import HANDLER_FILE, HUB_PATIENCE, REQUIREMENTS_FILE, origin_of
from ..version import __version__
from .model_card import CARD_NAME, card_text, is_draft, merge_cards
from .repository import (
    CALIBRATION_DIAGRAM,
    CONFIG_FILE,
    EDITABLE,
    OF_PROCESSOR,
    PROCESSOR_FILE,
    Repository,
    assemble_repository,
    is_edited_file,
    is_legal,
    is_made,
    is_part,
    weight_files,
)
from .run_summary import SUMMARY_FILE

logger = logging.getLogger(__name__)

DEFAULT_MESSAGE = "Publish a nested NER model"


class NotPublishedError(OSError):
    """A saved model could not be published; the message says how to publish it later."""


class Upload(NamedTuple):
    """The commit of an upload, the outdated files it removed, and whether the repository is private."""

    commit: CommitInfo
    removed: list[str]
    private: bool


def push_model(
    model: TriaffineForNestedNER,
    repo_id: str,
    *,
    processor: TriaffineProcessor | None = None,
    max_shard_size: int | str | None = None,
    token: str | bool | None = None,
    **options: Any,
) -> CommitInfo:
    """Publishes a model in memory; `model.push_to_hub` calls this.

    The card is that of the folder or repository the model was loaded from, if the weights are unchanged; otherwise it
    has no scores.

    Args:
        repo_id: `"owner/name"`, or the name alone for a repository of the user.
        processor: default: the one saved where the model was loaded from. Without any, the model is published alone,
            and the repository keeps its processor.
        max_shard_size: maximum size of a file of weights; None: 50 GB.
        token: default: the token of `hf auth login` or `HF_TOKEN`.
        options: of [`publish_folder`] and [`upload_repository`], such as `tags`, `private` and `commit_message`.

    Raises:
        ValueError, OSError: model and processor do not match, or the upload failed; in one paragraph.
    """
    processor = processor or _find_processor(model, token)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, max_shard_size=max_shard_size or "50GB")
        if processor is not None:
            processor.save_pretrained(folder)
        _copy_from_origin(Path(folder), model, token)
        options |= {"with_processor": processor is not None, "token": token}
        return publish_folder(Path(folder), repo_id, **options).commit


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
    one, and its license stays. A model without a processor keeps the processor on the Hub.

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
        there = _names(info)
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
        names = _names_on_hub(name_or_path)
    except (ValueError, OSError) as error:
        raise OSError(f"There is no folder {name_or_path}. {error}") from error
    left_behind = sorted(name for name in names if not (is_part(name) or name.startswith(".")))
    if left_behind:
        logger.warning("Left out, because they are not part of a model: %s.", ", ".join(left_behind))
    return _download(name_or_path, filter(is_part, names))


def full_name(repo_id: str, token: str | bool | None = None) -> str:
    """The name with its owner, by default the user."""
    if "/" in repo_id:
        return repo_id
    with errors_of_hub(repo_id):
        return f"{HfApi(token=token).whoami()['name']}/{repo_id}"


@contextlib.contextmanager
def errors_of_hub(repo_id: str) -> Iterator[None]:
    """Explains each error of the Hub's client in one paragraph: what is wrong, and what to do.

    Raises:
        ValueError: `repo_id` cannot be the name of a repository.
        PermissionError: no login, or no access.
        ConnectionError: the Hub cannot be reached.
        OSError: any other error of the Hub.
    """
    try:
        yield
    except (HFValidationError, LocalTokenNotFoundError, HTTPError, ConnectionError, RuntimeError) as error:
        raise _explain(error, repo_id) from error


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


def _explain(error: Exception, repo_id: str) -> Exception:
    if isinstance(error, HFValidationError):
        return ValueError(f"{repo_id!r} cannot be the name of a repository ({error}). Give owner/name.")
    if isinstance(error, HfHubHTTPError):
        return _explain_status(error, repo_id)
    if isinstance(error, LocalTokenNotFoundError):
        return PermissionError(_not_logged_in(repo_id))
    if isinstance(error, RuntimeError):  # the client's error for an interrupted transfer of a large file
        reason = " ".join(str(error.__cause__ or error).split())
        return ConnectionError(
            f"The transfer of files of {repo_id} was interrupted ({reason}). Check the connection, and try again."
        )
    return ConnectionError(
        f"The Hub ({constants.ENDPOINT}) cannot be reached for {repo_id} ({error}). Check that this machine is online "
        "and that HF_HUB_OFFLINE is not set."
    )


def _explain_status(error: HfHubHTTPError, repo_id: str) -> OSError:
    status = error.response.status_code
    if isinstance(error, GatedRepoError):
        return PermissionError(
            f"{repo_id} is gated: request access on its page, {constants.ENDPOINT}/{repo_id}, log in with "
            "`hf auth login`, and try again."
        )
    if status == 401:
        return PermissionError(_not_logged_in(repo_id))
    if status == 403:
        return PermissionError(
            f"You have no write access to {repo_id}. Its owner must be you or an organization that you may write for "
            "(see `hf auth whoami`), and the token must have write access."
        )
    if status == 404:
        return FileNotFoundError(f"The Hub has no model {repo_id}, or you may not read it. Check the spelling.")
    if status == 412:
        return OSError(f"Somebody else has just changed {repo_id}, so nothing was uploaded. Publish again.")
    return OSError(f"The Hub reports an error for {repo_id}: {' '.join(str(error).split())}")


def _not_logged_in(repo_id: str) -> str:
    return (
        f"{repo_id} is not on the Hub, or needs a login, and there is no valid token. Check the spelling. Log in with "
        "`hf auth login`, or set HF_TOKEN; to publish, use a token with write access."
    )


def _names(info: ModelInfo) -> set[str]:
    return {file.rfilename for file in info.siblings or []}


def _names_on_hub(repo_id: str, **options: Any) -> set[str]:
    with errors_of_hub(repo_id):
        return _names(HfApi().model_info(repo_id, timeout=HUB_PATIENCE, **options))


def _download(repo_id: str, names: Iterable[str], **options: Any) -> Path:
    """A local copy of these files of a Hub repository."""
    with errors_of_hub(repo_id):
        return Path(snapshot_download(repo_id, allow_patterns=list(names), **options))


def _outdated(repository: Repository, there: set[str]) -> list[str]:
    """Files on the Hub that an earlier version wrote and that the repository does not have any more."""
    removed = sorted(name for name in there if is_made(name) and name not in repository.files)
    if CONFIG_FILE not in repository.files or PROCESSOR_FILE in repository.files:
        return removed
    if PROCESSOR_FILE not in there:
        logger.warning("%s has no processor yet. Add it: processor.push_to_hub(%r).", *[repository.repo_id] * 2)
    return [name for name in removed if name not in OF_PROCESSOR]


def _without_edited(api: HfApi, repository: Repository, info: ModelInfo, new_card: bool) -> dict[str, Path | bytes]:
    """The files to upload: without those edited on the Hub only, and with the card merged with a draft there."""
    added: dict[str, Path | bytes] = dict(repository.files)
    for name in [name for name in EDITABLE if name in added.keys() & _names(info)]:
        ours = repository.files[name].read_bytes()
        there = Path(api.hf_hub_download(repository.repo_id, name, revision=info.sha)).read_bytes()
        is_card, place = name == CARD_NAME, repository.repo_id
        if is_card and name not in repository.edited:
            added[name] = merge_cards(card_text(ours), card_text(there)).encode("utf-8")
        if there == ours or (is_card and new_card):
            continue
        if is_card and is_draft(card_text(there)):
            logger.warning("The draft of a card in %s is replaced; its history keeps it.", place)
        elif is_edited_file(name, there):
            what = "The card" if is_card else name
            if name in repository.edited:
                logger.warning("%s in %s is replaced; its history keeps the old one.", what, place)
            else:
                hint = "; --new-card replaces it" if is_card else ""
                logger.warning("%s in %s was edited there and is kept%s.", what, place, hint)
                del added[name]
    return added


def _find_processor(model: TriaffineForNestedNER, token: str | bool | None) -> TriaffineProcessor | None:
    """The processor saved where the model was loaded from; None if there is none."""
    origin = origin_of(str(model.config.name_or_path))
    try:
        return TriaffineProcessor.from_pretrained(origin, **{"token": token, **model.origin}) if origin else None
    except OSError as error:
        logger.warning("The model is published without a processor. %s", error)
        return None


def _copy_from_origin(folder: Path, model: TriaffineForNestedNER, token: str | bool | None) -> None:
    """Copies what people wrote from where the model was loaded; card and summary only if its weights are the same."""
    origin = _folder_of_origin(model, token)
    names = [] if origin is None else sorted(os.listdir(origin))
    copied = [name for name in names if is_legal(name) or name in (HANDLER_FILE, REQUIREMENTS_FILE)]
    results = [name for name in names if name in (CARD_NAME, SUMMARY_FILE, CALIBRATION_DIAGRAM)]
    if origin is None or not (copied or results):
        return
    theirs = [origin / name for name in weight_files(names) if name.endswith(".safetensors")]
    if results and not _same_weights(list(folder.glob("*.safetensors")), theirs):
        name = model.config.name_or_path
        logger.warning("The weights differ from those in %s, so its card and scores are left out.", name)
        results = []
    for name in (*copied, *results):
        shutil.copyfile(origin / name, folder / name)


def _folder_of_origin(model: TriaffineForNestedNER, token: str | bool | None) -> Path | None:
    """The folder that the model was loaded from, of a Hub repository its local copy; None if it is gone."""
    options: dict[str, Any] = {"token": token, **model.origin}
    name, subfolder = origin_of(str(model.config.name_or_path)), options.pop("subfolder", "")
    if not name or Path(name, subfolder).is_dir():
        return Path(name, subfolder) if name else None
    try:
        names = _names_on_hub(name, token=options["token"], revision=options.get("revision"))
        parts = [file for file in names if is_part(os.path.relpath(file, subfolder or "."))]
        return _download(name, parts, **options) / subfolder
    except (ValueError, OSError):
        return None


def _same_weights(files: Sequence[Path], others: Sequence[Path]) -> bool:
    """Whether two models have equal tensors of the same precision, however they are divided into files."""
    with contextlib.ExitStack() as stack:

        def tensors(paths: Sequence[Path]) -> dict[str, Any]:
            opened = [stack.enter_context(safe_open(path, framework="pt")) for path in paths]
            return {name: weights for weights in opened for name in weights.keys()}  # noqa: SIM118

        def is_same(name: str) -> bool:
            one, other = ours[name].get_tensor(name), theirs[name].get_tensor(name)
            return one.dtype == other.dtype and torch.equal(one, other)

        ours, theirs = tensors(files), tensors(others)
        return ours.keys() == theirs.keys() and all(map(is_same, ours))
