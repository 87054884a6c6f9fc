"""What a report of an analysis says: its parts, in words and tables. How it looks is in `report.py`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from .analysis import Analysis, Comparison
from .breakdowns import GOLD_OUTCOMES, PREDICTED_OUTCOMES
from .candidates import DEFAULT_COUNTS
from .cases import Case
from .drawn_sentences import DrawnSentence
from .scoring import Counts
from .tables import Table

RATIOS = ("precision", "recall", "f1")
RATIO_NAMES = ("precision", "recall", "F1")
# Of sentences with errors, those with most of them.
MOST_SENTENCES = 20
# Rows of the table over m, of all that are tried where nobody says which: neighbours hardly differ.
SHOWN_COUNTS = (5, 10, 15, 20, 30, 50, 100)


class Block(Protocol):
    """A table, or what else stands below the text of a section."""

    def markdown(self) -> str: ...
    def html(self) -> str: ...


class Section(NamedTuple):
    """A part of the report; `figure` is the name of its figure without suffix, where it has one."""

    title: str
    text: str
    blocks: Sequence[Block]
    figure: str | None = None


def title(analysis: Analysis) -> str:
    return f"Analysis of {analysis.model}"


def introduction(analysis: Analysis) -> list[str]:
    """Paragraphs."""
    scores = analysis.scores
    paragraphs = [
        f"{analysis.sentences} sentences of {analysis.corpus}, with {scores['gold']} entities, of which the model "
        f"finds {scores['found']}; of its {scores['predicted']} predictions {scores['correct']} are right. An entity "
        "is right if its first word, its last word and its type are. Ratios are in percent."
    ]
    if analysis.unknown_labels:
        paragraphs.append(f"The model has no label {', '.join(analysis.unknown_labels)}: such entities are missed.")
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
    return Section("Scores by label", text, [_score_table("All entities, and by label", "label", rows)], "by_label")


def _length_section(analysis: Analysis) -> Section:
    text = "Precision is over the predictions of that many words, recall over the gold entities of that many."
    table = _score_table("By length", "words", analysis.by_length.items())
    return Section("Scores by length", text, [table], "by_length")


def _nesting_section(analysis: Analysis) -> Section:
    text = (
        "Nested entities contain another one or lie inside one, seen among the predictions for precision and among the "
        "gold entities for recall; all others are flat. The depth of a span is 1 where no gold entity contains it, "
        "else one more than that of the deepest gold entity that does, for predictions as for gold."
    )
    parts = [(name, analysis.scores[name]) for name in ("flat", "nested")]
    tables = [_score_table("Flat and nested", "", parts), _score_table("By depth", "depth", analysis.by_depth.items())]
    return Section("Scores by nesting", text, tables, "by_depth")


def _errors_section(analysis: Analysis) -> Section:
    errors = analysis.errors
    text = (
        "A missed entity and a wrong prediction that share words are counted as one mistake of boundary, type or both; "
        "what shares words with no mistake of the other side is missed or invented."
    )
    labels = list(errors["types"])
    types = [[label, *map(str, errors["types"][label].values())] for label in labels]
    tables = [
        _outcome_table("Gold entities, by what became of them", "gold label", errors["by_gold_label"], GOLD_OUTCOMES),
        _outcome_table(
            "Predictions, by what they are", "predicted label", errors["by_predicted_label"], PREDICTED_OUTCOMES
        ),
        _count_table("Gold spans that were predicted, by gold and predicted label", ["gold label", *labels], types),
    ]
    return Section("Errors", text, tables, "errors")


def _sentences_section(analysis: Analysis) -> Section:
    sentences = analysis.sentences_with_errors
    shown = sentences[:MOST_SENTENCES]
    order = "those with most of them first"
    if len(shown) < len(sentences):
        order = f"here the {len(shown)} with most of them, in report.json all"
    text = (
        f"{len(sentences)} of the {analysis.sentences} sentences have mistakes, {order}. Give the id of a sentence to "
        "--sentences for what the model thought of its spans."
    )
    labels = list(analysis.scores["by_label"])
    return Section("Sentences with errors", text, [DrawnSentence(sentence, labels) for sentence in shown])


def _candidates_section(candidates: Sequence[Mapping[str, Any]], max_candidates: int | None) -> Section:
    text = (
        "The m spans most likely to be an entity go through the cross-span stage, all others are dropped: the recall "
        "of the candidates is the most that the model's recall can be. The same model was run with each m, without "
        f"training; its own is {max_candidates}."
    )
    tried = {row["max_candidates"] for row in candidates}
    if tried.issuperset(DEFAULT_COUNTS):
        left_out = set(DEFAULT_COUNTS).difference(SHOWN_COUNTS, [max_candidates])
        candidates = [row for row in candidates if row["max_candidates"] not in left_out]
        text += " The table leaves some of them out; report.json has them all."
    rows = [
        [
            str(row["max_candidates"]),
            percent(row["candidates"]["recall"]),
            str(row["candidates"]["gold"] - row["candidates"]["found"]),
            *(percent(row["scores"][ratio]) for ratio in RATIOS),
        ]
        for row in candidates
    ]
    header = ["m", "recall of the candidates", "gold entities dropped", *RATIO_NAMES]
    return Section("Candidates", text, [Table("By number of candidates", header, rows, "rrrrrr")], "candidates")


def _comparison_section(analysis: Analysis, comparison: Comparison) -> Section:
    found = comparison.bootstrap
    low, high = found["interval"]
    text = (
        f"The model's F1 differs from that of {comparison.model} by {points(found['difference'])} points; "
        f"{found['confidence']:.0%} interval {points(low)} to {points(high)}, p = {found['p_value']:.4f}. Paired "
        f"bootstrap over sentences, {found['samples']} samples, of which the model is ahead in {found['wins']:.1%}; p "
        "is two-sided, for the hypothesis that both are equally good."
    )
    mine, other = analysis.scores, comparison.scores
    absent = Counts().scores()  # of a label that only the other model predicts
    pairs = [
        ("all", mine, other),
        *((label, mine["by_label"].get(label, absent), row) for label, row in other["by_label"].items()),
        *((part, mine[part], other[part]) for part in ("flat", "nested")),
    ]
    rows = [
        [name, percent(one["f1"]), percent(another["f1"]), points(one["f1"] - another["f1"])]
        for name, one, another in pairs
    ]
    table = Table("F1 of both models", ["", analysis.model, comparison.model, "difference"], rows, "lrrr")
    return Section("Comparison", text, [table])


def _cases_section(cases: Sequence[Case]) -> Section:
    text = (
        "The spans that are entities in gold, by p (before the cross-span stage) or by pᶜ (after it), with the "
        "likeliest label by each and its probability. The rank is the span's place among all of the sentence by its "
        "likeliest entity label by p; a span without pᶜ is no candidate. Words are counted from 0, the end exclusive."
    )
    return Section("Cases", text, [_case_table(case) for case in cases])


def _case_table(case: Case) -> Table:
    rows = [
        [
            span.text,
            f"{span.start}–{span.end}",
            span.label,
            f"{span.probability:.3f}",
            "–" if span.rank is None else str(span.rank),
            span.final_label or "–",
            "–" if span.final_probability is None else f"{span.final_probability:.3f}",
            ", ".join(span.gold) or "None",
        ]
        for span in case.spans
    ]
    header = ["span", "words", "p", "probability", f"rank of {case.num_spans}", "pᶜ", "probability", "gold"]
    return Table(f"{case.id}: {case.text}", header, rows, "lllrrlrl")


def _score_table(caption: str, first_column: str, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Table:
    cells = [
        [name, *(percent(row[ratio]) for ratio in RATIOS), str(row["predicted"]), str(row["gold"])]
        for name, row in rows
    ]
    return Table(caption, [first_column, *RATIO_NAMES, "predicted", "gold"], cells, "lrrrrr")


def _outcome_table(
    caption: str, first_column: str, rows: Mapping[str, Mapping[str, int]], outcomes: Sequence[str]
) -> Table:
    names = [outcome.replace("_", " ") for outcome in outcomes]
    cells = [
        [label, *(str(row[outcome]) for outcome in outcomes), str(sum(row.values()))] for label, row in rows.items()
    ]
    return _count_table(caption, [first_column, *names, "all"], cells)


def _count_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(caption, header, rows, "l" + "r" * (len(header) - 1))


def percent(ratio: float) -> str:
    return f"{100 * ratio:.2f}"


def points(difference: float) -> str:
    """A difference of ratios in percent points, signed."""
    rounded = round(100 * difference, 2)
    return f"{rounded:+.2f}".replace("-", "−") if rounded else "0.00"
