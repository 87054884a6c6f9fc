"""Draws texts with their nested entities (`entities.py`), in plain Unicode and in HTML.

`predictions_page.py` fills templates of pages and draws many texts in one, `tables.py` formats tables (`tables.html`),
`safe_text.py` escapes text.
"""

from .entities import Drawing, draw_entities, draw_entities_html, drawing_style

__all__ = ["Drawing", "draw_entities", "draw_entities_html", "drawing_style"]
