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
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .entities import DrawnEntity, choose_lanes, from_inside, read_entities
from .safe_text import text_width, visible_character

MIN_WIDTH = 10
LABEL_GAP = 1  # columns between a bracket and its label
NEXT_GAP = 2  # minimum number of columns between a label and the next bracket
PARAGRAPH = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
SPACES = (" ", "\N{IDEOGRAPHIC SPACE}")  # text is wrapped after these


class _Line:
    """The characters from `start` to `end` of a text; `shown` is without spaces and breaks at its end."""

    def __init__(self, text: str, start: int, end: int):
        self.start, self.end, self.characters = start, end, text[start:end]
        self.shown = _visible(self.characters.rstrip("\r\n")).rstrip()
        self.width = text_width(self.shown)

    def column(self, character: int) -> int:
        """The column of a character of the text; of one outside, the nearer end of the line."""
        return min(text_width(self.characters[: max(0, character - self.start)]), self.width)


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
    ordered = read_entities(entities, text, _visible)
    drawn = _draw(text, ordered, width)
    if ordered and any(text_width(line) > width for line in drawn):
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
        start = word = paragraph.start()  # of the line, and of the last word that it may end before
        used = 0
        for place in range(start, start + len(paragraph[0].rstrip("\r\n"))):
            width = text_width(text[place])
            while width and used + width > columns and text[place] not in SPACES:  # twice: a wide end of a long word
                end = word if word > start else place
                yield _Line(text, start, end)
                start, used = end, text_width(text[end:place])
            used += width
            if text[place] in SPACES and text_width(text[place + 1 : place + 2]):  # carries no combining mark
                word = place + 1
        yield _Line(text, start, paragraph.end())


def _visible(text: str) -> str:
    return "".join(visible_character(character)[0] for character in text)


def _draw_brackets(entities: Iterable[DrawnEntity], line: _Line) -> list[str]:
    """The lanes below a line of text, from top to bottom, with the brackets of entities from the left to the right."""
    brackets = [_bracket(entity, line) for entity in from_inside(entities)]
    lanes = choose_lanes([bracket[:3] for bracket in brackets])
    drawn = [""] * (max(lanes) + 1)
    for lane, (start, *_, bracket) in sorted(zip(lanes, brackets, strict=True)):
        drawn[lane] += " " * (start - text_width(drawn[lane])) + bracket
    return drawn


def _bracket(entity: DrawnEntity, line: _Line) -> tuple[int, int, int, str]:
    """The part of an entity in a line: columns of start, end and the next bracket, and the bracket with its label."""
    start = line.column(entity.start)
    width = max(1, line.column(entity.end) - start)
    opening = "╰" if line.start <= entity.start else "▸"  # which begins before this line
    closing = "╯" if entity.end <= line.end else "▸"
    narrow = {"╰╯": "┴", "╰▸": "╰"}.get(opening + closing, closing)
    drawn = narrow if width == 1 else opening + "─" * (width - 2) + closing
    drawn += " " * LABEL_GAP + entity.label
    return start, start + width, start + text_width(drawn) + NEXT_GAP, drawn
