"""The result of a calibration as plain data and as tables; `calibration.py` computes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..drawing.tables import Cell, Code, Table
from .scores import RATIO_NAMES, percent, percentages


@dataclass
class Bin:
    """Predictions of similar probability: their number, mean probability, and share of correct ones (`right`)."""

    count: int
    probability: float
    right: float


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

    `bins_before` and `bins_after` are the entities found without thresholds, by probability without and with the
    temperature.
    """

    split: str
    sentences: int
    temperature: float
    labels: dict[str, LabelCalibration] = field(default_factory=dict)
    bins_before: list[Bin] = field(default_factory=list)
    bins_after: list[Bin] = field(default_factory=list)

    @property
    def thresholds(self) -> dict[str, float]:
        return {name: label.threshold for name, label in self.labels.items() if label.threshold is not None}

    @property
    def errors(self) -> tuple[float, float]:
        """The expected calibration error before and after, from 0 to 1."""
        return calibration_error(self.bins_before), calibration_error(self.bins_after)


def calibration_error(bins: Sequence[Bin]) -> float:
    """The expected calibration error: the mean distance of the probability from the share of correct predictions."""
    predictions = sum(of_bin.count for of_bin in bins)
    return sum(of_bin.count * abs(of_bin.probability - of_bin.right) for of_bin in bins) / max(1, predictions)


def threshold_table(labels: Mapping[str, LabelCalibration]) -> Table:
    """Thresholds, and precision, recall and F1 in percent without and with them."""
    ratios = [*RATIO_NAMES, *(f"{name} before" for name in RATIO_NAMES)]
    rows: list[list[Cell]] = []
    for name, label in labels.items():
        threshold = "default" if label.threshold is None else f"{label.threshold:.3f}"
        rows.append([Code(name), label.after["gold"], threshold, *percentages(label.after), *percentages(label.before)])
    return Table(["Label", "Entities", "Threshold", *ratios], rows)


def reliability_table(before: Sequence[Bin], after: Sequence[Bin]) -> Table:
    """Predictions by probability: their number, and the share of correct ones in percent."""
    rows: list[list[Cell]] = []
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        if old.count or new.count:
            shares = [[side.count, percent(side.right) if side.count else None] for side in (new, old)]
            place = f"{number / len(before):.1f}–{(number + 1) / len(before):.1f}"
            rows.append([place, *shares[0], *shares[1]])
    return Table(["Probability", "Predictions", "Correct", "Predictions before", "Correct before"], rows)
