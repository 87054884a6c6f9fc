"""Jinja templates of this package, stored beside the modules that use them; every value is cleaned and escaped."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .safe_text import clean

ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).resolve().parents[1]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda value: clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
)


def render_html(template: str, **values: Any) -> str:
    """Renders a template, given by its path in the package, such as `evaluation/report.html`.

    Strings are escaped and put on one line, except `markupsafe.Markup` and what passes the filter `safe`.
    """
    return ENVIRONMENT.get_template(template).render(**values)
