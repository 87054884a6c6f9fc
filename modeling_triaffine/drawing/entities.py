"""Draws a text with its nested entities, given as dicts of a record or of a pipeline's output.

In Unicode, inner entities are directly under the text, outer ones below them. A label is to the right of its bracket;
if it would collide with the next bracket, that one moves down a line. Long text is wrapped; an entity that continues in
the next line ends in ▸ and starts with ▸ there, with its label in both. ┴ is an entity one column wide.

In HTML, brackets nest under the text, each with its label at the end: The [mayor of [Port Velmar LOCATION] PERSON]
opened. They are borders of inline elements, which wrap with the text and follow its direction. If two entities cross,
one of them is drawn in adjacent pieces. Labels are generated content: selecting, copying and `textContent` give the
original text.
"""

import html
import operator
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..model.text_triaffine import clean_text
from ..nesting import nesting_heights
from .safe_text import text_width, visible_character

TYPE_KEYS = ("type", "entity_group")  # of records, and of the pipeline's output

# Of drawings in Unicode.
MIN_WIDTH = 10
LABEL_GAP = 1  # columns between a bracket and its label
NEXT_GAP = 2  # minimum number of columns between a label and the next bracket
PARAGRAPH = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
SPACES = (" ", "\N{IDEOGRAPHIC SPACE}")  # text is wrapped after these

# Colours of a label on light and on dark backgrounds, and of text on the first (on the second, text is black). They are
# distinguishable with colour vision deficiencies; the contrast to the background is at least 3 : 1, to the text
# 4.5 : 1. From the ninth label on, colours repeat with another line.
PALETTE = (
    ("#1e9eba", "#6dd2eb", "#000000"),
    ("#ac1c91", "#dc3186", "#ffffff"),
    ("#87720d", "#ffd921", "#ffffff"),
    ("#7540ea", "#9a90e1", "#ffffff"),
    ("#085d46", "#aef5c6", "#ffffff"),
    ("#e26178", "#e49d90", "#000000"),
    ("#1b2e5f", "#4a6ef2", "#ffffff"),
    ("#522004", "#c17c1f", "#ffffff"),
)
LINES = ("solid", "dashed", "double")

_STYLE = Path(__file__).with_name("drawing.css").read_text(encoding="utf-8")


class DrawnEntity(NamedTuple):
    """An entity of a drawing: its characters (`end` exclusive), its label as shown, and its score, if any."""

    start: int
    end: int
    label: str
    score: float | None


def read_entity(entity: Mapping[str, Any], where: str, longest: int | None = None) -> tuple[int, int, str]:
    """`start`, `end` (exclusive) and the label of an entity in a text of length `longest`.

    `where` names the entity in the ValueError for what is no span of the text, or has not one label.
    """
    try:
        start, end = operator.index(entity["start"]), operator.index(entity["end"])  # accepts NumPy integers, no float
        (label,) = (entity[key] for key in TYPE_KEYS if key in entity)
        if 0 <= start < end and (longest is None or end <= longest) and isinstance(label, str) and label:
            return start, end, label
    except (KeyError, TypeError, ValueError):
        pass
    limit = "" if longest is None else f" <= {longest}, the length of the text"
    raise ValueError(
        f"{where}: a dict with integers start and end (exclusive), 0 <= start < end{limit}, and exactly one of type "
        f"and entity_group, a non-empty string, is required; got {entity!r}."
    )


def read_entities(entities: Iterable[Mapping[str, Any]], text: str, show: Callable[[str], str]) -> list[DrawnEntity]:
    """The distinct entities of a text, by start, then longest first, then by label; `show` gives the label as shown."""
    found: dict[tuple[int, int, str], DrawnEntity] = {}
    for index, entity in enumerate(entities):
        start, end, label = read_entity(entity, f"Entity {index}", len(text))
        score = entity.get("score")
        shown = DrawnEntity(start, end, show(label), None if score is None else float(score))
        found.setdefault(shown[:3], shown)
    return sorted(found.values(), key=lambda entity: (entity.start, -entity.end, entity.label))


def choose_lanes(brackets: Mapping[DrawnEntity, tuple[int, int, int]]) -> dict[DrawnEntity, int]:
    """The lanes of brackets, given by columns of start, end, and end of the label; 0 is directly under the text.

    Inner entities come first. A bracket is below all earlier ones that it overlaps, and as high as the room for its
    label allows.
    """
    heights = nesting_heights(entity[:2] for entity in brackets)
    columns = max((room for *_, room in brackets.values()), default=0)
    free = [0] * columns  # the first lane below the brackets in each column
    taken: list[bytearray] = []  # in each lane, the columns with a bracket or a label
    lanes = {}
    for entity in sorted(brackets, key=lambda entity: (heights[entity[:2]], entity.start)):
        start, end, room = brackets[entity]
        lane = max(free[start:end])
        while lane < len(taken) and any(taken[lane][start:room]):
            lane += 1
        if lane == len(taken):
            taken.append(bytearray(columns))
        taken[lane][start:room] = b"\1" * (room - start)
        free[start:end] = [lane + 1] * (end - start)
        lanes[entity] = lane
    return lanes


# ---- In Unicode ----


class _Line:
    """The characters from `start` to `end` of a text; `shown` is without spaces and breaks at its end."""

    def __init__(self, text: str, start: int, end: int):
        self.start, self.end, self.characters = start, end, text[start:end]
        self.shown = _visible(self.characters.rstrip("\r\n")).rstrip()
        self.width = text_width(self.shown)

    def column(self, character: int) -> int:
        """The column of a character of the text; for one outside of the line, the nearer end."""
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
    brackets = {entity: _bracket(entity, line) for entity in entities}
    lanes = choose_lanes({entity: bracket[:3] for entity, bracket in brackets.items()})
    drawn = [""] * (max(lanes.values()) + 1)
    for entity in sorted(brackets, key=lambda entity: brackets[entity]):
        start, *_, bracket = brackets[entity]
        drawn[lanes[entity]] += " " * (start - text_width(drawn[lanes[entity]])) + bracket
    return drawn


def _bracket(entity: DrawnEntity, line: _Line) -> tuple[int, int, int, str]:
    """The part of an entity in a line: columns of start, end and the next bracket, and the bracket with its label."""
    start = line.column(entity.start)
    width = max(1, line.column(entity.end) - start)
    opening = "╰" if line.start <= entity.start else "▸"  # it begins in an earlier line
    closing = "╯" if entity.end <= line.end else "▸"
    narrow = {"╰╯": "┴", "╰▸": "╰"}.get(opening + closing, closing)
    drawn = narrow if width == 1 else opening + "─" * (width - 2) + closing
    drawn += " " * LABEL_GAP + entity.label
    return start, start + width, start + text_width(drawn) + NEXT_GAP, drawn


# ---- In HTML ----


def draw_entities_html(
    text: str, entities: Iterable[Mapping[str, Any]], labels: Sequence[str] = (), *, embedded: bool = False
) -> str:
    """Draws the entities of a text as one safe HTML fragment, which needs no script.

    Args:
        text: any text; markup is escaped, line breaks are kept.
        entities: as for [`draw_entities`]; a `score` is shown with the mouse.
        labels: the labels of the model, in whose order colors are assigned; other labels follow in alphabetical order.
        embedded: for pages with several drawings: without legend, keyboard focus, and style ([`drawing_style`]).

    Returns:
        `<div class="nested-entities">` with a legend (labels with counts) and the text. Each bracket is a
        `<span class="entity">` with `data-start`, `data-end` and `data-label`; of an entity in pieces the first can be
        focused.

    Raises:
        ValueError: an entity is malformed or outside the text.

    Examples:
        >>> from modeling_triaffine import draw_entities_html
        >>> html = draw_entities_html("Orsk slept.", [{"type": "City", "start": 0, "end": 4}])
        >>> 'data-label="City"' in html
        True
    """
    ordered = read_entities(entities, text, clean_text)
    counts = Counter(entity.label for entity in ordered)
    kinds = {label: kind for kind, label in enumerate([*labels, *sorted(counts.keys() - {*labels})])}
    lanes = choose_lanes({entity: (entity.start, entity.end, entity.end) for entity in ordered})
    drawn = "".join(_draw_text(clean_text(text), lanes, kinds, is_reachable=not embedded))
    before = "" if embedded else f"<style>{drawing_style(len(kinds))}</style>{_legend(counts, kinds)}"
    return f'<div class="nested-entities">{before}<div class="text" dir="auto">{drawn}</div></div>'


def drawing_style(label_count: int) -> str:
    """Returns the CSS of drawings with that many labels; drawings that are not embedded include it."""
    style = _STYLE
    for kind in range(label_count):
        light, dark, text = PALETTE[kind % len(PALETTE)]
        line = LINES[kind // len(PALETTE) % len(LINES)]
        style += (
            f".nested-entities .kind-{kind} {{ --colour: light-dark({light}, {dark}); "
            f"--on-colour: light-dark({text}, #000000); --pattern: {line}; }}\n"
        )
    return style


def _draw_text(
    text: str, lanes: Mapping[DrawnEntity, int], kinds: Mapping[str, int], is_reachable: bool
) -> Iterator[str]:
    """Yields text and tags: at each border, elements are closed and opened; the stack has the open ones."""
    starting = defaultdict(list)
    for entity in lanes:
        starting[entity.start].append(entity)
    stack: list[DrawnEntity] = []
    position = 0
    for border in sorted({border for entity in lanes for border in (entity.start, entity.end)}):
        yield html.escape(text[position:border])
        position = border
        opening = starting[border]
        while any(entity.end == border for entity in stack):
            yield "</span>"
            if (entity := stack.pop()).end > border:
                opening.append(entity)  # it crosses one that ends here, and continues as another piece
        for entity in sorted(opening, key=lambda entity: (entity.end, lanes[entity]), reverse=True):
            is_cut = any(outer.end < entity.end for outer in stack)
            yield _start_tag(entity, border > entity.start, is_cut, is_reachable, lanes[entity], kinds[entity.label])
            stack.append(entity)
    yield html.escape(text[position:])


def _start_tag(entity: DrawnEntity, is_continued: bool, is_cut: bool, is_reachable: bool, lane: int, kind: int) -> str:
    """The start tag of a piece of an entity; `is_continued`: not the first piece, `is_cut`: not the last."""
    classes = f"entity kind-{kind}" + " continued" * is_continued + " cut" * is_cut
    label = html.escape(entity.label)
    title = label if entity.score is None else f"{label} {entity.score:.2f}"
    focus = ' tabindex="0"' if is_reachable and not is_continued else ""
    name = "" if is_continued else f' role="group" aria-label="{title}"'
    return (
        f'<span class="{classes}" style="--lane:{lane}" data-start="{entity.start}" data-end="{entity.end}"'
        f' data-label="{label}" title="{title}"{focus}{name}>'
    )


def _legend(counts: Mapping[str, int], kinds: Mapping[str, int]) -> str:
    found = [(kind, f"{html.escape(label)} {counts[label]}") for label, kind in kinds.items() if counts[label]]
    items = "".join(f'<li class="kind-{kind}">{counted}</li>' for kind, counted in found)
    return f'<ul class="legend" aria-label="Labels found">{items}</ul>' if items else ""


@dataclass(frozen=True, repr=False)
class Drawing:
    """A text with its entities: drawn in characters where it is printed, in HTML where a notebook shows it.

    Examples:
        >>> from modeling_triaffine.drawing import Drawing
        >>> Drawing("Orsk", [{"entity_group": "City", "start": 0, "end": 4}])
        Orsk
        ╰──╯ City
    """

    text: str
    entities: list[dict[str, Any]]
    labels: Sequence[str] = ()

    def __repr__(self) -> str:
        return draw_entities(self.text, self.entities)

    def _repr_html_(self) -> str:
        return draw_entities_html(self.text, self.entities, self.labels)
