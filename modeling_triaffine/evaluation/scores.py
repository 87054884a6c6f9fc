"""The scores of entities and their parts, and how they are shown.

`PARTS` declares the parts: tables, reports, cards, the metrics of a run, their names and their checks follow it.
`scoring.py` computes the scores.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, astuple, dataclass
from operator import add
from typing import Any

from ..drawing.tables import Table
from ..nesting import nested_spans

TypedSpan = tuple[int, int, str]  # start, end (exclusive), type
Row = Mapping[str, Any]  # as `Counts.scores` returns it
RATIOS = ("precision", "recall", "f1")
RATIO_NAMES = ("precision", "recall", "F1")


@dataclass(frozen=True)
class Counts:
    """Counts that can be added, and the ratios computed from them.

    Attributes:
        correct, predicted: Predictions that are in gold, and all.
        found, gold: Gold entities that are predicted, and all. `found` differs from `correct` where predictions and
            gold are chosen apart: an entity may be flat among the predictions and nested in gold.
    """

    correct: int = 0
    predicted: int = 0
    found: int = 0
    gold: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(add, astuple(self), astuple(other)))

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.found / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def scores(self) -> dict[str, float]:
        """Ratios (0 to 1) and the counts behind them, as plain numbers."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, **asdict(self)}


# ---- Parts ----


@dataclass(frozen=True)
class Part:
    """Some of the entities, scored on their own.

    Attributes:
        key: Name in [`Scores`], and of its metrics: `flat` → `flat_f1`. Empty for all entities.
        title: Name in tables.
        chosen: The distinct entities of a side, predicted or gold, of a sentence → those in this part.
    """

    key: str
    title: str
    chosen: Callable[[AbstractSet[TypedSpan]], AbstractSet[TypedSpan]]

    def count(self, predicted: AbstractSet[TypedSpan], gold: AbstractSet[TypedSpan]) -> Counts:
        """The counts of a sentence; an entity of this part is correct, or found, if the other side has it at all."""
        mine, wanted = self.chosen(predicted), self.chosen(gold)
        return Counts(len(mine & gold), len(mine), len(wanted & predicted), len(wanted))

    def metric(self, ratio: str) -> str:
        """The name of a ratio among the metrics of a run."""
        return f"{self.key}_{ratio}" if self.key else ratio


def _nested(side: AbstractSet[TypedSpan]) -> AbstractSet[TypedSpan]:
    spans = nested_spans(entity[:2] for entity in side)
    return {entity for entity in side if entity[:2] in spans}


ALL = Part("", "all", lambda side: side)
PARTS = (ALL, Part("flat", "flat", lambda side: side - _nested(side)), Part("nested", "nested", _nested))
PARTS_TITLE = "Flat and nested"
PARTS_NOTE = (
    "Nested entities contain another entity or lie inside one (another prediction for precision, another gold entity "
    "for recall); all others are flat."
)


def summary_metrics() -> dict[str, str]:
    """Metric → its title, where there is no room for all: every ratio of all entities, the F1 of each other part."""
    whole = dict(zip(RATIOS, RATIO_NAMES, strict=True))
    return whole | {part.metric("f1"): f"{part.title} F1" for part in PARTS if part is not ALL}


class Scores(dict[str, Any]):
    """The scores of entities, as plain data for JSON.

    It has the seven numbers of `Counts.scores` for all entities, the same under the key of each other part of `PARTS`,
    and in `by_label[label]`.
    """

    @classmethod
    def of(cls, by_part: Mapping[Part, Row], by_label: Mapping[str, Row]) -> "Scores":
        """The scores of these rows, those of all entities among them."""
        others = {part.key: row for part, row in by_part.items() if part is not ALL}
        return cls({**by_part[ALL], "by_label": dict(by_label), **others})

    def by_part(self) -> dict[Part, Row]:
        """The row of each part."""
        return {part: self[part.key] if part.key else self for part in PARTS if part.key in self or not part.key}

    def rows(self) -> list[tuple[str, Row]]:
        """The rows of a table, by name: all entities, each label (indented), and the other parts."""
        whole, *parts = ((part.title, row) for part, row in self.by_part().items())
        return [whole, *((f"  {label}", row) for label, row in self["by_label"].items()), *parts]

    def metrics(self) -> dict[str, float]:
        """The scores as flat metrics: the ratios of each part with gold entities, each `f1_LABEL`, and `predicted`."""
        rows = {part: row for part, row in self.by_part().items() if part is ALL or row["gold"]}
        ratios = {part.metric(ratio): row[ratio] for part, row in rows.items() for ratio in RATIOS}
        by_label = {f"f1_{label}": row["f1"] for label, row in self["by_label"].items()}
        return {**ratios, **by_label, "predicted": self["predicted"]}


# ---- Tables ----


def format_scores(scores: Scores) -> str:
    """The scores as a plain-text table, ratios in percent, with the notes of the parts below it.

    Rows: all entities, each label (indented), the other parts. Last columns: numbers of predicted and gold entities.
    """
    notes = filter(None, (unannotated_note(scores), PARTS_NOTE))
    return "\n\n".join([score_table("", scores.rows()).text(), *(textwrap.fill(note, 100) for note in notes)])


def unannotated_note(scores: Scores) -> str:
    """Says which labels were predicted although no gold entity has them; empty if there are none.

    A corpus that does not annotate a label makes all of its predictions wrong, however good the model.
    """
    wrong = {
        label: row["predicted"] for label, row in scores["by_label"].items() if row["predicted"] > 0 == row["gold"]
    }
    if not wrong:
        return ""
    return f"No gold entity is of type {', '.join(wrong)}: the {sum(wrong.values())} predictions of it count as wrong."


def score_table(first_column: str, rows: Iterable[tuple[str, Row]]) -> Table:
    """Scores by name as a table: ratios in percent, – where undefined ([`percentages`]), and the two supports."""
    cells = [[name, *percentages(row), row["predicted"], row["gold"]] for name, row in rows]
    return Table([first_column, *RATIO_NAMES, "predicted", "gold"], cells)


def percentages(row: Row) -> list[str | None]:
    """Precision, recall and F1 in percent with two decimals, as shown in tables; None if undefined."""
    return list(map(percent, defined_ratios(row)))


def defined_ratios(row: Row) -> list[float | None]:
    """Precision, recall and F1, from 0 to 1; None if undefined.

    Precision is undefined without predictions, recall and F1 without gold entities. In a row of flat (nested) entities,
    recall and F1 are also undefined if gold entities were found but all predictions are nested (flat).
    """
    has_recall = row["gold"] > 0 and (row["predicted"] > 0 or row["found"] == 0)
    precision = row["precision"] if row["predicted"] > 0 else None
    return [precision, row["recall"], row["f1"]] if has_recall else [precision, None, None]


def with_nulls(data: Any) -> Any:
    """Plain data with None for the undefined ratios of the rows in it, for JSON."""
    if isinstance(data, Mapping):
        values = {name: with_nulls(value) for name, value in data.items()}
        is_row = asdict(Counts()).keys() <= data.keys()
        return values | (dict(zip(RATIOS, defined_ratios(data), strict=True)) if is_row else {})
    return list(map(with_nulls, data)) if isinstance(data, list) else data


def percent(ratio: float | None) -> str | None:
    return None if ratio is None else f"{100 * ratio:.2f}"
