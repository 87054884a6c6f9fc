"""An explanation as tables to be read, labels in columns, words and candidates in rows; and these tables as text.

A column is an addition: what each inside word contributed and the label's bias make p; what each candidate contributed
and the bias make pᶜ. `plotting.py` draws the same tables.
"""

from typing import NamedTuple

from ..drawing.safe_text import LONGEST_LABEL, clean, shorten
from ..model.configuration_triaffine import NONE_LABEL
from .explaining import Candidate, Explanation, StageScore

MOST_WORDS, MOST_CANDIDATES = 24, 12
# Characters.
LONGEST_NAME = 36


class Row(NamedTuple):
    """A row of a table, a number a label; attention [R] where there is any."""

    name: str
    numbers: list[float]
    attention: list[float] | None = None


class Table(NamedTuple):
    """A stage: rows that add up, those with attention first; `symbol` is the attention's, if the stage has one."""

    heading: str
    symbol: str | None
    terms: list[Row]
    bias: Row
    logit: Row

    @property
    def rows(self) -> list[Row]:
        return [*self.terms, self.bias, self.logit]


def describe_span(explanation: Explanation) -> str:
    """The model's decision and the span's rank, in a line."""
    place = f"rank {explanation.rank} of the sentence’s {explanation.num_spans} spans by their likeliest entity label"
    if explanation.is_candidate is False:
        return f"{NONE_LABEL}, for it is no candidate · {place}"
    probability = max(label.final.probability for label in explanation.labels)
    return f"{shorten(explanation.predicted, LONGEST_LABEL)} {probability_text(probability)} · {place}"


def make_tables(explanation: Explanation) -> list[Table]:
    """What p adds up from, and what pᶜ does where the span has one.

    Beyond 24 words or 12 candidates, those most attended to by the likely labels have rows, in their order, and the
    others one of their sums.
    """
    before = [label.span_stage for label in explanation.labels]
    words = [shorten(word.text, LONGEST_NAME) for word in explanation.words]
    rows = _attended_rows(words, before, MOST_WORDS, "words")
    heading = "Inside words" if rows else "First and last word alone, without attention to inside words"
    tables = [_make_table(heading, "α" if rows else None, rows, before, "logit p")]
    after = [label.cross_span_stage for label in explanation.labels if label.cross_span_stage is not None]
    if after and explanation.candidates is not None:
        heading = f"Candidates that the span {'looks at' if explanation.cross_span_axis == 'key' else 'is seen from'}"
        names = [_name_candidate(candidate, explanation) for candidate in explanation.candidates]
        rows = _attended_rows(names, after, MOST_CANDIDATES, "candidates")
        tables.append(_make_table(heading, "β", rows, after, "logit pᶜ"))
    return tables


def _make_table(heading: str, symbol: str | None, terms: list[Row], scores: list[StageScore], logit: str) -> Table:
    bias = Row("label bias", [score.bias for score in scores])
    return Table(heading, symbol, terms, bias, Row(logit, [score.logit for score in scores]))


def _name_candidate(candidate: Candidate, explanation: Explanation) -> str:
    if (candidate.start, candidate.end) == (explanation.span.start, explanation.span.end):
        return "the span itself"
    label = "" if candidate.label == NONE_LABEL else f" ({shorten(candidate.label, LONGEST_LABEL)})"
    return shorten(candidate.text, LONGEST_NAME - len(label)) + label


def _attended_rows(names: list[str], scores: list[StageScore], most: int, kind: str) -> list[Row]:
    """Rows of the words or candidates most attended to, in their order, and one for the others.

    How much they are attended to is the mean over the labels, by their probability.
    """
    attention = [score.attention for score in scores if score.attention is not None]
    contributions = [score.contributions for score in scores if score.contributions is not None]
    if not attention:
        return []
    expected = [
        sum(score.probability * weight for score, weight in zip(scores, weights, strict=True))
        for weights in zip(*attention, strict=True)
    ]
    ranked = sorted(range(len(names)), key=lambda place: -expected[place])
    rows = [
        Row(names[place], [values[place] for values in contributions], [weights[place] for weights in attention])
        for place in sorted(ranked[:most])
    ]
    if others := ranked[most:]:
        rows.append(Row(f"{len(others)} other {kind}", [sum(values[n] for n in others) for values in contributions]))
    return rows


def format_explanation(explanation: Explanation, width: int = 100) -> str:
    """The tables as text; columns of the likeliest labels first, as many as fit into `width` characters."""
    tables = make_tables(explanation)
    labels = explanation.labels
    before = Row("probability by p", [label.span_stage.probability for label in labels])
    after = Row("probability by pᶜ", [label.final.probability for label in labels])
    probabilities = [before, after] if len(tables) > 1 else [before]
    names = [shorten(label.label, LONGEST_LABEL) for label in labels]
    name_width = max(len(row.name) for row in [*probabilities, *(row for table in tables for row in table.rows)])
    cell_width = 2 + max(len("+0.00 (0.00)"), *map(len, names))
    likeliest = sorted(range(len(labels)), key=lambda label: -labels[label].final.probability)
    shown = likeliest[: max(1, (width - name_width) // cell_width)]

    def line(name: str, cells: list[str]) -> str:
        return name.ljust(name_width) + "".join(cells[label].rjust(cell_width) for label in shown)

    lines = [f"“{clean(explanation.span.text)}”", describe_span(explanation), "", line("", names)]
    lines += [line(row.name, [probability_text(value) for value in row.numbers]) for row in probabilities]
    for table in tables:
        note = f": contribution (attention {table.symbol})" if table.symbol else ""
        lines += ["", table.heading + note, *(line(row.name, _cells(row)) for row in table.rows)]
    if len(shown) < len(labels):
        lines += ["", f"The {len(labels) - len(shown)} least likely labels are left out."]
    return "\n".join(lines)


def _cells(row: Row) -> list[str]:
    if row.attention is None:
        return [number_text(value) for value in row.numbers]
    return [f"{number_text(value)} ({weight:.2f})" for value, weight in zip(row.numbers, row.attention, strict=True)]


def number_text(value: float) -> str:
    """A contribution or a logit, signed, short."""
    digits = 2 if abs(value) < 100 else 0
    rounded = round(value, digits)
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else "0"


def probability_text(value: float) -> str:
    return f"{value:.2f}" if value >= 0.005 else "0"
