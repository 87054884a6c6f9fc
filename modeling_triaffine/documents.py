"""Texts to find entities in, as `predict` and `tag` read them: lines, JSON lines and .txt files; counts, and progress.

Not in `data/`, which imports the library `datasets`: `predict` would start a second later.
"""

import re
import sys
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from .files import NO_TEXT, DataError, decode_json, decode_text, shown
from .model.kinds_triaffine import TextEntity

Item = TypeVar("Item")
# The first line of a list, or of an object on several lines, which people take for JSON lines.
NO_JSON_LINE = re.compile(rb"\s*({|\[.*)\s*")
REJECTED = 3  # exit code of a command that has rejected a text
SECONDS = 60  # between lines of progress


@dataclass
class Row:
    """A text with what belongs to it, or the reason why it cannot be read."""

    file: str  # its name
    number: int | None  # in the file, from 1; None: of a document, or of the rest of a file that cannot be read
    record: Any = None  # a dictionary, or a table of one row, which gets the entities
    text: Any = None
    outcome: list[TextEntity] | str | None = None  # its entities, or why there are none; None until they are found

    @property
    def where(self) -> str:
        return self.file if self.number is None else f"{self.file}, line {self.number}"


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The names of the fields or columns of text and entities; makes rows of the lines and files that have them."""

    text_column: str = "text"
    entities_column: str = "entities"

    def read_lines(self, lines: Iterable[bytes], file: str, is_json: bool | None = False) -> Iterator[Row]:
        """Yields a row for each line but blank ones of JSON. `is_json` None: JSON if the first character is {."""
        for number, line in enumerate((line.removeprefix(BOM_UTF8) for line in lines), start=1):
            if number == 1:
                is_json = line.lstrip().startswith(b"{") if is_json is None else is_json
                if problem := problem_of_file(line, is_json):
                    yield Row(file, None, outcome=problem)
                    return
            if is_json and not line.strip():
                continue
            try:
                record = decode_json(line) if is_json else {self.text_column: decode_text(line.rstrip(b"\r\n"))}
                if not isinstance(record, dict):
                    raise DataError(f"expected a JSON object, found {shown(record)}", "Give its fields in { }")
                self.check_names(record)
            except DataError as error:
                yield Row(file, number, outcome=" ".join(str(error).split()))
            else:
                yield self.row(file, number, record, record[self.text_column])

    def read_document(self, file: str, path: Path, name: str) -> Row:
        """The row of a .txt file, whose record has the name as its `id`; that of a file of another kind is rejected."""
        try:
            data = path.read_bytes().removeprefix(BOM_UTF8)
            if path.suffix.lower() != ".txt" and not data.startswith(tuple(NO_TEXT)):
                problem = "it is no .txt, .jsonl or .parquet file"
                raise DataError(problem, "Extract its text, as pdftotext does for a PDF")
            text = decode_text(data)
            record = {"id": name, self.text_column: text}
            self.check_names(record)
        except (DataError, OSError) as error:
            return Row(file, None, outcome=str(error))
        return self.row(file, None, record, text)

    def check_names(self, names: Collection[str]) -> None:
        """Raises a DataError if columns or fields lack the text, or have entities already."""
        if self.text_column not in names:
            there = ", ".join(map(repr, names)) or "none"
            raise DataError(f"there is no {self.text_column!r}, but {there}", "Give --text-column")
        if self.entities_column in names:
            raise DataError(f"there is {self.entities_column!r} already", "Give another --entities-column")

    def row(self, file: str, number: int | None, record: Any, text: Any) -> Row:
        """The row of a record; it is rejected if `text` is not a string."""
        found = "null" if text is None else type(text).__name__
        reason = None if isinstance(text, str) else f"expected a text under {self.text_column!r}, found {found}."
        return Row(file, number, record, text, reason)


def problem_of_file(first_line: bytes, is_json: bool) -> str | None:
    """The reason why no line can be read: the file is no text, such as a PDF, or is JSON, but no JSON lines."""
    for beginning, (problem, remedy) in NO_TEXT.items():
        if first_line.startswith(beginning):
            return f"{problem}. {remedy}."
    if is_json and NO_JSON_LINE.fullmatch(first_line):
        return (
            "it is a list, or an object on several lines. Give JSON lines, one object in each; `jq -c '.[]' FILE` "
            "writes a list so, and `jq -c . FILE` objects."
        )
    return None


def check_usable(rows: Iterable[Row]) -> None:
    """Raises ValueError if there are rows, and none of them has a text."""
    reason = None
    for row in rows:
        if row.outcome is None:
            return
        reason = reason or f"{row.where}: {row.outcome}"
    if reason:
        raise ValueError(f"No text can be read. {reason}")


@dataclass
class Counts:
    """The documents of a run with their entities by label, and how many could not be read."""

    documents: int = 0
    entities: Counter[str] = field(default_factory=Counter)
    rejected: int = 0

    def add(self, entities: Iterable[TextEntity]) -> None:
        self.documents += 1
        self.entities.update(entity["entity_group"] for entity in entities)

    def __str__(self) -> str:
        from .drawing.safe_text import clean

        labels = ", ".join(f"{clean(label)} {number:,}" for label, number in self.entities.most_common())
        entities = f"{self.entities.total():,}{f' ({labels})' if labels else ''}"
        return f"Documents: {self.documents:,}. Entities: {entities}. Rejected: {self.rejected:,}."


def with_progress(items: Iterable[Item], total: int | None = None) -> Iterator[Item]:
    """Passes documents on, and prints the progress to standard error: a bar on a terminal, else a line a minute."""
    from tqdm import tqdm

    line = "{n_fmt}{unit} of {total_fmt}, {remaining} left, {rate_noinv_fmt}\n"
    lines: dict[str, Any] = {"bar_format": line, "mininterval": SECONDS, "delay": SECONDS, "miniters": 1}
    yield from tqdm(items, total=total, unit=" documents", **({} if sys.stderr.isatty() else lines))
