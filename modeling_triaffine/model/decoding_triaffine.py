"""Scores → entities: which spans are entities, of which type, and which may overlap."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .checks_triaffine import check_threshold
from .configuration_triaffine import TriaffineConfig
from .kinds_triaffine import Keep, TextEntity, WordEntity, resolve_overlaps
from .options_triaffine import PredictionOptions
from .text_triaffine import Offsets, Piece
from .triaffine_blocks import at_least_float32
from .triaffine_ops import label_probabilities

Threshold = float | Mapping[str, float]  # one for all labels, or one for each


def find_entities(output: Any, config: TriaffineConfig, threshold: Threshold | None = None) -> list[list[WordEntity]]:
    """Entities of each sentence of a batch, in words, sorted by start, then longest first, then likeliest.

    Args:
        output: the model's output: the final scores of the candidates, or the span scores of a model without the
            cross-span stage; or [`CopiedScores`] of it. They are decoded on the CPU.
        config: the model's [`TriaffineConfig`], with labels, `multi_label`, `temperature` and the thresholds of labels
            that `threshold` does not name.
        threshold: as of [`NestedNERPipeline`]; it accepts the best entity label of each span (with `multi_label` every
            label) even where None is likelier. Without one, the likeliest label of a span is accepted where it is
            likelier than None, with `multi_label` any other from 0.5.
    """
    names, thresholds = config.entity_labels, thresholds_of(config, threshold)
    logits, spans, mask = (output if isinstance(output, CopiedScores) else CopiedScores(output)).wait()
    if logits.shape[-1] != config.num_scores:
        problem = f"The model has {logits.shape[-1]} scores for each span, `config.id2label` needs {config.num_scores}"
        remedy = "load it with from_pretrained(…, id2label=…, ignore_mismatched_sizes=True), and train it"
        raise ValueError(f"{problem}. For other labels, {remedy}.")
    if not config.multi_label:
        mask = mask & _may_be_entity(logits, thresholds, config.temperature)
    sentence, span = mask.nonzero(as_tuple=True)
    logits, spans = logits[sentence, span], spans[sentence, span]
    found, label = entity_mask(logits, thresholds, config.multi_label, config.temperature).nonzero(as_tuple=True)
    probabilities = label_probabilities(logits[found], config.multi_label, config.temperature)
    scores = probabilities.gather(-1, label.unsqueeze(-1)).squeeze(-1).tolist()
    places = torch.stack([sentence[found], *spans[found].unbind(-1), label]).tolist()
    entities: list[list[WordEntity]] = [[] for _ in mask]
    for row, first, last, number, score in zip(*places, scores, strict=True):
        entities[row].append({"start": first, "end": last + 1, "type": names[number], "score": score})
    return [resolve_overlaps(in_sentence, "all") for in_sentence in entities]


def thresholds_of(config: TriaffineConfig, threshold: Threshold | None) -> list[float | None]:
    """The threshold of each entity label: the given one, or that of the model where none is given, or None."""
    names = config.entity_labels
    if threshold is None or isinstance(threshold, Mapping):
        threshold = (config.label_thresholds or {}) | dict(threshold or {})
    check_threshold(threshold, names)
    by_label = threshold if isinstance(threshold, Mapping) else dict.fromkeys(names, threshold)
    return [by_label.get(name) for name in names]


def final_scores(output: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The scores that decide: of the candidates, or of all pairs of words in a model without the cross-span stage.

    Logits [B, S, R], their spans (i, j) [B, S, 2], both inclusive, and which of these exist [B, S].
    """
    if output.logits is not None:
        return output.logits, output.candidates, output.candidate_mask
    logits = output.span_logits.flatten(1, 2)
    words = torch.arange(output.span_logits.shape[1], device=logits.device)
    spans = torch.cartesian_prod(words, words).view(1, -1, 2).expand(logits.shape[0], -1, -1)
    # The model scores pairs that are no span (i > j, past the end) as None.
    return logits, spans, torch.ones_like(spans[..., 0], dtype=torch.bool)


class CopiedScores:
    """[`final_scores`] on their way to the CPU, in one copy for which the host does not wait."""

    def __init__(self, output: Any):
        logits, spans, mask = final_scores(output)
        self._scores, self._copied = (logits, spans, mask), None
        if logits.device.type == "cpu":
            return
        parts = logits, spans, mask.unsqueeze(-1)
        dtype = torch.promote_types(logits.dtype, torch.float32)  # in which numbers of words are exact
        on_device = torch.cat([part.to(dtype) for part in parts], dim=-1)
        is_cuda = on_device.device.type == "cuda"
        packed = torch.empty(on_device.shape, dtype=dtype, pin_memory=is_cuda)
        packed.copy_(on_device, non_blocking=is_cuda)
        if is_cuda:
            self._copied = torch.cuda.Event()
            self._copied.record(torch.cuda.current_stream(on_device.device))  # which need not be the current device
        size = logits.shape[-1]
        self._scores = packed[..., :size], packed[..., size : size + 2], packed[..., -1]

    def wait(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns [`final_scores`] on the CPU, when they are there."""
        if self._copied is not None:
            self._copied.synchronize()
        logits, spans, mask = self._scores
        return logits, spans.long(), mask.bool()


def _may_be_entity(logits: Tensor, thresholds: Sequence[float | None], temperature: float) -> Tensor:
    """Marks the spans that may be entities: not the many whose None is so much likelier that no label is accepted.

    The likeliest entity has at most the probability 1 / (1 + exp((None's logit - its logit) / temperature)).
    """
    lowest = min(0.5 if least is None else least for least in thresholds)
    if lowest == 0:
        return torch.ones_like(logits[..., 0], dtype=torch.bool)
    logits = at_least_float32(logits)
    margins = logits[..., :-1].amax(-1) - logits[..., -1]
    # Less exactly than float32 computes probabilities, so that none is left out for its last digits.
    return margins >= temperature * math.log(lowest / (1 - min(lowest, 0.99))) - 0.01


def entity_mask(
    logits: Tensor, thresholds: Sequence[float | None], multi_label: bool, temperature: float = 1.0
) -> Tensor:
    """Marks the labels of spans that are accepted as entities ([`find_entities`]): logits [..., R] → [..., T].

    Args:
        logits: with `multi_label` [..., R - 1].
        thresholds: one for each of the T labels that can be predicted, None for a label without. Auxiliary labels,
            between these and None, compete with them, and are never accepted.
        temperature: of the probabilities that are compared with thresholds. Labels without a threshold are accepted at
            temperature 1: with `multi_label`, where None's probability is a product, another could change which.
    """
    probabilities = label_probabilities(logits, multi_label)
    of_entities, of_none = probabilities[..., :-1], probabilities[..., -1:]
    is_best = torch.zeros_like(of_entities, dtype=torch.bool).scatter_(-1, of_entities.argmax(-1, keepdim=True), True)
    found = of_entities >= torch.where(is_best, of_none, 0.5)
    if any(least is not None for least in thresholds):
        lowest = [*thresholds, *[None] * (of_entities.shape[-1] - len(thresholds))]  # auxiliary labels have none
        given = probabilities.new_tensor([float("nan") if least is None else least for least in lowest])
        reached = label_probabilities(logits, multi_label, temperature)[..., :-1] >= given
        found = torch.where(given.isnan(), found, reached)
    # Pairs of words that are no span have probability 0, which not even a threshold of 0 accepts.
    found &= of_entities > 0
    found = found if multi_label else found & is_best
    return found[..., : len(thresholds)]


@dataclass
class FoundInText:
    """The offsets of a text's words, and its entities by these words, collected sentence by sentence."""

    words: list[Offsets] = field(default_factory=list)
    entities: list[WordEntity] = field(default_factory=list)

    def add(self, piece: Piece, entities: Iterable[WordEntity]) -> None:
        """Adds the next sentence or window, without those of its entities that belong to a neighboring window."""
        first = len(self.words) - piece.shared_before
        self.words += piece.offsets[piece.shared_before :]
        is_window = piece.shared_before or piece.shared_after
        for entity in entities:
            start, end = entity["start"], entity["end"]
            if not is_window or piece.owns(start, end):
                self.entities.append({**entity, "start": first + start, "end": first + end})

    def in_characters(
        self, text: str, overlap: str | Keep = PredictionOptions.overlap, labels: Collection[str] | None = None
    ) -> list[TextEntity]:
        """The entities with these labels (None: all) that a policy for overlaps keeps, by characters of the text."""
        wanted = [entity for entity in self.entities if labels is None or entity["type"] in labels]
        found: list[TextEntity] = []
        for entity in resolve_overlaps(wanted, overlap):
            kind, score = entity["type"], entity["score"]
            start, end = self.words[entity["start"]][0], self.words[entity["end"] - 1][1]
            found.append(TextEntity(entity_group=kind, score=score, word=text[start:end], start=start, end=end))
        return found
