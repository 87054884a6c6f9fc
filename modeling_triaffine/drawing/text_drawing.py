"""Draws nested entities under their text in plain Unicode, for terminals and logs.

    the mayor of Port Velmar
                 ╰─────────╯ LOCATION
    ╰──────────────────────╯ PERSON

Inner entities are directly under the text, outer ones below them. A label is to the right of its bracket; if it would
collide with the next bracket, that one moves down a line. Long text is wrapped; an entity that continues in the next
line ends in ▸ and starts with ▸ there, with its label in both. ┴ is an entity one column wide.

Columns are those of terminals: wide characters take two, combining marks none. Controls, escape sequences and direction
overrides are replaced by visible characters; joiners and variation selectors are removed.
"""

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any

from ..nesting import contains, nesting_heights
from .entities import DrawnEntity, read_entities
from .safe_text import text_width, visible_character

MIN_WIDTH = 10
LABEL_GAP = 1  # columns between a bracket and its label
NEXT_GAP = 2  # minimum number of columns between a label and the next bracket
LINE_ENDS = ("\r\n", "\n", "\r")
SPACES = (" ", "\N{IDEOGRAPHIC SPACE}")  # text is wrapped after these
DOTTED_CIRCLE = "\N{DOTTED CIRCLE}"  # carries a combining mark without a character before it


@dataclass(frozen=True)
class _Cell:
    """A character with its combining marks, or a line end."""

    shown: str
    columns: int
    start: int  # characters of the text
    end: int
    ends_line: bool = False

    @property
    def is_space(self) -> bool:
        return self.shown in SPACES


@dataclass(frozen=True)
class _Bracket:
    """The part of an entity in one line, by columns."""

    entity: DrawnEntity
    left: int
    right: int  # exclusive
    opens: bool  # the entity begins in this line
    closes: bool  # the entity ends in this line

    @property
    def drawn_end(self) -> int:
        """The first column after the label."""
        return self.right + LABEL_GAP + text_width(self.entity.label)

    def draw(self) -> str:
        left, right = "╰" if self.opens else "▸", "╯" if self.closes else "▸"
        if self.right - self.left > 1:
            line = left + "─" * (self.right - self.left - 2) + right
        elif self.opens and self.closes:
            line = "┴"
        else:
            line = left if self.opens else right
        return line + " " * LABEL_GAP + self.entity.label


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
    ordered = read_entities(entities, text, _shown)
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
    for line in filter(None, _wrap(_cells(text), columns)):
        while waiting and waiting[0].start < line[-1].end:
            present.append(waiting.popleft())
        present = [entity for entity in present if line[0].start < entity.end]
        shown = "".join(cell.shown for cell in line).rstrip()
        lanes = [_draw_lane(lane) for lane in _lanes(list(_brackets(present, line)))]
        drawn += [shown, *lanes, ""] if lanes else [shown]
    return drawn


def _shown(label: str) -> str:
    return "".join(visible_character(character)[0] for character in label)


# ---- text: characters → cells → lines


def _cells(text: str) -> list[_Cell]:
    cells: list[_Cell] = []
    for match in re.finditer(r"\r\n|[\s\S]", text):
        character, start, end = match.group(), match.start(), match.end()
        if character in LINE_ENDS:
            cells.append(_Cell(" ", 1, start, end, ends_line=True))
            continue
        shown, columns = visible_character(character)
        if columns == 0 and cells and not cells[-1].ends_line:
            base = cells.pop()
            cells.append(_Cell(base.shown + shown, base.columns, base.start, end))
        elif columns == 0:
            cells.append(_Cell(DOTTED_CIRCLE + shown, 1, start, end))
        else:
            cells.append(_Cell(shown, columns, start, end))
    return cells


def _wrap(cells: Iterable[_Cell], columns: int) -> list[list[_Cell]]:
    """Lines of at most that many columns, not counting trailing spaces."""
    lines: list[list[_Cell]] = [[]]
    used = 0
    for cell in cells:
        while used + cell.columns > columns and not cell.is_space:  # twice if a wide character ends a long word
            lines.append(_take_last_word(lines[-1]))
            used = sum(before.columns for before in lines[-1])
        lines[-1].append(cell)
        used += cell.columns
        if cell.ends_line:
            lines.append([])
            used = 0
    return lines


def _take_last_word(line: list[_Cell]) -> list[_Cell]:
    """Removes the last word from the line; nothing if the line has no space, so that the word is split."""
    start = next((index + 1 for index in reversed(range(len(line))) if line[index].is_space), len(line))
    word = line[start:]
    del line[start:]
    return word


# ---- entities: brackets → lanes → lines


def _brackets(entities: Iterable[DrawnEntity], line: Sequence[_Cell]) -> Iterator[_Bracket]:
    """The parts in a line of entities that all have one."""
    columns = list(accumulate((cell.columns for cell in line), initial=0))
    for entity in entities:
        first = bisect_right(line, entity.start, key=attrgetter("end"))
        after = bisect_left(line, entity.end, key=attrgetter("start"))
        while after > first + 1 and line[after - 1].is_space:  # the space at which the text was wrapped
            after -= 1
        opens, closes = line[0].start <= entity.start, entity.end <= line[-1].end
        yield _Bracket(entity, columns[first], columns[after], opens, closes)


def _lanes(brackets: Sequence[_Bracket]) -> list[list[_Bracket]]:
    """Brackets on lanes from top to bottom: each as high as possible, but below all that it contains."""
    heights = nesting_heights(bracket.entity.span for bracket in brackets)
    lanes: list[list[_Bracket]] = []
    lane_of: dict[DrawnEntity, int] = {}
    for bracket in sorted(brackets, key=lambda bracket: (heights[bracket.entity.span], bracket.left)):
        inside = [lane_of[other] for other in lane_of if contains(bracket.entity.span, other.span)]
        lane = max(inside, default=-1) + 1
        while lane < len(lanes) and any(_collide(bracket, other) for other in lanes[lane]):
            lane += 1
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append(bracket)
        lane_of[bracket.entity] = lane
    return lanes


def _collide(one: _Bracket, other: _Bracket) -> bool:
    first, second = sorted((one, other), key=lambda bracket: bracket.left)
    return second.left < first.drawn_end + NEXT_GAP


def _draw_lane(lane: Iterable[_Bracket]) -> str:
    drawn, column = "", 0
    for bracket in sorted(lane, key=lambda bracket: bracket.left):
        drawn += " " * (bracket.left - column) + bracket.draw()
        column = bracket.drawn_end
    return drawn
