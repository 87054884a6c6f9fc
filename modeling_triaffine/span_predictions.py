"""What evaluation and explanation share: a batch for a model, and the labels and rank that its scores give a span."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .model.batches_triaffine import Feature
from .model.configuration_triaffine import TriaffineConfig
from .model.decoding_triaffine import Threshold, entity_mask, thresholds_of
from .model.kinds_triaffine import NONE_LABEL
from .model.model_triaffine import NestedNEROutput, TriaffineForNestedNER
from .model.processing_triaffine import TriaffineProcessor
from .model.span_head_triaffine import SpanHeadOutput
from .model.triaffine_ops import entity_likelihood, label_probabilities, span_mask


def model_inputs(
    model: TriaffineForNestedNER, processor: TriaffineProcessor, features: Sequence[Feature]
) -> dict[str, Tensor]:
    """A batch of sentences, padded, on the model's device."""
    return {name: values.to(model.device) for name, values in processor.pad(features).items()}


def read_probabilities(config: TriaffineConfig, logits: Tensor, is_final: bool) -> Tensor:
    """Probabilities [S, R], None the last, of the logits [S, …] of spans in the final stage or in the one before it."""
    return label_probabilities(logits, config.multi_label, config.temperature if is_final else 1.0)


def read_labels(
    config: TriaffineConfig, logits: Tensor, is_final: bool, threshold: Threshold | None = None
) -> list[list[tuple[str, float]]]:
    """The labels of spans and their probabilities, likeliest first; None alone if a span is not an entity.

    Args:
        logits: [S, R], or [S, R - 1] of a model that gives a span several labels.
        is_final: whether the stage is the model's last: its temperature and thresholds count.
        threshold: of the final stage, as of [`NestedNERPipeline`].
    """
    probabilities = read_probabilities(config, logits, is_final)
    thresholds = thresholds_of(config, threshold) if is_final else [None] * len(config.entity_labels)
    found = entity_mask(logits, thresholds, config.multi_label, config.temperature)
    labels = []
    for row, has in zip(probabilities.tolist(), found.tolist(), strict=True):
        of_span = [(name, row[n]) for n, name in enumerate(config.entity_labels) if has[n]]
        labels.append(sorted(of_span, key=lambda label: -label[1]) or [(NONE_LABEL, row[-1])])
    return labels


def rank_of_span(
    output: SpanHeadOutput | NestedNEROutput,
    span: tuple[int, int],
    max_width: int | None,
    multi_label: bool = False,
) -> tuple[int, int]:
    """Returns the rank of a span in its sentence, from 1, and how many spans the sentence has.

    Spans are ranked as candidates are chosen (Yuan et al.): by the probability of their likeliest entity label.

    Args:
        output: Of one sentence without padding.
        span: (i, j), both inclusive.
        max_width: The largest number of words of a span that is ranked; None: any.
        multi_label: As in the model's configuration.
    """
    assert output.span_logits is not None
    num_words = output.span_logits.shape[1]
    valid = span_mask(torch.tensor([num_words], device=output.span_logits.device), num_words, max_width)[0]
    i, j = span
    logits = output.span_logits[0]
    ranked = entity_likelihood(logits, multi_label)[valid].sort(descending=True, stable=True).indices
    place = valid.flatten()[: i * num_words + j].sum()  # among the spans, ordered by (i, j)
    return int((ranked == place).nonzero()) + 1, len(ranked)
