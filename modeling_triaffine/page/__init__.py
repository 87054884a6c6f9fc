"""The demo page: text in, nested entities drawn, listed and explained (the extra `demo`).

`models.py` holds the models that can be chosen, `marking.py` runs them with progress, `views.py` makes HTML of what
came out, `app.py` puts components and events together, `style.py` has their CSS and JavaScript, `serving.py` serves it.
"""

try:
    import gradio  # noqa: F401
except ImportError as error:
    raise ImportError(f'The page needs Gradio ({error}): pip install "modeling_triaffine[demo]".') from None

from .app import build_page
from .serving import serve_page

__all__ = ["build_page", "serve_page"]
