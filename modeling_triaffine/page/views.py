"""What a page shows beside the drawing, as HTML in which everything that came from outside is escaped."""

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

from ..explanation import Explanation, format_explanation, plot_explanation
from ..explanation.tables import describe_span

COLUMNS = ("Text", "Label", "Score", "Start", "End")
TEXT_WIDTH = 120  # characters of a line of the explanation as text


def show_hint(text: str) -> str:
    return f'<p class="hint">{html.escape(text)}</p>'


def show_error(error: Exception | str) -> str:
    """One paragraph, whatever the message was."""
    return f'<p class="error" role="alert">{html.escape(" ".join(str(error).split()))}</p>'


def show_table(entities: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    """A row an entity, with the data attributes that its bracket in the drawing has, and the drawing's colours."""
    if not entities:
        return ""
    kinds = {label: kind for kind, label in enumerate(labels)}
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = "".join(_table_row(entity, kinds[entity["entity_group"]]) for entity in entities)
    count = "1 entity" if len(entities) == 1 else f"{len(entities):,} entities"
    return (
        f'<div class="nested-entities entity-table"><table><caption>{count}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _table_row(entity: Mapping[str, Any], kind: int) -> str:
    start, end, label = entity["start"], entity["end"], html.escape(entity["entity_group"])
    return (
        f'<tr tabindex="0" data-start="{start}" data-end="{end}"><td dir="auto">{html.escape(entity["word"])}</td>'
        f'<td><span class="kind-{kind}">{label}</span></td><td>{entity["score"]:.3f}</td>'
        f"<td>{start:,}</td><td>{end:,}</td></tr>"
    )


def show_explanation(explanation: Explanation) -> str:
    """The figure, as an image (nothing in an image runs), and below it the same as text."""
    picture = io.BytesIO()
    plot_explanation(explanation).savefig(picture, format="svg")
    source = base64.b64encode(picture.getvalue()).decode()
    described = html.escape(f"Why “{explanation.span.text}” got its scores: {describe_span(explanation)}")
    text = html.escape(format_explanation(explanation, TEXT_WIDTH))
    return (
        f'<figure class="explanation"><div class="scroll" tabindex="0"><img src="data:image/svg+xml;base64,{source}"'
        f' alt="{described}"></div><details><summary>The same as text</summary><pre>{text}</pre></details></figure>'
    )
