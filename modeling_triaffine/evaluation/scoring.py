"""Exact-match scores of nested entities: overall, by label, part, length and depth; candidate recall.

Pure Python: works on words and on characters alike, as long as predictions and references use the same unit.
`metric.py` wraps the scores for `evaluate`; `decoding_triaffine.py` turns tensors into entities.

docs/analyses.md#scores-by-length-and-nesting has the rules. The rows by label, by length and by depth add up to the
totals, and their `found` equals `correct`: a correct prediction is in the row of its gold entity. Of flat and nested
entities, precision is over those of the predictions and recall over those of gold, so these add up on both sides, too.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from ..drawing.entities import TYPE_KEYS, read_entity
from ..nesting import Span, contains, nesting_depths
from .scores import PARTS, Counts, Scores, TypedSpan

Key = TypeVar("Key", int, str)
Sentences = Sequence[Sequence[Mapping[str, Any]]]  # the entities of each sentence, as `score_entities` takes them

# The smallest length of each bucket and its name; widths double because long entities are rare.
LENGTH_BUCKETS = {1: "1", 2: "2", 3: "3-4", 5: "5-8", 9: "9-16", 17: "17+"}


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
        same seven numbers in `by_label[label]` and under the key of each other part, such as `flat`, as [`Scores`].

    Raises:
        ValueError: The numbers of sentences differ, or an entity is ill-formed.

    Examples:
        >>> from modeling_triaffine.evaluation import score_entities
        >>> gold = [[{"start": 0, "end": 4, "type": "Person"}, {"start": 3, "end": 4, "type": "City"}]]
        >>> score_entities([gold[0][:1]], gold)["recall"]
        0.5
    """
    pairs = list(paired_sentences(predictions, references))
    by_label: dict[str, Counts] = _count_rows(pairs, lambda _: itemgetter(2))
    order = dict.fromkeys([*(labels or ()), *sorted(by_label)])
    by_part = {part: sum((part.count(*pair) for pair in pairs), Counts()).scores() for part in PARTS}
    return Scores.of(by_part, {label: by_label[label].scores() for label in order})


def scores_by_length(predictions: Sentences, references: Sentences) -> dict[str, dict[str, Any]]:
    """Scores by the length of entities: `"1"`, `"2"`, `"3-4"`, `"5-8"`, `"9-16"`, `"17+"`; lengths that occur only.

    Precision is over the predictions of that length, recall over the gold entities of that length.
    """

    def bucket(entity: TypedSpan) -> int:
        return max(first for first in LENGTH_BUCKETS if first <= entity[1] - entity[0])

    counts = _count_rows(paired_sentences(predictions, references), lambda _: bucket)
    return {LENGTH_BUCKETS[first]: counts[first].scores() for first in sorted(counts)}


def scores_by_depth(predictions: Sentences, references: Sentences) -> dict[str, dict[str, Any]]:
    """Scores by nesting depth: `"1"` for outermost entities, `"2"` for those directly inside them, and so on.

    The depth of a span, predicted or gold, is 1 if no gold span of its sentence contains it, else one more than that of
    the deepest gold span that does. Gold determines the depth of predictions too, so that a missing outer entity does
    not change the depth of the inner one; `flat` and `nested` of `score_entities` consider each side alone.

    Examples:
        >>> from modeling_triaffine.evaluation import scores_by_depth
        >>> gold = [[{"start": 0, "end": 4, "type": "Person"}, {"start": 3, "end": 4, "type": "City"}]]
        >>> {depth: scores["recall"] for depth, scores in scores_by_depth([gold[0][:1]], gold).items()}
        {'1': 1.0, '2': 0.0}
    """

    def depths(gold: set[TypedSpan]) -> Callable[[TypedSpan], int]:
        depth_of = nesting_depths([entity[:2] for entity in gold])
        return lambda entity: 1 + max((depth_of[span] for span in depth_of if contains(span, entity[:2])), default=0)

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


def paired_sentences(predictions: Sentences, references: Sentences) -> Iterator[tuple[set[TypedSpan], set[TypedSpan]]]:
    """The distinct predicted and gold entities, sentence by sentence; errors as in [`score_entities`]."""
    if len(predictions) != len(references):
        raise ValueError(
            f"There are predictions for {len(predictions)} sentences and references for {len(references)}."
        )
    for sentence, (predicted, gold) in enumerate(zip(predictions, references, strict=True)):
        yield (
            read_entities(predicted, f"predictions, sentence {sentence}"),
            read_entities(gold, f"references, sentence {sentence}"),
        )


def read_entities(entities: Sequence[Mapping[str, Any]], where: str) -> set[TypedSpan]:
    """The distinct entities of one sentence as (start, end, type); `where` names it in errors if one is ill-formed."""
    return {read_entity(entity, f"{where}, entity {index}") for index, entity in enumerate(entities)}


def as_dicts(entities: Iterable[TypedSpan]) -> list[dict[str, Any]]:
    """The entities as dicts with `start`, `end` and `type`, sorted by start, then longest first."""
    ordered = sorted(entities, key=lambda entity: (entity[0], -entity[1], entity[2]))
    return [{"start": start, "end": end, "type": label} for start, end, label in ordered]


def _count_rows(
    pairs: Iterable[tuple[set[TypedSpan], set[TypedSpan]]],
    rows: Callable[[set[TypedSpan]], Callable[[TypedSpan], Key]],
) -> defaultdict[Key, Counts]:
    """Counts in each row of a table; `rows` gives the row of an entity, from the gold entities of its sentence."""
    counts: defaultdict[Key, Counts] = defaultdict(Counts)
    for predicted, gold in pairs:
        row = rows(gold)
        for entity in predicted:
            counts[row(entity)] += Counts(predicted=1, correct=int(entity in gold))
        for entity in gold:
            counts[row(entity)] += Counts(gold=1, found=int(entity in predicted))
    return counts
