"""Jinja templates of this package, stored beside the modules that use them; every value is cleaned and escaped."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .safe_text import clean

PACKAGE = Path(__file__).resolve().parents[1]


def render_html(template: str, **values: Any) -> str:
    """Renders a template, given by its path in the package, such as `evaluation/report.html`.

    Strings are escaped and put on one line, except `markupsafe.Markup` and what passes the filter `safe`.
    """
    return _environment().get_template(template).render(**values)


@lru_cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
