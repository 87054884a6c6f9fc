"""What offsets count: characters, UTF-16 units or bytes, a line end of `\\r\\n` as two or as one.

Tools write offsets as their language counts. They are converted to characters; texts stay as they are.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from ..model.text_triaffine import Offsets

BYTE_ORDER_MARK = "\ufeff"
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
    **{f"{name}{AS_ONE}": rf"{meaning}, but \r\n as one" for name, (meaning, _) in UNITS.items()},
}
"""What offsets may count → its meaning."""


def check_count(offsets: str | None) -> None:
    """Raises ValueError unless `offsets` is None or one of `COUNTS`."""
    if offsets is not None and offsets not in COUNTS:
        raise ValueError(f"`offsets` is {offsets!r}. Give one of {', '.join(COUNTS)}.")


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
    if min(start, end) < 0:  # outside of the text, as what is beyond it
        return offsets
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


# ---- Offsets that no quote checks ----

_NO_BOUNDARY = re.compile("[\\s，。、；：！？]")
"""Characters with which no entity begins or ends."""
_INSIDE_A_WORD = re.compile("[^\\W\\d_]{2}")
_SPACED_SCRIPTS_END = "\u0e00"
"""Letters before this one are those of Latin, Greek, Cyrillic, Hebrew, Arabic and Indic words, between spaces."""


class UncheckedOffsets:
    """Compares the ways of counting over the texts of a corpus whose offsets nothing checks.

    An entity that begins or ends outside of the text, inside a character or a word, or with white space, is out of
    place. Only those are compared that another count moves.
    """

    def __init__(self) -> None:
        self.moved, self.out_of_place, self.so_out_of_place = Counter[str](), Counter[str](), Counter[str]()
        self.impossible: set[str] = set()  # under which an entity would not be in its text, or end inside a character

    def add(self, text: str, spans: Iterable[Offsets]) -> None:
        """Looks at the entities of a text, with offsets as they are in the file."""
        spans = list(spans)
        for count, mark_counts in possible_counts(text) if spans else ():
            if count == CHARACTERS or not mark_counts:
                continue
            at = positions(text, count)
            for span in spans:
                converted = in_characters(span, at)
                if converted != span:
                    self.moved[count] += 1
                    self.out_of_place[count] += _is_out_of_place(text, span)
                    if converted is None or converted[1] > len(text):
                        self.impossible.add(count)
                    else:
                        self.so_out_of_place[count] += _is_out_of_place(text, converted)

    def __str__(self) -> str:
        """One line if another count fits all, or if none fits better; empty if characters do."""
        possible = [count for count in self.moved if count not in self.impossible]
        fitting = [count for count in possible if self.out_of_place[count] and not self.so_out_of_place[count]]
        if fitting:
            count = max(fitting, key=lambda one: self.out_of_place[one])
            return (
                f"entities that begin or end outside of the text, at white space or inside a word, but none if offsets "
                f"count {COUNTS[count]}: {self.out_of_place[count]} of {self.moved[count]} ({remedy_of_counts(count)})"
            )
        unclear = [count for count in possible if self.out_of_place[count] >= self.so_out_of_place[count]]
        if unclear:
            count = max(unclear, key=lambda one: self.moved[one])
            return (
                "entities whose offsets cannot be checked, as nothing quotes them, and are taken to count characters: "
                f"{self.moved[count]} (if they count {COUNTS[count]}: {remedy_of_counts(count)})"
            )
        return ""


def remedy_of_counts(count: str) -> str:
    return f"triaffine-ner convert --offsets {count}, offsets={count!r} in Python"


def _is_out_of_place(text: str, span: Offsets) -> bool:
    start, end = span
    if not 0 <= start < end <= len(text) or _NO_BOUNDARY.match(text[start]) or _NO_BOUNDARY.match(text[end - 1]):
        return True
    return any(
        _INSIDE_A_WORD.fullmatch(around) and max(around) < _SPACED_SCRIPTS_END
        for around in (text[max(0, start - 1) : start + 1], text[end - 1 : end + 1])
    )
