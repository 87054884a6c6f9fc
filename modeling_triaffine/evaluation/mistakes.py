"""The sentences in which a model errs, each with its mistakes: one by one what `confusion` counts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .breakdowns import INVENTED, MISSED, Sentences, counterpart
from .scoring import Entity, check_same_sentences, read_entities


@dataclass(frozen=True)
class Mention:
    """An entity: `start` and `end` (exclusive) in words, and these words with spaces between them."""

    start: int
    end: int
    type: str
    text: str


@dataclass(frozen=True)
class Mistake:
    """A gold entity that was not found, or a prediction that is wrong, or one taken for the other.

    `kind` is one of `wrong_type`, `wrong_boundary`, `wrong_boundary_and_type`, `missed` and `invented`; a missed entity
    has no prediction, an invented one no gold.
    """

    kind: str
    gold: Mention | None
    predicted: Mention | None


@dataclass(frozen=True)
class FlawedSentence:
    """A sentence with at least one mistake; entities and mistakes are sorted by start, then longest first."""

    id: str
    tokens: list[str]
    gold: list[Mention]
    predicted: list[Mention]
    mistakes: list[Mistake]


def list_mistakes(predictions: Sentences, records: Sequence[Mapping[str, Any]]) -> list[FlawedSentence]:
    """The sentences with mistakes, those with most of them first, else in their order.

    Each gold entity that is not found, and each wrong prediction, is in at least one mistake; how they are set beside
    each other, [`confusion`] tells.

    Args:
        predictions: a list of entities for each record, as `score_entities` takes them, in words.
        records: sentences with `id`, `tokens` and the gold `entities`.

    Raises:
        ValueError: as of `score_entities`.
    """
    check_same_sentences(predictions, records)
    sentences = []
    for number, (entities, record) in enumerate(zip(predictions, records, strict=True)):
        predicted = read_entities(entities, f"predictions, sentence {number}")
        gold = read_entities(record["entities"], f"references, sentence {number}")
        if predicted != gold:
            sentences.append(_describe(record, predicted, gold))
    return sorted(sentences, key=lambda sentence: -len(sentence.mistakes))


def _describe(record: Mapping[str, Any], predicted: set[Entity], gold: set[Entity]) -> FlawedSentence:
    tokens = list(record["tokens"])

    def mention(entity: Entity) -> Mention:
        start, end, type_ = entity
        return Mention(start, end, type_, " ".join(tokens[start:end]))

    mistakes = [
        Mistake(kind, true and mention(true), given and mention(given))
        for kind, true, given in _pair_up(gold - predicted, predicted - gold)
    ]
    return FlawedSentence(
        id=record["id"],
        tokens=tokens,
        gold=[mention(entity) for entity in _in_order(gold)],
        predicted=[mention(entity) for entity in _in_order(predicted)],
        mistakes=sorted(mistakes, key=_place),
    )


def _pair_up(not_found: set[Entity], wrong: set[Entity]) -> Iterator[tuple[str, Entity | None, Entity | None]]:
    """Each gold entity with its counterpart; then each prediction that is no counterpart yet with its own."""
    seen = set()
    for entity in _in_order(not_found):
        kind, other = counterpart(entity, wrong)
        seen.add(other)
        yield kind or MISSED, entity, other
    for entity in _in_order(wrong - seen):
        kind, other = counterpart(entity, not_found)
        yield kind or INVENTED, other, entity


def _in_order(entities: Iterable[Entity]) -> list[Entity]:
    return sorted(entities, key=lambda entity: (entity[0], -entity[1], entity[2]))


def _place(mistake: Mistake) -> tuple[int, int]:
    mention = mistake.gold or mistake.predicted
    assert mention is not None
    return mention.start, -mention.end
