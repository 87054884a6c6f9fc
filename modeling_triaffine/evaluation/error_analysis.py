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
from collections.abc import Set as AbstractSet
from typing import Any, TypedDict

from .scores import TypedSpan
from .scoring import Sentences, paired_sentences

RIGHT, MISSING, SPURIOUS = "right", "missing", "spurious"
# Errors of two overlapping entities, the closest match first.
WRONG_TYPE, WRONG_BOUNDARY, WRONG_BOTH = PAIR_ERRORS = ("wrong_type", "wrong_boundary", "wrong_boundary_and_type")
GOLD_OUTCOMES = (RIGHT, *PAIR_ERRORS, MISSING)
PREDICTED_OUTCOMES = (RIGHT, *PAIR_ERRORS, SPURIOUS)

Mention = dict[str, Any]
"""An entity: `start`, `end` (exclusive) in words, `type`, and `text`, these words joined by spaces."""


class ErrorExample(TypedDict):
    """A sentence with errors; entities and errors are sorted by start, then longest first.

    Each of the `errors` has a `kind`, and the gold entity that was not found (`gold`), the wrong prediction
    (`predicted`), or a pair of both.
    """

    id: str
    tokens: list[str]
    gold: list[Mention]
    predicted: list[Mention]
    errors: list[dict[str, Any]]


def outcome_name(outcome: str) -> str:
    """The name of an outcome in tables."""
    return "correct" if outcome == RIGHT else outcome.replace("_", " ")


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
    of_gold: dict[str, Counter[str]] = defaultdict(Counter)
    of_predicted: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for predicted, gold in paired_sentences(predictions, references):
        for entity, (kind, other) in _outcomes(gold, predicted, MISSING).items():
            of_gold[entity[2]][kind] += 1
            if other is not None and other[:2] == entity[:2]:
                types[entity[2]][other[2]] += 1
        for entity, (kind, _) in _outcomes(predicted, gold, SPURIOUS).items():
            of_predicted[entity[2]][kind] += 1
    order = list(dict.fromkeys([*(labels or ()), *sorted({*of_gold, *of_predicted})]))

    def table(counts: Mapping[str, Counter[str]], columns: Sequence[str]) -> dict[str, dict[str, int]]:
        return {label: {column: counts[label][column] for column in columns} for label in order}

    return {
        "by_gold_label": table(of_gold, GOLD_OUTCOMES),
        "by_predicted_label": table(of_predicted, PREDICTED_OUTCOMES),
        "types": table(types, order),
    }


def error_examples(predictions: Sentences, records: Sequence[Mapping[str, Any]]) -> list[ErrorExample]:
    """The sentences with errors, those with the most errors first, ties in corpus order.

    Each gold entity that is not found and each wrong prediction is part of at least one error. The records have `id`,
    `tokens` and the gold `entities`.
    """
    pairs = paired_sentences(predictions, [record["entities"] for record in records])
    found = [_describe(record, *pair) for record, pair in zip(records, pairs, strict=True)]
    return sorted((example for example in found if example["errors"]), key=lambda example: -len(example["errors"]))


def _describe(record: Mapping[str, Any], predicted: set[TypedSpan], gold: set[TypedSpan]) -> ErrorExample:
    tokens = list(record["tokens"])

    def mention(entity: TypedSpan) -> Mention:
        start, end, label = entity
        return {"start": start, "end": end, "type": label, "text": " ".join(tokens[start:end])}

    errors: list[tuple[TypedSpan, dict[str, Any]]] = []
    told = set()
    for entity, (kind, other) in _outcomes(gold, predicted, MISSING).items():
        if kind != RIGHT:
            told.add(other)
            errors.append((entity, {"kind": kind, "gold": mention(entity), "predicted": other and mention(other)}))
    for entity, (kind, other) in _outcomes(predicted, gold, SPURIOUS).items():
        if kind != RIGHT and entity not in told:
            found = {"kind": kind, "gold": other and mention(other), "predicted": mention(entity)}
            errors.append((other or entity, found))
    return ErrorExample(
        id=record["id"],
        tokens=tokens,
        gold=[mention(entity) for entity in sorted(gold, key=_place)],
        predicted=[mention(entity) for entity in sorted(predicted, key=_place)],
        errors=[error for _, error in sorted(errors, key=lambda placed: _place(placed[0]))],
    )


def _outcomes(
    mine: AbstractSet[TypedSpan], others: AbstractSet[TypedSpan], alone: str
) -> dict[TypedSpan, tuple[str, TypedSpan | None]]:
    """The outcome and the counterpart of each entity of a side, in order of their places.

    The counterpart of a wrong one is the other side's wrong entity with the first kind of error, then with the most
    shared words, then the first; without any, the outcome is `alone`.
    """
    found: dict[TypedSpan, tuple[str, TypedSpan | None]] = {}
    for entity in sorted(mine, key=_place):
        near = []
        for other in others - mine:
            shared = min(entity[1], other[1]) - max(entity[0], other[0])
            if shared > 0:
                error = WRONG_BOUNDARY if entity[2] == other[2] else WRONG_BOTH
                error = WRONG_TYPE if entity[:2] == other[:2] else error
                near.append((PAIR_ERRORS.index(error), -shared, other))
        if entity in others:
            found[entity] = RIGHT, entity
        elif near:
            number, _, other = min(near)
            found[entity] = PAIR_ERRORS[number], other
        else:
            found[entity] = alone, None
    return found


def _place(entity: TypedSpan) -> tuple[int, int, str]:
    start, end, label = entity
    return start, -end, label
