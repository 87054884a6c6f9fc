"""What offsets count: characters, UTF-16 units or bytes, a line end of `\\r\\n` as two or as one.

Tools write offsets as their language counts. They are converted to characters; texts stay as they are.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from ..model.text_triaffine import Offsets
from .reading import BYTE_ORDER_MARK

CHARACTERS = "characters"
AS_ONE = "_lf"
"""At the end of a name: as if lines ended in a line feed alone."""
UNITS: dict[str, tuple[str, Callable[[str], int]]] = {
    CHARACTERS: ("characters, as Python counts", lambda character: 1),
    "utf16": ("UTF-16 units, as JavaScript and Java count", lambda character: 1 + (ord(character) > 0xFFFF)),
    "bytes": ("bytes of UTF-8", lambda character: len(character.encode())),
}
"""Unit → its meaning, and how many a character has."""
COUNTS = {
    **{name: meaning for name, (meaning, _) in UNITS.items()},
    **{f"{name}{AS_ONE}": rf"the same, \r\n as one ({name})" for name in UNITS},
}
"""What offsets may count → its meaning."""


def positions(text: str, count: str, mark_counts: bool = True) -> list[int]:
    """The offset of each character of the text, and at last that of its end.

    Args:
        count: one of `COUNTS`.
        mark_counts: whether a byte order mark at the beginning of the text is counted.
    """
    _, units = UNITS[count.removesuffix(AS_ONE)]
    sizes = [units(character) for character in text]
    if count.endswith(AS_ONE):
        sizes = [0 if text.startswith("\r\n", n) else size for n, size in enumerate(sizes)]
    if not mark_counts and text.startswith(BYTE_ORDER_MARK):
        sizes[0] = 0
    return list(accumulate(sizes, initial=0))


def in_characters(offsets: Offsets, at: Sequence[int]) -> Offsets | None:
    """Offsets as positions of characters; beyond the text they stay so. None if one is inside of a character.

    Args:
        at: the [`positions`] of the text.
    """
    start, end = offsets
    size = len(at) - 1
    first = bisect_right(at, start) - 1 if start <= at[-1] else size + start - at[-1]
    last = bisect_left(at, end) if end <= at[-1] else size + end - at[-1]
    if (first <= size and at[first] != start) or (last <= size and at[last] != end):
        return None
    return first, last


def possible_counts(text: str) -> Iterator[tuple[str, bool]]:
    """The counts, and whether a byte order mark counts, that give other offsets in this text; characters first."""
    differing = [CHARACTERS]
    differing += ["utf16"] if any(character > "\uffff" for character in text) else []
    differing += [] if text.isascii() else ["bytes"]
    for unit in differing:
        for end in ("", AS_ONE) if "\r\n" in text else ("",):
            yield f"{unit}{end}", True
            if text.startswith(BYTE_ORDER_MARK):
                yield f"{unit}{end}", False
