"""The drawing, the table and messages as HTML, with all input escaped."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..drawing import draw_entities_html
from ..drawing.safe_text import html_text
from ..drawing.templates import render_html

# With more entities, or characters of text, the drawing and the table scroll in boxes of their own.
MOST_ENTITIES, LONGEST_TEXT = 200, 6000


def show_hint(text: str) -> str:
    return f'<p class="hint">{html_text(text)}</p>'


def show_error(error: Exception | str) -> str:
    """The error message as one paragraph."""
    return f'<p class="error" role="alert">{html_text(str(error))}</p>'


def show_drawing(text: str, entities: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    drawing = draw_entities_html(text, entities, labels)
    return f'<div class="long">{drawing}</div>' if is_long(text, entities) else drawing


def show_table(text: str, entities: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    """A row for each entity, with the colour and data attributes of its bracket in the drawing."""
    kinds = {label: kind for kind, label in enumerate(labels)}
    return render_html("page/entities.html", entities=entities, kinds=kinds, is_long=is_long(text, entities))


def is_long(text: str, entities: Sequence[Any]) -> bool:
    return len(entities) > MOST_ENTITIES or len(text) > LONGEST_TEXT
