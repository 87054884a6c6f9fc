"""`predictions_page`: predictions as one HTML page to look at and to send, which loads and runs nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..model.text_triaffine import clean_text
from .entities import read_entities
from .html_drawing import draw_entities_html, drawing_style
from .tables import Table
from .templates import render_html

# More drawn texts would stop a browser; the tables count the entities of all.
MOST_TEXTS = 500
MOST_NAMES = 10  # of each label


def predictions_page(
    texts_with_entities: Iterable[tuple[str, Iterable[Mapping[str, Any]]]], title: str, rejected: Sequence[str] = ()
) -> str:
    """Draws texts and counts the most frequent entities of each label, on a page for light and dark screens and phones.

    Args:
        texts_with_entities: each text with its entities as [`NestedNERPipeline`] returns them; may be a generator.
        title: the title of the page.
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
    introduction = f"{sum(counts[label].total() for label in labels):,} entities in {len(texts):,} texts."
    if len(texts) > MOST_TEXTS:
        introduction += f" The first {MOST_TEXTS} texts are drawn; the tables count all."
    return render_html(
        "drawing/predictions.html",
        title=title,
        introduction=introduction,
        rejected=rejected,
        tables=list(enumerate(tables)),
        drawings=[draw_entities_html(text, entities, labels, embedded=True) for text, entities in texts[:MOST_TEXTS]],
        drawing_style=drawing_style(len(labels)),
    )
