"""The demo page: draws, lists and explains the nested entities of a text (the extra `demo`).

`answers.py` loads and runs the offered models and turns results and explanations into HTML, `app.py` defines components
and events and serves them; `page.css` and `choose_entity.js` are for the browser.
"""

from ..errors import importing_extra

with importing_extra("demo", "The page needs Gradio"):
    import gradio  # noqa: F401

from .app import build_page, serve_page

__all__ = ["build_page", "serve_page"]
