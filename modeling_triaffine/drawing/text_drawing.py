"""Draws nested entities under their text in plain Unicode, for terminals and logs.

    the mayor of Port Velmar
                 ╰─────────╯ LOCATION
    ╰──────────────────────╯ PERSON

Inner entities are directly under the text, outer ones below them. A label is to the right of its bracket; if it would
collide with the next bracket, that one moves down a line. Long text is wrapped; an entity that continues in the next
line ends in ▸ and starts with ▸ there, with its label in both. ┴ is an entity one column wide.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from .entities import DrawnEntity, choose_lanes, from_inside, read_entities
from .safe_text import text_width, visible_character

MIN_WIDTH = 10
LABEL_GAP = 1  # columns between a bracket and its label
NEXT_GAP = 2  # minimum number of columns between a label and the next bracket
PARAGRAPH = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
SPACES = (" ", "\N{IDEOGRAPHIC SPACE}")  # text is wrapped after these


@dataclass(frozen=True)
class _Line:
    """The characters from `start` to `end` of a text as they are drawn, and the columns where each begins."""

    start: int
    end: int
    shown: str
    columns: Sequence[int]

    def column(self, character: int) -> int:
        """The column of a character of the text; of one outside, the nearer end of the line."""
        return self.columns[min(max(character, self.start), self.end) - self.start]


class _Bracket(NamedTuple):
    """The part of an entity in one line: its columns, the end of its label, and the bracket with its label."""

    start: int
    end: int
    label_end: int
    drawn: str


def draw_entities(text: str, entities: Iterable[Mapping[str, Any]], width: int = 100) -> str:
    """Draws the entities of a text under it.

    Args:
        text: Any text; line breaks are kept.
        entities: Dicts with `entity_group` or `type`, `start` and `end` (characters, exclusive), as returned by the
            pipeline. They may nest, cross and share a span, in any order; duplicates are drawn once.
        width: Maximum number of columns, 10 or more. The text is wrapped at spaces, early where a label would exceed
            the width; only a label longer than half the width does.

    Raises:
        ValueError: An entity is malformed or outside the text.

    Examples:
        >>> from modeling_triaffine import draw_entities
        >>> person, city = {"type": "Person", "start": 0, "end": 17}, {"type": "City", "start": 13, "end": 17}
        >>> print(draw_entities("The mayor of Orsk slept.", [person, city]))
        The mayor of Orsk slept.
                     ╰──╯ City
        ╰───────────────╯ Person
    """
    width = max(width, MIN_WIDTH)
    ordered = read_entities(entities, text, lambda label: "".join(visible_character(c)[0] for c in label))
    drawn = _draw(text, ordered, width)
    if any(text_width(line) > width for line in drawn):
        label_room = max(LABEL_GAP + text_width(entity.label) for entity in ordered)
        drawn = _draw(text, ordered, max(width - label_room, width // 2))
    return "\n".join(drawn).rstrip("\n")


def _draw(text: str, entities: Iterable[DrawnEntity], columns: int) -> list[str]:
    """Lines of text with at most that many columns, each with its brackets below; entities are sorted by start."""
    waiting = deque(entities)
    present: list[DrawnEntity] = []
    drawn: list[str] = []
    for line in _wrap(text, columns):
        while waiting and waiting[0].start < line.end:
            present.append(waiting.popleft())
        present = [entity for entity in present if line.start < entity.end]
        drawn.append(line.shown)
        if present:
            drawn += [*_draw_brackets(present, line), ""]
    return drawn


def _wrap(text: str, columns: int) -> Iterator[_Line]:
    """Lines of at most that many columns, not counting spaces at their ends; a word that is longer is cut."""
    for paragraph in PARAGRAPH.finditer(text):
        offset = paragraph.start()
        shown, widths = map(list, zip(*map(visible_character, paragraph[0].rstrip("\r\n") or " "), strict=True))
        start = used = 0
        words = [0]  # where the words begin that this line may end before
        for place, width in enumerate(widths):
            while width and used + width > columns and shown[place] not in SPACES:  # twice: a wide end of a long word
                end = words[-1] if words[-1] > start else place
                yield _line(offset, start, end, shown, widths)
                start, used = end, sum(widths[end:place])
            used += width
            if shown[place] in SPACES and any(widths[place + 1 : place + 2]):  # carries no combining mark
                words.append(place + 1)
        yield _line(offset, start, len(paragraph[0]), shown, widths)


def _line(offset: int, start: int, end: int, shown: Sequence[str], widths: Sequence[int]) -> _Line:
    """The line of these characters of a paragraph that begins at `offset`, without spaces and breaks at its end."""
    text = "".join(shown[start:end]).rstrip()
    last, breaks = text_width(text), [0] * (end - len(widths))
    columns = [min(column, last) for column in accumulate([*widths[start:end], *breaks], initial=0)]
    return _Line(offset + start, offset + end, text, columns)


def _draw_brackets(entities: Iterable[DrawnEntity], line: _Line) -> list[str]:
    """The lanes below a line of text, from top to bottom, with the brackets of entities from the left to the right."""
    brackets = [_bracket(entity, line) for entity in from_inside(entities)]
    lanes = choose_lanes([(bracket.start, bracket.end, bracket.label_end + NEXT_GAP) for bracket in brackets])
    drawn: list[str] = []
    ends: list[int] = []
    for lane, bracket in sorted(zip(lanes, brackets, strict=True)):
        if lane == len(drawn):
            drawn.append("")
            ends.append(0)
        drawn[lane] += " " * (bracket.start - ends[lane]) + bracket.drawn
        ends[lane] = bracket.label_end
    return drawn


def _bracket(entity: DrawnEntity, line: _Line) -> _Bracket:
    start = line.column(entity.start)
    width = line.column(entity.end) - start
    opening = "╰" if line.start <= entity.start else "▸"  # which begins before this line
    closing = "╯" if entity.end <= line.end else "▸"
    if width > 1:
        drawn = opening + "─" * (width - 2) + closing
    elif (opening, closing) == ("╰", "╯"):
        drawn = "┴"
    else:
        drawn = opening if opening == "╰" else closing
    drawn += " " * LABEL_GAP + entity.label
    return _Bracket(start, start + max(1, width), start + text_width(drawn), drawn)
