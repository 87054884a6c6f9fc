"""What the report of an analysis says: its sections, in words and tables. `report.py` gives them their form."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..drawing.tables import Cell, Table
from ..model.configuration_triaffine import NONE_LABEL
from .analysis import Analysis, Comparison
from .candidates import DEFAULT_COUNTS
from .cases import Case
from .drawn_sentences import DrawnSentence, prepare_drawing
from .error_analysis import GOLD_OUTCOMES, PREDICTED_OUTCOMES
from .scoring import RATIO_NAMES, Counts, percent, percentages, score_table

# The report draws this many of the sentences with errors, those with most errors.
MOST_SENTENCES = 20
# Rows of the table over m, of all that are tried by default: neighbours hardly differ.
SHOWN_COUNTS = (5, 10, 15, 20, 30, 50, 100)


class Section(NamedTuple):
    """A part of the report; `figure` is the name of its figure without suffix."""

    title: str
    text: str
    tables: Sequence[Table] = ()
    figure: str | None = None
    sentences: Sequence[DrawnSentence] = ()


def title(analysis: Analysis) -> str:
    return f"Analysis of {analysis.model}"


def introduction(analysis: Analysis) -> list[str]:
    """Paragraphs."""
    scores = analysis.scores
    paragraphs = [
        f"{analysis.sentences} sentences of {analysis.corpus} with {scores['gold']} entities, of which the model finds "
        f"{scores['found']}; {scores['correct']} of its {scores['predicted']} predictions are right. A prediction is "
        "right if its first word, last word and type are those of a gold entity. Ratios are in percent."
    ]
    if analysis.unknown_labels:
        unknown = ", ".join(analysis.unknown_labels)
        paragraphs.append(f"The model has no label {unknown}: it cannot find such entities.")
    return paragraphs


def make_sections(analysis: Analysis) -> list[Section]:
    """The parts of the report, those without content left out."""
    sections = [
        _scores_section(analysis),
        _length_section(analysis),
        _nesting_section(analysis),
        _errors_section(analysis),
    ]
    if analysis.sentences_with_errors:
        sections.append(_sentences_section(analysis))
    if analysis.candidates is not None:
        sections.append(_candidates_section(analysis.candidates, analysis.max_candidates))
    if analysis.comparison is not None:
        sections.append(_comparison_section(analysis, analysis.comparison))
    if analysis.cases:
        sections.append(_cases_section(analysis.cases))
    return sections


def _scores_section(analysis: Analysis) -> Section:
    rows = [("all", analysis.scores), *analysis.scores["by_label"].items()]
    text = "Precision is the share of the predictions that are right, recall the share of the gold entities found."
    return Section("Scores by label", text, [score_table("label", rows, "All entities, and by label")], "by_label")


def _length_section(analysis: Analysis) -> Section:
    text = "Precision is over the predictions of that many words, recall over the gold entities of that many."
    table = score_table("words", analysis.by_length.items(), "By length")
    return Section("Scores by length", text, [table], "by_length")


def _nesting_section(analysis: Analysis) -> Section:
    text = (
        "Nested entities contain another one or lie inside one: among the predictions for precision, among the gold "
        "entities for recall; all others are flat. The depth of a span is 1 where no gold entity contains it, else one "
        "more than that of the deepest gold entity that does, for predictions as for gold."
    )
    parts = [(name, analysis.scores[name]) for name in ("flat", "nested")]
    tables = [
        score_table("", parts, "Flat and nested"),
        score_table("depth", analysis.by_depth.items(), "By depth"),
    ]
    return Section("Scores by nesting", text, tables, "by_depth")


def _errors_section(analysis: Analysis) -> Section:
    errors = analysis.errors
    text = (
        "A gold entity that is not found and a wrong prediction that share words are one error of boundary, type or "
        "both; a gold entity that shares words with no wrong prediction is missing, a wrong prediction that shares "
        "words with no such gold entity is spurious."
    )
    labels = list(errors["types"])
    types = [[label, *errors["types"][label].values()] for label in labels]
    caption = "Gold entities whose span was predicted, by gold and predicted label"
    tables = [
        _outcome_table("Gold entities by outcome", "gold label", errors["by_gold_label"], GOLD_OUTCOMES),
        _outcome_table("Predictions by outcome", "predicted label", errors["by_predicted_label"], PREDICTED_OUTCOMES),
        Table(["gold label", *labels], types, caption),
    ]
    return Section("Errors", text, tables, "errors")


def _sentences_section(analysis: Analysis) -> Section:
    sentences = analysis.sentences_with_errors
    shown = sentences[:MOST_SENTENCES]
    order = "those with most errors first"
    if len(shown) < len(sentences):
        order = f"of which the {len(shown)} with most errors are shown; report.json has all"
    text = (
        f"{len(sentences)} of the {analysis.sentences} sentences have errors, {order}. Pass the id of a sentence to "
        "--sentences to see how the model scored its spans."
    )
    return Section("Sentences with errors", text, sentences=[prepare_drawing(sentence) for sentence in shown])


def _candidates_section(candidates: Sequence[Mapping[str, Any]], max_candidates: int | None) -> Section:
    text = (
        "The m spans most likely to be an entity go through the cross-span stage, all others are dropped: the recall "
        "of the candidates is an upper bound of the model's recall. The same model was run with each m, without "
        f"training; its own is {max_candidates}."
    )
    if {row["max_candidates"] for row in candidates}.issuperset(DEFAULT_COUNTS):
        left_out = set(DEFAULT_COUNTS).difference(SHOWN_COUNTS, [max_candidates])
        candidates = [row for row in candidates if row["max_candidates"] not in left_out]
        text += " The table leaves some values out; report.json has all."
    rows = [
        [
            row["max_candidates"],
            percent(row["candidates"]["recall"]),
            row["candidates"]["gold"] - row["candidates"]["found"],
            *percentages(row["scores"]),
        ]
        for row in candidates
    ]
    columns = ["m", "recall of the candidates", "gold entities dropped", *RATIO_NAMES]
    return Section("Candidates", text, [Table(columns, rows, "By number of candidates")], "candidates")


def _comparison_section(analysis: Analysis, comparison: Comparison) -> Section:
    found = comparison.bootstrap
    low, high = found["interval"]
    text = (
        f"The model's F1 differs from that of {comparison.model} by {points(found['difference'])} points; "
        f"{found['confidence']:.0%} interval {points(low)} to {points(high)}, p = {found['p_value']:.4f}. Paired "
        f"bootstrap over sentences, {found['samples']} samples, of which the model wins {found['wins']:.1%}; p is "
        "two-sided, for the hypothesis that both are equally good."
    )
    mine, other = analysis.scores, comparison.scores
    absent = Counts().scores()  # of a label that only the other model predicts
    pairs = [
        ("all", mine, other),
        *((label, mine["by_label"].get(label, absent), row) for label, row in other["by_label"].items()),
        *((part, mine[part], other[part]) for part in ("flat", "nested")),
    ]
    rows = [
        [name, percentages(one)[-1], percentages(another)[-1], points(one["f1"] - another["f1"])]
        for name, one, another in pairs
    ]
    columns = ["", analysis.model, comparison.model, "difference"]
    return Section("Comparison", text, [Table(columns, rows, "F1 of both models")])


def _cases_section(cases: Sequence[Case]) -> Section:
    text = (
        "The spans that are entities in gold, by p (before the cross-span stage) or by pᶜ (after it), with the "
        "likeliest label by each and its probability. The rank is the span's among all spans of the sentence, ordered "
        "by the probability p of their likeliest entity label; a span without pᶜ is no candidate. Words are counted "
        "from 0, the end exclusive."
    )
    return Section("Cases", text, [_case_table(case) for case in cases])


def _case_table(case: Case) -> Table:
    rows: list[list[Cell]] = [
        [
            span.text,
            f"{span.start}–{span.end}",
            span.label,
            f"{span.probability:.3f}",
            span.rank,
            span.final_label,
            None if span.final_probability is None else f"{span.final_probability:.3f}",
            ", ".join(span.gold) or NONE_LABEL,
        ]
        for span in case.spans
    ]
    columns = ["span", "words", "p", "probability", f"rank of {case.num_spans}", "pᶜ", "probability", "gold"]
    return Table(columns, rows, f"{case.id}: {case.text}")


def _outcome_table(
    caption: str, first_column: str, rows: Mapping[str, Mapping[str, int]], outcomes: Sequence[str]
) -> Table:
    names = [outcome.replace("_", " ") for outcome in outcomes]
    cells: list[list[Cell]] = [
        [label, *(row[outcome] for outcome in outcomes), sum(row.values())] for label, row in rows.items()
    ]
    return Table([first_column, *names, "all"], cells, caption)


def points(difference: float) -> str:
    """A difference of ratios in percent points, signed."""
    rounded = round(100 * difference, 2)
    return f"{rounded:+.2f}".replace("-", "−") if rounded else "0.00"
