"""Selects the words, candidates and labels of an explanation to show, as text tables; the page shows the same rows.

Each column is a sum: the contributions of the inside words and the bias of the label
add up to p; those of the candidates and the bias, with `cross_span_residual` also p, add up to pᶜ.
"""

import operator
from collections.abc import Sequence
from typing import NamedTuple

from ..drawing.safe_text import LONGEST_LABEL, clean, shorten
from ..drawing.tables import Table
from ..model.kinds_triaffine import NONE_LABEL
from .explaining import Candidate, Explanation, StageScores, TextSpan

MOST_WORDS, MOST_CANDIDATES, MOST_LABELS = 20, 8, 6
LONGEST_NAME = 40  # characters


class Row(NamedTuple):
    """A number for each label of the model, and its attention, if any; `label` is that of a candidate."""

    name: str
    numbers: list[float]
    attention: list[float] | None = None
    label: str | None = None

    @property
    def title(self) -> str:
        return f"{self.name} ({shorten(self.label, LONGEST_LABEL)})" if self.label else self.name


class Stage(NamedTuple):
    """One stage as rows: `terms` and `bias` add up to `logit`.

    `symbol` is that of the attention, if any. Only terms have attention, except a last one that sums up others.
    """

    heading: str
    symbol: str | None
    terms: list[Row]
    bias: Row
    logit: Row

    @property
    def rows(self) -> list[Row]:
        return [*self.terms, self.bias, self.logit]


def make_stages(explanation: Explanation) -> list[Stage]:
    """The span stage, and the cross-span stage if the span is a candidate.

    Selects the 20 words and 8 candidates with the largest absolute contributions, averaged over the labels by
    probability; one more row sums up the others. Words are in text order, candidates in order of contribution.
    """
    words = [(shorten(word.text, LONGEST_NAME), None) for word in explanation.words]
    stages = [_make_stage("Inside words", "α", words, explanation.span_stage, "word")]
    if explanation.cross_span_stage is not None and explanation.candidates is not None:
        relation = "the span attends to" if explanation.cross_span_axis == "key" else "attend to the span"
        candidates = [_name_candidate(candidate, explanation.span) for candidate in explanation.candidates]
        heading = f"Candidates that {relation}"
        stages.append(_make_stage(heading, "β", candidates, explanation.cross_span_stage, "candidate"))
        if explanation.cross_span_residual:
            stages[-1] = stages[-1]._replace(bias=stages[-1].bias._replace(name="logit p + label bias"))
    return stages


def _name_candidate(candidate: Candidate, span: TextSpan) -> tuple[str, str | None]:
    if (candidate.start, candidate.end) == (span.start, span.end):
        return "the span itself", None
    return shorten(candidate.text, LONGEST_NAME), None if candidate.label == NONE_LABEL else candidate.label


def _make_stage(
    heading: str, symbol: str, names: Sequence[tuple[str, str | None]], scores: StageScores, kind: str
) -> Stage:
    """Makes the rows of a stage; `names` are words, or candidates with their labels."""
    bias, logit = Row("label bias", scores.bias), Row("logit p" if kind == "word" else "logit pᶜ", scores.logits)
    if scores.contributions is None or scores.attention is None:
        return Stage("First and last word only, without attention to inside words", None, [], bias, logit)
    contributions, attention = (list(zip(*rows, strict=True)) for rows in (scores.contributions, scores.attention))
    strengths = [sum(map(operator.mul, scores.probabilities, map(abs, values))) for values in contributions]
    ranked = sorted(range(len(names)), key=lambda number: -strengths[number])
    shown = sorted(ranked[:MOST_WORDS]) if kind == "word" else ranked[:MOST_CANDIDATES]
    terms = [Row(names[n][0], list(contributions[n]), list(attention[n]), names[n][1]) for n in shown]
    if others := sorted(set(ranked).difference(shown)):
        name = f"{len(others)} other {kind}s" if len(others) > 1 else f"1 other {kind}"
        terms.append(Row(name, [sum(values) for values in zip(*(contributions[n] for n in others), strict=True)]))
    return Stage(heading, symbol, terms, bias, logit)


def likeliest_labels(explanation: Explanation) -> list[int]:
    """The indices of all labels: the predicted one first, then by probability."""
    labels, logits = explanation.labels, explanation.final.logits
    return sorted(range(len(labels)), key=lambda n: (labels[n] != explanation.predicted, -logits[n]))


def describe_span(explanation: Explanation) -> str:
    """The predicted labels with their probabilities, in one line."""
    if explanation.is_candidate is False:
        return f"{NONE_LABEL} (not a candidate)"
    probabilities = dict(zip(explanation.labels, map(probability_text, explanation.final.probabilities), strict=True))
    predicted = (explanation.predicted, *explanation.also_predicted)
    return " + ".join(f"{shorten(name, LONGEST_LABEL)} {probabilities.get(name, '')}".rstrip() for name in predicted)


def format_explanation(explanation: Explanation) -> str:
    """The explanation as text tables with the likeliest labels."""
    shown = likeliest_labels(explanation)[:MOST_LABELS]
    names = [shorten(explanation.labels[number], LONGEST_LABEL) for number in shown]
    by_stage = {"by p": explanation.span_stage, "by pᶜ": explanation.cross_span_stage}
    probabilities = [
        [name, *(probability_text(scores.probabilities[number]) for number in shown)]
        for name, scores in by_stage.items()
        if scores is not None
    ]
    tables = [Table(["probability", *names], probabilities)]
    for stage in make_stages(explanation):
        note = f": contribution (attention {stage.symbol})" if stage.symbol else ""
        rows = [[row.title, *(_cell(row, number) for number in shown)] for row in stage.rows]
        tables.append(Table(["", *names], rows, stage.heading + note))
    left_out = len(explanation.labels) - len(shown)
    notes = [f"Labels left out: {left_out}."] if left_out else []
    heading = f"“{clean(explanation.span.text)}”\n{describe_span(explanation)}"
    return "\n\n".join([heading, *(table.text() for table in tables), *notes])


def _cell(row: Row, label: int) -> str:
    number = number_text(row.numbers[label])
    return f"{number} ({row.attention[label]:.2f})" if row.attention else number


def number_text(value: float) -> str:
    """A contribution or logit, signed and rounded."""
    digits = 2 if abs(value) < 100 else 0
    rounded = round(value, digits)
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else "0"


def probability_text(value: float) -> str:
    return "0" if value < 0.005 else f"{value:.2f}"
