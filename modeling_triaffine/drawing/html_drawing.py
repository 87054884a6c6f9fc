"""Draws nested entities in HTML: nested brackets under the text, each with its label at the end.

    The [mayor of [Port Velmar LOCATION] PERSON] opened …

The fragment includes its style and needs no script. Brackets are borders of inline elements: they wrap with the text
and follow its direction. If two entities cross, one of them is drawn in adjacent pieces. Labels are generated content:
selecting, copying and `textContent` give the original text.
"""

import html
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..model.text_triaffine import clean_text
from .entities import DrawnEntity, choose_lanes, from_inside, read_entities
from .text_drawing import draw_entities

# On light and on dark backgrounds, and that of text on the former; on the latter text is black. Distinguishable with
# colour vision deficiencies, with contrasts of at least 3 : 1 to the background and 4.5 : 1 to the text. From the ninth
# label on, colours repeat with another line.
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


def draw_entities_html(
    text: str, entities: Iterable[Mapping[str, Any]], labels: Sequence[str] = (), *, embedded: bool = False
) -> str:
    """Draws the entities of a text as one safe HTML fragment.

    Args:
        text: any text; markup is escaped, line breaks are kept.
        entities: dicts with `entity_group` or `type`, `start`, `end` (characters, exclusive) and optionally `score`, as
            returned by the pipeline. They may nest, cross and share a span, in any order.
        labels: the labels of the model, in whose order colours are assigned; other labels follow in alphabetical order.
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
    brackets = from_inside(ordered)
    lanes = choose_lanes([(entity.start, entity.end, entity.end) for entity in brackets])
    lane_of = dict(zip(brackets, lanes, strict=True))
    drawn = "".join(_draw_text(clean_text(text), lane_of, kinds, is_reachable=not embedded))
    before = "" if embedded else f"<style>{drawing_style(len(kinds))}</style>{_legend(counts, kinds)}"
    return f'<div class="nested-entities">{before}<div class="text" dir="auto">{drawn}</div></div>'


@dataclass(frozen=True, repr=False)
class Drawing:
    """A text with its entities: drawn in characters where it is printed, in HTML where a notebook shows it."""

    text: str
    entities: list[dict[str, Any]]
    labels: Sequence[str] = ()

    def __repr__(self) -> str:
        return draw_entities(self.text, self.entities)

    def _repr_html_(self) -> str:
        return draw_entities_html(self.text, self.entities, self.labels)


def drawing_style(label_count: int) -> str:
    """CSS of drawings with that many labels; drawings that are not embedded include it."""
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
    """Text and tags, in a walk over the borders with a stack of the open elements."""
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
                opening.append(entity)  # inside one that ends here: it continues as another piece
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
