"""The tables of a model card, from the summary of a run."""

import math
from collections.abc import Sequence
from datetime import timedelta

from ..drawing.tables import Cell, Code, Strong, Table
from ..evaluation.calibration import threshold_table
from ..evaluation.scores import ALL, Scores, percent, score_table, summary_metrics
from .run_summary import Epoch, RunSummary

EPOCH_COLUMNS = ("Epoch", "Update", "Training loss", "Validation loss")


def card_tables(summary: RunSummary, labels: Sequence[str]) -> dict[str, Table]:
    """The tables of a card by name; those of scores only if there are scores."""
    tables = {
        "labels": _label_table(summary, labels),
        "epochs": _epoch_table(summary.training_table),
        "settings": _setting_table(summary),
        "machine": _machine_table(summary),
    }
    if summary.calibration is not None:
        tables["thresholds"] = threshold_table(summary.calibration.labels)
    if summary.evaluation is None:
        return tables
    scores, raw_text = Scores(summary.evaluation.scores), summary.evaluation.raw_text
    if raw_text is not None:
        tables["by_input"] = score_table("Input", [("given words", scores), ("raw text", raw_text)])
    whole = (Strong(ALL.title), scores)
    parts = [(part.title, row) for part, row in scores.by_part().items() if part is not ALL]
    by_label, by_length = (
        [(Code(name), row) for name, row in rows.items()] for rows in (scores["by_label"], summary.evaluation.by_length)
    )
    for name, column, rows in (
        ("by_label", "Label", by_label),
        ("by_part", "Entities", parts),
        ("by_length", "Words", by_length),
    ):
        tables[name] = score_table(column, [whole, *rows])
    return tables


def _label_table(summary: RunSummary, labels: Sequence[str]) -> Table:
    sentences = "" if summary.training_sentences is None else f"{summary.training_sentences:,} "
    rows = [[Code(name), summary.label_counts.get(name)] for name in labels]
    return Table(["Label", f"In the {sentences}training sentences"], rows)


def _epoch_table(epochs: Sequence[Epoch]) -> Table:
    rows = []
    for row in epochs:
        losses = (row.training_loss, row.validation_loss)
        cells = [
            f"{row.epoch:g}",
            row.update,
            *(None if loss is None or not math.isfinite(loss) else f"{loss:.4f}" for loss in losses),
            *(percent(row.scores.get(name)) for name in summary_metrics()),
        ]
        rows.append([Strong(cell) if row.kept and cell is not None else cell for cell in cells])
    titles = (f"{title[0].upper()}{title[1:]}" for title in summary_metrics().values())
    return Table([*EPOCH_COLUMNS, *titles], rows)


def _setting_table(summary: RunSummary) -> Table:
    recipe = {"recipe": summary.recipe} if summary.recipe else {}
    settings = {name: value for name, value in (recipe | summary.settings).items() if value is not None}
    rows = [[Code(name), Code(f"{value:g}" if isinstance(value, float) else value)] for name, value in settings.items()]
    return Table(("Setting", "Value"), rows)


def _machine_table(summary: RunSummary) -> Table:
    time = f"{timedelta(seconds=round(summary.training_seconds or 0))} h"
    time += " since the run was last resumed" if summary.resumed else ""
    processes = f"{summary.processes}, on {f'{summary.gpus} GPU' if summary.gpus else 'the CPU'}"
    rows: list[list[Cell]] = [["Training time", time], ["Processes", processes]]
    rows += [[Code(name), Code(value)] for name, value in (summary.hardware | summary.versions).items()]
    return Table(("", "In this run"), rows)
