"""The sections of an analysis report: texts, tables and drawn sentences; `report.py` formats them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ..drawing.safe_text import REPLACEMENT, clean
from ..drawing.tables import Cell, Table
from ..model.configuration_triaffine import NONE_LABEL
from .analysis import Analysis, Comparison
from .candidates import DEFAULT_COUNTS
from .cases import Case
from .error_analysis import GOLD_OUTCOMES, PREDICTED_OUTCOMES, Mention, SentenceErrors, outcome_name
from .scoring import RATIO_NAMES, Counts, percent, percentages, score_table

# Drawn sentences: those with the most errors.
MOST_SENTENCES = 20
# Of the default values of m, those in the table: neighbours hardly differ.
SHOWN_COUNTS = (5, 10, 15, 20, 30, 50, 100)


class DrawnSentence(NamedTuple):
    """`drawings`: (side, text, entities by characters) of the gold and of the predicted entities."""

    id: str
    drawings: list[tuple[str, str, list[dict[str, Any]]]]
    errors: Table


class Section(NamedTuple):
    """A section of the report; `figure` is the name of its figure without suffix."""

    title: str
    text: str
    tables: Sequence[Table] = ()
    figure: str | None = None
    sentences: Sequence[DrawnSentence] = ()


def title(analysis: Analysis) -> str:
    return f"Analysis of {analysis.model}"


def introduction(analysis: Analysis) -> list[str]:
    """The paragraphs before the sections."""
    scores = analysis.scores
    paragraphs = [
        f"The model finds {scores['found']} of the {scores['gold']} entities in {analysis.sentences} sentences of "
        f"{analysis.corpus}; {scores['correct']} of its {scores['predicted']} predictions are correct. A prediction is "
        "correct if a gold entity has the same first word, last word and type. Ratios are in percent."
    ]
    if analysis.unknown_labels:
        unknown = ", ".join(analysis.unknown_labels)
        paragraphs.append(f"The model cannot find entities of types that are not among its labels: {unknown}.")
    return paragraphs


def make_sections(analysis: Analysis) -> list[Section]:
    """The sections of the report that have content."""
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
    text = "Precision is the share of correct predictions, recall the share of gold entities found."
    return Section("Scores by label", text, [score_table("label", rows, "All entities, and by label")], "by_label")


def _length_section(analysis: Analysis) -> Section:
    text = "Precision is over the predictions, recall over the gold entities with that number of words."
    table = score_table("words", analysis.by_length.items(), "By length")
    return Section("Scores by length", text, [table], "by_length")


def _nesting_section(analysis: Analysis) -> Section:
    text = (
        "Nested entities contain another entity or lie inside one, among the predictions for precision and among the "
        "gold entities for recall; all others are flat. The depth of a predicted or gold span is 1 if no gold entity "
        "contains it, else one more than that of the deepest gold entity that does."
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
        "A gold entity that was not found and an overlapping wrong prediction are one error of boundary, type or both; "
        "a gold entity that overlaps no wrong prediction is missing, a wrong prediction that overlaps no such gold "
        "entity is spurious."
    )
    types = errors["types"]
    labels = [label for label in types if any(types[label].values()) or any(row[label] for row in types.values())]
    rows = [[label, *(types[label][other] for other in labels)] for label in labels]
    tables = [
        _outcome_table("Gold entities by outcome", "gold label", errors["by_gold_label"], GOLD_OUTCOMES),
        _outcome_table("Predictions by outcome", "predicted label", errors["by_predicted_label"], PREDICTED_OUTCOMES),
    ]
    if rows:
        caption = "Gold entities whose span was predicted, by gold and predicted label"
        tables.append(Table(["gold label", *labels], rows, caption))
    return Section("Errors", text, tables, "errors")


def _sentences_section(analysis: Analysis) -> Section:
    sentences = analysis.sentences_with_errors
    shown = sentences[:MOST_SENTENCES]
    order = "Those with the most errors come first"
    if len(shown) < len(sentences):
        order = f"The {len(shown)} with the most errors are shown; report.json has all"
    text = (
        f"{len(sentences)} of the {analysis.sentences} sentences have errors. {order}. Pass the id of a sentence to "
        "--sentences for the scores of its spans."
    )
    return Section("Sentences with errors", text, sentences=[_draw_sentence(sentence) for sentence in shown])


def _draw_sentence(sentence: SentenceErrors) -> DrawnSentence:
    words = [clean(token) or REPLACEMENT for token in sentence.tokens]
    sides = (("Gold", sentence.gold), ("Predicted", sentence.predicted))

    def name(mention: Mention | None) -> str | None:
        return f"{' '.join(words[mention.start : mention.end])} ({mention.type})" if mention else None

    rows = [[outcome_name(error.kind), name(error.gold), name(error.predicted)] for error in sentence.errors]
    caption = "1 error" if len(rows) == 1 else f"{len(rows)} errors"
    return DrawnSentence(
        sentence.id,
        [(side, " ".join(words), _by_characters(words, mentions)) for side, mentions in sides],
        Table(["error", "gold", "predicted"], rows, caption),
    )


def _by_characters(words: Sequence[str], mentions: Iterable[Mention]) -> list[dict[str, Any]]:
    """The entities with character offsets in the words joined by spaces."""
    starts = list(accumulate((len(word) + 1 for word in words), initial=0))
    return [
        {"entity_group": mention.type, "start": starts[mention.start], "end": starts[mention.end] - 1}
        for mention in mentions
    ]


def _candidates_section(candidates: Sequence[Mapping[str, Any]], max_candidates: int | None) -> Section:
    text = (
        "The m spans most likely to be entities go through the cross-span stage, all others are dropped: the recall of "
        "the candidates is an upper bound of the model's recall. The same model ran with each m, without retraining; "
        f"its own m is {max_candidates}."
    )
    if {row["max_candidates"] for row in candidates}.issuperset(DEFAULT_COUNTS):
        left_out = set(DEFAULT_COUNTS).difference(SHOWN_COUNTS, [max_candidates])
        candidates = [row for row in candidates if row["max_candidates"] not in left_out]
        text += " The table shows some values of m; report.json has all."
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
        f"The model's F1 differs from that of {comparison.model} by {points(found['difference'])} points "
        f"({found['confidence']:.0%} interval {points(low)} to {points(high)}, p = {found['p_value']:.4f}), by a "
        f"paired bootstrap over sentences with {found['samples']} samples, of which the model wins "
        f"{found['wins']:.1%}. p is two-sided, under the null hypothesis that both models are equally good."
    )
    mine, other = analysis.scores, comparison.scores
    absent = Counts().scores()  # for a label that only the other model predicts
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
        "likeliest label of each stage and its probability. The rank orders the spans of the sentence by the "
        "probability p of their likeliest entity label; a span without pᶜ is not a candidate. Word offsets start at 0, "
        "the end is exclusive."
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
    names = map(outcome_name, outcomes)
    cells: list[list[Cell]] = [
        [label, *(row[outcome] for outcome in outcomes), sum(row.values())] for label, row in rows.items()
    ]
    return Table([first_column, *names, "all"], cells, caption)


def points(difference: float) -> str:
    """A difference of ratios in percentage points, signed."""
    rounded = round(100 * difference, 2)
    return f"{rounded:+.2f}".replace("-", "−") if rounded else "0.00"
