"""Exact-match scores of nested entities, overall, by label, part, length and depth; their errors; tables of scores.

Works on words and on characters alike, as long as predictions and references use the same unit. `PARTS` declares the
parts, such as flat and nested entities: tables, reports, cards, the metrics of a run, their names and checks follow it.

docs/analyses.md#scores-by-length-and-nesting has the rules. The rows by label, by length and by depth add up to the
totals, and their `found` equals `correct`: a correct prediction is in the row of its gold entity. Of flat and nested
entities, precision is over those of the predictions and recall over those of gold, so these add up on both sides, too.
"""

import textwrap
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from operator import add, itemgetter
from typing import Any, TypeVar

from ..drawing.entities import TYPE_KEYS, read_entity
from ..drawing.tables import Table
from ..nesting import Span, nested_spans, nesting_depths

Sentences = Sequence[Sequence[Mapping[str, Any]]]  # the entities of each sentence, as `score_entities` takes them
TypedSpan = tuple[int, int, str]  # start, end (exclusive), type
Side = AbstractSet[TypedSpan]  # the distinct entities of a sentence, predicted or gold
Key = TypeVar("Key", int, str)
Row = Mapping[str, Any]  # as `Counts.scores` returns it

RATIOS = {"precision": "precision", "recall": "recall", "f1": "F1"}  # ratio → its name in tables
# The smallest length of each bucket and its name; widths double because long entities are rare.
LENGTH_BUCKETS = {1: "1", 2: "2", 3: "3-4", 5: "5-8", 9: "9-16", 17: "17+"}


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
        return Counts(*map(add, vars(self).values(), vars(other).values()))  # `astuple` takes nine times as long

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
        """Returns ratios (0 to 1) and the counts behind them, as plain numbers."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, **vars(self)}


# ---- Parts ----


@dataclass(frozen=True)
class Part:
    """Some of the entities, scored on their own."""

    key: str  # name in [`Scores`], and of its metrics: `flat` → `flat_f1`; empty for all entities
    title: str  # name in tables
    chosen: Callable[[Side], Side]  # the entities of a side → those in this part

    def count(self, predicted: Side, gold: Side) -> Counts:
        """The counts of a sentence; an entity of this part is correct, or found, if the other side has it at all."""
        predicted_here, gold_here = self.chosen(predicted), self.chosen(gold)
        return Counts(len(predicted_here & gold), len(predicted_here), len(gold_here & predicted), len(gold_here))

    def metric(self, ratio: str) -> str:
        """The name of a ratio among the metrics of a run."""
        return f"{self.key}_{ratio}" if self.key else ratio


def _nested(side: Side) -> Side:
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
    return RATIOS | {part.metric("f1"): f"{part.title} F1" for part in PARTS if part is not ALL}


class Scores(dict[str, Any]):
    """`Counts.scores` of all entities. The keys of parts, and `by_label[label]`, have the same of their entities."""

    @classmethod
    def of(cls, by_part: Mapping[Part, Row], by_label: Mapping[str, Row]) -> "Scores":
        others = {part.key: row for part, row in by_part.items() if part is not ALL}
        return cls({**by_part[ALL], "by_label": dict(by_label), **others})

    def by_part(self) -> dict[Part, Row]:
        return {part: self[part.key] if part.key else self for part in PARTS if part.key in self or not part.key}

    def rows(self) -> list[tuple[str, Row]]:
        """Returns the rows of a table, by name: all entities, each label (indented), and the other parts."""
        whole, *parts = ((part.title, row) for part, row in self.by_part().items())
        return [whole, *((f"  {label}", row) for label, row in self["by_label"].items()), *parts]

    def metrics(self) -> dict[str, float]:
        """Returns flat metrics: the ratios of each part with gold entities, each `f1_LABEL`, and `predicted`."""
        rows = {part: row for part, row in self.by_part().items() if part is ALL or row["gold"]}
        ratios = {part.metric(ratio): row[ratio] for part, row in rows.items() for ratio in RATIOS}
        by_label = {f"f1_{label}": row["f1"] for label, row in self["by_label"].items()}
        return {**ratios, **by_label, "predicted": self["predicted"]}


# ---- Scores of sentences ----


def score_entities(predictions: Sentences, references: Sentences, labels: Iterable[str] | None = None) -> Scores:
    """Scores predicted entities against gold ones.

    An entity is correct if a gold entity of the same sentence has the same start, end and type. Repeated entities count
    once. docs/analyses.md#scores-by-length-and-nesting says which ones are flat and nested.

    Args:
        predictions: A list of entities for each sentence. An entity has `start`, `end` (exclusive) and `type` or
            `entity_group`; other keys, such as `score` and `word`, are ignored.
        references: The gold entities of the same sentences, in the same form.
        labels: Labels that get a row in `by_label` even if they never occur, in this order. Other labels that occur
            follow in alphabetical order, and count in every score, too.

    Returns:
        `precision`, `recall`, `f1` (micro averages, 0 to 1), `correct`, `predicted`, `found`, `gold` (counts), and the
        same seven numbers by label and part ([`Scores`]).

    Raises:
        ValueError: The numbers of sentences differ, or an entity is ill-formed.

    Examples:
        >>> from modeling_triaffine.evaluation import score_entities
        >>> gold = [[{"start": 0, "end": 4, "type": "Person"}, {"start": 3, "end": 4, "type": "City"}]]
        >>> score_entities([gold[0][:1]], gold)["recall"]
        0.5
    """
    pairs = list(paired_sentences(predictions, references))
    by_label: dict[str, Counts] = _count_rows(pairs, lambda *_: itemgetter(2))  # the type of an entity is its row
    order = dict.fromkeys([*(labels or ()), *sorted(by_label)])
    by_part = {part: sum((part.count(*pair) for pair in pairs), Counts()).scores() for part in PARTS}
    return Scores.of(by_part, {label: by_label[label].scores() for label in order})


def scores_by_length(predictions: Sentences, references: Sentences) -> dict[str, dict[str, Any]]:
    """Computes scores by length of entities: `"1"`, `"2"`, `"3-4"`, `"5-8"`, `"9-16"`, `"17+"`, those that occur.

    Precision is over the predictions of that length, recall over the gold entities of that length.
    """

    def bucket(entity: TypedSpan) -> int:
        return max(first for first in LENGTH_BUCKETS if first <= entity[1] - entity[0])

    counts = _count_rows(paired_sentences(predictions, references), lambda *_: bucket)
    return {LENGTH_BUCKETS[first]: counts[first].scores() for first in sorted(counts)}


def scores_by_depth(predictions: Sentences, references: Sentences) -> dict[str, dict[str, Any]]:
    """Computes scores by nesting depth: `"1"` for outermost entities, `"2"` for those directly inside them, and so on.

    The depth of a span, predicted or gold, is 1 if no gold span of its sentence contains it, else one more than that of
    the deepest gold span that does. Gold determines the depth of predictions too, so that a missing outer entity does
    not change the depth of the inner one; `flat` and `nested` of `score_entities` consider each side alone.

    Examples:
        >>> from modeling_triaffine.evaluation import scores_by_depth
        >>> gold = [[{"start": 0, "end": 4, "type": "Person"}, {"start": 3, "end": 4, "type": "City"}]]
        >>> {depth: scores["recall"] for depth, scores in scores_by_depth([gold[0][:1]], gold).items()}
        {'1': 1.0, '2': 0.0}
    """

    def depths(predicted: Side, gold: Side) -> Callable[[TypedSpan], int]:
        depth_of = nesting_depths([entity[:2] for entity in gold], [entity[:2] for entity in predicted])
        return lambda entity: depth_of[entity[:2]]

    counts = _count_rows(paired_sentences(predictions, references), depths)
    return {str(depth): counts[depth].scores() for depth in sorted(counts)}


def candidate_recall(candidates: Sequence[Iterable[Span]], references: Sentences) -> dict[str, Any]:
    """Returns the share of gold entities that the candidate filter keeps. The model's recall cannot exceed it.

    Args:
        candidates: For each sentence the candidate spans (start, end exclusive), in the unit of the entities.
        references: The gold entities of the same sentences.

    Returns:
        `gold`: the number of gold entities; `found`: how many of their spans are candidates; `recall`: found / gold.
    """
    counts = Counts()
    for sentence, (spans, entities) in enumerate(zip(candidates, references, strict=True)):
        kept, gold = set(spans), read_entities(entities, f"references, sentence {sentence}")
        counts += Counts(found=sum(entity[:2] in kept for entity in gold), gold=len(gold))
    return {"found": counts.found, "gold": counts.gold, "recall": counts.recall}


def without_labels(predictions: Sentences, labels: Collection[str]) -> Sentences:
    """The predictions without those of some labels, such as labels that the references do not annotate."""
    return [
        [entity for entity in entities if all(entity.get(key) not in labels for key in TYPE_KEYS)]
        for entities in predictions
    ]


def paired_sentences(predictions: Sentences, references: Sentences) -> Iterator[tuple[Side, Side]]:
    """The predicted and gold entities, sentence by sentence; errors as in [`score_entities`]."""
    if len(predictions) != len(references):
        raise ValueError(f"Predictions are for {len(predictions)} sentences, references for {len(references)}.")
    for sentence, (predicted, gold) in enumerate(zip(predictions, references, strict=True)):
        found = read_entities(predicted, f"predictions, sentence {sentence}")
        yield found, read_entities(gold, f"references, sentence {sentence}")


def read_entities(entities: Sequence[Mapping[str, Any]], where: str) -> set[TypedSpan]:
    """The distinct entities of one sentence as (start, end, type); `where` names it in errors if one is ill-formed."""
    return {read_entity(entity, f"{where}, entity {index}") for index, entity in enumerate(entities)}


def as_dicts(entities: Iterable[TypedSpan]) -> list[dict[str, Any]]:
    """The entities as dicts with `start`, `end` and `type`, sorted by start, then longest first."""
    ordered = sorted(entities, key=lambda entity: (entity[0], -entity[1], entity[2]))
    return [{"start": start, "end": end, "type": label} for start, end, label in ordered]


def _count_rows(
    pairs: Iterable[tuple[Side, Side]], rows: Callable[[Side, Side], Callable[[TypedSpan], Key]]
) -> defaultdict[Key, Counts]:
    """Counts by row of a table. `rows` takes both sides of a sentence, and returns a function entity → row."""
    counts: defaultdict[Key, Counts] = defaultdict(Counts)
    for predicted, gold in pairs:
        row = rows(predicted, gold)
        for entity in predicted:
            counts[row(entity)] += Counts(predicted=1, correct=int(entity in gold))
        for entity in gold:
            counts[row(entity)] += Counts(gold=1, found=int(entity in predicted))
    return counts


# ---- Errors ----

CORRECT, MISSING, SPURIOUS = "correct", "missing", "spurious"
# Errors of two overlapping entities, the closest match first.
WRONG_TYPE, WRONG_BOUNDARY, WRONG_BOTH = PAIR_ERRORS = ("wrong_type", "wrong_boundary", "wrong_boundary_and_type")
GOLD_OUTCOMES = (CORRECT, *PAIR_ERRORS, MISSING)
PREDICTED_OUTCOMES = (CORRECT, *PAIR_ERRORS, SPURIOUS)


def confusion(predictions: Sentences, references: Sentences, labels: Iterable[str] | None = None) -> dict[str, Any]:
    """Counts the outcomes that docs/analyses.md#errors defines, by label.

    Arguments are those of [`score_entities`].

    Returns:
        - `by_gold_label`, `by_predicted_label`: label → number of entities by outcome, which add up to the label's;
        - `types`: gold label → predicted label of the same span → number of gold entities. Of several wrong types on
          one span, the first in alphabetical order counts.

    Examples:
        >>> from modeling_triaffine.evaluation import confusion
        >>> gold, predicted = {"start": 3, "end": 4, "type": "City"}, {"start": 3, "end": 4, "type": "River"}
        >>> confusion([[predicted]], [[gold]])["types"]["City"]
        {'City': 0, 'River': 1}
    """
    pairs = list(paired_sentences(predictions, references))
    of_gold = [found for predicted, gold in pairs for found in _outcomes(gold, predicted, MISSING)]
    of_predicted = [found for predicted, gold in pairs for found in _outcomes(predicted, gold, SPURIOUS)]
    order = [*dict.fromkeys([*(labels or ()), *sorted({label for label, *_ in of_gold + of_predicted})])]

    def table(cells: Iterable[tuple[str, str | None]], columns: Sequence[str]) -> dict[str, dict[str, int]]:
        counts = Counter(cells)
        return {label: {column: counts[label, column] for column in columns} for label in order}

    return {
        "by_gold_label": table(((label, outcome) for label, outcome, _ in of_gold), GOLD_OUTCOMES),
        "by_predicted_label": table(((label, outcome) for label, outcome, _ in of_predicted), PREDICTED_OUTCOMES),
        "types": table(((label, other_label) for label, _, other_label in of_gold), order),
    }


def error_examples(predictions: Sentences, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The sentences with errors, those with the most errors first, ties in corpus order.

    Args:
        records: sentences with `id`, `tokens` and the gold `entities`.

    Returns:
        `id`, `tokens`, the entities of both sides (`gold`, `predicted`), sorted by start, then longest first, and the
        number of those that only one side has (`errors`).
    """
    pairs = paired_sentences(predictions, [record["entities"] for record in records])
    examples = [
        {
            "id": record["id"],
            "tokens": list(record["tokens"]),
            "gold": as_dicts(gold),
            "predicted": as_dicts(predicted),
            "errors": len(gold ^ predicted),
        }
        for record, (predicted, gold) in zip(records, pairs, strict=True)
        if gold != predicted
    ]
    return sorted(examples, key=lambda example: -example["errors"])


def _outcomes(mine: Side, others: Side, alone: str) -> Iterator[tuple[str, str, str | None]]:
    """The label of each entity of a side, its outcome, and the other side's label of the same span.

    A wrong entity is compared with the other side's wrong ones; without any near it, the outcome is `alone`.
    """
    wrong = sorted(others - mine)
    longest = max((last - first for first, last, _ in wrong), default=0)
    for entity in mine:
        start, end, label = entity
        near = wrong[bisect_left(wrong, (start - longest,)) : bisect_left(wrong, (end,))]
        same_span = [other_label for *span, other_label in near if span == [start, end]]
        overlapping = {other_label for _, last, other_label in near if start < last}
        if entity in others:
            yield label, CORRECT, label
        elif same_span:
            yield label, WRONG_TYPE, same_span[0]
        elif overlapping:
            yield label, WRONG_BOUNDARY if label in overlapping else WRONG_BOTH, None
        else:
            yield label, alone, None


# ---- Tables ----


def format_scores(scores: Scores) -> str:
    """Formats the scores as a plain-text table, ratios in percent, with the notes of the parts below it.

    Rows: all entities, each label (indented), the other parts. Last columns: numbers of predicted and gold entities.
    """
    notes = filter(None, (unannotated_note(scores), PARTS_NOTE))
    return "\n\n".join([score_table("", scores.rows()).text(), *(textwrap.fill(note, 100) for note in notes)])


def unannotated_note(scores: Scores) -> str:
    """Says which labels were predicted although no gold entity has them; empty if there are none.

    A corpus that does not annotate a label makes all of its predictions wrong, however good the model.
    """
    rows = scores["by_label"].items()
    wrong = {label: row["predicted"] for label, row in rows if row["predicted"] > 0 == row["gold"]}
    if not wrong:
        return ""
    return f"No gold entity is of type {', '.join(wrong)}: the {sum(wrong.values())} predictions of it count as wrong."


def score_table(first_column: str, rows: Iterable[tuple[str, Row]]) -> Table:
    """Scores by name as a table: ratios in percent, – where undefined ([`percentages`]), and the two supports."""
    cells = [[name, *percentages(row), row["predicted"], row["gold"]] for name, row in rows]
    return Table([first_column, *RATIOS.values(), "predicted", "gold"], cells)


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
        is_row = vars(Counts()).keys() <= data.keys()
        return values | (dict(zip(RATIOS, defined_ratios(data), strict=True)) if is_row else {})
    return list(map(with_nulls, data)) if isinstance(data, list) else data


def percent(ratio: float | None) -> str | None:
    return None if ratio is None else f"{100 * ratio:.2f}"
