"""The kinds of attention to a span's inside words and of scoring a span: what each is, has and needs.

A kind is declared here, and computed by its module in `factors_triaffine.py`. Configuration, modules and explanation
ask the kind, never for its name. This file imports no library, so that help needs none. Sections and ablations are
those of Yuan et al. (Findings of ACL 2022).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True)
class AttentionKind:
    """How the inside words of a span are weighed (section 3).

    Attributes:
        meaning: what help says of it.
        reads_words: whether there is an attention to inside words at all.
        by_label: whether each label has an attention of its own.
        has_boundaries: whether it has MLPs of head and tail, which a scoring can share.
        has_tensor: whether it has a triaffine tensor W, which the cross-span stage can share.
    """

    meaning: str
    reads_words: bool = True
    by_label: bool = True
    has_boundaries: bool = True
    has_tensor: bool = False


@dataclass(frozen=True)
class ScoringKind:
    """What a span is scored by (section 4).

    Attributes:
        meaning: what help says of it.
        reads_words: whether it scores inside words, weighed by the attention; only then a span has a representation.
        has_boundaries: whether it has MLPs of head and tail.
        shares_boundaries: whether it reads the attention's head and tail.
        has_tensor: whether it has a triaffine tensor V, which the cross-span stage can share.
    """

    meaning: str
    reads_words: bool = True
    has_boundaries: bool = True
    shares_boundaries: bool = False
    has_tensor: bool = False


ATTENTIONS: Mapping[str, AttentionKind] = {
    "triaffine": AttentionKind("by head, tail and label", has_tensor=True),
    "triaffine_no_label": AttentionKind("by head and tail (c)", by_label=False, has_tensor=True),
    "label": AttentionKind("by the label (d)", has_boundaries=False),
    "linear": AttentionKind("linearly by head, tail and label (e)"),
    "none": AttentionKind("they are not read, for biaffine scoring (a)", reads_words=False, has_boundaries=False),
}
SCORINGS: Mapping[str, ScoringKind] = {
    "triaffine": ScoringKind("head, tail and inside words", has_tensor=True),
    "linear": ScoringKind("linearly by inside words (b)", has_boundaries=False),
    "linear_boundary": ScoringKind("linearly by head, tail and inside words (f)"),
    "linear_boundary_shared": ScoringKind(
        "the same, with head and tail of the attention, as in the published code",
        has_boundaries=False,
        shares_boundaries=True,
    ),
    "biaffine": ScoringKind("head and tail (a)", reads_words=False),
    "biaffine_shared": ScoringKind(
        "head and tail from the same layers, as in the published code", reads_words=False, has_boundaries=False
    ),
}

Kind = TypeVar("Kind", AttentionKind, ScoringKind)


def names_of(kinds: Mapping[str, Kind], wanted: Callable[[Kind], bool]) -> str:
    """The names of the kinds that have what is wanted, for errors."""
    return ", ".join(repr(name) for name, kind in kinds.items() if wanted(kind))
