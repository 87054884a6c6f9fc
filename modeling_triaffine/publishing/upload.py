"""Publishes a model, saved or in memory: assembles its repository in a folder, and uploads it to the Hub in one commit.

Only files with certain names become part of a repository. Requests to the Hub have a time limit, and their errors are
OSErrors in one paragraph.
"""

import contextlib
import logging
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from huggingface_hub import CommitInfo, HfApi, constants, get_session, snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HTTPError
from huggingface_hub.utils import validate_repo_id
from torch import Tensor
from transformers.utils import CONFIG_NAME, PROCESSOR_NAME

from ..files import write_text
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import VOCABULARIES_FILE, TriaffineProcessor
from ..model.repository_triaffine import HANDLER_FILE, REMOTE_CODE_FILES, REQUIREMENTS_FILE
from ..version import __version__
from .model_card import CARD_NAME, card_of_folder, has_own_card
from .run_summary import SUMMARY_FILE

logger = logging.getLogger(__name__)

WEIGHTS = ("model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json")
# The last six are those of other versions of transformers.
OF_PROCESSOR = (
    *("tokenizer.json", "tokenizer_config.json", PROCESSOR_NAME, VOCABULARIES_FILE),
    *("special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt", "*.model"),
)
# Files that people may have written.
WRITTEN = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "CITATION.cff", HANDLER_FILE, REQUIREMENTS_FILE)
# Copied from the model's folder, if it has them. The code in it is not: that of this package is published.
TAKEN = (*WEIGHTS, *OF_PROCESSOR, *WRITTEN, CONFIG_NAME, SUMMARY_FILE, CARD_NAME)
# Removed from the Hub where a new version of the model has no such file.
OUTDATED = (*WEIGHTS, SUMMARY_FILE, "*_triaffine.py", "triaffine_*.py")

Answer = TypeVar("Answer")
TIMEOUT = 120.0  # seconds without a byte from the Hub; by default, its client waits for ever
RETRIES = 5
LONGEST_WAIT = 600  # seconds that the Hub may ask to wait; it counts requests by five minutes


class Upload(NamedTuple):
    """The commit of an upload, whether the repository is private, and a list of its files to print."""

    commit: CommitInfo
    private: bool
    files: str


# ---- The repository in a folder ----


def assemble_repository(
    folder: Path,
    target: Path,
    repo_id: str,
    *,
    new_card: bool = False,
    tags: Sequence[str] | str | None = None,
    with_processor: bool = True,
) -> str:
    """Fills `target` with the repository of the model saved in `folder`; returns a list of its files to print.

    The code is that of this package. A card is written, from the run's summary, unless the folder has its own.

    Args:
        folder: folder of the model, which must exist as long as `target`: large files are links.
        target: empty folder.
        repo_id: name on the Hub, `"owner/name"`.
        new_card: whether to write a card in place of the folder's.
        tags: further tags of a new card.
    """
    validate_repo_id(repo_id)
    # First, because it refuses another kind of model at once; the configuration would warn of each of its fields.
    processor = TriaffineProcessor.from_pretrained(folder) if with_processor else None
    model = TriaffineForNestedNER.from_pretrained(folder)
    names = sorted(os.listdir(folder))
    for name in (name for name in names if matches(name, TAKEN)):
        _take(folder / name, target)
    model.config.save_pretrained(target)  # keeps the folder's own files for an endpoint, as the processor does
    if processor is not None:
        processor.check_fits(model.config)
        processor.save_pretrained(target)
    if new_card or not has_own_card(folder):
        write_text(target / CARD_NAME, card_of_folder(folder, repo_id, tags))
    left_behind = [name for name in names if not (matches(name, TAKEN) or name in REMOTE_CODE_FILES)]
    lines = [f"{path.stat().st_size / 1000:>12,.1f} kB  {path.name}" for path in sorted(target.iterdir())]
    return "\n".join([*lines, *([f"Left out: {', '.join(left_behind)}."] if left_behind else [])])


def _take(path: Path, target: Path) -> None:
    """Copies a file into the folder `target`; weights, which may be large, as links where the system has them."""
    original, cache = path.resolve(), Path(constants.HF_HUB_CACHE).resolve()  # in which files are links
    if not any(map(original.is_relative_to, (path.parent.resolve(), cache))) or not original.is_file():
        raise ValueError(f"{path} is a folder, or a link out of the model's folder; put a file in its place.")
    with contextlib.suppress(OSError):  # Windows asks for a privilege
        if matches(path.name, WEIGHTS):
            (target / path.name).symlink_to(original)
            return
    shutil.copyfile(original, target / path.name)


def matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


# ---- The repository on the Hub ----


def publish_folder(
    folder: Path,
    repo_id: str,
    *,
    new_card: bool = False,
    tags: Sequence[str] | str | None = None,
    with_processor: bool = True,
    private: bool | None = True,
    token: str | bool | None = None,
    revision: str | None = None,
    commit_message: str | None = None,
    commit_description: str | None = None,
    create_pr: bool | None = None,
) -> Upload:
    """Publishes a saved model, see [`assemble_repository`].

    Other files on the Hub stay. So does a card there, unless the folder has its own or `new_card` is set.

    Args:
        repo_id: `"owner/name"`, or the name alone for a repository of the user.
        private: whether a new repository is private; None: as the owner's settings say. An existing one is not changed.
        token: default: the token of `hf auth login` or `HF_TOKEN`.
        revision: branch to upload to, created if missing; default: main.
        commit_message, commit_description, create_pr: as of [`HfApi.upload_folder`].
    """
    api = HfApi(token=token, library_name="modeling_triaffine", library_version=__version__)
    with errors_of_hub(repo_id):
        name = repo_id if "/" in repo_id else f"{with_retries(api.whoami)['name']}/{repo_id}"
    with tempfile.TemporaryDirectory() as staging:
        target = Path(staging)
        files = assemble_repository(folder, target, name, new_card=new_card, tags=tags, with_processor=with_processor)
        with errors_of_hub(name):
            with_retries(lambda: api.create_repo(name, private=private, exist_ok=True))
            if revision is not None and not revision.startswith("refs/pr"):
                with_retries(lambda: api.create_branch(name, branch=revision, exist_ok=True))
            info = with_retries(lambda: api.model_info(name, revision=revision))
            replaces = new_card or has_own_card(folder)
            if not replaces and CARD_NAME in {file.rfilename for file in info.siblings or []}:
                logger.warning("%s keeps its card, whatever its scores; --new-card (new_card=True) replaces it.", name)
                (target / CARD_NAME).unlink()
            commit = with_retries(
                lambda: api.upload_folder(
                    repo_id=name,
                    folder_path=target,
                    commit_message=commit_message or "Publish a nested NER model",
                    commit_description=commit_description,
                    create_pr=create_pr,
                    revision=revision,
                    delete_patterns=[*OUTDATED],
                )
            )
    return Upload(commit, bool(info.private), files)


def fetch_model(name_or_path: str, folder: Path, **options: Any) -> Path:
    """Returns the folder of this name, or `folder` after downloading the Hub repository into it, without its card."""
    if not Path(name_or_path).is_dir():
        taken = [pattern for pattern in TAKEN if pattern != CARD_NAME]
        with errors_of_hub(name_or_path):
            snapshot_download(name_or_path, local_dir=folder, allow_patterns=taken, **options)
        return folder
    return Path(name_or_path)


def push_model(
    model: TriaffineForNestedNER,
    repo_id: str,
    *,
    processor: TriaffineProcessor | None = None,
    state_dict: dict[str, Tensor] | None = None,
    max_shard_size: int | str | None = None,
    token: str | bool | None = None,
    **options: Any,
) -> CommitInfo:
    """Publishes a model in memory; `model.push_to_hub` calls this.

    Licenses and files for an endpoint come from the folder or repository that it was loaded from. Its scores do not,
    because the weights may differ: [`publish_folder`] publishes a saved model with them.

    Args:
        repo_id, token: as of [`publish_folder`].
        processor: default: the one saved where the model was loaded from. Without any, the model is published alone,
            and the repository keeps its processor.
        state_dict: weights to publish in place of the model's, as in `save_pretrained`.
        max_shard_size: maximum size of a file of weights; None: 50 GB.
        options: of [`publish_folder`], such as `tags`, `private` and `commit_message`.
    """
    with tempfile.TemporaryDirectory() as saved, tempfile.TemporaryDirectory() as fetched:
        folder, origin = Path(saved), None
        place: dict[str, Any] = {"token": token, **model.origin}
        subfolder = place.pop("subfolder", "")
        if model.config.name_or_path:
            with contextlib.suppress(ValueError, OSError):  # it is gone
                origin = fetch_model(str(model.config.name_or_path), Path(fetched), **place) / subfolder
        if processor is None and origin is not None:
            with contextlib.suppress(FileNotFoundError):
                processor = TriaffineProcessor.from_pretrained(origin)
        model.save_pretrained(folder, state_dict=state_dict, max_shard_size=max_shard_size or "50GB")
        if processor is None:
            logger.warning("%s is published without a processor; give `processor=`.", repo_id)
        else:
            processor.save_pretrained(folder)
        for path in origin.iterdir() if origin is not None else ():
            if matches(path.name, WRITTEN):
                _take(path, folder)
        return publish_folder(folder, repo_id, with_processor=processor is not None, token=token, **options).commit


@contextlib.contextmanager
def saved_before(folder: Path, repo_id: str) -> Iterator[None]:
    """Raises errors of [`publish_folder`] as OSErrors that say where the model is saved, and how to publish it."""
    try:
        yield
    except (ValueError, OSError) as error:
        command = shlex.join(["triaffine-ner", "publish", "--model", str(folder), "--repo-id", repo_id])
        raise OSError(f"{error} The model is saved in {folder}; publish it with: {command}") from error


# ---- Requests ----


def with_retries(request: Callable[[], Answer]) -> Answer:
    """Returns the answer to a request. If there were too many (status 429), sends it again when the Hub allows it."""
    for retry in range(RETRIES):
        try:
            return request()
        except HfHubHTTPError as error:
            after = error.response.headers.get("Retry-After", "")
            seconds = int(after) if after.isdecimal() else 2**retry
            if error.response.status_code != 429 or seconds > LONGEST_WAIT:
                raise
            logger.warning("There were too many requests to the Hub; it asks to wait for %d seconds.", seconds)
            time.sleep(seconds)
    return request()


@contextlib.contextmanager
def errors_of_hub(repo_id: str) -> Iterator[None]:
    """Limits the time of each request; raises OSError if the Hub refuses it, ConnectionError if it does not answer."""
    client = get_session()
    timeout, client.timeout = client.timeout, TIMEOUT
    try:
        yield
    except (HTTPError, ConnectionError, RuntimeError) as error:  # RuntimeError: of the transfer of a large file
        if isinstance(error, HfHubHTTPError) and error.response.status_code < 500:
            raise OSError(f"The Hub does not allow this for {repo_id}: {' '.join(str(error).split())}") from error
        request = getattr(getattr(error, "response", error), "_request", None)
        reason = " ".join(str(error.__cause__ or error).split())
        advice = "Check that this machine is online and that HF_HUB_OFFLINE is not set."
        if request is not None and "/commit/" in request.url.path:
            advice = f"The model may be published all the same: look at {constants.ENDPOINT}/{repo_id} first."
        raise ConnectionError(f"The Hub ({constants.ENDPOINT}) does not answer ({reason}). {advice}") from error
    finally:
        client.timeout = timeout
