"""Draws texts with their nested entities (`entities.py`), in plain Unicode and in HTML.

`pages.py` fills templates of pages, one of which draws many texts, `tables.py` formats tables (`tables.html` in pages),
`safe_text.py` escapes text.
"""

from .entities import Drawing, draw_entities, draw_entities_html, drawing_style

__all__ = ["Drawing", "draw_entities", "draw_entities_html", "drawing_style"]
