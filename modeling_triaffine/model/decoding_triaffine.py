"""From scores to entities: which spans are entities, of what type, and what may overlap. Pure functions."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from .checks_triaffine import check_threshold
from .triaffine_ops import label_probabilities

OVERLAPS = ("all", "nested", "flat")

# An entity inside a sentence: {"start": word, "end": word, exclusive, "type": label, "score": probability}.
Entity = dict[str, Any]
# Of all labels, or by label.
Threshold = float | Mapping[str, float]


def find_entities(
    output: Any, config: Any, threshold: Threshold | None = None, overlap: str = "all"
) -> list[list[Entity]]:
    """Entities of each sentence of a batch, as [`decode_batch`] finds them for a model with this [`TriaffineConfig`].

    Labels that `threshold` does not name have the thresholds of the configuration, which `calibrate` sets.
    """
    id2label: Any = config.id2label
    if threshold is None or isinstance(threshold, Mapping):
        threshold = {**(config.label_thresholds or {}), **(threshold or {})} or None
    return decode_batch(output, id2label, threshold, overlap, config.multi_label, config.temperature)


def decode_batch(
    output: Any,
    id2label: dict[int, str],
    threshold: Threshold | None = None,
    overlap: str = "all",
    multi_label: bool = False,
    temperature: float = 1.0,
) -> list[list[Entity]]:
    """Entities of each sentence of a batch, in words, sorted by start, then longest first, then likeliest.

    Args:
        output: what the model returned: the final scores of the candidates, or the span scores of a model without the
            cross-span stage.
        id2label: labels, "None" the last.
        threshold: a probability t takes each span's best entity label when it has at least t, even where None is
            likelier; {label: t} has one for each label. A label without a threshold is taken where it is likelier than
            None.
        overlap: see [`resolve_overlaps`].
        multi_label: take every label of a span that has its threshold; 0.5 for labels without one.
        temperature: divides the logits.
    """
    names = [id2label[label] for label in range(len(id2label) - 1)]
    check_threshold(threshold, names)
    if output.logits is None:
        # Spans that are none (i > j, beyond the sentence) are scored as None by the model.
        num_words = output.span_logits.shape[1]
        logits = output.span_logits.flatten(1, 2)
        words = torch.arange(num_words, device=logits.device)
        spans = torch.cartesian_prod(words, words).view(1, -1, 2).expand(logits.shape[0], -1, -1)
        mask = torch.ones_like(spans[..., 0], dtype=torch.bool)
    else:
        logits, spans, mask = output.logits, output.candidates, output.candidate_mask
    probabilities = label_probabilities(logits, multi_label, temperature)
    by_label = threshold if isinstance(threshold, Mapping) else dict.fromkeys(names, threshold)
    found = entity_labels(probabilities, [by_label.get(name) for name in names], multi_label) & mask.unsqueeze(-1)
    sentence, span, label = found.nonzero(as_tuple=True)
    i, j = spans[sentence, span].unbind(-1)
    # Together, for each transfer from the device waits for it.
    places = torch.stack([sentence, i, j, label]).tolist()
    entities: list[list[Entity]] = [[] for _ in range(logits.shape[0])]
    for row, first, last, number, score in zip(*places, probabilities[sentence, span, label].tolist(), strict=True):
        entities[row].append({"start": first, "end": last + 1, "type": names[number], "score": score})
    return [resolve_overlaps(in_sentence, overlap) for in_sentence in entities]


def entity_labels(probabilities: Tensor, thresholds: Sequence[float | None], multi_label: bool) -> Tensor:
    """Probabilities [..., R], None the last → [..., R - 1], which labels the spans have as entities ([`decode_batch`]).

    thresholds: of each label; None for those without one.
    """
    of_entities, of_none = probabilities[..., :-1], probabilities[..., -1:]
    given = probabilities.new_tensor([float("nan") if least is None else least for least in thresholds])
    least = torch.where(given.isnan(), 0.5 if multi_label else of_none, given)
    # What is no span has probability 0, which no threshold lets through.
    found = (of_entities >= least) & (of_entities > 0)
    if multi_label:
        return found
    best = of_entities.argmax(-1, keepdim=True)
    return found & torch.zeros_like(found).scatter_(-1, best, True)


def resolve_overlaps(entities: list[Entity], overlap: str) -> list[Entity]:
    """Entities (`start`, `end` exclusive, `score`) that may stand together, sorted by start, longest, then likeliest.

    overlap: "all" keeps every entity; "nested" lets entities contain one another but not cross; "flat" lets no two
    share a word, but for the labels of one span. Where two cannot stand together the likelier stays, of equally likely
    ones the longer, then the first.
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
