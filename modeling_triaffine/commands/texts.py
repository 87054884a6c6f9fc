"""Reads the texts for a command: lines of a plain file, or JSON lines."""

import contextlib
import json
import logging
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..parsing import JSON_SUFFIXES, DataError, check_is_line, decode_object, decode_text

logger = logging.getLogger(__name__)

TABLES = (".csv", ".tsv", ".parquet", ".xlsx")


def read_records(
    source: str, text_column: str, entities_column: str | None = None, form: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yields the records of a file, or of standard input (-), each with its text.

    A line of a plain file is a text, also a blank one; a blank JSON line is skipped.

    Args:
        entities_column: field that the command adds, and that records must not have.
        form: "text" or "jsonl"; default: by the name of the file.
    """
    is_standard = source == "-"
    name = "standard input" if is_standard else source
    is_json = form == "jsonl" if form else source.lower().endswith(JSON_SUFFIXES)
    with contextlib.nullcontext(sys.stdin.buffer) if is_standard else open(source, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            where = f"{name}, line {number}"
            line = line.rstrip(b"\r\n")
            if number == 1:
                line = line.removeprefix(BOM_UTF8)
                if form is None and not is_json and line.startswith(b"{"):
                    _warn_of_json(line, where)
            if is_json and not line.strip():
                continue
            record = decode(line, where, _decode_line) if is_json else {text_column: decode(line, where)}
            _check_record(record, text_column, entities_column, where)
            yield record


def _check_record(record: dict[str, Any], text_column: str, entities_column: str | None, where: str) -> None:
    """Raises ValueError if a record has no text, or a field of the name that the command adds."""
    if not isinstance(record.get(text_column), str):
        found = f", but {json.dumps(record[text_column])[:40]}" if text_column in record else ""
        raise ValueError(
            f"{where}: there is no text under {text_column!r}{found}. Give the field of the text with --text-column, "
            'and "" for a missing text.'
        )
    if entities_column in record:
        raise ValueError(
            f"{where}: there is a field {entities_column!r} already. Give another one for the entities with "
            "--entities-column."
        )


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
    check_stays(path, output)


def check_stays(path: Path, output: Path | None) -> None:
    """Raises ValueError if the output would overwrite an input file."""
    if output is not None and output.exists() and path.samefile(output):
        raise ValueError(f"--output {output} is an input file, which would be lost. Give another name.")


def decode(data: bytes, where: str, read: Callable[[bytes], Any] = decode_text) -> Any:
    """What `read` finds in a file or line; raises ValueError with its place if it cannot."""
    try:
        return read(data)
    except DataError as error:
        raise ValueError(f"{where}: {error}") from None


def _decode_line(line: bytes) -> dict[str, Any]:
    check_is_line(line)
    return decode_object(line)


def _warn_of_json(line: bytes, where: str) -> None:
    with contextlib.suppress(ValueError):
        decode_object(line)
        logger.warning("%s is a JSON object, read as text. Give JSON lines as a file .jsonl or --format jsonl.", where)
