"""The figures of a report (SVG and PNG) and of a calibration. Only this module of the folder needs matplotlib."""

import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Any

from ..drawing.figure_style import BLUE, MOST_LABELS, ORANGE, QUIET, SKY_BLUE, figure_style, save
from ..drawing.safe_text import LONGEST_LABEL, shorten, text_width
from ..errors import importing_extra
from .analysis import Analysis
from .error_analysis import GOLD_OUTCOMES, RIGHT, WRONG_TYPE, outcome_name
from .reliability import Bin, calibration_error
from .scores import RATIO_NAMES, percentages

with importing_extra("plot", "Figures need matplotlib"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

# Inches.
WIDTH, BARS_HEIGHT, SLANTED_HEIGHT, CURVE_HEIGHT, ROW_HEIGHT = 7.2, 2.9, 1.0, 3.9, 0.42
COLUMNS = 75  # of names that fit side by side
PRECISION, RECALL, F1 = SKY_BLUE, ORANGE, BLUE
PALE = "#9AA7B3"
BAR_WIDTH = 0.26
DARK = 0.55  # share of a row; numbers on darker cells are white
STYLE = {"font.size": 9.0, "figure.constrained_layout.use": True}


def draw_figures(analysis: Analysis) -> dict[str, bytes]:
    """File name → content: `NAME.svg` and `NAME.png` of each figure with data.

    The names are `by_label`, `by_length`, `by_depth`, `errors`, and `candidates` if several m were tried. Figures by
    label show the 24 labels with the most gold entities.
    """
    with figure_style("analysis", STYLE):
        return {f"{name}.{form}": _save(figure, form) for name, figure in _figures(analysis) for form in ("svg", "png")}


def draw_reliability(before: Sequence[Bin], after: Sequence[Bin]) -> bytes:
    """The share of correct predictions by probability, before and after calibration, as SVG."""
    with figure_style("analysis", STYLE):
        figure = Figure(figsize=(WIDTH, CURVE_HEIGHT))
        axes = figure.subplots(1, 2, sharey=True)
        for place, name, bins in zip(axes, ("before", "after"), (before, after), strict=True):
            filled = [(number, one) for number, one in enumerate(bins) if one.count]
            middles = [(number + 0.5) / len(bins) for number, _ in filled]
            place.bar(middles, [one.right for _, one in filled], 0.92 / len(bins), color=F1, label="correct")
            place.plot([0, 1], [0, 1], "--", color=QUIET, linewidth=1)
            place.plot([one.probability for _, one in filled], [one.right for _, one in filled], "o", color=RECALL)
            title = f"{name}: expected calibration error {100 * calibration_error(bins):.1f} %"
            place.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="probability", title=title)
        axes[0].set_ylabel("share of correct predictions")
        return _save(figure, "svg")


def _figures(analysis: Analysis) -> Iterator[tuple[str, Figure]]:
    by_label = analysis.scores["by_label"]
    ranked = sorted(by_label, key=lambda label: -by_label[label]["gold"])[:MOST_LABELS]
    shown = [label for label in by_label if label in ranked]
    note = "" if len(shown) == len(by_label) else f"the {len(shown)} of {len(by_label)} labels with the most entities"
    breakdowns = {
        "by_label": (note, {label: by_label[label] for label in shown}),
        "by_length": ("length of the entity in words", analysis.by_length),
        "by_depth": ("nesting depth (1 is outermost)", analysis.by_depth),
    }
    for name, (axis, rows) in breakdowns.items():
        if rows:
            yield name, _draw_scores(rows, axis)
    if analysis.scores["gold"]:
        yield "errors", _draw_errors(analysis.errors, shown)
    if analysis.candidates and len(analysis.candidates) > 1:
        yield "candidates", _draw_candidates(analysis.candidates, analysis.max_candidates)


def _save(figure: Figure, form: str) -> bytes:
    content = io.BytesIO()
    save(figure, content, form)
    return content.getvalue()


def _draw_scores(rows: Mapping[str, Mapping[str, Any]], axis: str) -> Figure:
    """Precision, recall and F1 of each row as bars, with the number of gold entities below the name."""
    names = [shorten(name, LONGEST_LABEL) for name in rows]
    support = [f"{row['gold']} gold" for row in rows.values()]
    is_crowded = len(names) * max(map(text_width, [*names, *support])) > COLUMNS
    figure = Figure(figsize=(WIDTH, BARS_HEIGHT + (SLANTED_HEIGHT if is_crowded else 0)))
    axes = figure.subplots()
    ratios = zip(*map(percentages, rows.values()), strict=True)
    for side, label, colour, column in zip((-1, 0, 1), RATIO_NAMES, (PRECISION, RECALL, F1), ratios, strict=True):
        values = [nan if ratio is None else float(ratio) for ratio in column]  # no bar if undefined
        places = [number + side * BAR_WIDTH for number in range(len(values))]
        bars = axes.bar(places, values, 0.92 * BAR_WIDTH, color=colour, label=label)
        axes.bar_label(bars, fmt="%.0f", fontsize=7, padding=1, color=QUIET)
    between = ", " if is_crowded else "\n"
    axes.set_xticks(range(len(names)), [between.join(pair) for pair in zip(names, support, strict=True)])
    if is_crowded:
        _slant(axes)
    axes.set(xlabel=axis, ylabel="percent", ylim=(0, 108), yticks=range(0, 101, 20))
    axes.set_xlim(-0.6, max(len(names), 3) - 0.4)
    axes.tick_params(axis="x", length=0)
    figure.legend(loc="outside upper left", ncols=3, handlelength=1)
    return figure


def _draw_errors(errors: Mapping[str, Any], labels: Sequence[str]) -> Figure:
    """The predicted labels and other outcomes of the gold entities of some labels, as shares of each label."""
    lost = [outcome for outcome in GOLD_OUTCOMES if outcome not in (RIGHT, WRONG_TYPE)]
    counts = [
        [*(errors["types"][label][other] for other in labels), *(errors["by_gold_label"][label][one] for one in lost)]
        for label in labels
    ]
    supports = [sum(errors["by_gold_label"][label].values()) for label in labels]
    shares = [[count / max(1, gold) for count in row] for row, gold in zip(counts, supports, strict=True)]
    names = [shorten(label, LONGEST_LABEL) for label in labels]
    columns = [*names, *map(outcome_name, lost)]
    figure = Figure(figsize=(max(WIDTH, 2.2 + 0.55 * len(columns)), 2.3 + ROW_HEIGHT * len(labels)))
    axes = figure.subplots()
    mesh = axes.pcolormesh(shares, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=1.5)
    for row, column in itertools.product(range(len(labels)), range(len(columns))):
        count = counts[row][column]
        colour = "black" if count else PALE
        if shares[row][column] > DARK:
            colour = "white"
        axes.text(column + 0.5, row + 0.5, str(count), ha="center", va="center_baseline", color=colour)
    for place in range(len(labels)):  # frames the correct ones
        axes.add_patch(Rectangle((place, place), 1, 1, fill=False, edgecolor=QUIET, linewidth=1))
    axes.axvline(len(labels), color=QUIET, linewidth=1)
    middles = [number + 0.5 for number in range(len(columns))]
    axes.set_xticks(middles, columns)
    _slant(axes)
    axes.set_yticks(middles[: len(labels)], [f"{name} ({gold})" for name, gold in zip(names, supports, strict=True)])
    axes.set(ylabel="gold label", xlabel="predicted label of the same span, or another outcome")
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    figure.colorbar(mesh, ax=axes, label="share of the gold label", ticks=[0, 0.5, 1], shrink=0.8, pad=0.02)
    return figure


def _draw_candidates(candidates: Sequence[Mapping[str, Any]], max_candidates: int | None) -> Figure:
    """Recall of the candidates, and below it the F1 of the model, over m."""
    figure = Figure(figsize=(WIDTH, CURVE_HEIGHT))
    upper, lower = figure.subplots(2, sharex=True)
    tried = [row["max_candidates"] for row in candidates]
    curves: tuple[tuple[Axes, str, str, list[float]], ...] = (
        (upper, "recall of the\ncandidates, %", RECALL, [100 * row["candidates"]["recall"] for row in candidates]),
        (lower, "F1 of the model, %", F1, [100 * row["scores"]["f1"] for row in candidates]),
    )
    for axes, name, colour, values in curves:
        axes.plot(tried, values, "o-", color=colour, markersize=4, clip_on=False)
        axes.set_ylabel(name)
        axes.grid(axis="y", color="#DDE3E9")
        axes.set_axisbelow(True)
        # At least half a point, so that a nearly constant curve looks constant.
        margin = max(0.5, 0.1 * (max(values) - min(values)))
        axes.set_ylim(max(0, min(values) - margin), min(100, max(values) + margin))
        if max_candidates is not None:
            axes.axvline(max_candidates, color=QUIET, linestyle="--", linewidth=1)
    if max_candidates is not None:
        on_the_right = max_candidates > (tried[0] + tried[-1]) / 2
        upper.annotate(
            f"the model’s own m = {max_candidates}",
            (max_candidates, 0),
            xycoords=("data", "axes fraction"),
            xytext=(-4 if on_the_right else 4, 5),
            textcoords="offset points",
            ha="right" if on_the_right else "left",
            color=QUIET,
        )
    lower.set_xlabel("number of candidates m")
    return figure


def _slant(axes: Axes) -> None:
    """Slants the names below the columns; each ends at its column."""
    axes.tick_params(axis="x", rotation=35)
    for name in axes.get_xticklabels():
        name.set(ha="right", rotation_mode="anchor")
