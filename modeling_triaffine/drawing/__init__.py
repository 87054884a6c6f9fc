"""Nested entities drawn with their text: in plain Unicode for terminals, logs and cards, in HTML for pages.

`text_drawing.py` is the former, `html_drawing.py` the latter; `tables.py` formats tables, `safe_text.py` escapes.
"""

from .html_drawing import draw_entities_html, drawing_style
from .text_drawing import draw_entities

__all__ = ["draw_entities", "draw_entities_html", "drawing_style"]
