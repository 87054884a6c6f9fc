"""An explanation as HTML that fits a phone: one table, the predicted label's column first, then its strongest rivals'.

The command `explain` draws the same with all labels in the model's order (`explanation/plotting.py`).
"""

import html
from collections.abc import Callable, Iterable, Sequence

from ..drawing.safe_text import LONGEST_LABEL, shorten
from ..explanation import Candidate, Explanation, StageScore, format_explanation
from ..explanation.tables import describe_span, number_text, probability_text
from ..model.configuration_triaffine import NONE_LABEL

# Columns; on a narrow screen the style of the page hides those beyond NARROW.
MOST_LABELS, NARROW = 6, 3
MOST_WORDS, MOST_CANDIDATES = 12, 5  # rows
LONGEST_TITLE, LONGEST_NAME, TEXT_WIDTH = 100, 60, 120  # characters; the last of a line of the explanation as text


def show_explanation(explanation: Explanation) -> str:
    """Probabilities, and what the scores add up from; below it as text what `explain` prints."""
    shown = _choose_labels(explanation)
    parts = "".join([_probabilities(explanation, shown), _words(explanation, shown), _candidates(explanation, shown)])
    title = html.escape(shorten(explanation.span.text, LONGEST_TITLE))
    return (
        f'<figure class="nested-entities explanation"><figcaption><strong dir="auto">“{title}”</strong> '
        f'<span class="hint">{html.escape(describe_span(explanation))}</span></figcaption>'
        f"<table><thead><tr><td></td>{_head(explanation, shown)}</tr></thead>{parts}</table>"
        f"{_left_out(len(explanation.labels), len(shown))}<details><summary>The same as text</summary>"
        f'<pre tabindex="0">{html.escape(format_explanation(explanation, TEXT_WIDTH))}</pre></details></figure>'
    )


def _choose_labels(explanation: Explanation) -> list[int]:
    """Numbers of the labels that have columns."""
    labels = explanation.labels
    order = sorted(range(len(labels)), key=lambda n: (labels[n].label != explanation.predicted, -labels[n].final.logit))
    return order[:MOST_LABELS]


def _head(explanation: Explanation, shown: Iterable[int]) -> str:
    cells = []
    for number in shown:
        name = explanation.labels[number].label
        kind = "" if name == NONE_LABEL else f' class="kind-{number}"'  # as in the drawing
        cells.append(f'<th scope="col"><span{kind}>{html.escape(shorten(name, LONGEST_LABEL))}</span></th>')
    return "".join(cells)


def _left_out(labels: int, shown: int) -> str:
    """How many labels have no column: on a wide screen, and on a narrow one."""
    hints = [("wide", labels - shown), ("narrow", labels - min(shown, NARROW))]
    return "".join(
        f'<p class="hint {width}">{"1 less likely label is" if count == 1 else f"{count} less likely labels are"} left '
        "out.</p>"
        for width, count in hints
        if count
    )


def _probabilities(explanation: Explanation, shown: Sequence[int]) -> str:
    labels = [explanation.labels[number] for number in shown]
    after = [label.cross_span_stage.probability for label in labels if label.cross_span_stage is not None]
    rows = [("before the cross-span stage", [label.span_stage.probability for label in labels]), ("after it", after)]
    if not after:
        rows = [("", rows[0][1])]
    cells = (_row(name, values, probability_text, values, "bar") for name, values in rows)
    return _part("Probability", len(labels), cells)


def _words(explanation: Explanation, shown: Sequence[int]) -> str:
    scores = [explanation.labels[number].span_stage for number in shown]
    names = [html.escape(shorten(word.text, LONGEST_NAME)) for word in explanation.words]
    if scores[0].contributions is None:
        heading = "First and last word alone, without attention to inside words"
    else:
        heading = "Inside words: what they add to the logit p; the darker, the more attention α"
    kept = sorted(_strongest(scores[0], MOST_WORDS))
    return _part(heading, len(shown), _terms(names, scores, kept, "words", "logit p"))


def _candidates(explanation: Explanation, shown: Sequence[int]) -> str:
    scores = [stage for number in shown if (stage := explanation.labels[number].cross_span_stage) is not None]
    if not scores or explanation.candidates is None:
        return ""
    kinds = {label.label: number for number, label in enumerate(explanation.labels)}
    names = [_name_candidate(candidate, explanation, kinds[candidate.label]) for candidate in explanation.candidates]
    seen = "the span looks at" if explanation.cross_span_axis == "key" else "the span is seen from"
    heading = f"Candidates that {seen}: what they add to the logit pᶜ; the darker, the more attention β"
    kept = _strongest(scores[0], MOST_CANDIDATES)
    return _part(heading, len(shown), _terms(names, scores, kept, "candidates", "logit pᶜ"))


def _name_candidate(candidate: Candidate, explanation: Explanation, kind: int) -> str:
    if (candidate.start, candidate.end) == (explanation.span.start, explanation.span.end):
        return "the span itself"
    text = f"<bdi>{html.escape(shorten(candidate.text, LONGEST_NAME))}</bdi>"
    if candidate.label == NONE_LABEL:
        return text
    return f'{text} <span class="kind-{kind}">{html.escape(shorten(candidate.label, LONGEST_LABEL))}</span>'


def _strongest(score: StageScore, most: int) -> list[int]:
    """Numbers of the words or candidates that add to, or take from, the score most, the strongest first."""
    contributions = score.contributions or []
    return sorted(range(len(contributions)), key=lambda number: -abs(contributions[number]))[:most]


def _terms(
    names: Sequence[str], scores: Sequence[StageScore], kept: Sequence[int], kind: str, logit: str
) -> Iterable[str]:
    """Rows that add up: the terms kept, the sum of the others, the bias, the logit."""
    contributions = [score.contributions or [] for score in scores]
    attention = [score.attention or [] for score in scores]
    most = max((weights[number] for weights in attention for number in kept), default=0) or 1
    for number in kept:
        shares = [weights[number] / most for weights in attention]
        yield _row(names[number], [values[number] for values in contributions], number_text, shares, "shade")
    if others := [number for number in range(len(contributions[0])) if number not in kept]:
        sums = [sum(values[number] for number in others) for values in contributions]
        yield _row(f"{len(others)} other {kind if len(others) > 1 else kind[:-1]}", sums, number_text)
    yield _row("label bias", [score.bias for score in scores], number_text)
    yield _row(logit, [score.logit for score in scores], number_text, mark="sum")


def _part(heading: str, columns: int, rows: Iterable[str]) -> str:
    # Over no hidden column: that would make room for it.
    span = 1 + min(columns, NARROW)
    return f'<tbody><tr><th class="heading" colspan="{span}">{heading}</th></tr>{"".join(rows)}</tbody>'


def _row(
    name: str, values: Sequence[float], written: Callable[[float], str], shares: Sequence[float] = (), mark: str = ""
) -> str:
    """A row of numbers; the name is HTML, the shares (0 to 1) are what its cells show as a bar or a shade."""
    styles = [f' style="--share:{share:.3f}"' for share in shares] or [""] * len(values)
    cells = "".join(f"<td{style}>{written(value)}</td>" for style, value in zip(styles, values, strict=True))
    return f'<tr class="{mark}"><th scope="row">{name}</th>{cells}</tr>'
