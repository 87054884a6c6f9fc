"""Requests to the Hub that wait, but not for ever, and whose errors are OSErrors in one paragraph."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from huggingface_hub import HfApi, constants, get_session
from huggingface_hub.errors import HfHubHTTPError, HTTPError

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
PATIENCE = 120.0  # seconds without a byte from the Hub, whose client would wait for ever
RETRIES = 5
LONGEST_WAIT = 600  # seconds that the Hub may ask to wait; it counts requests by five minutes


def full_name(repo_id: str, token: str | bool | None = None) -> str:
    """Returns the name with its owner, by default the user."""
    if "/" in repo_id:
        return repo_id
    with errors_of_hub(repo_id):
        return f"{patiently(HfApi(token=token).whoami)['name']}/{repo_id}"


def patiently(request: Callable[[], Answer]) -> Answer:
    """Returns the answer to a request, which is sent again after the time that the Hub names if there were too many."""
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
    """Limits how long each request waits; raises ConnectionError without an answer, OSError for one that refuses."""
    client = get_session()
    patience, client.timeout = client.timeout, PATIENCE
    try:
        yield
    except HfHubHTTPError as error:
        raise OSError(f"The Hub does not allow this for {repo_id}: {' '.join(str(error).split())}") from error
    except (HTTPError, ConnectionError, RuntimeError) as error:  # RuntimeError: of the transfer of a large file
        request, reason = getattr(error, "_request", None), " ".join(str(error.__cause__ or error).split())
        advice = "Check that this machine is online and that HF_HUB_OFFLINE is not set."
        if request is not None and "/commit/" in request.url.path:
            advice = f"The model may be published all the same: look at {constants.ENDPOINT}/{repo_id} first."
        raise ConnectionError(f"The Hub ({constants.ENDPOINT}) does not answer ({reason}). {advice}") from error
    finally:
        client.timeout = patience
