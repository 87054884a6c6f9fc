"""Bytes → text and JSON, with errors that say what is wrong and what to do.

Not in `data/`, which imports the library `datasets`: `predict`, which reads its input with these, would start a second
later.
"""

import json
import reprlib
from codecs import BOM_UTF8
from typing import Any

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")  # of JSON lines, and of one JSON value
GZIP_MAGIC = b"\x1f\x8b"
# How files begin that are no text → what they are, and what to do.
NO_TEXT = {
    GZIP_MAGIC: ("the file is compressed with gzip", "Uncompress it, for instance with gunzip"),
    b"%PDF-": ("the file is a PDF", "Extract its text, for instance with pdftotext"),
    b"PK\x03\x04": ("the file is a Word document or a zip archive", "Save it as text, or unpack it"),
    b"\xd0\xcf\x11\xe0": ("the file is a Word document", "Save it as text"),
}
JOINERS = "\u200c\u200d"
"""Invisible, but parts of ordinary words, in Persian or Hindi, and of emoji."""


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


def decode_object(data: bytes) -> dict[str, Any]:
    """Parses a JSON object; raises a DataError for anything else."""
    value = decode_json(data)
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, found {shown(value)}", "Give one JSON object, with its fields in { }")
    return value


def decode_json(data: bytes) -> object:
    """Parses a JSON value; raises a DataError that names the place of a syntax error."""
    text = decode_text(data.removeprefix(BOM_UTF8))  # of bytes, `json` would guess UTF-16 anew for each line
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # of syntax, digits and depth
        raise DataError(f"invalid JSON: {error}", "Correct it, or check whether the file is truncated") from None


def shown(value: object) -> str:
    """A value for messages: abbreviated, with its type."""
    return "null" if value is None else f"{reprlib.repr(value)} ({type(value).__name__})"
