"""`predictions_page`: predictions as one HTML page to look at and to send, which loads and runs nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..model.text_triaffine import clean_text
from .entities import read_entities
from .html_drawing import draw_entities_html, drawing_style
from .tables import Table
from .templates import render_html

MOST_TEXTS = 500  # more drawings would stop a browser; the tables count the entities of all
MOST_NAMES = 10  # of each label


def predictions_page(
    texts_with_entities: Iterable[tuple[str, Iterable[Mapping[str, Any]]]],
    title: str,
    rejected: Sequence[str] = (),
    names: Sequence[str] = (),
) -> str:
    """Draws texts and counts the most frequent entities of each label, on a page for light and dark screens and phones.

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
    ranked = {label: sorted(counts[label].items(), key=lambda counted: (-counted[1], counted[0])) for label in labels}
    captions = {label: f"{label} ({counts[label].total():,})" for label in labels}
    tables = [Table(["Entity", "Times"], ranked[label][:MOST_NAMES], captions[label]) for label in labels]
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
