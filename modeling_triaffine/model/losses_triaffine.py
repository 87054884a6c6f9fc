"""The losses of section 7 over spans, of one label or of several, and the soft targets of boundary smoothing."""

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
    """Loss of the spans where `mask` holds, in at least float32 (section 7); what has label -100 is left out.

    A span's loss is the cross-entropy of its label, or, with `multi_label`, the sum of the binary cross-entropies of
    all labels.

    Args:
        logits: [B, S, R], or [B, S, R - 1] with `multi_label`.
        labels: [B, S], ids; or [B, S, R - 1], 1 for the labels that a span has and 0 for the others.
        mask: [B, S].
        reduction: "sentence": mean over sentences of the mean over each one's spans, sentences without any left out;
            "batch": one mean over all spans. 0 where there is no span at all.
        targets: of the shape of logits, probabilities to learn instead of the labels.
    """
    labels = labels.masked_fill(~(mask.unsqueeze(-1) if multi_label else mask), -100)
    span_losses = _binary_cross_entropies if multi_label else _cross_entropies
    losses, counted = span_losses(at_least_float32(logits), labels, targets)
    losses = losses.masked_fill(~counted, 0.0)
    if reduction == "batch":
        return losses.sum() / counted.sum().clamp(min=1)
    spans = counted.sum(-1)
    return (losses.sum(-1) / spans.clamp(min=1)).sum() / (spans > 0).sum().clamp(min=1)


def _cross_entropies(logits: Tensor, labels: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor]:
    """The loss of each span [B, S], and whether it counts [B, S]."""
    wanted = labels if targets is None else targets
    losses = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(0, 1), reduction="none")
    return losses.view_as(labels), labels != -100


def _binary_cross_entropies(logits: Tensor, labels: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor]:
    """The loss of each span [B, S] over its labels that are not -100, and whether there are any [B, S]."""
    is_known = labels != -100
    wanted = labels if targets is None else targets
    losses = functional.binary_cross_entropy_with_logits(logits, wanted.to(logits.dtype), reduction="none")
    return losses.masked_fill(~is_known, 0.0).sum(-1), is_known.any(-1)


def smooth_boundaries(labels: Tensor, num_labels: int, smoothing: float, distance: int) -> Tensor:
    """Probabilities [B, N, N, R] to learn in place of `labels` [B, N, N], where an entity's boundaries are not certain.

    In place of labels [B, N, N, R - 1] of spans that can have several, probabilities of that shape.

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

    multi_label = labels.dim() == 4
    entities = labels.clamp(min=0) if multi_label else functional.one_hot(labels.clamp(min=0), num_labels)[..., :-1]
    exists = (labels if multi_label else labels.unsqueeze(-1)) != -100
    exists, entities = (values.permute(0, 3, 1, 2).to(kernel.dtype) for values in (exists, entities * exists))
    # The kernel is symmetric: what a span receives of `exists` is also what it gives to spans that exist.
    smoothed = (entities * (1 - spread(exists)) + spread(entities)).permute(0, 2, 3, 1)
    if multi_label:
        return smoothed.clamp(max=1.0)
    return torch.cat([smoothed, (1 - smoothed.sum(-1, keepdim=True)).clamp(min=0.0)], dim=-1)
