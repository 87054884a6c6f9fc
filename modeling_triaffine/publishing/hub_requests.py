"""Asks the Hub: names and files of a repository, with each error in one paragraph."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,
    LocalTokenNotFoundError,
)
from huggingface_hub.hf_api import ModelInfo

from ..model.repository_triaffine import HUB_PATIENCE


def file_names(info: ModelInfo) -> set[str]:
    """The names of the files of a repository."""
    return {file.rfilename for file in info.siblings or []}


def names_on_hub(repo_id: str, **options: Any) -> set[str]:
    """The names of the files of a Hub repository; `options` are those of `HfApi.model_info`."""
    with errors_of_hub(repo_id):
        return file_names(HfApi().model_info(repo_id, timeout=HUB_PATIENCE, **options))


def download(repo_id: str, names: Iterable[str], **options: Any) -> Path:
    """A local copy of these files of a Hub repository; `options` are those of `snapshot_download`."""
    with errors_of_hub(repo_id):
        return Path(snapshot_download(repo_id, allow_patterns=list(names), **options))


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
    except HFValidationError as error:
        raise ValueError(f"{repo_id!r} cannot be the name of a repository ({error}). Give owner/name.") from error
    except HfHubHTTPError as error:
        raise _explain_status(error, repo_id) from error
    except LocalTokenNotFoundError as error:
        raise _not_logged_in(repo_id) from error
    except RuntimeError as error:  # the client's error for an interrupted transfer of a large file
        reason = " ".join(str(error.__cause__ or error).split())
        raise ConnectionError(
            f"The transfer of files of {repo_id} was interrupted ({reason}). Check the connection, and try again."
        ) from error
    except (HTTPError, ConnectionError) as error:
        raise ConnectionError(
            f"The Hub ({constants.ENDPOINT}) cannot be reached for {repo_id} ({error}). Check that this machine is "
            "online and that HF_HUB_OFFLINE is not set."
        ) from error


def _explain_status(error: HfHubHTTPError, repo_id: str) -> OSError:
    status = error.response.status_code
    if isinstance(error, GatedRepoError):
        return PermissionError(
            f"{repo_id} is gated: request access on its page, {constants.ENDPOINT}/{repo_id}, log in with "
            "`hf auth login`, and try again."
        )
    if status == 401:
        return _not_logged_in(repo_id)
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


def _not_logged_in(repo_id: str) -> PermissionError:
    return PermissionError(
        f"{repo_id} is not on the Hub, or needs a login, and there is no valid token. Check the spelling. Log in with "
        "`hf auth login`, or set HF_TOKEN; to publish, use a token with write access."
    )
