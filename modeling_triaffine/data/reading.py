"""What every reader needs: the description of a format, and access to plain or gzipped files and to JSON in them.

Holds no format of its own and does not know which ones there are (`loading.py` does).
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from .schema import CorpusError, Record, RecordChecker

GZIP_MAGIC = b"\x1f\x8b"
HEAD_SIZE = 4096


@dataclass(frozen=True)
class CorpusFormat:
    """A file format, as its reader's module describes it to `loading.FORMATS`.

    Args:
        name: what `load_nested_ner(format=…)` calls it.
        description: a few words for error messages.
        suffixes: endings of its files' names, without `.gz`.
        recognizes: whether the first characters of a file look like this format.
        read: `read(path, check) → records`, a generator that passes each sentence through `check` (a `RecordChecker`)
            and adds to `check.counts` what it drops.
        split_starts: split → number of its first sentence, for a format whose file holds several splits.
        keeps_text: the format has the text as written, and `read` takes a `word_splitter` as keyword.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    recognizes: Callable[[str], bool]
    read: Callable[..., Iterator[Record]]
    split_starts: Mapping[str, int] = field(default_factory=dict)
    keeps_text: bool = False

    def splits(self, num_sentences: int) -> dict[str, range]:
        """Which of a file's sentences belong to which of its own splits; splits past its end are left out."""
        starts = list(self.split_starts.values())
        stops = [*starts[1:], num_sentences]
        return {
            name: range(start, min(stop, num_sentences))
            for name, start, stop in zip(self.split_starts, starts, stops, strict=True)
            if start < num_sentences
        }


@contextmanager
def open_corpus(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked where it is gzipped (told by its content); damaged gzip data raises CorpusError."""
    with path.open("rb") as plain:
        gzipped = plain.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    try:
        with gzip.open(path) if gzipped else path.open("rb") as file:
            yield file  # type: ignore[misc]  # GzipFile offers what is used of BinaryIO
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        problem = f"the gzip data is damaged or cut off ({error})"
        raise CorpusError.at(path, "", problem, "Fetch or pack the file again") from None


def read_head(path: Path) -> str:
    """The first characters of a file, by which formats are told apart.

    Raises:
        CorpusError: the file is empty.
    """
    with open_corpus(path) as file:
        head = file.read(HEAD_SIZE).decode("utf-8-sig", errors="replace").lstrip()
    if not head:
        raise CorpusError.at(path, "", "the file is empty", "Give a file with at least one sentence")
    return head


def parse_json(data: bytes, check: RecordChecker, where: str) -> object:
    """The JSON value in `data`; what is broken becomes a CorpusError that names the place in it."""
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"character {error.colno}"
        problem = f"broken JSON, {error.msg.removesuffix(' at')} at {place}"
        remedy = "Correct it, or see whether the file was cut off"
    except UnicodeDecodeError as error:
        problem, remedy = f"byte {error.start + 1} is not {error.encoding}", "Save the file as UTF-8"
    except RecursionError:
        problem, remedy = "JSON nested too deeply", "A record holds lists and objects of at most two levels"
    raise check.error(where, problem, remedy)
