"""What files of the CoNLL family share: blocks of lines, comments, and how documents and sentences are called.

Holds no format of its own: `iob2.py` and `conllu.py` do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .reading import decode, open_corpus
from .schema import RecordChecker


def line_blocks(path: Path, check: RecordChecker) -> Iterator[list[tuple[int, str]]]:
    """The blocks of lines between blank lines, each line with its number; line ends are taken off.

    Raises:
        CorpusError: a line is not UTF-8.
    """
    block: list[tuple[int, str]] = []
    with open_corpus(path) as lines:
        for number, data in enumerate(lines, start=1):
            line = decode(data, check, f"line {number}").removeprefix("\ufeff" if number == 1 else "").rstrip("\r\n")
            if line.strip():
                block.append((number, line))
            elif block:
                yield block
                block = []
    if block:
        yield block


def comment_field(line: str) -> tuple[str, str]:
    """What a comment of the CoNLL-U family says: "# newdoc id = a" → ("newdoc id", "a"); no "=", no value."""
    name, _, value = line.removeprefix("#").partition("=")
    return " ".join(name.split()), value.strip()


class Documents:
    """Gives sentences their ids, by what comments say, and counts where they say nothing.

    Before the first document begins, every sentence is a document of its own.
    """

    def __init__(self, stem: str):
        self.stem = stem
        self.number = 0  # of sentences without a document, and documents without a name
        self.doc_id: str | None = None
        self.sent_id = 0
        self.id = ""

    def start(self, doc_id: str = "") -> None:
        """A document begins."""
        self.doc_id = doc_id or f"{self.stem}:{self._count()}"
        self.sent_id = 0

    def read_comment(self, line: str) -> None:
        """Takes what `# newdoc id = …` and `# sent_id = …` say of the sentences that follow, of the next one."""
        name, value = comment_field(line)
        if name in ("newdoc", "newdoc id"):
            self.start(value)
        elif name == "sent_id":
            self.id = value

    def next_sentence(self) -> dict[str, Any]:
        """`id`, `doc_id` and `sent_id` of the next sentence."""
        doc_id = self.doc_id
        identifier, self.id = self.id, ""
        sent_id = self.sent_id
        if doc_id is None:
            doc_id = f"{self.stem}:{self._count()}"
        else:
            self.sent_id += 1
        return {"id": identifier or f"{doc_id}:{sent_id}", "doc_id": doc_id, "sent_id": sent_id}

    def _count(self) -> int:
        self.number += 1
        return self.number - 1
