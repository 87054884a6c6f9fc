"""Draws texts with their nested entities: `text_drawing.py` in plain Unicode, `html_drawing.py` in HTML.

`entities.py` checks entities and chooses their lanes for both. `predictions_page.py` draws many texts on a page,
`tables.py` formats tables (`tables.html` in pages), `templates.py` fills Jinja templates, `safe_text.py` escapes text.
"""

from .html_drawing import draw_entities_html, drawing_style
from .text_drawing import draw_entities

__all__ = ["draw_entities", "draw_entities_html", "drawing_style"]
