"""Renders an explanation as an HTML table that fits a phone, with the predicted label first, then the likeliest others.

The rows are those of text and plot (`explanation/tables.py`); the template is `explanation.html`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat
from typing import Any

from markupsafe import escape

from ..drawing.safe_text import LONGEST_LABEL, shorten
from ..drawing.templates import render_html
from ..explanation import Explanation, format_explanation
from ..explanation.tables import Row, describe_span, likeliest_labels, make_stages, number_text, probability_text
from ..model.kinds_triaffine import NONE_LABEL

# Columns; the style of the page hides those beyond NARROW on narrow screens.
MOST_LABELS, NARROW = 6, 3
MOST_NAMED = 3
LONGEST_TITLE, TEXT_WIDTH = 100, 120  # characters, of the title and of a line of the text version


def show_explanation(explanation: Explanation) -> str:
    """The probabilities and the terms of the scores, with the text version of `triaffine-ner explain` below."""
    shown = likeliest_labels(explanation)[:MOST_LABELS]
    labels = [explanation.labels[number] for number in shown]
    before = [label.span_stage.probability for label in labels]
    probabilities = {"": before}
    if explanation.is_candidate:
        after = [label.final.probability for label in labels]
        probabilities = {"before the cross-span stage": before, "after it": after}
    bars = [_row(name, values, probability_text, values, "bar") for name, values in probabilities.items()]
    parts = {"Probability": bars}
    for stage in make_stages(explanation):
        heading = stage.heading
        if stage.symbol:
            heading += f": contributions to {stage.logit.name}, shaded by attention {stage.symbol}"
        most = max((row.attention[n] for row in stage.terms if row.attention for n in shown), default=0.0) or 1.0
        terms = [_term(row, shown, most) for row in (*stage.terms, stage.bias)]
        parts[heading] = [*terms, {**_term(stage.logit, shown, most), "mark": "sum"}]
    names = [label.label for label in explanation.labels]
    return render_html(
        "page/explanation.html",
        title=shorten(explanation.span.text, LONGEST_TITLE),
        subtitle=describe_span(explanation),
        summary=in_plain_words(explanation),
        labels=[label.label for label in labels],
        kinds={name: kind for kind, name in enumerate(names) if name != NONE_LABEL},
        shorten=partial(shorten, longest=LONGEST_LABEL),
        parts=parts,
        narrow=NARROW,
        left_out={"wide": len(names) - len(shown), "narrow": len(names) - min(len(shown), NARROW)},
        text=escape(format_explanation(explanation, TEXT_WIDTH)),
    )


def in_plain_words(explanation: Explanation) -> str:
    """The words, and the other likely entities, that speak for the predicted label more than for the average label."""
    predicted = likeliest_labels(explanation)[0]

    def speaks_for_it(row: Row) -> float:
        return row.numbers[predicted] - sum(row.numbers) / len(row.numbers)

    sentences = []
    for stage, kind in zip(make_stages(explanation), ("words", "possible entities of the sentence"), strict=False):
        terms = sorted(stage.terms, key=speaks_for_it, reverse=True)[:MOST_NAMED]
        named = ", ".join(f"“{row.title}”" for row in terms if speaks_for_it(row) > 0)
        if named:
            sentences.append(f"Of the {kind}, most speaks for {explanation.labels[predicted].label}: {named}.")
    return " ".join(sentences)


def _term(row: Row, shown: Iterable[int], most: float) -> dict[str, Any]:
    """A row of a stage, shaded by its attention as a share of the largest."""
    values = [row.numbers[number] for number in shown]
    if row.attention is None:
        return _row(row.name, values, number_text)
    return _row(row.name, values, number_text, [row.attention[number] / most for number in shown], "shade", row.label)


def _row(
    name: str,
    values: Iterable[float],
    written: Callable[[float], str],
    shares: Iterable[float | None] | None = None,
    mark: str = "",
    label: str | None = None,
) -> dict[str, Any]:
    """`cells`: the text of each column and the length of its bar or darkness of its shade, from 0 to 1."""
    cells = zip(map(written, values), shares or repeat(None), strict=False)
    return {"name": name, "label": label, "mark": mark, "cells": list(cells)}
