"""`plot_explanation`: the tables of an explanation as one figure, with cells coloured by attention."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..drawing.figure_style import BLUE, GREY, MOST_LABELS, QUIET, figure_style, save
from ..drawing.safe_text import LONGEST_LABEL, clean, shorten
from ..files import atomic_path
from .explaining import Explanation
from .tables import Stage, describe_span, likeliest_labels, make_stages, number_text, probability_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
DARK = 0.62  # share of the highest attention in a table; numbers on darker cells are white

# Inches.
CELL_WIDTH, CELL_HEIGHT = 0.62, 0.27
TITLE_HEIGHT, LEGEND_HEIGHT, BARS_HEIGHT, HEADING_HEIGHT = 0.62, 0.3, 0.9, 0.27
MARGIN, GAP = 0.15, 0.2
COLOUR_BAR_WIDTH, COLOUR_BAR_ROOM = 0.1, 0.55

LONGEST_TITLE = 60  # characters
TEXT_SIZE, TITLE_SIZE = 8.5, 12.0  # points
BEFORE, AFTER = GREY, BLUE
PREDICTED = "#B34700"  # vermilion, darker: readable as text


def plot_explanation(explanation: Explanation, path: str | os.PathLike[str] | None = None) -> "Figure":
    """Draws the probabilities before and after the cross-span stage, and below them the terms of the scores.

    In each column of a table, the contributions of the words (candidates) and the bias add up to the label's logit.
    Colours are attention, α over inside words, β over candidates; the column of the predicted label is framed.
    [`make_stages`] selects the words and candidates; of many labels, the likeliest 24 are shown.

    Args:
        explanation: The result of [`explain`].
        path: File to save to, as PNG, SVG or PDF by its suffix; None: not saved.

    Returns:
        The matplotlib figure.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: The path has another suffix.

    Examples:
        >>> from modeling_triaffine import NestedNERPipeline
        >>> from modeling_triaffine.explanation import explain, plot_explanation
        >>> pipeline = NestedNERPipeline("outputs/demo/model")
        >>> explanation = explain(pipeline, "The mayor of Port Velmar resigned.", (13, 24))
        >>> figure = plot_explanation(explanation, "explanation.svg")
    """
    suffix = "" if path is None else Path(path).suffix.lower()
    if path is not None and suffix not in SUFFIXES:
        raise ValueError(f"Cannot save a plot as {path}; choose a name that ends in {', '.join(SUFFIXES)}.")
    shown = sorted(likeliest_labels(explanation)[:MOST_LABELS])
    subtitle = describe_span(explanation)
    if left_out := len(explanation.labels) - len(shown):
        subtitle += f" · labels left out: {left_out}"
    with figure_style("explanation", {"font.size": TEXT_SIZE}):
        figure = _draw(replace(explanation, labels=[explanation.labels[number] for number in shown]), subtitle)
        if path is not None:
            with atomic_path(Path(path)) as unfinished:
                save(figure, unfinished, suffix[1:], Title=clean(explanation.span.text))
    return figure


class _Sheet:
    """A figure with positions in inches from the left and from the top."""

    def __init__(self, width: float, height: float):
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width, height))

    def place(self, left: float, top: float) -> tuple[float, float]:
        return left / self.width, 1 - top / self.height

    def add_axes(self, left: float, top: float, width: float, height: float) -> "Axes":
        return self.figure.add_axes((*self.place(left, top + height), width / self.width, height / self.height))

    def write(self, top: float, text: str, **options: Any) -> None:
        self.figure.text(*self.place(MARGIN, top), text, va="top", **options)


def _draw(explanation: Explanation, subtitle: str) -> "Figure":
    """Title, legend, labels, bars and tables, from top to bottom; each label has a column."""
    stages = make_stages(explanation)
    labels = [shorten(label.label, LONGEST_LABEL) for label in explanation.labels]
    # None with `multi_label`, whose labels have no column `None`, if the span is not an entity.
    predicted = next((n for n, one in enumerate(explanation.labels) if one.label == explanation.predicted), None)
    title = f"“{shorten(explanation.span.text, LONGEST_TITLE)}”"
    headings = [_describe_stage(stage) for stage in stages]

    longest_label = max(_text_width(label, weight="bold") for label in labels)
    rotation = 0 if longest_label < CELL_WIDTH else 40
    labels_height, overhang = (0.7 * longest_label + 0.15, 0.8 * longest_label) if rotation else (0.2, 0.0)
    left = MARGIN + 0.1 + max(_text_width(row.title, weight="bold") for stage in stages for row in stage.rows)
    columns_width = CELL_WIDTH * len(labels)
    longest_line = max(_text_width(title, TITLE_SIZE, "bold"), *map(_text_width, [subtitle, *headings]))
    bars_top = MARGIN + TITLE_HEIGHT + LEGEND_HEIGHT + labels_height
    stages_height = sum(GAP + HEADING_HEIGHT + CELL_HEIGHT * len(stage.rows) for stage in stages)
    sheet = _Sheet(
        width=max(MARGIN + longest_line, left + columns_width + max(COLOUR_BAR_ROOM, overhang)) + MARGIN,
        height=bars_top + BARS_HEIGHT + stages_height + MARGIN,
    )

    sheet.write(MARGIN, title, fontsize=TITLE_SIZE, fontweight="bold")
    sheet.write(MARGIN + 0.27, subtitle, color=QUIET)
    bars = sheet.add_axes(left, bars_top, columns_width, BARS_HEIGHT)
    _draw_bars(bars, explanation)
    _name_columns(bars, labels, rotation, predicted)
    sheet.figure.legend(
        loc="upper left",
        bbox_to_anchor=sheet.place(MARGIN, MARGIN + TITLE_HEIGHT),
        ncols=2,
        borderpad=0,
        borderaxespad=0,
        handlelength=1,
    )
    top = bars_top + BARS_HEIGHT
    for heading, stage in zip(headings, stages, strict=True):
        sheet.write(top + GAP, heading)
        top += GAP + HEADING_HEIGHT
        _draw_stage(sheet, left, top, stage, predicted)
        top += CELL_HEIGHT * len(stage.rows)
    return sheet.figure


def _text_width(text: str, size: float = TEXT_SIZE, weight: str = "normal") -> float:
    """Inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text, size, FontProperties(weight=weight)).get_extents().x1) / 72


def _describe_stage(stage: Stage) -> str:
    if stage.symbol is None:
        return stage.heading
    return f"{stage.heading}: colours are attention {stage.symbol}; numbers add up to {stage.logit.name}"


def _draw_bars(axes: "Axes", explanation: Explanation) -> None:
    """Probabilities of each label as bars, before and after the cross-span stage if the span is a candidate."""
    before = [label.span_stage.probability for label in explanation.labels]
    after = [label.cross_span_stage.probability for label in explanation.labels if label.cross_span_stage is not None]
    series = [("probability before the cross-span stage", before, BEFORE), ("after it", after, AFTER)]
    if not after:
        series = [("probability", before, BEFORE)]
    width = 0.8 / len(series)
    for number, (name, values, colour) in enumerate(series):
        places = [label + (number - (len(series) - 1) / 2) * width for label in range(len(values))]
        axes.bar(places, values, width * 0.92, color=colour, label=name)
        for place, value in zip(places, values, strict=True):
            axes.text(place, value + 0.03, probability_text(value), ha="center", va="bottom", fontsize=6.5)
    axes.set(xlim=(-0.5, len(before) - 0.5), ylim=(0, 1.2), yticks=[0, 0.5, 1])
    axes.tick_params(axis="y", length=2, labelsize=7)


def _name_columns(axes: "Axes", labels: list[str], rotation: int, predicted: int | None) -> None:
    """Labels above the columns, the predicted one highlighted."""
    alignment: dict[str, Any] = {"ha": "left", "rotation_mode": "anchor"} if rotation else {"ha": "center"}
    axes.set_xticks(range(len(labels)), labels, rotation=rotation, va="bottom", **alignment)
    axes.tick_params(axis="x", top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2)
    if predicted is not None:
        axes.get_xticklabels()[predicted].set(color=PREDICTED, fontweight="bold")


def _draw_stage(sheet: _Sheet, left: float, top: float, stage: Stage, predicted: int | None) -> None:
    """Names and numbers of the rows, on the colours of attention."""
    rows, columns = stage.rows, len(stage.logit.numbers)
    axes = sheet.add_axes(left, top, CELL_WIDTH * columns, CELL_HEIGHT * len(rows))
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(len(rows) - 0.5, -0.5), xticks=[])
    axes.set_yticks(range(len(rows)), [row.title for row in rows])
    axes.get_yticklabels()[-1].set_fontweight("bold")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if stage.terms:
        axes.axhline(len(stage.terms) - 0.5, color="black", linewidth=0.8)
    if predicted is not None:
        frame = axes.axvspan(predicted - 0.5, predicted + 0.5, fill=False, edgecolor=PREDICTED, linewidth=1.5)
        frame.set(clip_on=False, zorder=3)  # above the colours
    _write_numbers(axes, stage)
    _colour_cells(sheet, axes, left + CELL_WIDTH * columns + 0.1, top, stage)


def _write_numbers(axes: "Axes", stage: Stage) -> None:
    dark = DARK * max((max(row.attention) for row in stage.terms if row.attention), default=0.0)
    for number, row in enumerate(stage.rows):
        weight = "bold" if row is stage.logit else "normal"
        for column, value in enumerate(row.numbers):
            colour = "white" if row.attention and row.attention[column] > dark else "black"
            axes.text(
                column, number, number_text(value), ha="center", va="center_baseline", color=colour, fontweight=weight
            )


def _colour_cells(sheet: _Sheet, axes: "Axes", bar_left: float, top: float, stage: Stage) -> None:
    """Colours the rows with attention, which come first, and draws the colour scale beside them."""
    attention = [row.attention for row in stage.terms if row.attention]
    if not attention:
        return
    edges = ([place - 0.5 for place in range(size + 1)] for size in (len(attention[0]), len(attention)))
    mesh = axes.pcolormesh(*edges, attention, cmap="Blues", vmin=0, edgecolors="white", linewidth=0.5)
    scale = sheet.add_axes(bar_left, top, COLOUR_BAR_WIDTH, CELL_HEIGHT * len(attention))
    most = max(map(max, attention))
    sheet.figure.colorbar(mesh, cax=scale, ticks=[0, most], format=lambda value, _: probability_text(value))
    scale.tick_params(length=2, labelsize=7)
