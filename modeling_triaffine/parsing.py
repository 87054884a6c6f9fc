"""Bytes → text and JSON, with errors that say what is wrong and what to do.

Not in `data/`, which imports the library `datasets`: `predict`, which reads its input with these, would start a second
later.
"""

import json
import reprlib
import unicodedata
from codecs import BOM_UTF8
from itertools import takewhile
from typing import Any

GZIP = b"\x1f\x8b"  # how its files begin
SCRIPTS_ALIKE = {"LATIN", "GREEK", "CYRILLIC"}
"""Scripts with letters that look like those of the others."""
SHOWN_POINTS = 8
JOINERS = "\u200c\u200d"
"""Invisible, but parts of ordinary words, in Persian or Hindi, and of emoji."""


class DataError(ValueError):
    """Bytes that cannot be decoded: what is wrong and what to do, without the place they came from."""

    def __init__(self, problem: str, remedy: str):
        super().__init__(f"{problem}. {remedy}.")
        self.problem, self.remedy = problem, remedy


def decode_text(data: bytes) -> str:
    """Decodes UTF-8; raises a DataError that names the first invalid byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem, remedy = f"byte {error.start + 1} is not valid utf-8", "Save the file as UTF-8"
        if data.startswith(GZIP):
            problem, remedy = "the file is compressed with gzip", "Uncompress it, for instance with gunzip"
        raise DataError(problem, remedy) from None


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
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"character {error.colno}"
        problem = f"invalid JSON, {error.msg.removesuffix(' at')} at {place}"
        remedy = "Correct it, or check whether the file is truncated"
    except RecursionError:
        problem, remedy = "the JSON is nested too deeply", "Remove the levels that a record does not need"
    except ValueError:  # Python's limit on the digits of an integer, the only other input that its parser rejects
        problem, remedy = "a number has thousands of digits", "Correct it"
    raise DataError(problem, remedy)


def shown(value: object) -> str:
    """A value for messages: abbreviated, with its type."""
    return "null" if value is None else f"{reprlib.repr(value)} ({type(value).__name__})"


def difference(left: str, right: str) -> str:
    """Of two strings that look alike, the first characters that differ, by their code points; empty for others.

    >>> difference("caf\u00e9", "cafe\u0301")
    'They differ from character 3 on: U+00E9 is not U+0065 U+0301'
    >>> difference("\u041ersk", "Orsk")
    'They differ from character 0 on: U+041E is not U+004F'
    >>> difference("Orsk", "Omsk")
    ''
    """
    if left == right or not _look_alike(left, right):
        return ""
    at = _common(left, right)
    rest = left[at:], right[at:]
    ends = _common(rest[0][::-1], rest[1][::-1])
    points = [" ".join(f"U+{ord(one):04X}" for one in text[: len(text) - ends][:SHOWN_POINTS]) for text in rest]
    return f"They differ from character {at} on: {points[0] or 'nothing'} is not {points[1] or 'nothing'}"


def _common(left: str, right: str) -> int:
    """The number of characters with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def _look_alike(left: str, right: str) -> bool:
    """Whether strings differ only in how characters are coded, in invisible ones, dashes, quotes, or in scripts."""
    first, second = map(_visible, (left, right))
    return len(first) == len(second) and all(
        one == other or (_script(one) != _script(other) and {_script(one), _script(other)} <= SCRIPTS_ALIKE)
        for one, other in zip(first, second, strict=True)
    )


def _visible(text: str) -> str:
    composed = unicodedata.normalize("NFKC", text.translate({ord("`"): "'", ord('"'): "'", 0x2212: "-"}))
    plain = {"Cf": "", "Pd": "-", "Pi": "'", "Pf": "'"}
    return " ".join("".join(plain.get(unicodedata.category(one), one) for one in composed).split())


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]
