"""Files: bytes → text and JSON, with errors that say what to do; atomic writing of files and folders; locks.

Not in `data/`: `predict` would start a second later, since the library `datasets` is imported there.
"""

import contextlib
import errno
import json
import os
import reprlib
import shutil
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from filelock import FileLock, Timeout

SURROGATES = "backslashreplace"  # lone surrogates, which JSON can hold and UTF-8 cannot, are written as JSON escapes
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")  # of JSON lines, and of one JSON value
GZIP_MAGIC = b"\x1f\x8b"
# The first bytes of files that are not text → what these files are, and what to do.
NO_TEXT = {
    GZIP_MAGIC: ("the file is compressed with gzip", "Uncompress it, for instance with gunzip"),
    b"%PDF-": ("the file is a PDF", "Extract its text, for instance with pdftotext"),
    b"PK\x03\x04": ("the file is a Word document or a zip archive", "Save it as text, or unpack it"),
    b"\xd0\xcf\x11\xe0": ("the file is a Word document", "Save it as text"),
    b"version https://git-lfs.": ("it is a pointer of Git LFS, not the file itself", "Run git lfs pull"),
}
LOCK = ".lock"
JOINERS = "\u200c\u200d"  # invisible, but parts of ordinary words, in Persian or Hindi, and of emoji


class DataError(ValueError):
    """Bytes that cannot be decoded: what is wrong and what to do, without the place they came from."""

    def __init__(self, problem: str, remedy: str):
        super().__init__(f"{problem}. {remedy}.")
        self.problem, self.remedy = problem, remedy


def decode_text(data: bytes) -> str:
    """Decodes UTF-8; raises a DataError that names the first invalid byte, or what the file is instead of text."""
    for beginning, problem_and_remedy in NO_TEXT.items():
        if data.startswith(beginning):
            raise DataError(*problem_and_remedy)
    if b"\0" in data:
        raise DataError("there is a NUL byte, as in UTF-16 and in files that are no text", "Save the file as UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start + 1} is not valid utf-8", "Save the file as UTF-8") from None


def decode_json(data: bytes) -> object:
    """Parses a JSON value; raises a DataError that names the place of a syntax error."""
    text = decode_text(data.removeprefix(BOM_UTF8))  # of bytes, `json` would guess UTF-16 anew for each line
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # of syntax, digits and depth
        raise DataError(f"invalid JSON: {error}", "Correct it, or check whether the file is truncated") from None


def shown(value: object) -> str:
    """A value for messages: abbreviated, with its type."""
    return "null" if value is None else f"{reprlib.repr(value):.200} ({type(value).__name__})"


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
    except OSError as error:
        if error.errno == errno.ENOSPC:  # of writing and closing, which name no file
            error.filename = str(path)
        raise
    finally:
        _remove(beside)


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """A text stream to standard output (None or "-") or, atomically, to a file ([`atomic_path`]), not to a folder."""
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


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Creates and locks a folder for the block; raises ValueError if another process has locked it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / LOCK, timeout=0, is_singleton=True):
            yield
    except Timeout as error:
        raise ValueError(f"Another run is writing to {folder}. Give another folder.") from error


def paths_below(folder: Path) -> list[Path]:
    """All files and folders in a folder, at any depth, sorted; what several links lead to is listed once."""
    inside: dict[str, list[Path]] = {}
    folders, links = [folder], list[Path]()
    while folders or links:
        place = folders.pop() if folders else links.pop(0)  # what is there by itself comes first
        if (real := os.path.realpath(place)) not in inside:
            inside[real] = sorted(place.iterdir())
            for path in filter(Path.is_dir, inside[real]):
                (links if path.is_symlink() else folders).append(path)
    return sorted(path for paths in inside.values() for path in paths)


def visible_files(path: Path) -> list[Path]:
    """The files in a folder at any depth, also links to nowhere, but no hidden ones, by name; or the file itself."""
    if path.is_file():
        return [path]
    # Annotation tools write no hidden files, but archives of some systems leave them behind.
    named = ((file, file.relative_to(path).parts) for file in paths_below(path) if file.is_file() or not file.exists())
    return [file for file, parts in named if not any(part.startswith(".") for part in parts)]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
