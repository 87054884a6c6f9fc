"""Scores by length and by depth of the entities, and the recall of the candidates.

Pure functions on the entity lists of `scoring.py`, under its rules. No result depends on the order of entities or
sentences. Lengths are in the unit of `start` and `end`.

In each breakdown the rows add up to the totals of `score_entities`, and `found` equals `correct` in each row: a correct
prediction is in the row of its gold entity.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from ..data.statistics import Span, contains, nesting_depths
from .scoring import Counts, Entity, Sentences, check_same_sentences, count_rows, paired_sentences, read_entities

# The smallest length of each bucket; widths double because long entities are rare.
LENGTH_BUCKETS = (1, 2, 3, 5, 9, 17)


def scores_by_length(predictions: Sentences, references: Sentences) -> dict[str, dict[str, Any]]:
    """Scores by the length of entities: `"1"`, `"2"`, `"3-4"`, `"5-8"`, `"9-16"`, `"17+"`.

    Precision is over the predictions of that length, recall over the gold entities of that length. Lengths that occur
    on neither side have no row.

    Raises:
        ValueError: As in `score_entities`.
    """

    def bucket(entity: Entity) -> int:
        return max(first for first in LENGTH_BUCKETS if first <= entity[1] - entity[0])

    counts = count_rows(paired_sentences(predictions, references), lambda *_: (bucket, bucket))
    borders = pairwise(LENGTH_BUCKETS)
    names = {first: str(first) if after == first + 1 else f"{first}-{after - 1}" for first, after in borders}
    return {names.get(first, f"{first}+"): counts[first].scores() for first in sorted(counts)}


def scores_by_depth(predictions: Sentences, references: Sentences) -> dict[str, dict[str, Any]]:
    """Scores by nesting depth: `"1"` for outermost entities, `"2"` for those directly inside them, and so on.

    The depth of a span, predicted or gold, is 1 if no gold span of its sentence contains it, else one more than that of
    the deepest gold span that does. A span does not contain itself; spans that cross do not contain each other. Gold
    determines the depth of predictions too, so that a missing outer entity does not change the depth of the inner one;
    `flat` and `nested` of `score_entities` consider each side alone. Depths that occur on neither side have no row.

    Raises:
        ValueError: As in `score_entities`.
    """

    def rows_of(_predicted: set[Entity], gold: set[Entity]) -> tuple[Callable[[Entity], int], Callable[[Entity], int]]:
        depths = nesting_depths([entity[:2] for entity in gold])

        def depth_of(entity: Entity) -> int:
            return 1 + max((depth for span, depth in depths.items() if contains(span, entity[:2])), default=0)

        return depth_of, depth_of

    counts = count_rows(paired_sentences(predictions, references), rows_of)
    return {str(depth): counts[depth].scores() for depth in sorted(counts)}


def candidate_recall(candidates: Sequence[Iterable[Span]], references: Sentences) -> dict[str, Any]:
    """The share of gold that the candidate filter keeps: an upper bound of the recall after it.

    Args:
        candidates: For each sentence the candidate spans (start, end exclusive), in the unit of the entities.
        references: The gold entities of the same sentences.

    Returns:
        `gold`: the number of gold entities (two types on one span count twice); `found`: of those whose span is a
        candidate; `recall`: their ratio, 0.0 without gold.

    Raises:
        ValueError: As in `score_entities`.
    """
    check_same_sentences(candidates, references)
    counts = Counts()
    for sentence, (spans, entities) in enumerate(zip(candidates, references, strict=True)):
        kept, gold = set(spans), read_entities(entities, f"references, sentence {sentence}")
        counts += Counts(found=sum(entity[:2] in kept for entity in gold), gold=len(gold))
    return {"found": counts.found, "gold": counts.gold, "recall": counts.recall}
