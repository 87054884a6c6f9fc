"""Renders an explanation as an HTML table that fits a phone, with the predicted label first, then the likeliest others.

The rows are those of text and plot (`explanation/tables.py`); the template is `explanation.html`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from markupsafe import Markup, escape

from ..drawing.safe_text import LONGEST_LABEL, shorten
from ..drawing.templates import render_html
from ..explanation import Explanation, format_explanation
from ..explanation.tables import (
    Row,
    Stage,
    describe_span,
    likeliest_labels,
    make_stages,
    number_text,
    probability_text,
)
from ..model.configuration_triaffine import NONE_LABEL

# Columns; the style of the page hides those beyond NARROW on narrow screens.
MOST_LABELS, NARROW = 6, 3
LONGEST_TITLE, TEXT_WIDTH = 100, 120  # characters, of the title and of a line of the text version


class _HtmlRow(NamedTuple):
    """`cells`: the text of each column and the length of its bar or darkness of its shade, from 0 to 1."""

    name: str
    cells: Sequence[tuple[str, float | None]]
    mark: str = ""
    label: str | None = None


class _Part(NamedTuple):
    heading: str
    rows: Sequence[_HtmlRow]


def show_explanation(explanation: Explanation) -> str:
    """The probabilities and the terms of the scores, with the text version of `triaffine-ner explain` below."""
    shown = likeliest_labels(explanation)[:MOST_LABELS]
    names = [label.label for label in explanation.labels]
    return render_html(
        "page/explanation.html",
        title=shorten(explanation.span.text, LONGEST_TITLE),
        subtitle=describe_span(explanation),
        labels=[names[number] for number in shown],
        labelled=partial(_labelled, {name: kind for kind, name in enumerate(names)}),
        parts=[_probabilities(explanation, shown), *(_terms(stage, shown) for stage in make_stages(explanation))],
        narrow=NARROW,
        left_out={"wide": len(names) - len(shown), "narrow": len(names) - min(len(shown), NARROW)},
        text=escape(format_explanation(explanation, TEXT_WIDTH)),
    )


def _labelled(kinds: dict[str, int], label: str) -> Markup:
    """A label in its colour of the drawing."""
    kind = Markup("") if label == NONE_LABEL else Markup(' class="kind-{}"').format(kinds[label])
    return Markup("<span{}>{}</span>").format(kind, shorten(label, LONGEST_LABEL))


def _probabilities(explanation: Explanation, shown: Sequence[int]) -> _Part:
    labels = [explanation.labels[number] for number in shown]
    before = [label.span_stage.probability for label in labels]
    if not explanation.is_candidate:
        return _Part("Probability", [_row("", before, probability_text, before, "bar")])
    after = [label.final.probability for label in labels]
    rows = [("before the cross-span stage", before), ("after it", after)]
    return _Part("Probability", [_row(name, values, probability_text, values, "bar") for name, values in rows])


def _terms(stage: Stage, shown: Sequence[int]) -> _Part:
    """The rows of a stage, cells shaded by attention."""
    most = max((row.attention[n] for row in stage.terms if row.attention for n in shown), default=0.0) or 1.0

    def convert(row: Row, mark: str = "") -> _HtmlRow:
        values = [row.numbers[number] for number in shown]
        if row.attention is None:
            return _row(row.name, values, number_text, mark=mark)
        shares = [row.attention[number] / most for number in shown]
        return _row(row.name, values, number_text, shares, "shade", row.label)

    heading = stage.heading
    if stage.symbol:
        heading += f": contributions to {stage.logit.name}, shaded by attention {stage.symbol}"
    return _Part(heading, [*map(convert, [*stage.terms, stage.bias]), convert(stage.logit, "sum")])


def _row(
    name: str,
    values: Sequence[float],
    written: Callable[[float], str],
    shares: Sequence[float | None] = (),
    mark: str = "",
    label: str | None = None,
) -> _HtmlRow:
    cells = list(zip(map(written, values), shares or [None] * len(values), strict=True))
    return _HtmlRow(name, cells, mark, label)
