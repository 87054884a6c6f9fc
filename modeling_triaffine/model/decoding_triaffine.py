"""From scores to entities: which spans are entities, of what type, and what may overlap. Pure functions."""

from bisect import bisect_left, insort
from numbers import Real
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from .triaffine_ops import at_least_float32

OVERLAPS = ("all", "nested", "flat")

# An entity inside a sentence: {"start": word, "end": word, exclusive, "type": label, "score": probability}.
Entity = dict[str, Any]


def decode_batch(
    output: Any, id2label: dict[int, str], threshold: float | None = None, overlap: str = "all"
) -> list[list[Entity]]:
    """Entities of each sentence of a batch, in words, sorted by start, then longest first.

    Args:
        output: what the model returned: the final scores of the candidates, or the span scores of a model without the
            cross-span stage.
        id2label: labels, "None" the last.
        threshold: None takes each span's most likely label and drops None; a probability t takes each span's best
            entity label when it has at least t, even where None is likelier.
        overlap: see [`resolve_overlaps`].
    """
    check_threshold(threshold)
    if output.logits is None:
        # Spans that are none (i > j, beyond the sentence) are scored as None by the model.
        num_words = output.span_logits.shape[1]
        logits = output.span_logits.flatten(1, 2)
        words = torch.arange(num_words, device=logits.device)
        spans = torch.cartesian_prod(words, words).view(1, -1, 2).expand(logits.shape[0], -1, -1)
        mask = torch.ones_like(spans[..., 0], dtype=torch.bool)
    else:
        logits, spans, mask = output.logits, output.candidates, output.candidate_mask
    sentence, start, end, label, score = _entities(logits, spans, mask, threshold)
    entities: list[list[Entity]] = [[] for _ in range(logits.shape[0])]
    for row, first, last, name, probability in zip(sentence, start, end, label, score, strict=True):
        entities[row].append({"start": first, "end": last + 1, "type": id2label[name], "score": probability})
    return [resolve_overlaps(found, overlap) for found in entities]


def _entities(logits: Tensor, spans: Tensor, mask: Tensor, threshold: float | None) -> tuple[list, ...]:
    """Logits [B, S, R] of spans [B, S, 2] → lists of sentence, i, j, label, probability of those that are entities."""
    probabilities = at_least_float32(logits).softmax(-1)
    if threshold is None:
        score, label = probabilities.max(-1)
        found = mask & (label < logits.shape[-1] - 1)
    else:
        score, label = probabilities[..., :-1].max(-1)
        # What is no span has probability 0, which no threshold lets through.
        found = mask & (score >= threshold) & (score > 0)
    sentence, span = found.nonzero(as_tuple=True)
    i, j = spans[sentence, span].unbind(-1)
    # Together, for each transfer from the device waits for it.
    return (*torch.stack([sentence, i, j, label[sentence, span]]).tolist(), score[sentence, span].tolist())


def resolve_overlaps(entities: list[Entity], overlap: str) -> list[Entity]:
    """Entities (`start`, `end` exclusive, `score`) that may stand together, sorted by start, then longest first.

    overlap: "all" keeps every entity; "nested" lets entities contain one another but not cross; "flat" lets no two
    share a word. Where two cannot stand together the likelier stays, of equally likely ones the longer, then the first.
    """
    check_overlap(overlap)
    if overlap == "all":
        return sorted(entities, key=_place)
    in_conflict = _cross if overlap == "nested" else _overlap
    longest = max((entity["end"] - entity["start"] for entity in entities), default=0)
    kept: list[Entity] = []  # by place, so that only neighbours are looked at
    for entity in sorted(entities, key=lambda e: (-e["score"], e["start"] - e["end"], e["start"])):
        first = bisect_left(kept, entity["start"] - longest, key=itemgetter("start"))
        last = bisect_left(kept, entity["end"], key=itemgetter("start"))
        if not any(in_conflict(entity, other) for other in kept[first:last]):
            insort(kept, entity, key=_place)
    return kept


def _place(entity: Entity) -> tuple[int, int]:
    return entity["start"], -entity["end"]


def _overlap(one: Entity, other: Entity) -> bool:
    return one["start"] < other["end"] and other["start"] < one["end"]


def _cross(one: Entity, other: Entity) -> bool:
    first, second = sorted((one, other), key=_place)
    return first["start"] < second["start"] < first["end"] < second["end"]


def check_threshold(threshold: Any) -> None:
    """Raises ValueError unless `threshold` is None or a number in [0, 1]."""
    is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
    if threshold is not None and not (is_number and 0.0 <= threshold <= 1.0):
        raise ValueError(f"`threshold` is {threshold!r}; give a number from 0 to 1, or None for the likeliest label.")


def check_overlap(overlap: str) -> None:
    if overlap not in OVERLAPS:
        raise ValueError(f"`overlap` is {overlap!r}; choose one of {', '.join(map(repr, OVERLAPS))}.")
