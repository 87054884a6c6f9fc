"""Error analysis: the outcome of each gold entity and each prediction, and the sentences with errors.

Correct predictions explain no error: the *wrong* predictions are compared with the gold entities *not found*. Each
entity of either side counts under the first condition that holds:

- `wrong_type`: an entity of the other side has the same span (and so another type);
- `wrong_boundary`: an entity of the other side overlaps it (shares a word) and has the same type;
- `wrong_boundary_and_type`: an entity of the other side overlaps it;
- `missing` (gold) or `spurious` (predicted): none of these.

For example, an outer entity that is not found while the one inside it is found is missing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .scores import TypedSpan
from .scoring import Sentences, paired_sentences

RIGHT, WRONG_TYPE, WRONG_BOUNDARY, WRONG_BOTH = "right", "wrong_type", "wrong_boundary", "wrong_boundary_and_type"
MISSING, SPURIOUS = "missing", "spurious"
# Errors of two overlapping entities, the closest match first.
PAIR_ERRORS = (WRONG_TYPE, WRONG_BOUNDARY, WRONG_BOTH)
GOLD_OUTCOMES = (RIGHT, *PAIR_ERRORS, MISSING)
PREDICTED_OUTCOMES = (RIGHT, *PAIR_ERRORS, SPURIOUS)


@dataclass(frozen=True)
class Mention:
    """An entity: `start`, `end` (exclusive) in words, and `text`, these words joined by spaces."""

    start: int
    end: int
    type: str
    text: str


@dataclass(frozen=True)
class Error:
    """A gold entity that was not found, a wrong prediction, or a pair of both.

    `kind` is `wrong_type`, `wrong_boundary`, `wrong_boundary_and_type`, `missing` (no prediction) or `spurious` (no
    gold entity).
    """

    kind: str
    gold: Mention | None
    predicted: Mention | None


@dataclass(frozen=True)
class SentenceErrors:
    """A sentence with at least one error; entities and errors are sorted by start, then longest first."""

    id: str
    tokens: list[str]
    gold: list[Mention]
    predicted: list[Mention]
    errors: list[Error]


def outcome_name(outcome: str) -> str:
    """The name of an outcome in tables and figures."""
    return "correct" if outcome == RIGHT else outcome.replace("_", " ")


def confusion(predictions: Sentences, references: Sentences, labels: Iterable[str] | None = None) -> dict[str, Any]:
    """Counts the outcomes that docs/analyses.md#errors defines, by label.

    Args:
        predictions, references: As in [`score_entities`].
        labels: Labels that get a row even if they never occur, in this order; others follow in alphabetical order.

    Returns:
        - `by_gold_label`: label → numbers of gold entities that are `right` (found), `wrong_type`, `wrong_boundary`,
          `wrong_boundary_and_type` and `missing`; they add up to the label's gold entities;
        - `by_predicted_label`: label → numbers of predictions that are `right`, …, `spurious`; they add up likewise;
        - `types`: gold label → predicted label of the same span → number of gold entities: `right` if both are equal,
          else part of `wrong_type`. Of several wrong types on one span, the first in alphabetical order counts.

    Raises:
        ValueError: As in [`score_entities`].

    Examples:
        >>> from modeling_triaffine.evaluation import confusion
        >>> gold, predicted = {"start": 3, "end": 4, "type": "City"}, {"start": 3, "end": 4, "type": "River"}
        >>> confusion([[predicted]], [[gold]])["types"]["City"]
        {'City': 0, 'River': 1}
    """
    by_gold_label: dict[str, Counter[str]] = defaultdict(Counter)
    by_predicted_label: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for predicted, gold in paired_sentences(predictions, references):
        for *_, label in gold & predicted:
            by_gold_label[label][RIGHT] += 1
            by_predicted_label[label][RIGHT] += 1
            types[label][label] += 1
        wrong, not_found = predicted - gold, gold - predicted
        for entity in not_found:
            by_gold_label[entity[2]][_counterpart(entity, wrong, MISSING)[0]] += 1
            if same_span := [other[2] for other in wrong if other[:2] == entity[:2]]:
                types[entity[2]][min(same_span)] += 1
        for entity in wrong:
            by_predicted_label[entity[2]][_counterpart(entity, not_found, SPURIOUS)[0]] += 1
    order = list(dict.fromkeys([*(labels or ()), *sorted({*by_gold_label, *by_predicted_label})]))
    columns = ((by_gold_label, GOLD_OUTCOMES), (by_predicted_label, PREDICTED_OUTCOMES), (types, order))
    names = ("by_gold_label", "by_predicted_label", "types")
    return {
        name: {label: {column: counts[label][column] for column in shown} for label in order}
        for name, (counts, shown) in zip(names, columns, strict=True)
    }


def sentences_with_errors(predictions: Sentences, records: Sequence[Mapping[str, Any]]) -> list[SentenceErrors]:
    """The sentences with errors, those with the most errors first, ties in corpus order.

    Each gold entity that is not found and each wrong prediction is part of at least one error.

    Args:
        predictions: The entities of each record, in words, as in [`score_entities`].
        records: Sentences with `id`, `tokens` and the gold `entities`.

    Raises:
        ValueError: As in [`score_entities`].
    """
    pairs = paired_sentences(predictions, [record["entities"] for record in records])
    found = [
        _describe(record, predicted, gold)
        for record, (predicted, gold) in zip(records, pairs, strict=True)
        if predicted != gold
    ]
    return sorted(found, key=lambda sentence: -len(sentence.errors))


def _describe(record: Mapping[str, Any], predicted: set[TypedSpan], gold: set[TypedSpan]) -> SentenceErrors:
    tokens = list(record["tokens"])
    entities = sorted(predicted | gold, key=_place)
    mentions: dict[TypedSpan | None, Mention] = {
        one: Mention(*one, " ".join(tokens[one[0] : one[1]])) for one in entities
    }
    # Each gold entity with its counterpart; then each prediction that is not among these, with its own.
    not_found, wrong = gold - predicted, predicted - gold
    found: list[tuple[TypedSpan, Error]] = []
    seen = set()
    for entity in sorted(not_found, key=_place):
        kind, other = _counterpart(entity, wrong, MISSING)
        seen.add(other)
        found.append((entity, Error(kind, mentions[entity], mentions.get(other))))
    for entity in sorted(wrong - seen, key=_place):
        kind, other = _counterpart(entity, not_found, SPURIOUS)
        found.append((other or entity, Error(kind, mentions.get(other), mentions[entity])))
    return SentenceErrors(
        id=record["id"],
        tokens=tokens,
        gold=[mentions[entity] for entity in entities if entity in gold],
        predicted=[mentions[entity] for entity in entities if entity in predicted],
        errors=[error for _, error in sorted(found, key=lambda placed: _place(placed[0]))],
    )


def _counterpart(entity: TypedSpan, others: Iterable[TypedSpan], alone: str) -> tuple[str, TypedSpan | None]:
    """The kind of error that the entity makes with the closest overlapping one of the other side; `alone` without one.

    The closest is the one with the first kind of error, then with the most shared words, then the first.
    """
    near = []
    for other in others:
        shared = min(entity[1], other[1]) - max(entity[0], other[0])
        if shared > 0:
            error = WRONG_BOTH
            if entity[:2] == other[:2]:
                error = WRONG_TYPE
            elif entity[2] == other[2]:
                error = WRONG_BOUNDARY
            near.append((PAIR_ERRORS.index(error), -shared, other))
    if not near:
        return alone, None
    number, _, other = min(near)
    return PAIR_ERRORS[number], other


def _place(entity: TypedSpan) -> tuple[int, int, str]:
    start, end, label = entity
    return start, -end, label
