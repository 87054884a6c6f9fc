"""The result of a calibration as plain data and as a table; `calibration.py` computes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..drawing.tables import Cell, Code, Table
from .scores import RATIO_NAMES, percentages


@dataclass
class LabelCalibration:
    """The scores of a label on the calibration sentences.

    Attributes:
        before, after: `Counts.scores()` without and with the threshold.
        threshold: None if the label keeps the default, because it has few entities or would gain little.
    """

    before: dict[str, Any]
    after: dict[str, Any]
    threshold: float | None = None


@dataclass
class Calibration:
    """The temperature and thresholds of a model, and their effect on the calibration sentences.

    `errors` are the expected calibration error without and with the temperature, from 0 to 1.
    """

    split: str
    sentences: int
    temperature: float
    errors: tuple[float, float]
    labels: dict[str, LabelCalibration] = field(default_factory=dict)

    @property
    def thresholds(self) -> dict[str, float]:
        return {name: label.threshold for name, label in self.labels.items() if label.threshold is not None}


def threshold_table(labels: Mapping[str, LabelCalibration]) -> Table:
    """Thresholds, and precision, recall and F1 in percent without and with them."""
    ratios = [*RATIO_NAMES, *(f"{name} before" for name in RATIO_NAMES)]
    rows: list[list[Cell]] = []
    for name, label in labels.items():
        threshold = "default" if label.threshold is None else f"{label.threshold:.3f}"
        rows.append([Code(name), label.after["gold"], threshold, *percentages(label.after), *percentages(label.before)])
    return Table(["Label", "Entities", "Threshold", *ratios], rows)
