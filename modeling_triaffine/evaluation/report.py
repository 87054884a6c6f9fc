"""Writes an analysis as Markdown, JSON and a self-contained HTML page (template `report.html`).

Both forms have the same sections of texts, tables and drawn sentences. `figures.py` draws the figures and alone needs
matplotlib.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..data.alignment import join_tokens
from ..data.schema import Entity
from ..drawing import draw_entities, draw_entities_html, drawing_style
from ..drawing.safe_text import REPLACEMENT, clean, markdown_text
from ..drawing.tables import Table
from ..drawing.templates import render_html
from ..files import SURROGATES
from ..model.kinds_triaffine import NONE_LABEL
from .analysis import Analysis, Comparison
from .cases import Case
from .error_analysis import GOLD_OUTCOMES, PREDICTED_OUTCOMES, Mention, SentenceErrors, outcome_name
from .prediction import DEFAULT_COUNTS
from .scores import RATIO_NAMES, Counts, parts_note, parts_title, percent, percentages, score_table, unannotated_note

# Drawn sentences: those with the most errors.
MOST_SENTENCES = 20
# Of the default values of m, those in the table: neighbours hardly differ.
SHOWN_COUNTS = (5, 10, 15, 20, 30, 50, 100)


class DrawnSentence(NamedTuple):
    """`drawings`: (side, text, entities by characters) of the gold and of the predicted entities."""

    id: str
    drawings: list[tuple[str, str, list[Entity]]]
    errors: Table


class Section(NamedTuple):
    """A section of the report; `figure` is the name of its figure without suffix."""

    title: str
    text: str
    tables: Sequence[Table] = ()
    figure: str | None = None
    sentences: Sequence[DrawnSentence] = ()


def write_report(analysis: Analysis, folder: Path, figures: Mapping[str, bytes]) -> None:
    """Writes `report.html`, `report.md`, `report.json` and the figures into an existing folder.

    Args:
        figures: File name → content, from [`draw_figures`]; empty: a report without figures.
    """
    for name, content in figures.items():
        (folder / name).write_bytes(content)
    texts = {
        "report.html": html_report(analysis, figures),
        "report.md": markdown_report(analysis, figures),
        "report.json": json.dumps(analysis.to_dict(), ensure_ascii=False, indent=2),
    }
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8", errors=SURROGATES)


def html_report(analysis: Analysis, figures: Mapping[str, bytes]) -> str:
    """The report as one page with embedded styles and figures, which loads nothing."""
    labels = list(analysis.scores["by_label"])
    return render_html(
        "evaluation/report.html",
        title=f"Analysis of {analysis.model}",
        introduction=_introduction(analysis),
        totals=list(zip(RATIO_NAMES, percentages(analysis.scores), strict=True)),
        sections=list(_sections(analysis)),
        figures={Path(name).stem: base64.b64encode(svg).decode() for name, svg in figures.items() if ".svg" in name},
        draw=partial(draw_entities_html, labels=labels, embedded=True),
        drawing_style=drawing_style(len(labels)) if analysis.sentences_with_errors else "",
    )


def markdown_report(analysis: Analysis, figures: Mapping[str, bytes] | None = None) -> str:
    """The report in Markdown, with links to the figures beside it."""
    blocks = [f"# Analysis of {markdown_text(analysis.model)}", *map(markdown_text, _introduction(analysis))]
    for section in _sections(analysis):
        blocks += [f"## {section.title}", markdown_text(section.text)]
        if f"{section.figure}.png" in (figures or {}):
            blocks.append(f"![{section.title}]({section.figure}.png)")
        blocks += [table.markdown() for table in section.tables]
        for sentence in section.sentences:
            blocks.append(f"### {markdown_text(sentence.id)}")
            for side, text, entities in sentence.drawings:
                # Indented code, which no text can end.
                lines = draw_entities(text, entities).splitlines()
                blocks += [f"{side}:", "\n".join(f"    {line}".rstrip() for line in lines)]
            blocks.append(sentence.errors.markdown())
    return "\n\n".join(blocks)


def _introduction(analysis: Analysis) -> list[str]:
    """The paragraphs before the sections."""
    scores = analysis.scores
    paragraphs = [
        f"The model finds {scores['found']} of the {scores['gold']} entities in {analysis.sentences} sentences of "
        f"{analysis.corpus}; {scores['correct']} of its {scores['predicted']} predictions are correct. A prediction is "
        "correct if a gold entity has the same first word, last word and type. Ratios are in percent."
    ]
    if analysis.unknown_labels:
        paragraphs.append(_unknown_note("The model", analysis.unknown_labels))
    if note := unannotated_note(scores):
        paragraphs.append(note)
    return paragraphs


def _unknown_note(model: str, labels: Sequence[str]) -> str:
    return f"{model} cannot find entities of types that are not among its labels: {', '.join(labels)}."


def _sections(analysis: Analysis) -> Iterator[Section]:
    """The sections that have content."""
    scores = analysis.scores
    whole, *parts = ((part.title, row) for part, row in scores.by_part().items())
    yield Section(
        "Scores by label",
        "Precision is the share of correct predictions, recall the share of gold entities found.",
        [score_table("label", [whole, *scores["by_label"].items()], "All entities, and by label")],
        "by_label",
    )
    yield Section(
        "Scores by length",
        "Precision is computed over the predictions, and recall over the gold entities, with that number of words.",
        [score_table("words", analysis.by_length.items(), "By length")],
        "by_length",
    )
    yield Section(parts_title(), parts_note(), [score_table("", parts, "Parts of all entities")])
    yield Section(
        "Scores by depth",
        "The depth of a predicted or gold span is 1 if no gold entity contains it; otherwise, it is one more than the "
        "depth of the deepest gold entity that does.",
        [score_table("depth", analysis.by_depth.items(), "By nesting depth")],
        "by_depth",
    )
    yield Section(
        "Errors",
        "A gold entity that was not found and an overlapping wrong prediction are one error of boundary, type or both; "
        "a gold entity that overlaps no wrong prediction is missing, a wrong prediction that overlaps no such gold "
        "entity is spurious.",
        _error_tables(analysis.errors),
        "errors",
    )
    if analysis.sentences_with_errors:
        yield _sentences_section(analysis)
    if analysis.candidates is not None:
        yield _candidates_section(analysis.candidates, analysis.max_candidates)
    if analysis.comparison is not None:
        yield _comparison_section(analysis, analysis.comparison)
    if analysis.cases:
        text = (
            "The spans that are entities in the gold data, by p (before the cross-span stage) or by pᶜ (after it), "
            "with the most likely label of each stage and its probability. Spans are ranked by the probability p of "
            "their most likely entity label; a span without pᶜ is not a candidate. Word offsets start at 0; the end "
            "is exclusive."
        )
        yield Section("Cases", text, [_case_table(case) for case in analysis.cases])


def _error_tables(errors: Mapping[str, Any]) -> list[Table]:
    tables = []
    for caption, side, key, outcomes in (
        ("Gold entities by outcome", "gold", "by_gold_label", GOLD_OUTCOMES),
        ("Predictions by outcome", "predicted", "by_predicted_label", PREDICTED_OUTCOMES),
    ):
        rows = [[label, *(row[one] for one in outcomes), sum(row.values())] for label, row in errors[key].items()]
        tables.append(Table([f"{side} label", *map(outcome_name, outcomes), "all"], rows, caption))
    types = errors["types"]
    labels = [label for label in types if any(types[label].values()) or any(row[label] for row in types.values())]
    if labels:
        caption = "Gold entities whose span was predicted, by gold and predicted label"
        rows = [[label, *(types[label][other] for other in labels)] for label in labels]
        tables.append(Table(["gold label", *labels], rows, caption))
    return tables


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

    def draw(side: str, mentions: Sequence[Mention]) -> tuple[str, str, list[Entity]]:
        return side, *join_tokens(words, (Entity(start=one.start, end=one.end, type=one.type) for one in mentions))

    def name(mention: Mention | None) -> str | None:
        return f"{' '.join(words[mention.start : mention.end])} ({mention.type})" if mention else None

    rows = [[outcome_name(error.kind), name(error.gold), name(error.predicted)] for error in sentence.errors]
    caption = "1 error" if len(rows) == 1 else f"{len(rows)} errors"
    drawings = [draw("Gold", sentence.gold), draw("Predicted", sentence.predicted)]
    return DrawnSentence(sentence.id, drawings, Table(["error", "gold", "predicted"], rows, caption))


def _candidates_section(candidates: Sequence[Mapping[str, Any]], max_candidates: int | None) -> Section:
    text = (
        "The m spans most likely to be entities go through the cross-span stage; all others are dropped, so the "
        "recall of the candidates is an upper bound on the model's recall. The same model ran with each m, without "
        "retraining; "
        f"its own m is {max_candidates}."
    )
    if {row["max_candidates"] for row in candidates}.issuperset(DEFAULT_COUNTS):
        left_out = set(DEFAULT_COUNTS).difference(SHOWN_COUNTS, [max_candidates])
        candidates = [row for row in candidates if row["max_candidates"] not in left_out]
        text += " The table shows some values of m; report.json has all."
    rows = []
    for row in candidates:
        kept = row["candidates"]
        dropped = kept["gold"] - kept["found"]
        recall = percent(kept["recall"]) if kept["gold"] else None
        rows.append([row["max_candidates"], recall, dropped, *percentages(row["scores"])])
    columns = ["m", "recall of the candidates", "gold entities dropped", *RATIO_NAMES]
    return Section("Candidates", text, [Table(columns, rows, "By number of candidates")], "candidates")


def _comparison_section(analysis: Analysis, comparison: Comparison) -> Section:
    found = comparison.bootstrap
    low, high = found["interval"]
    text = (
        f"The model's F1 differs from that of {comparison.model} by {_points(found['difference'])} points "
        f"({found['confidence']:.0%} interval {_points(low)} to {_points(high)}, p = {found['p_value']:.4f}), by a "
        f"paired bootstrap over sentences with {found['samples']} samples, of which the model wins "
        f"{found['wins']:.1%}. p is two-sided, under the null hypothesis that both models are equally good."
    )
    if comparison.unknown_labels:
        text += f" {_unknown_note(comparison.model, comparison.unknown_labels)}"
    mine, other = analysis.scores, comparison.scores
    absent = Counts().scores()  # for a label that only the other model predicts
    labels = ((label, mine["by_label"].get(label, absent), row) for label, row in other["by_label"].items())
    whole, *parts = ((part.title, mine.by_part()[part], row) for part, row in other.by_part().items())
    rows = []
    for name, one, another in (whole, *labels, *parts):
        both = [percentages(one)[-1], percentages(another)[-1]]
        rows.append([name, *both, None if None in both else _points(one["f1"] - another["f1"])])
    columns = ["", analysis.model, comparison.model, "difference"]
    return Section("Comparison", text, [Table(columns, rows, "F1 of both models")])


def _points(difference: float) -> str:
    """A difference of ratios in percentage points, signed."""
    rounded = round(100 * difference, 2)
    return f"{rounded:+.2f}".replace("-", "−") if rounded else "0.00"


def _case_table(case: Case) -> Table:
    rows = [
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
