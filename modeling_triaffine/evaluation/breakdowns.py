"""Where the score of a model comes from: by length and by depth of the entities, by kind of error, by candidates.

Pure functions on the entity lists that `scoring.py` reads, under its rules: an entity is right if start, end and type
are those of a gold entity of the same sentence, and one given twice counts once. No result depends on the order of
entities or of sentences. Lengths are in the unit of `start` and `end`: words, where entities are given in words.

Scores are the seven numbers of `Counts.scores`: `precision`, `recall`, `f1` (0 to 1), `correct`, `predicted`, `found`,
`gold`. In every breakdown here the parts add up to the whole of `score_entities`, and `found` equals `correct` in each
part: a prediction that is right stands in the row of its gold entity.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..data.statistics import Span, contains, nesting_depths
from .scoring import Counts, Entity, check_same_sentences, read_entities

Sentences = Sequence[Sequence[Mapping[str, Any]]]
"""A list of entities for each sentence, as `score_entities` takes them."""

# A bucket of lengths begins with each; they double in width, for long entities are few.
LENGTH_BUCKETS = (1, 2, 3, 5, 9, 17)

RIGHT, WRONG_TYPE, WRONG_BOUNDARY, WRONG_BOTH = "right", "wrong_type", "wrong_boundary", "wrong_boundary_and_type"
MISSED, INVENTED = "missed", "invented"
# What two entities that share words can be to each other, the nearest first.
PAIR_ERRORS = (WRONG_TYPE, WRONG_BOUNDARY, WRONG_BOTH)
GOLD_OUTCOMES = (RIGHT, WRONG_TYPE, WRONG_BOUNDARY, WRONG_BOTH, MISSED)
PREDICTED_OUTCOMES = (RIGHT, WRONG_TYPE, WRONG_BOUNDARY, WRONG_BOTH, INVENTED)


def scores_by_length(predictions: Sentences, references: Sentences) -> dict[str, dict[str, float]]:
    """Scores by the length of entities: `"1"`, `"2"`, `"3-4"`, `"5-8"`, `"9-16"`, `"17+"`.

    Precision is over the predictions of that length, recall over the gold entities of that length. Lengths that occur
    on neither side have no row.

    Raises:
        ValueError: as of `score_entities`.
    """
    counts: dict[int, Counts] = defaultdict(Counts)
    for predicted, gold in _sentences(predictions, references):
        for entity, its_counts in _count_entities(predicted, gold):
            counts[_first_of_bucket(entity[1] - entity[0])] += its_counts
    return {_BUCKET_NAMES[first]: counts[first].scores() for first in sorted(counts)}


def scores_by_depth(predictions: Sentences, references: Sentences) -> dict[str, dict[str, float]]:
    """Scores by nesting depth: `"1"` for outermost entities, `"2"` for those directly inside such ones, and so on.

    The depth of a span, predicted or gold, is 1 where no gold span of its sentence contains it, else one more than that
    of the deepest gold span that does; a span does not contain itself, and spans that merely cross contain each other
    in no direction. Gold decides for predictions too, so that what a model leaves out does not lift the depth of what
    it finds; `flat` and `nested` of `score_entities` look at each side alone instead. Depths that occur on neither side
    have no row.

    Raises:
        ValueError: as of `score_entities`.
    """
    counts: dict[int, Counts] = defaultdict(Counts)
    for predicted, gold in _sentences(predictions, references):
        gold_depths = nesting_depths([entity[:2] for entity in gold])
        for entity, its_counts in _count_entities(predicted, gold):
            above = (depth for span, depth in gold_depths.items() if contains(span, entity[:2]))
            counts[1 + max(above, default=0)] += its_counts
    return {str(depth): counts[depth].scores() for depth in sorted(counts)}


def confusion(predictions: Sentences, references: Sentences, labels: Iterable[str] | None = None) -> dict[str, Any]:
    """What became of each gold entity, and what each prediction is, by label.

    Predictions that are right and gold entities that are found explain no error: errors are looked for among the
    *wrong* predictions and the gold entities *not found*. Of each of these, on either side, the first that holds:

    - `wrong_type`: one of the other side has the same span (and hence another type);
    - `wrong_boundary`: one of the other side overlaps it, that is, shares a word, and has the same type;
    - `wrong_boundary_and_type`: one of the other side overlaps it;
    - `missed` (gold) or `invented` (predicted): none of these.

    So an outer entity that is left out while the one inside it is found is missed, whatever they share.

    Args:
        labels: labels that get a row even if they never occur, in this order; others that occur follow in alphabetical
            order.

    Returns:
        - `by_gold_label`: label → how many gold entities ended as `right`, `wrong_type`, `wrong_boundary`,
          `wrong_boundary_and_type`, `missed`; they add up to the label's gold entities;
        - `by_predicted_label`: label → how many predictions are `right`, …, `invented`; they add up likewise;
        - `types`: gold label → predicted label → how many gold entities had their span predicted so: `right` where
          both are the same, else a part of `wrong_type`. Of several wrong types on one span the first by alphabet.

    Raises:
        ValueError: as of `score_entities`.
    """
    by_gold_label: dict[str, Counter[str]] = defaultdict(Counter)
    by_predicted_label: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for predicted, gold in _sentences(predictions, references):
        for entity in gold & predicted:
            by_gold_label[entity[2]][RIGHT] += 1
            by_predicted_label[entity[2]][RIGHT] += 1
            types[entity[2]][entity[2]] += 1
        wrong, not_found = predicted - gold, gold - predicted
        for entity in not_found:
            by_gold_label[entity[2]][counterpart(entity, wrong)[0] or MISSED] += 1
            if same_span := [other[2] for other in wrong if other[:2] == entity[:2]]:
                types[entity[2]][min(same_span)] += 1
        for entity in wrong:
            by_predicted_label[entity[2]][counterpart(entity, not_found)[0] or INVENTED] += 1
    order = list(dict.fromkeys([*(labels or ()), *sorted({*by_gold_label, *by_predicted_label})]))
    return {
        "by_gold_label": {label: {name: by_gold_label[label][name] for name in GOLD_OUTCOMES} for label in order},
        "by_predicted_label": {
            label: {name: by_predicted_label[label][name] for name in PREDICTED_OUTCOMES} for label in order
        },
        "types": {label: {other: types[label][other] for other in order} for label in order},
    }


def counterpart(entity: Entity, others: Iterable[Entity]) -> tuple[str, Entity] | tuple[None, None]:
    """Which error an entity is, and with which of the unmatched entities of the other side.

    The first error that [`confusion`] lists decides, then how many words are shared, then the order of the others.
    None, None where it shares words with none of them: it is missed or invented.
    """
    near = [
        (PAIR_ERRORS.index(_pair_error(entity, other)), -shared, other)
        for other in others
        if (shared := _shared_words(entity, other)) > 0
    ]
    if not near:
        return None, None
    error, _, other = min(near)
    return PAIR_ERRORS[error], other


def candidate_recall(candidates: Sequence[Iterable[Span]], references: Sentences) -> dict[str, float]:
    """How much of gold the candidate filter lets through: an upper bound of the recall of what is chosen from it.

    Args:
        candidates: for each sentence the candidate spans (start, end exclusive), in the unit of the entities.
        references: the gold entities of the same sentences.

    Returns:
        `gold`: the gold entities (two types on one span are two); `found`: those whose span is a candidate; `recall`:
        their ratio, 0.0 where there is no gold.

    Raises:
        ValueError: as of `score_entities`.
    """
    check_same_sentences(candidates, references)
    counts = Counts()
    for sentence, (spans, entities) in enumerate(zip(candidates, references, strict=True)):
        kept, gold = set(spans), read_entities(entities, f"references, sentence {sentence}")
        counts += Counts(found=sum(entity[:2] in kept for entity in gold), gold=len(gold))
    return {"found": counts.found, "gold": counts.gold, "recall": counts.recall}


def _sentences(predictions: Sentences, references: Sentences) -> Iterator[tuple[set[Entity], set[Entity]]]:
    """The distinct predicted and gold entities, sentence by sentence."""
    check_same_sentences(predictions, references)
    for sentence, (predicted, gold) in enumerate(zip(predictions, references, strict=True)):
        yield (
            read_entities(predicted, f"predictions, sentence {sentence}"),
            read_entities(gold, f"references, sentence {sentence}"),
        )


def _count_entities(predicted: set[Entity], gold: set[Entity]) -> Iterator[tuple[Entity, Counts]]:
    """Each entity of each side with what it adds to the counts of its row."""
    for entity in predicted:
        yield entity, Counts(predicted=1, correct=int(entity in gold))
    for entity in gold:
        yield entity, Counts(gold=1, found=int(entity in predicted))


def _shared_words(one: Entity, other: Entity) -> int:
    """Not above 0 where they lie apart."""
    return min(one[1], other[1]) - max(one[0], other[0])


def _pair_error(one: Entity, other: Entity) -> str:
    """Of two different entities that share words."""
    if one[:2] == other[:2]:
        return WRONG_TYPE
    return WRONG_BOUNDARY if one[2] == other[2] else WRONG_BOTH


def _first_of_bucket(length: int) -> int:
    return max(first for first in LENGTH_BUCKETS if first <= length)


def _name_buckets() -> dict[int, str]:
    """First length of a bucket → its name."""
    names = {
        first: str(first) if following == first + 1 else f"{first}-{following - 1}"
        for first, following in pairwise(LENGTH_BUCKETS)
    }
    return {**names, LENGTH_BUCKETS[-1]: f"{LENGTH_BUCKETS[-1]}+"}


_BUCKET_NAMES = _name_buckets()
