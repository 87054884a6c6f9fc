"""`analyse`: the whole analysis of a model on a corpus as plain data, as an HTML page (`report.html`) and as text."""

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset

from ..data.alignment import join_tokens
from ..data.schema import Entity
from ..drawing import draw_entities_html, drawing_style
from ..drawing.safe_text import LONGEST_LABEL, REPLACEMENT, clean, shorten
from ..drawing.tables import Table
from ..drawing.templates import render_html
from ..files import SURROGATES
from ..model.decoding_triaffine import Threshold
from ..model.kinds_triaffine import Keep
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import PredictionOptions
from ..model.processing_triaffine import TriaffineProcessor
from .error_analysis import (
    GOLD_OUTCOMES,
    PREDICTED_OUTCOMES,
    RIGHT,
    SPURIOUS,
    ErrorExample,
    Mention,
    confusion,
    error_examples,
    outcome_name,
)
from .prediction import DEFAULT_COUNTS, predict_words, sweep_candidates, unknown_labels, with_context
from .scores import (
    PARTS_NOTE,
    PARTS_TITLE,
    RATIO_NAMES,
    defined_ratios,
    percent,
    percentages,
    score_table,
    unannotated_note,
    with_nulls,
)
from .scoring import score_entities, scores_by_depth, scores_by_length
from .significance import paired_bootstrap

MOST_EXAMPLES = 20
MOST_LABELS, WIDTH = 10, 100  # of the summary
Analysis = Mapping[str, Any]  # as `analyse` returns it


class NamedModel(NamedTuple):
    """A trained model, its processor, and its display name."""

    name: str
    model: TriaffineForNestedNER
    processor: TriaffineProcessor


def analyse(
    subject: NamedModel,
    corpus: Dataset,
    corpus_name: str,
    *,
    counts: Sequence[int] | None = None,
    other: NamedModel | None = None,
    batch_size: int | None = PredictionOptions.batch_size,
    threshold: Threshold | None = None,
    overlap: str | Keep = PredictionOptions.overlap,
) -> dict[str, Any]:
    """Analyses a model on one split of a corpus, which reports call `corpus_name`.

    Args:
        counts: numbers of candidates to try, see [`sweep_candidates`]; None: 5, 10, …, 100 if the model has a
            cross-span stage.
        other: a model to compare with.
        threshold, overlap: as of a pipeline; the numbers of candidates are tried without.

    Returns:
        Plain data. `candidates` is None without a cross-span stage, `comparison` without another model.
    """
    config = subject.model.config

    def predict(named: NamedModel) -> tuple[list[dict[str, Any]], list[list[Any]]]:
        records = with_context(corpus, named.processor, config.auxiliary_labels)
        return records, predict_words(named.model, named.processor, records, batch_size, threshold, overlap)

    records, predictions = predict(subject)
    references = [record["entities"] for record in records]
    if counts is None and config.cross_span:
        counts = DEFAULT_COUNTS
    candidates = None
    if counts:
        candidates = sweep_candidates(subject.model, subject.processor, records, counts, batch_size)
    comparison = None
    if other is not None:
        others = predict(other)[1]
        comparison = {
            "model": other.name,
            "unknown_labels": unknown_labels(records, other.model.config),
            "scores": score_entities(others, references, config.entity_labels),
            "bootstrap": paired_bootstrap(predictions, others, references),
        }
    return {
        "model": subject.name,
        "corpus": corpus_name,
        "sentences": len(records),
        "unknown_labels": unknown_labels(records, config),
        "scores": score_entities(predictions, references, config.entity_labels),
        "by_length": scores_by_length(predictions, references),
        "by_depth": scores_by_depth(predictions, references),
        "errors": confusion(predictions, references, config.entity_labels),
        "examples": error_examples(predictions, records),
        "max_candidates": config.max_candidates if config.cross_span else None,
        "candidates": candidates,
        "comparison": comparison,
    }


class Bar(NamedTuple):
    """A bar as long as F1, with marks at precision and recall; from 0 to 1, None if undefined."""

    name: str
    precision: float | None
    recall: float | None
    f1: float | None


def write_report(analysis: Analysis, folder: Path) -> None:
    """Writes `report.html` and `report.json`, with null for undefined ratios, into an existing folder."""
    data = json.dumps(with_nulls(analysis), ensure_ascii=False, indent=2)
    for name, text in (("report.html", html_report(analysis)), ("report.json", data)):
        (folder / name).write_text(f"{text}\n", encoding="utf-8", errors=SURROGATES)


def html_report(analysis: Analysis) -> str:
    """The report as one page with embedded styles and figures, which loads nothing."""
    scores = analysis["scores"]
    whole, *parts = ((part.title, row) for part, row in scores.by_part().items())
    by_row = {"label": scores["by_label"], "words": analysis["by_length"], "depth": analysis["by_depth"]}
    return render_html(
        "evaluation/report.html",
        analysis=analysis,
        title=f"Analysis of {analysis['model']}",
        introduction=_introduction(analysis),
        totals=list(zip(RATIO_NAMES, percentages(scores), strict=True)),
        score_tables={
            name: score_table(name, [*([whole] if name == "label" else ()), *rows.items()])
            for name, rows in by_row.items()
        },
        bars={name: [Bar(row, *defined_ratios(rows[row])) for row in rows] for name, rows in by_row.items()},
        parts=(PARTS_TITLE, PARTS_NOTE, score_table("", parts)),
        error_tables=list(_error_tables(analysis["errors"])),
        examples=[_draw_example(example, list(scores["by_label"])) for example in analysis["examples"][:MOST_EXAMPLES]],
        candidates=_candidates(analysis["candidates"] or ()),
        comparison=analysis["comparison"] and _comparison(analysis, analysis["comparison"]),
        unknown_note=_unknown_note,
        drawing_style=drawing_style(len(scores["by_label"])),
        shorten=lambda name: shorten(name, LONGEST_LABEL),
    )


def summarize(analysis: Analysis) -> str:
    """The scores, of labels those of the most frequent, and the kinds of errors in at most 30 lines."""
    scores, errors = analysis["scores"], analysis["errors"]
    labels = sorted(scores["by_label"], key=lambda label: -scores["by_label"][label]["gold"])
    left_out = {f"  {label}" for label in labels[MOST_LABELS:]}
    notes = _introduction(analysis)
    if left_out:
        notes.append(f"The {MOST_LABELS} labels with the most entities are shown, of {len(labels)}.")
    counts = {kind: sum(row[kind] for row in errors["by_gold_label"].values()) for kind in GOLD_OUTCOMES}
    counts[SPURIOUS] = sum(row[SPURIOUS] for row in errors["by_predicted_label"].values())
    kinds = (f"{outcome_name(kind)} {count:,}" for kind, count in counts.items() if kind != RIGHT)
    notes.append(f"Errors: {', '.join(kinds)}.")
    if analysis["comparison"] is not None:
        notes.append(_difference(analysis["comparison"]))
    lines = (textwrap.fill(textwrap.shorten(clean(note), 3 * WIDTH, placeholder=" …"), WIDTH) for note in notes)
    table = score_table("", [(name, row) for name, row in scores.rows() if name not in left_out])
    return "\n".join([table.text(), "", *lines])


def _introduction(analysis: Analysis) -> list[str]:
    scores = analysis["scores"]
    unknown = analysis["unknown_labels"]
    paragraphs = [
        f"The model finds {scores['found']} of the {scores['gold']} entities in {analysis['sentences']} sentences of "
        f"{analysis['corpus']}; {scores['correct']} of its {scores['predicted']} predictions are correct.",
        _unknown_note("The model", unknown) if unknown else "",
        unannotated_note(scores),
    ]
    return list(filter(None, paragraphs))


def _unknown_note(model: str, labels: Sequence[str]) -> str:
    return f"{model} cannot find entities of types that are not among its labels: {', '.join(labels)}."


def _error_tables(errors: Mapping[str, Any]) -> Iterator[Table]:
    for caption, side, key, outcomes in (
        ("Gold entities by outcome", "gold", "by_gold_label", GOLD_OUTCOMES),
        ("Predictions by outcome", "predicted", "by_predicted_label", PREDICTED_OUTCOMES),
    ):
        rows = [[label, *row.values(), sum(row.values())] for label, row in errors[key].items()]
        yield Table([f"{side} label", *map(outcome_name, outcomes), "all"], rows, caption)
    types = errors["types"]
    if labels := [label for label in types if any(types[label].values()) or any(row[label] for row in types.values())]:
        caption = "Gold entities whose span was predicted, by gold and predicted label"
        yield Table(
            ["gold label", *labels], [[gold, *(types[gold][other] for other in labels)] for gold in labels], caption
        )


def _draw_example(example: ErrorExample, labels: Sequence[str]) -> tuple[str, dict[str, str], Table]:
    words = [clean(token) or REPLACEMENT for token in example["tokens"]]

    def draw(mentions: Iterable[Mention]) -> str:
        entities = (Entity(start=found["start"], end=found["end"], type=found["type"]) for found in mentions)
        return draw_entities_html(*join_tokens(words, entities), labels, embedded=True)

    def name(mention: Mention | None) -> str | None:
        return f"{' '.join(words[mention['start'] : mention['end']])} ({mention['type']})" if mention else None

    rows = [[outcome_name(error["kind"]), name(error["gold"]), name(error["predicted"])] for error in example["errors"]]
    drawings = {"Gold": draw(example["gold"]), "Predicted": draw(example["predicted"])}
    return example["id"], drawings, Table(["error", "gold", "predicted"], rows)


def _candidates(candidates: Iterable[Mapping[str, Any]]) -> tuple[Table, list[Bar]]:
    rows, bars = [], []
    for row in candidates:
        kept, ratios, count = row["candidates"], defined_ratios(row["scores"]), row["max_candidates"]
        recall = kept["recall"] if kept["gold"] else None
        rows.append([count, percent(recall), kept["gold"] - kept["found"], *map(percent, ratios)])
        bars.append(Bar(str(count), None, recall, ratios[-1]))
    return Table(["m", "recall of the candidates", "gold entities dropped", *RATIO_NAMES], rows), bars


def _difference(comparison: Mapping[str, Any]) -> str:
    found = comparison["bootstrap"]
    low, high = map(_points, found["interval"])
    return (
        f"The model's F1 differs from that of {comparison['model']} by {_points(found['difference'])} points "
        f"({found['confidence']:.0%} interval {low} to {high}, p = {found['p_value']:.4f})."
    )


def _comparison(analysis: Analysis, comparison: Mapping[str, Any]) -> tuple[str, Table]:
    mine, rows = dict(analysis["scores"].rows()), []
    for name, other in comparison["scores"].rows():
        f1, other_f1 = (defined_ratios(row)[-1] if row else None for row in (mine.get(name), other))
        rows.append(
            [name, percent(f1), percent(other_f1), None if f1 is None or other_f1 is None else _points(f1 - other_f1)]
        )
    columns = ["", analysis["model"], comparison["model"], "difference"]
    return _difference(comparison), Table(columns, rows, "F1 of both models")


def _points(difference: float) -> str:
    """A difference of ratios in percentage points, signed."""
    rounded = round(100 * difference, 2)
    return f"{rounded:+.2f}".replace("-", "−") if rounded else "0.00"
