"""Pairs of attention and scoring for tests of what holds for every kind: one that is newly declared is in them all."""

from typing import Any

from modeling_triaffine.model.kinds_triaffine import ATTENTIONS, SCORINGS

# With inside words: every attention with the scoring of the paper, every other scoring with its attention, and a pair
# without a triaffine tensor.
FACTORS = [
    *((attention, "triaffine") for attention, kind in ATTENTIONS.items() if kind.reads_words),
    *(("triaffine", scoring) for scoring, kind in SCORINGS.items() if kind.reads_words and scoring != "triaffine"),
    ("linear", "linear_boundary"),
]
WITHOUT_WORDS = [("none", scoring) for scoring, kind in SCORINGS.items() if not kind.reads_words]
HAVE_TENSORS = [(a, s) for a, s in FACTORS if ATTENTIONS[a].has_tensor and SCORINGS[s].has_tensor]


def fields_of(attention: str, scoring: str) -> dict[str, Any]:
    """The fields of a configuration with both stages where that is possible, and shared tensors where there are any."""
    fields: dict[str, Any] = {"attention": attention, "scoring": scoring}
    if (attention, scoring) in WITHOUT_WORDS:
        return fields | {"cross_span": False}
    return fields | {"share_triaffine": (attention, scoring) in HAVE_TENSORS}
