"""The losses of section 7: cross-entropy over spans, and the soft targets of boundary smoothing."""

import torch
from torch import Tensor
from torch.nn import functional

from .triaffine_ops import at_least_float32


def span_loss(logits: Tensor, labels: Tensor, mask: Tensor, reduction: str, targets: Tensor | None = None) -> Tensor:
    """Cross-entropy of the spans where `mask` holds and the label is not -100, in at least float32 (section 7).

    Args:
        logits: [B, S, R].
        labels: [B, S].
        mask: [B, S].
        reduction: "sentence": mean over sentences of the mean over each one's spans, sentences without any left out;
            "batch": one mean over all spans. 0 where there is no span at all.
        targets: [B, S, R], probabilities to learn instead of the labels.
    """
    counted = mask & (labels != -100)
    wanted = labels.masked_fill(~counted, -100) if targets is None else targets
    losses = functional.cross_entropy(
        at_least_float32(logits).flatten(0, 1), wanted.flatten(0, 1), reduction="none"
    ).view_as(labels)
    losses = losses.masked_fill(~counted, 0.0)
    if reduction == "batch":
        return losses.sum() / counted.sum().clamp(min=1)
    spans = counted.sum(-1)
    return (losses.sum(-1) / spans.clamp(min=1)).sum() / (spans > 0).sum().clamp(min=1)


def smooth_boundaries(labels: Tensor, num_labels: int, smoothing: float, distance: int) -> Tensor:
    """Probabilities [B, N, N, R] to learn in place of `labels` [B, N, N], where an entity's boundaries are not certain.

    An entity keeps 1 - ε of its label's probability. Each ring of spans whose boundaries are 1, 2, …, D words off (both
    together) receives ε / D of it, in equal parts; the parts of spans that do not exist (-100) stay with the entity.
    What a span has left is None's.

    Source: Zhu and Li, "Boundary Smoothing for Named Entity Recognition" (ACL 2022), equation 5, as in their code.
    """
    off = torch.arange(-distance, distance + 1, device=labels.device).abs()
    off = off[:, None] + off
    shares = smoothing / (4 * distance * off.clamp(min=1))  # a ring at distance D has 4·D spans
    kernel = shares.masked_fill((off == 0) | (off > distance), 0.0)

    def spread(values: Tensor) -> Tensor:
        """What every span receives when each span (i, j) of values [B, C, N, N] gives by the kernel."""
        planes = values.flatten(0, 1).unsqueeze(1)
        return functional.conv2d(planes, kernel[None, None], padding=distance).view_as(values)

    exists = (labels != -100).unsqueeze(1).to(kernel.dtype)
    entities = functional.one_hot(labels.clamp(min=0), num_labels).permute(0, 3, 1, 2)[:, :-1] * exists
    # The kernel is symmetric: what a span receives of `exists` is also what it gives to spans that exist.
    smoothed = entities * (1 - spread(exists)) + spread(entities)
    none = (1 - smoothed.sum(1, keepdim=True)).clamp(min=0.0)
    return torch.cat([smoothed, none], dim=1).permute(0, 2, 3, 1)
