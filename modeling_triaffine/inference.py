"""What evaluation and explanation need to read a model: evaluation mode, and the rank of a span."""

import contextlib
from collections.abc import Iterator

import torch

from .model.modeling_triaffine import NestedNEROutput, TriaffineForNestedNER
from .model.span_head_triaffine import SpanHeadOutput
from .model.triaffine_ops import at_least_float32, span_mask


@contextlib.contextmanager
def evaluating(model: TriaffineForNestedNER) -> Iterator[None]:
    """Disables dropout and gradients inside the block, and restores the model's mode after it."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def rank_of_span(
    output: SpanHeadOutput | NestedNEROutput, span: tuple[int, int], max_width: int | None
) -> tuple[int, int]:
    """Returns the rank of a span in its sentence, from 1, and how many spans the sentence has.

    Spans are ranked as candidates are chosen (section 5 of Yuan et al.): by the probability of their likeliest entity
    label.

    Args:
        output: Of one sentence without padding.
        span: (i, j), both inclusive.
        max_width: The largest number of words of a span that is ranked; None: any.
    """
    assert output.span_logits is not None
    num_words = output.span_logits.shape[1]
    valid = span_mask(torch.tensor([num_words], device=output.span_logits.device), num_words, max_width)[0]
    i, j = span
    likelihood = at_least_float32(output.span_logits[0]).softmax(-1)[..., :-1].amax(-1)
    ranked = likelihood[valid].sort(descending=True, stable=True).indices
    place = valid.flatten()[: i * num_words + j].sum()  # among the spans, ordered by (i, j)
    return int((ranked == place).nonzero()) + 1, len(ranked)
