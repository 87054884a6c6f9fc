"""Files and folders that appear whole or not at all."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

# Lone surrogates, which JSON can hold and UTF-8 cannot, are written as JSON escapes.
SURROGATES = "backslashreplace"


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
