"""HTML pages: Jinja templates, stored beside the modules that use them, and `predictions_page`, which draws texts."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..model.text_triaffine import clean_text
from .entities import draw_entities_html, drawing_style, read_entities
from .safe_text import clean
from .tables import Table

MOST_TEXTS = 500  # more drawings would stop a browser; the tables count the entities of all
MOST_NAMES = 10  # of each label

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


def predictions_page(
    texts_with_entities: Iterable[tuple[str, Iterable[Mapping[str, Any]]]],
    title: str,
    rejected: Sequence[str] = (),
    names: Sequence[str] = (),
) -> str:
    """Draws texts and counts the most frequent entities of each label, on a page to look at and to send.

    The page loads and runs nothing. It is for light and dark screens and phones.

    Args:
        texts_with_entities: each text with its entities as [`NestedNERPipeline`] returns them; may be a generator.
        title, names: the title of the page, and what each text is called; by default, its number.
        rejected: names of the documents that could not be read, with reasons; the page lists them.

    Raises:
        ValueError: an entity is malformed or outside its text.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    texts = [(text, [*entities]) for text, entities in texts_with_entities]
    for text, entities in texts:
        for entity in read_entities(entities, text, clean_text):
            counts[entity.label][" ".join(text[entity.start : entity.end].split())] += 1
    labels = sorted(counts, key=lambda label: (-counts[label].total(), label))
    tables = []
    for label in labels:
        ranked = sorted(counts[label].items(), key=lambda counted: (-counted[1], counted[0]))
        tables.append(Table(["Entity", "Times"], ranked[:MOST_NAMES], f"{label} ({counts[label].total():,})"))
    return render_html(
        "drawing/predictions.html",
        title=title,
        number_of_entities=sum(map(Counter.total, counts.values())),
        number_of_texts=len(texts),
        rejected=rejected,
        names=names,
        tables=tables,
        drawings=[draw_entities_html(text, entities, labels, embedded=True) for text, entities in texts[:MOST_TEXTS]],
        drawing_style=drawing_style(len(labels)),
    )
