"""How commands end: one paragraph for a user's error, exit codes, and the message for a missing extra."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

from .files import SURROGATES

USER_ERROR = 2
# Exit codes of shells for a process that SIGINT or SIGPIPE has ended.
INTERRUPTED, PIPE_CLOSED = 130, 141


@contextlib.contextmanager
def ending_plainly(*faults: type[Exception]) -> Iterator[None]:
    """A script's whole work: it prints UTF-8 whatever the terminal, and what ends it early ends the process plainly.

    A mistake of the user (ValueError, OSError, ImportError; `faults` besides) is told in one paragraph, with code 2.
    Ctrl-C, and a reader of the output who has seen enough, end it as they end other programs.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors=SURROGATES)
    mistakes: tuple[type[Exception], ...] = (ValueError, OSError, ImportError, *faults)
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PIPE_CLOSED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except mistakes as error:
        exit_with_message(error)


def exit_with_message(error: Exception) -> NoReturn:
    """Tells a user's mistake in one paragraph, without a traceback, and ends the process with code 2."""
    if os.environ.get("RANK", "0") == "0":
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
    sys.exit(USER_ERROR)


def missing_extra(what: str, extra: str) -> ImportError:
    """The error that says how to install what is missing; `what` says who needs which library."""
    return ImportError(
        f"{what}, of the extra `{extra}`: in a checkout of modeling_triaffine, pip install -e '.[{extra}]'."
    )
