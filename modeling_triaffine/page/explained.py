"""Renders an explanation as an HTML table that fits a phone, with the predicted label first, then the likeliest others.

The rows are those of text and plot (`explanation/tables.py`); the template is `explanation.html`.
"""

from functools import partial

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
    names = [label.label for label in explanation.labels]
    before = [label.span_stage.probability for label in explanation.labels]
    after = [label.final.probability for label in explanation.labels]
    bars = {"before the cross-span stage": before, "after it": after} if explanation.is_candidate else {"": before}
    return render_html(
        "page/explanation.html",
        title=shorten(explanation.span.text, LONGEST_TITLE),
        subtitle=describe_span(explanation),
        summary=in_plain_words(explanation),
        names=names,
        shown=shown,
        kinds={name: kind for kind, name in enumerate(names) if name != NONE_LABEL},
        shorten=partial(shorten, longest=LONGEST_LABEL),
        bars=[Row(name, values, values) for name, values in bars.items()],
        stages=make_stages(explanation),
        probability_text=probability_text,
        number_text=number_text,
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
        if named := ", ".join(f"“{row.title}”" for row in terms if speaks_for_it(row) > 0):
            sentences.append(f"Of the {kind}, most speaks for {explanation.labels[predicted].label}: {named}.")
    return " ".join(sentences)
