"""The drawing, the table and messages, as HTML in which everything that came from outside is escaped."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from ..drawing import draw_entities_html

COLUMNS = ("Text", "Label", "Score", "Start", "End")
# Beyond so many entities, or characters of the text, the drawing and the table scroll in boxes of their own.
MOST_ENTITIES, LONGEST_TEXT = 200, 6000


def show_hint(text: str) -> str:
    return f'<p class="hint">{html.escape(text)}</p>'


def show_error(error: Exception | str) -> str:
    """One paragraph, whatever the message was."""
    return f'<p class="error" role="alert">{html.escape(" ".join(str(error).split()))}</p>'


def show_drawing(text: str, entities: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    drawing = draw_entities_html(text, entities, labels)
    return f'<div class="long">{drawing}</div>' if is_long(text, entities) else drawing


def is_long(text: str, entities: Sequence[Any]) -> bool:
    return len(entities) > MOST_ENTITIES or len(text) > LONGEST_TEXT


def show_table(text: str, entities: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    """A row an entity, with the data attributes that its bracket in the drawing has, and the drawing's colours."""
    kinds = {label: kind for kind, label in enumerate(labels)}
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = "".join(_table_row(entity, kinds[entity["entity_group"]]) for entity in entities)
    count = "1 entity" if len(entities) == 1 else f"{len(entities):,} entities"
    size = " long" if is_long(text, entities) else ""
    return (
        f'<div class="nested-entities entity-table{size}"><table><caption>{count}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _table_row(entity: Mapping[str, Any], kind: int) -> str:
    start, end, label = entity["start"], entity["end"], html.escape(entity["entity_group"])
    return (
        f'<tr tabindex="0" data-start="{start}" data-end="{end}"><td dir="auto">{html.escape(entity["word"])}</td>'
        f'<td><span class="kind-{kind}">{label}</span></td><td>{entity["score"]:.3f}</td>'
        f"<td>{start:,}</td><td>{end:,}</td></tr>"
    )
