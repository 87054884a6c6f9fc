"""Nested entities drawn under their text in plain Unicode, for terminals and logs.

    >>> print(draw_entities("the mayor of Port Velmar", [
    ...     {"entity_group": "PERSON", "start": 0, "end": 24}, {"entity_group": "LOCATION", "start": 13, "end": 24}]))
    the mayor of Port Velmar
                 ╰─────────╯ LOCATION
    ╰──────────────────────╯ PERSON

Inner entities come first, right under the text, outer ones below them. A label stands right of its bracket; where
the next bracket leaves no room for it, that one moves down a line. Long text is wrapped; an entity that goes on in the
next line ends in ▸ here and begins with ▸ there, with its label in both.

Columns are counted as terminals do: wide characters take two, combining marks none. Characters that a terminal would
act upon instead of showing (controls, escape sequences, direction overrides) are replaced by visible ones.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MIN_WIDTH = 10
LABEL_GAP = 1  # columns between a bracket and its label
NEXT_GAP = 2  # least number of columns between a label and the next bracket: the label belongs to what is left of it
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
LINE_ENDS = ("\n", "\r\n", "\r")


@dataclass(frozen=True)
class _Cell:
    """A character with the marks that combine with it: what cannot be torn apart."""

    shown: str
    width: int  # columns
    start: int  # characters of the text
    end: int

    @property
    def is_space(self) -> bool:
        return self.shown.isspace()


@dataclass(frozen=True)
class _Entity:
    start: int
    end: int
    label: str

    def contains(self, other: "_Entity") -> bool:
        """Whether the other one lies in this one and is not the same span."""
        within = self.start <= other.start and other.end <= self.end
        return within and (self.start, self.end) != (other.start, other.end)


@dataclass(frozen=True)
class _Bracket:
    """The part of an entity that lies in one line, by columns."""

    entity: _Entity
    left: int
    right: int  # exclusive
    opens: bool  # the entity begins in this line
    closes: bool  # the entity ends in this line

    @property
    def drawn_end(self) -> int:
        """The first column behind the label."""
        return self.right + LABEL_GAP + _columns(self.entity.label)

    def draw(self) -> str:
        if self.right - self.left == 1:
            line = {(True, True): "┴", (True, False): "╰", (False, True): "╯", (False, False): "▸"}[
                self.opens, self.closes
            ]
        else:
            left, right = "╰" if self.opens else "▸", "╯" if self.closes else "▸"
            line = left + "─" * (self.right - self.left - 2) + right
        return line + " " * LABEL_GAP + self.entity.label


def draw_entities(text: str, entities: Iterable[Mapping[str, Any]], width: int = 100) -> str:
    """The text with its entities drawn under it.

    Args:
        text: Any text; line breaks are kept.
        entities: Dicts with `entity_group`, `start` and `end` (characters, exclusive), as the pipeline gives them. They
            may nest, cross and repeat a span; their order makes no difference.
        width: Columns to stay within. The text is wrapped at spaces, early enough for the longest label to fit right of
            it; a word that is longer than a line is cut. Only a label longer than half the width reaches beyond it.

    Returns:
        Lines without a line break at the end; a blank line follows the brackets of each line but the last.

    Raises:
        ValueError: The width is below 10, or an entity is ill-formed or lies outside the text.
    """
    if width < MIN_WIDTH:
        raise ValueError(f"A width of {width} columns is too small to draw in; use at least {MIN_WIDTH}.")
    read = sorted(
        {_read_entity(entity, index, text) for index, entity in enumerate(entities)},
        key=lambda entity: (entity.start, -entity.end, entity.label),
    )
    label_room = max((LABEL_GAP + _columns(entity.label) for entity in read), default=0)
    blocks = [_draw_line(line, read) for line in _wrap(_cells(text), max(width - label_room, width // 2))]
    spaced = [block + "\n" if "\n" in block and block is not blocks[-1] else block for block in blocks]
    return "\n".join(spaced)


def _read_entity(entity: Mapping[str, Any], index: int, text: str) -> _Entity:
    missing = [key for key in ("entity_group", "start", "end") if key not in entity]
    if missing:
        raise ValueError(f"Entity {index} has no {' and no '.join(missing)}: {dict(entity)!r}.")
    start, end = entity["start"], entity["end"]
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)):
        raise ValueError(
            f"Entity {index} runs from {start!r} to {end!r} in a text of {len(text)} characters; "
            "0 <= start < end <= length is needed, counted in characters, end exclusive."
        )
    return _Entity(start, end, "".join(cell.shown for cell in _cells(str(entity["entity_group"]))))


def _draw_line(line: Sequence[_Cell], entities: Sequence[_Entity]) -> str:
    """A line of text and, below it, the brackets of the entities that have a part in it."""
    shown = "".join(cell.shown for cell in line).rstrip()
    lanes = _lanes([bracket for entity in entities if (bracket := _bracket(entity, line))])
    return "\n".join([shown, *(_draw_lane(lane) for lane in lanes)])


def _bracket(entity: _Entity, line: Sequence[_Cell]) -> _Bracket | None:
    """The entity's part in the line; None where it has none."""
    column = 0
    columns = []
    for cell in line:
        if cell.start < entity.end and entity.start < cell.end:
            columns.append((column, column + cell.width, cell))
        column += cell.width
    while len(columns) > 1 and columns[-1][2].is_space:  # what hangs over at the end of a line is not underlined
        columns.pop()
    if not columns:
        return None
    left, right = columns[0][0], columns[-1][1]
    return _Bracket(
        entity,
        left,
        max(right, left + 1),
        opens=line[0].start <= entity.start,
        closes=entity.end <= line[-1].end,
    )


def _lanes(brackets: Sequence[_Bracket]) -> list[list[_Bracket]]:
    """Brackets on lanes from top to bottom: each as high as it fits, but below everything that it contains."""
    lanes: list[list[_Bracket]] = []
    lane_of: dict[_Entity, int] = {}
    # Shorter first, so that what an entity contains has its lane before it; sorting is stable, so left to right.
    for bracket in sorted(brackets, key=lambda bracket: bracket.entity.end - bracket.entity.start):
        lane = max((lane_of[entity] + 1 for entity in lane_of if bracket.entity.contains(entity)), default=0)
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


def _draw_lane(lane: Sequence[_Bracket]) -> str:
    drawn, column = "", 0
    for bracket in sorted(lane, key=lambda bracket: bracket.left):
        drawn += " " * (bracket.left - column) + bracket.draw()
        column = bracket.drawn_end
    return drawn


def _wrap(cells: Sequence[_Cell], width: int) -> list[list[_Cell]]:
    """Lines of at most `width` columns, cut behind spaces where there are any; spaces may hang over at the end."""
    lines: list[list[_Cell]] = [[]]
    used = 0
    for cell in cells:
        if used + cell.width > width and not cell.is_space and lines[-1]:
            lines.append(_cut_word(lines[-1]))
            used = sum(kept.width for kept in lines[-1])
        lines[-1].append(cell)
        used += cell.width
        if cell.shown == "" :
            lines.append([])
            used = 0
    return lines


def _cut_word(line: list[_Cell]) -> list[_Cell]:
    """Takes the unfinished word off the line; nothing if the word fills the line."""
    start = len(line)
    while start and not line[start - 1].is_space:
        start -= 1
    if start == 0:
        return []
    word = line[start:]
    del line[start:]
    return word


def _cells(text: str) -> list[_Cell]:
    cells: list[_Cell] = []
    for index, character in enumerate(text):
        shown, width = _shown(character)
        if width == 0 and cells and cells[-1].shown:
            before = cells.pop()
            cells.append(_Cell(before.shown + shown, before.width, before.start, index + 1))
        else:
            cells.append(_Cell(shown, width, index, index + 1))
    return cells


def _shown(character: str) -> tuple[str, int]:
    raise NotImplementedError


def _columns(text: str) -> int:
    return sum(_shown(character)[1] for character in text)
