"""The losses over spans with one label or several (section 7), and the soft targets of boundary smoothing."""

import torch
from torch import Tensor
from torch.nn import functional

from .triaffine_blocks import at_least_float32


def span_loss(
    logits: Tensor,
    labels: Tensor,
    mask: Tensor,
    reduction: str,
    targets: Tensor | None = None,
    multi_label: bool = False,
) -> Tensor:
    """Loss over the S spans of each sentence where `mask` is True and the label is not -100, in at least float32.

    A span's loss is the cross-entropy of its label, or with `multi_label` the sum of its labels' binary
    cross-entropies (section 7).

    Args:
        logits: [B, S, R], or [B, S, R - 1] with `multi_label`.
        labels: [B, S], ids; or [B, S, R - 1], 1 for the labels that a span has and 0 for the others.
        mask: [B, S].
        reduction: "sentence": mean over sentences of the mean over each one's spans, without sentences that have none;
            "batch": one mean over all spans. Without any span 0.
        targets: soft targets in place of the labels, of the shape of `logits`.
    """
    labels = labels.masked_fill(~(mask.unsqueeze(-1) if multi_label else mask), -100)
    span_losses = _binary_cross_entropies if multi_label else _cross_entropies
    losses, is_known = span_losses(at_least_float32(logits), labels, targets)
    losses = losses.masked_fill(~is_known, 0.0)
    if reduction == "batch":
        return losses.sum() / is_known.sum().clamp(min=1)
    spans = is_known.sum(-1)
    return (losses.sum(-1) / spans.clamp(min=1)).sum() / (spans > 0).sum().clamp(min=1)


def _cross_entropies(logits: Tensor, labels: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor]:
    """The loss of each span [B, S], and which are known [B, S]."""
    targets = labels if targets is None else targets
    losses = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(0, 1), reduction="none")
    return losses.view_as(labels), labels != -100


def _binary_cross_entropies(logits: Tensor, labels: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor]:
    """The loss of each span [B, S] over its known labels, and which spans have any [B, S]."""
    is_known = labels != -100
    targets = labels if targets is None else targets
    losses = functional.binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction="none")
    return losses.masked_fill(~is_known, 0.0).sum(-1), is_known.any(-1)


def smooth_boundaries(labels: Tensor, num_labels: int, smoothing: float, distance: int) -> Tensor:
    """Soft targets [B, N, N, R] in place of `labels` [B, N, N], for entities whose boundaries are uncertain.

    With several labels per span, labels [B, N, N, R - 1] give targets of the same shape.

    An entity keeps 1 - ε of its label's probability. The spans whose boundaries are d words off (head and tail
    together) form ring d; each of the rings 1, …, D receives ε / D in equal parts. Parts of spans that do not exist
    (-100) stay with the entity. The rest of a span's probability is None's.

    Source: Zhu and Li, "Boundary Smoothing for Named Entity Recognition" (ACL 2022), equation 5, as in their code.
    """
    num_words = labels.shape[1]
    offsets = range(-distance, distance + 1)
    shares = {
        (head, tail): smoothing / (4 * distance * (abs(head) + abs(tail)))  # ring d has 4·d spans
        for head in offsets
        for tail in offsets
        if 0 < abs(head) + abs(tail) <= distance
    }

    def spread(values: Tensor) -> Tensor:
        """What each span (i, j) receives when each span of values [B, N, N, C] gives away its shares."""
        # Sums of slices: a convolution would be computed in half precision under autocast, and in TF32 on CUDA.
        padded = functional.pad(values, (0, 0, *(distance,) * 4))
        received = torch.zeros_like(values)
        for (head, tail), share in shares.items():
            rows, columns = (slice(distance + off, distance + off + num_words) for off in (head, tail))
            received += share * padded[:, rows, columns]
        return received

    multi_label = labels.dim() == 4
    entities = labels.clamp(min=0) if multi_label else functional.one_hot(labels.clamp(min=0), num_labels)[..., :-1]
    exists = (labels if multi_label else labels.unsqueeze(-1)) != -100
    exists, entities = (values.to(torch.get_default_dtype()) for values in (exists, entities * exists))
    # The shares are symmetric: what a span receives of `exists` is also what it gives to spans that exist.
    smoothed = entities * (1 - spread(exists)) + spread(entities)
    if multi_label:
        return smoothed.clamp(max=1.0)
    return torch.cat([smoothed, (1 - smoothed.sum(-1, keepdim=True)).clamp(min=0.0)], dim=-1)
