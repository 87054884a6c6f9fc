"""Atomic writing: a file or folder gets its name when it is complete, and a failed attempt leaves nothing behind."""

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
def atomic_path(path: Path) -> Iterator[Path]:
    """A path beside `path` to write a file or folder to, which replaces `path` at the end of the block.

    A folder does not replace one that has files; a file keeps its permissions. Of a link, what it leads to is replaced.
    A device or pipe is itself written to. If the block raises, `path` stays as it was.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        yield path
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.incomplete")
    _remove(beside)  # of a process that was killed
    try:
        yield beside
        if path.is_file() and beside.is_file():
            shutil.copymode(path, beside)
        os.replace(beside, path)
    finally:
        _remove(beside)


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """A text stream to standard output (None or "-") or, atomically, to a file (see [`atomic_path`]).

    Raises:
        ValueError: `path` is a folder.
    """
    if path is None or str(path) == "-":
        yield sys.stdout
    elif path.is_dir():
        raise ValueError(f"{path} is a folder. Give the name of a file.")
    else:
        with atomic_path(path) as unfinished, open(unfinished, "w", encoding="utf-8", errors=SURROGATES) as output:
            yield output


def write_text(path: Path, text: str) -> None:
    """Writes a text file atomically."""
    with open_output(path) as output:
        output.write(text)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder that becomes `path` at the end of the block; if the block raises, nothing is left."""
    with atomic_path(path) as unfinished:
        unfinished.mkdir()
        yield unfinished


def paths_below(folder: Path) -> list[Path]:
    """All files and folders in a folder, at any depth, in the order of names; what links lead to is read once."""
    found: list[Path] = []
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort(key=lambda name: Path(place, name).is_symlink())  # what is there by itself comes first
        found += [Path(place, name) for name in (*folders, *files)]
    return sorted(found)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
