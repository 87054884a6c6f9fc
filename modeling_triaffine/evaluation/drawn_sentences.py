"""Prepares sentences with errors for the drawings of a report."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ..drawing.safe_text import REPLACEMENT, clean
from ..drawing.tables import Table
from .error_analysis import Mention, SentenceErrors, outcome_name

Drawing = tuple[str, str, Sequence[Mapping[str, Any]]]


class DrawnSentence(NamedTuple):
    """`drawings`: (side, text, entities by characters) of the gold and of the predicted entities."""

    id: str
    drawings: list[Drawing]
    errors: Table


def prepare_drawing(sentence: SentenceErrors) -> DrawnSentence:
    words = [clean(token) or REPLACEMENT for token in sentence.tokens]
    sides = (("Gold", sentence.gold), ("Predicted", sentence.predicted))

    def name(mention: Mention | None) -> str | None:
        return f"{' '.join(words[mention.start : mention.end])} ({mention.type})" if mention else None

    rows = [[outcome_name(error.kind), name(error.gold), name(error.predicted)] for error in sentence.errors]
    caption = "1 error" if len(rows) == 1 else f"{len(rows)} errors"
    return DrawnSentence(
        sentence.id,
        [(side, " ".join(words), _by_characters(words, mentions)) for side, mentions in sides],
        Table(["error", "gold", "predicted"], rows, caption),
    )


def _by_characters(words: Sequence[str], mentions: Iterable[Mention]) -> list[dict[str, Any]]:
    """The entities with character offsets in the words joined by spaces."""
    starts = list(accumulate((len(word) + 1 for word in words), initial=0))
    return [
        {"entity_group": mention.type, "start": starts[mention.start], "end": starts[mention.end] - 1}
        for mention in mentions
    ]
