"""Strings that look alike and are not equal, for messages."""

import unicodedata
from itertools import takewhile

SCRIPTS_ALIKE = {"LATIN", "GREEK", "CYRILLIC"}
"""Scripts with letters that look like those of the others."""
SHOWN_POINTS = 8


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
