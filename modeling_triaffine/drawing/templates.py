"""Jinja templates of this package, which lie beside the modules that fill them; every value is cleaned and escaped."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .safe_text import clean

PACKAGE = Path(__file__).resolve().parents[1]


def render_html(template: str, **values: Any) -> str:
    """Fills a template, given by its path in the package, such as `evaluation/report.html`.

    Text shows as text, on one line. HTML that is already safe comes as `markupsafe.Markup` or passes the filter `safe`.
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
