"""Offsets in texts: what they count (characters, UTF-16 units, bytes), and what is between two of them.

Tools write offsets as their language counts. They are converted to characters; texts stay as they are.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate

from ..model.text_triaffine import INVISIBLE_SPACES, Offsets
from ..parsing import JOINERS
from .schema import Entity

BYTE_ORDER_MARK = "\ufeff"
CHARACTERS = "characters"
OFFSET_UNITS: dict[str, Callable[[str], int]] = {
    CHARACTERS: lambda character: 1,
    "utf16": lambda character: 1 + (ord(character) > 0xFFFF),
    "bytes": lambda character: len(character.encode()),
}
"""What offsets may count (UTF-16 units: JavaScript and Java; bytes: of UTF-8) → how many of these a character has."""
NOT_COMPARED = re.compile(rf"[\s{BYTE_ORDER_MARK}]+|\\[nrt]")
"""White space, for which some tools write backslash and n in quotes, and marks of the byte order."""
SHOWN_AROUND = 20  # characters of context on either side of an example
SHOWN_INSIDE = 40


def check_unit(offsets: str | None) -> None:
    """Raises ValueError unless `offsets` is None or one of `OFFSET_UNITS`."""
    if offsets is not None and offsets not in OFFSET_UNITS:
        raise ValueError(f"`offsets` is {offsets!r}. Give one of {', '.join(OFFSET_UNITS)}.")


@lru_cache(maxsize=1)  # for all entities of a text
def positions(text: str, unit: str) -> Sequence[int]:
    """The offset of each character of the text in one of `OFFSET_UNITS`, and at last that of its end."""
    if unit == CHARACTERS:
        return range(len(text) + 1)
    return list(accumulate(map(OFFSET_UNITS[unit], text), initial=0))


def in_characters(offsets: Offsets, at: Sequence[int]) -> Offsets | None:
    """Converts offsets to positions of characters; None if one is outside of the text or inside a character.

    Args:
        at: the [`positions`] of the text.
    """
    start, end = offsets
    if not 0 <= start <= end <= at[-1]:
        return None
    first, last = bisect_right(at, start) - 1, bisect_left(at, end)
    return (first, last) if at[first] == start and at[last] == end else None


def joined(text: str, fragments: Sequence[Offsets]) -> list[Offsets]:
    """The fragments in order, joined if white space alone separates them: brat starts a new one on every line."""
    parts: list[Offsets] = []
    for start, end in sorted(fragments):
        if parts and not text[parts[-1][1] : start].translate(INVISIBLE_SPACES).strip():
            parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
        else:
            parts.append((start, end))
    return parts


def without_space(text: str, entity: Entity) -> Entity:
    """The entity without white space at its boundaries, as the pipeline returns entities."""
    inside = text[entity["start"] : entity["end"]].translate(INVISIBLE_SPACES)
    start = entity["start"] + len(inside) - len(inside.lstrip())
    return Entity(start=start, end=start + len(inside.strip()), type=entity["type"])


def same_but_for_space(quote: str, text: str) -> bool:
    """The quote that a tool wrote is the text, with white space in other places at most."""
    bare, other = (NOT_COMPARED.sub("", string.translate(INVISIBLE_SPACES)) for string in (quote, text))
    return bare == other


def in_context(text: str, start: int, end: int) -> str:
    """The characters `start` to `end` in brackets with some context, on one line; invisible characters are escaped."""
    before = ("…" if start > SHOWN_AROUND else "") + text[max(0, start - SHOWN_AROUND) : start]
    after = text[end : end + SHOWN_AROUND] + ("…" if end + SHOWN_AROUND < len(text) else "")
    inside = text[start:end]
    if len(inside) > SHOWN_INSIDE:
        inside = f"{inside[: SHOWN_INSIDE // 2]}…{inside[-SHOWN_INSIDE // 2 :]}"
    shown = re.sub(r"\s", " ", f"{before}[{inside}]{after}").strip()
    return "".join(c if c.isprintable() or c in JOINERS else c.encode("unicode_escape").decode() for c in shown)
