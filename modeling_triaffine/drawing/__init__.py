"""Draws texts with their nested entities: `text_drawing.py` in plain Unicode, `html_drawing.py` in HTML.

`entities.py` checks entities and chooses their lanes for both. `pages.py` fills templates of pages, one of which draws
many texts, `tables.py` formats tables (`tables.html` in pages), `safe_text.py` escapes text.
"""

from .html_drawing import draw_entities_html, drawing_style
from .text_drawing import draw_entities

__all__ = ["draw_entities", "draw_entities_html", "drawing_style"]
