"""The demo page: text in, nested entities drawn, listed and explained (the extra `demo`).

`models.py` holds the models that can be chosen, `marking.py` runs them with progress, `views.py` makes HTML of what
came out and `explained.py` of why, `answers.py` brings these together, `app.py` has components and events, `style.py`
their CSS and JavaScript, `serving.py` serves it all.
"""

from ..errors import missing_extra

try:
    import gradio  # noqa: F401
except ImportError as error:
    raise missing_extra(f"The page needs Gradio ({error})", "demo") from None

from .app import build_page
from .serving import serve_page

__all__ = ["build_page", "serve_page"]
