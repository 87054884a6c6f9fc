"""Reads the texts for a command: lines of a plain file, or JSON lines."""

import contextlib
import json
import logging
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..parsing import DataError, decode_object, decode_text

logger = logging.getLogger(__name__)

TABLES = (".csv", ".tsv", ".parquet", ".xlsx")
SEVERAL_LINES = re.compile(rb"\s*([\[{]|\[.*,)\s*")


@dataclass(frozen=True)
class Records:
    """The records of a file, or of standard input (-).

    Args:
        entities_column: field that the command adds, and that records must not have.
        form: "text" or "jsonl"; default: by the name of the file.
    """

    source: str
    text_column: str
    entities_column: str | None = None
    form: str | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yields the records, each with its text. A blank line of a plain file is an empty text."""
        standard = self.source == "-"
        form = self.form or ("jsonl" if self.source.lower().endswith((".jsonl", ".ndjson", ".json")) else "text")
        with contextlib.nullcontext(sys.stdin.buffer) if standard else open(self.source, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                where = f"{'standard input' if standard else self.source}, line {number}"
                line = (line.removeprefix(BOM_UTF8) if number == 1 else line).rstrip(b"\r\n")
                if form == "text":
                    if number == 1 and self.form is None and line.startswith(b"{"):
                        _warn_of_json(line, where)
                    yield self._check({self.text_column: decode(line, where)}, where)
                elif line.strip():
                    yield self._check(decode(line, where, _decode_line), where)

    def _check(self, record: dict[str, Any], where: str) -> dict[str, Any]:
        text, problem = record.get(self.text_column), ""
        if not isinstance(text, str):
            found = f", but {json.dumps(text)[:40]}" if self.text_column in record else ""
            problem = f"there is no text under {self.text_column!r}{found}. Give the field of the text with "
            problem += '--text-column, and "" for a missing text.'
        elif self.entities_column in record:
            problem = f"there is a field {self.entities_column!r} already. Give another one for the entities with "
            problem += "--entities-column."
        if problem:
            raise ValueError(f"{where}: {problem}")
        return record


def check_input(name: str, output: Path | None, form: str | None = None) -> None:
    """Raises ValueError if there is no such file, it is a table, or the output would overwrite it."""
    if name == "-":
        return
    path = Path(name)
    if path.is_dir() or not path.exists():
        problem = f"{name} is a folder" if path.is_dir() else f"There is no file {name}"
        raise ValueError(f"{problem}; give a file of texts, or - for standard input.")
    if form is None and name.lower().endswith(TABLES):
        raise ValueError(
            f"{name} is a table, whose lines are not texts. Write its rows as JSON lines (.jsonl), as pandas does with "
            'to_json(…, orient="records", lines=True). Parquet can also be tagged with `triaffine-ner tag`.'
        )
    if output is not None and output.exists() and path.samefile(output):
        raise ValueError(f"--output {output} is the input file, which would be lost. Give another name.")


def decode(data: bytes, where: str, read: Callable[[bytes], Any] = decode_text) -> Any:
    """What `read` finds in a file or line; raises ValueError with its place if it cannot."""
    try:
        return read(data)
    except DataError as error:
        raise ValueError(f"{where}: {error}") from None


def _decode_line(line: bytes) -> dict[str, Any]:
    """Parses a JSON line; a list, or an object on several lines, is what people take for JSON lines."""
    if SEVERAL_LINES.fullmatch(line):
        raise DataError(
            "a JSON value goes on in the next line",
            "Give JSON lines, one object in each; `jq -c '.[]' FILE` writes a list so, and `jq -c . FILE` objects",
        )
    return decode_object(line)


def _warn_of_json(line: bytes, where: str) -> None:
    with contextlib.suppress(ValueError):
        decode_object(line)
        logger.warning("%s is a JSON object, read as text. Give JSON lines as a file .jsonl or --format jsonl.", where)
