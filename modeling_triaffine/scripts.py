"""What the scripts share: how they end, a mistake told in one paragraph, a device checked, output that comes whole."""

import contextlib
import datetime
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, TextIO

import torch
import transformers

USER_ERROR = 2
# Exit codes of shells for a process that SIGINT or SIGPIPE has ended.
INTERRUPTED, PIPE_CLOSED = 130, 141
# Lone surrogates, which JSON can hold and UTF-8 cannot, are written as JSON escapes.
SURROGATES = "backslashreplace"


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


def check_device(name: str | None) -> None:
    """Raises ValueError when there is no such device."""
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        reason = "there is no such kind of device" if reason.startswith("Expected one of") else reason
        raise ValueError(f"--device {name}: {reason}. Give cpu, or leave --device out to use a GPU if any.") from None


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that gets its name when all is written and leaves nothing behind when it is not.

    A device or pipe is written to as it is, and of a link the file it leads to.
    """
    if path is None:
        yield sys.stdout
        return
    if path.is_dir():
        raise ValueError(f"--output {path} is a folder; give the name of a file.")
    if path.exists() and not path.is_file():
        with open(path, "w", encoding="utf-8", errors=SURROGATES) as output:
            yield output
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.incomplete")
    try:
        with open(unfinished, "w", encoding="utf-8", errors=SURROGATES) as output:
            yield output
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that gets its name when all is written and leaves nothing behind when it is not."""
    unfinished = path.with_name(f"{path.name}.incomplete")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def describe_machine() -> dict[str, str | int | float]:
    """What recorded figures were seen on: processor, cores, memory, GPU, versions and date."""
    machine: dict[str, str | int | float] = {
        "date": datetime.date.today().isoformat(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 1,
        "torch_threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    processors = Path("/proc/cpuinfo")
    if processors.exists():
        names = [line.split(":")[1].strip() for line in processors.read_text().splitlines() if "model name" in line]
        machine["processor"] = names[0] if names else machine["processor"]
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        machine["memory_gb"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    if torch.cuda.is_available():
        machine["gpu"] = torch.cuda.get_device_name()
    return machine
