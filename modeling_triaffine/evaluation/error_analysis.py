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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from .scores import TypedSpan
from .scoring import Sentences, as_dicts, paired_sentences

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
    of_gold: dict[str, Counter[str]] = defaultdict(Counter)
    of_predicted: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for predicted, gold in paired_sentences(predictions, references):
        for label, outcome, other_label in _outcomes(gold, predicted, MISSING):
            of_gold[label][outcome] += 1
            if other_label is not None:
                types[label][other_label] += 1
        for label, outcome, _ in _outcomes(predicted, gold, SPURIOUS):
            of_predicted[label][outcome] += 1
    order = list(dict.fromkeys([*(labels or ()), *sorted({*of_gold, *of_predicted})]))

    def table(counts: Mapping[str, Counter[str]], columns: Sequence[str]) -> dict[str, dict[str, int]]:
        return {label: {column: counts[label][column] for column in columns} for label in order}

    return {
        "by_gold_label": table(of_gold, GOLD_OUTCOMES),
        "by_predicted_label": table(of_predicted, PREDICTED_OUTCOMES),
        "types": table(types, order),
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


def _outcomes(
    mine: AbstractSet[TypedSpan], others: AbstractSet[TypedSpan], alone: str
) -> Iterator[tuple[str, str, str | None]]:
    """The label of each entity of a side, its outcome, and the other side's label of the same span.

    A wrong entity is compared with the other side's wrong ones; without any near it, the outcome is `alone`.
    """
    wrong = sorted(others - mine)
    for entity in mine:
        start, end, label = entity
        same_span = [other_label for *span, other_label in wrong if span == [start, end]]
        overlapping = {other_label for first, last, other_label in wrong if first < end and start < last}
        if entity in others:
            yield label, CORRECT, label
        elif same_span:
            yield label, WRONG_TYPE, same_span[0]
        elif overlapping:
            yield label, WRONG_BOUNDARY if label in overlapping else WRONG_BOTH, None
        else:
            yield label, alone, None
