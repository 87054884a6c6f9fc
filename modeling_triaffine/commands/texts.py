"""Reads the texts for a command: lines of a file, JSON lines, or the .txt files of a folder."""

import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..parsing import JSON_SUFFIXES, NO_TEXT, DataError, check_is_line, decode_object, decode_text, shown

TABLES = (".csv", ".tsv", ".parquet", ".xlsx")
DOCUMENTS = (".pdf", ".doc", ".docx")
MOST_NAMED = 20


class TextSource:
    """The texts of a file, of a folder of .txt files, or of standard input (-), as records.

    The name of a file, and the first character of standard input, tell JSON lines from plain ones. What cannot be read
    is named on standard error and in `rejected`, also a PDF or Word file of a folder. A line of a plain file is a text,
    also a blank one; a blank JSON line is skipped.

    Args:
        text: a text in place of a file.
        entities_column: field that the command adds, and that records must not have.
    """

    def __init__(
        self, name: str, text: str | None = None, text_column: str = "text", entities_column: str = "entities"
    ):
        self.name, self.text, self.text_column, self.entities_column = name, text, text_column, entities_column
        self.path = Path(name)
        self.is_standard = name == "-"
        self.is_typed = self.is_standard and text is None and sys.stdin.isatty()
        self.is_folder = not self.is_standard and self.path.is_dir()
        self.is_json = name.lower().endswith(JSON_SUFFIXES)
        self.accepted = 0
        self.rejected: list[str] = []
        self.files = sorted(filter(self._is_text, self.path.rglob("*"))) if self.is_folder else []
        if not self.is_standard and not self.path.exists():
            raise ValueError(f"There is no file {name}. Give a file of texts, a folder of .txt files, or --text.")
        if self.is_folder and not self.files:
            raise ValueError(f"{name} is a folder without .txt files. Save its documents as text, one in each file.")
        if name.lower().endswith(TABLES):
            raise ValueError(f"{name} is a table, whose lines are not texts. Write its rows as JSON lines (.jsonl).")

    def _is_text(self, file: Path) -> bool:
        """True for the texts of a folder, and for documents that are to be rejected; hidden files are left out."""
        is_hidden = any(part.startswith(".") for part in file.relative_to(self.path).parts)
        return file.suffix.lower() in (".txt", *DOCUMENTS) and not is_hidden

    @property
    def total(self) -> int | None:
        """Number of texts, unless they come from standard input."""
        if self.is_folder:
            return len(self.files)
        if self.is_standard:
            return None
        with open(self.path, "rb") as lines:
            return sum(1 for _ in lines)

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the name of each text and its record: the `id` of a JSON line, the path in the folder, or a number."""
        from ..drawing.safe_text import clean

        for name, where, data in self._texts():
            try:
                record = self._read(name, data, where)
            except DataError as error:
                self.rejected.append(clean(f"{where}: {error}"))
                if len(self.rejected) <= MOST_NAMED:
                    print(f"rejected: {self.rejected[-1]}", file=sys.stderr)
            else:
                self.accepted += 1
                yield str(record.get("id") or name), record

    def _texts(self) -> Iterator[tuple[str, str, bytes]]:
        """Yields the name, the place and the content of each text."""
        for document in self.files:
            yield document.relative_to(self.path).with_suffix("").as_posix(), str(document), document.read_bytes()
        if self.text is not None:
            yield "text", "--text", self.text.encode(errors="surrogateescape")
        if self.is_folder or self.text is not None:
            return
        stem, file = ("text", "standard input") if self.is_standard else (self.path.stem, self.name)
        lines: Any = iter(_read_typed, b"") if self.is_typed else sys.stdin.buffer
        with nullcontext(lines) if self.is_standard else open(self.path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                where = f"{file}, line {number}"
                if number == 1:
                    self._begin(line, where)
                if line.strip() or not self.is_json:
                    yield f"{stem}-{number:05}", where, line.rstrip(b"\r\n")

    def _begin(self, line: bytes, where: str) -> None:
        """Raises ValueError for a file that is no text, or one JSON value on several lines."""
        if self.is_standard:
            self.is_json = line.lstrip().startswith(b"{")
        try:
            if line.startswith(tuple(NO_TEXT)):
                decode_text(line)
            if self.is_json:
                check_is_line(line.rstrip())
        except DataError as error:
            raise ValueError(f"{where}: {error}") from None

    def _read(self, name: str, data: bytes, where: str) -> dict[str, Any]:
        data = data.removeprefix(BOM_UTF8)
        if not self.is_json:
            return ({"id": name} if self.is_folder else {}) | {self.text_column: decode_text(data)}
        record = decode_object(data)
        if self.text_column not in record and not self.accepted:
            fields = ", ".join(map(repr, record))
            raise ValueError(f"{where}: there is no {self.text_column!r}. Give --text-column, one of {fields}.")
        if self.entities_column in record:
            raise ValueError(f"{where}: there is a field {self.entities_column!r}. Give another --entities-column.")
        text = record.get(self.text_column)
        if not isinstance(text, str):
            raise DataError(f"expected a text under {self.text_column!r}, found {shown(text)}", "Give a string")
        return record


def _read_typed() -> bytes:
    print("> ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.buffer.readline()
    if not line:  # Ctrl-D
        print(file=sys.stderr)
    return line
