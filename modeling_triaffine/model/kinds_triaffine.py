"""The choices of options: kinds of attention to a span's inside words, kinds of span scoring, policies for overlaps.

A kind is declared here, and computed by its module in `factors_triaffine.py`. Configuration, modules and explanation
read its attributes, and do not compare names. This file imports no third-party library, so that `--help` starts fast.
The letters of ablations are those of Yuan et al. (Findings of ACL 2022).
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, TypedDict

NONE_LABEL = "None"  # the last label of every model: no entity


@dataclass(frozen=True)
class Kind:
    """A way to weigh the inside words of a span (attention), or to score the span (scoring)."""

    meaning: str  # description for help texts
    reads_words: bool = True  # whether it reads the words inside a span; without them a span has no representation
    by_label: bool = True  # whether each label has an attention of its own
    has_boundaries: bool = True  # whether it has MLPs of its own for head and tail words
    shares_boundaries: bool = False  # whether a scoring uses these MLPs of the attention
    has_tensor: bool = False  # whether it has a triaffine tensor (W or V), which the cross-span stage can share


ATTENTIONS: Mapping[str, Kind] = {
    "triaffine": Kind("by head, tail and label", has_tensor=True),
    "triaffine_no_label": Kind("by head and tail (c)", by_label=False, has_tensor=True),
    "label": Kind("by the label (d)", has_boundaries=False),
    "linear": Kind("linearly by head, tail and label (e)"),
    "none": Kind("they are not read, for biaffine scoring (a)", reads_words=False, has_boundaries=False),
}
SCORINGS: Mapping[str, Kind] = {
    "triaffine": Kind("head, tail and inside words", has_tensor=True),
    "linear": Kind("linearly by inside words (b)", has_boundaries=False),
    "linear_boundary": Kind("linearly by head, tail and inside words (f)"),
    "linear_boundary_shared": Kind(
        "the same, with head and tail of the attention, as in the published code",
        has_boundaries=False,
        shares_boundaries=True,
    ),
    "biaffine": Kind("head and tail (a)", reads_words=False),
    "biaffine_shared": Kind(
        "head and tail from the same layers, as in the published code", reads_words=False, has_boundaries=False
    ),
}

# ---- Policies for entities that overlap ----


class WordEntity(TypedDict):
    """An entity by the words of its sentence, or of its text: `start`, `end` (exclusive); `type` is its label."""

    start: int
    end: int
    type: str
    score: float


class TextEntity(TypedDict):
    """An entity by the characters of its text, with the keys of transformers' pipelines."""

    entity_group: str
    score: float
    word: str
    start: int
    end: int


Keep = Callable[[list[WordEntity]], Iterable[WordEntity]]


class OverlapPolicy(NamedTuple):
    """A description for help texts, and the function from the entities of a text to those kept, in any order."""

    meaning: str
    keep: Keep


def resolve_overlaps(entities: Iterable[WordEntity], overlap: str | Keep) -> list[WordEntity]:
    """The entities of a text, or of a sentence, that a policy keeps, sorted by start, longest first, then likeliest.

    A policy keeps of two entities in conflict the likelier, then the longer, then the first.
    """
    return sorted(overlap_policy(overlap)(list(entities)), key=_sort_key)


def overlap_policy(overlap: str | Keep) -> Keep:
    """The function of a policy, which is given by its name or itself; raises ValueError if there is none."""
    if callable(overlap):
        return overlap
    if not isinstance(overlap, str) or overlap not in OVERLAPS:
        raise ValueError(f"`overlap` is {overlap!r}; choose one of {', '.join(map(repr, OVERLAPS))}, or a function.")
    return OVERLAPS[overlap].keep


def _keep_without(in_conflict: Callable[[WordEntity, WordEntity], bool]) -> Keep:
    """Makes the function of a policy that keeps no two entities in conflict; such entities share a word."""

    def keep(entities: list[WordEntity]) -> list[WordEntity]:
        longest = max((entity["end"] - entity["start"] for entity in entities), default=0)
        kept: list[WordEntity] = []  # sorted by start: only entities that may share a word are compared
        for entity in sorted(entities, key=lambda e: (-e["score"], e["start"] - e["end"], e["start"])):
            first = bisect_left(kept, entity["start"] - longest, key=itemgetter("start"))
            last = bisect_left(kept, entity["end"], key=itemgetter("start"))
            if not any(in_conflict(entity, other) for other in kept[first:last]):
                insort(kept, entity, key=_sort_key)
        return kept

    return keep


def _sort_key(entity: WordEntity) -> tuple[int, int, float]:
    return entity["start"], -entity["end"], -entity["score"]


def _overlap(entity: WordEntity, other: WordEntity) -> bool:
    is_same = entity["start"] == other["start"] and entity["end"] == other["end"]  # several labels of one span
    return not is_same and entity["start"] < other["end"] and other["start"] < entity["end"]


def _cross(entity: WordEntity, other: WordEntity) -> bool:
    first, second = sorted((entity, other), key=_sort_key)
    return first["start"] < second["start"] < first["end"] < second["end"]


OVERLAPS: dict[str, OverlapPolicy] = {
    "all": OverlapPolicy("all of them", list),
    "nested": OverlapPolicy("nested ones, but none that cross", _keep_without(_cross)),
    "flat": OverlapPolicy("no two spans that share a word", _keep_without(_overlap)),
}
