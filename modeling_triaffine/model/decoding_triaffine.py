"""Scores → entities: which spans are entities, of which type, and which may overlap."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from .checks_triaffine import check_threshold
from .configuration_triaffine import TriaffineConfig
from .triaffine_ops import label_probabilities

Overlap = Literal["all", "nested", "flat"]
OVERLAPS = get_args(Overlap)

# {"start": word, "end": word (exclusive), "type": label, "score": probability}, in words of its sentence.
Entity = dict[str, Any]
# One for all labels, or one for each.
Threshold = float | Mapping[str, float]


def find_entities(
    output: Any, config: TriaffineConfig, threshold: Threshold | None = None, overlap: str = "all"
) -> list[list[Entity]]:
    """Entities of each sentence of a batch, in words, sorted by start, then longest first, then likeliest.

    Args:
        output: what the model returned: the final scores of the candidates, or the span scores of a model without the
            cross-span stage.
        config: the model's [`TriaffineConfig`], with labels, `multi_label`, `temperature` and the thresholds of labels
            that `threshold` does not name.
        threshold: a probability t accepts the best entity label of each span (with `multi_label` every label) that has
            at least t, even where None is likelier; {label: t} has one for each label. Without a threshold, the
            likeliest label of a span is accepted where it is likelier than None, with `multi_label` any other from 0.5.
        overlap: see [`resolve_overlaps`].
    """
    names = config.entity_labels
    if threshold is None or isinstance(threshold, Mapping):
        threshold = (config.label_thresholds or {}) | dict(threshold or {})
    check_threshold(threshold, names)
    logits, spans, mask = final_scores(output)
    probabilities = label_probabilities(logits, config.multi_label, config.temperature)
    by_label = threshold if isinstance(threshold, Mapping) else dict.fromkeys(names, threshold)
    accepted = entity_mask(probabilities, [by_label.get(name) for name in names], config.multi_label)
    sentence, span, label = (accepted & mask.unsqueeze(-1)).nonzero(as_tuple=True)
    i, j = spans[sentence, span].unbind(-1)
    # One transfer for all: each waits for the device.
    places = torch.stack([sentence, i, j, label]).tolist()
    entities: list[list[Entity]] = [[] for _ in range(logits.shape[0])]
    for row, first, last, number, score in zip(*places, probabilities[sentence, span, label].tolist(), strict=True):
        entities[row].append({"start": first, "end": last + 1, "type": names[number], "score": score})
    return [resolve_overlaps(in_sentence, overlap) for in_sentence in entities]


def final_scores(output: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The scores that decide: of the candidates, or of all pairs of words in a model without the cross-span stage.

    Returns:
        Logits [B, S, R], their spans (i, j) [B, S, 2], both inclusive, and which of these exist [B, S].
    """
    if output.logits is not None:
        return output.logits, output.candidates, output.candidate_mask
    logits = output.span_logits.flatten(1, 2)
    words = torch.arange(output.span_logits.shape[1], device=logits.device)
    spans = torch.cartesian_prod(words, words).view(1, -1, 2).expand(logits.shape[0], -1, -1)
    # The model scores pairs that are no span (i > j, past the end) as None.
    return logits, spans, torch.ones_like(spans[..., 0], dtype=torch.bool)


def entity_mask(probabilities: Tensor, thresholds: Sequence[float | None], multi_label: bool) -> Tensor:
    """Which labels are accepted as entities ([`find_entities`]): probabilities [..., R], None the last → [..., R - 1].

    thresholds: one for each label, None for a label without.
    """
    of_entities, of_none = probabilities[..., :-1], probabilities[..., -1:]
    is_best = torch.zeros_like(of_entities, dtype=torch.bool).scatter_(-1, of_entities.argmax(-1, keepdim=True), True)
    given = probabilities.new_tensor([float("nan") if least is None else least for least in thresholds])
    least = torch.where(given.isnan(), torch.where(is_best, of_none, 0.5), given)
    # Pairs of words that are no span have probability 0, which not even a threshold of 0 accepts.
    found = (of_entities >= least) & (of_entities > 0)
    return found if multi_label else found & is_best


def resolve_overlaps(entities: list[Entity], overlap: str) -> list[Entity]:
    """The entities (`start`, `end` exclusive, `score`) that a policy keeps, sorted by start, longest, then likeliest.

    overlap: "all" keeps every entity; "nested" keeps entities that contain each other, but none that cross; "flat"
    keeps none that share a word, except several labels of one span. Of two in conflict the likelier is kept, then the
    longer, then the first.
    """
    check_overlap(overlap)
    if overlap == "all":
        return sorted(entities, key=_place)
    in_conflict = _cross if overlap == "nested" else _overlap
    longest = max((entity["end"] - entity["start"] for entity in entities), default=0)
    kept: list[Entity] = []  # sorted, so that each entity is compared with its neighbours only
    for entity in sorted(entities, key=lambda e: (-e["score"], e["start"] - e["end"], e["start"])):
        first = bisect_left(kept, entity["start"] - longest, key=itemgetter("start"))
        last = bisect_left(kept, entity["end"], key=itemgetter("start"))
        if not any(in_conflict(entity, other) for other in kept[first:last]):
            insort(kept, entity, key=_place)
    return kept


def _place(entity: Entity) -> tuple[int, int, float]:
    return entity["start"], -entity["end"], -entity["score"]


def _overlap(one: Entity, other: Entity) -> bool:
    is_same = one["start"] == other["start"] and one["end"] == other["end"]
    return not is_same and one["start"] < other["end"] and other["start"] < one["end"]


def _cross(one: Entity, other: Entity) -> bool:
    first, second = sorted((one, other), key=_place)
    return first["start"] < second["start"] < first["end"] < second["end"]


def check_overlap(overlap: str) -> None:
    if overlap not in OVERLAPS:
        raise ValueError(f"`overlap` is {overlap!r}; choose one of {', '.join(map(repr, OVERLAPS))}.")
