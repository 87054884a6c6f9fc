"""How commands end: one paragraph for a user's mistake, exit codes, and the error for a missing extra."""

import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from .files import SURROGATES

INTERRUPTED, PIPE_CLOSED = 130, 141  # exit codes of shells for a process that SIGINT or SIGPIPE has ended


class VisibleRecord(logging.LogRecord):
    """A record of the log in which nothing of a corpus, a request or a file's name controls the terminal."""

    def getMessage(self) -> str:  # noqa: N802 - logging's name
        from .drawing.safe_text import visible

        return visible(super().getMessage())


@contextlib.contextmanager
def ending_plainly(*faults: type[Exception]) -> Iterator[None]:
    """Runs a command: prints UTF-8 whatever the terminal's encoding, and ends the process without a traceback.

    A mistake of the user (ValueError, OSError, ImportError, and `faults`) is one paragraph on standard error and exit
    code 2, Ctrl-C one line and 130, a closed pipe 141. Any other exception is a bug and keeps its traceback, and a
    ValueError that a library raised its place. Control characters in messages and in the log are made visible.
    """
    logging.setLogRecordFactory(VisibleRecord)
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
        _print_once("Interrupted.")
        sys.exit(INTERRUPTED)
    except mistakes as error:
        from .drawing.safe_text import visible

        _print_once(f"error: {visible(' '.join(f'{error}{_place(error)}'.split()))}")
        sys.exit(2)


@contextlib.contextmanager
def importing_extra(extra: str, what: str) -> Iterator[None]:
    """Around imports of optional libraries: an ImportError names their extra. `what` says what needs which library."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{what}, of the extra `{extra}`. In a clone of the repository, run pip install '.[{extra}]' ({error})."
        ) from error


def _place(error: Exception) -> str:
    """The place that a ValueError comes from, unless the package raised it, whose messages say what to do."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    is_own = Path(__file__).parent in Path(frame.filename).parents and (frame.line or "raise").startswith("raise")
    if is_own or not isinstance(error, ValueError):
        return ""
    return f" ({type(error).__name__} in {frame.filename}, line {frame.lineno})"


def _print_once(line: str) -> None:
    """Prints to standard error, in the first of several processes of each machine only."""
    if os.environ.get("LOCAL_RANK", os.environ.get("RANK", "0")) == "0":
        print(line, file=sys.stderr)
