"""The cross-entropy over spans, and boundary smoothing against a loop over entities and spans."""

import pytest
import torch

from modeling_triaffine.model.span_head_triaffine import smooth_boundaries, span_loss
from modeling_triaffine.model.triaffine_ops import span_mask

NONE = 2


def label_matrix(lengths, *entities):
    """Labels [B, N, N] of the entities (sentence, first word, last word, label)."""
    lengths = torch.tensor(lengths)
    labels = torch.where(span_mask(lengths, int(lengths.max())), NONE, -100)
    for sentence, first, last, label in entities:
        labels[sentence, first, last] = label
    return labels


def smooth_one_by_one(labels, smoothing, distance):
    """The definition: every entity gives to the spans around it, and takes back what would go to no span."""
    targets = torch.zeros(*labels.shape, NONE + 1)
    for sentence, first, last in ((labels != -100) & (labels != NONE)).nonzero().tolist():
        label = labels[sentence, first, last]
        targets[sentence, first, last, label] += 1
        for i in range(labels.shape[1]):
            for j in range(labels.shape[1]):
                off = abs(i - first) + abs(j - last)
                if 0 < off <= distance and labels[sentence, i, j] != -100:
                    share = smoothing / distance / (4 * off)
                    targets[sentence, i, j, label] += share
                    targets[sentence, first, last, label] -= share
    targets[..., NONE] = 1 - targets.sum(-1)
    return targets


@pytest.mark.parametrize(("smoothing", "distance"), [(0.1, 1), (0.3, 2), (0.2, 3)])
def test_boundary_smoothing(smoothing, distance):
    labels = label_matrix([6, 3, 1], (0, 1, 3, 0), (0, 2, 3, 1), (0, 5, 5, 0), (1, 0, 2, 1), (2, 0, 0, 0))
    labels[0, 1, 2] = -100  # a span that is left out of the loss receives nothing
    targets = smooth_boundaries(labels, NONE + 1, smoothing, distance)
    spans = labels != -100
    torch.testing.assert_close(targets[spans], smooth_one_by_one(labels, smoothing, distance)[spans])
    torch.testing.assert_close(targets.sum(-1), torch.ones(labels.shape))


def test_boundary_smoothing_of_several_labels_smooths_each_alone():
    one = label_matrix([6, 3], (0, 1, 3, 0), (0, 4, 5, 0), (1, 0, 2, 0))
    other = label_matrix([6, 3], (0, 1, 3, 0), (1, 1, 1, 0))
    other[0, 1, 2] = -100
    labels = torch.stack([one, other], dim=-1)
    together = smooth_boundaries(torch.where(labels == NONE, 0, torch.where(labels == 0, 1, labels)), 3, 0.2, 2)
    for column, alone in enumerate((one, other)):
        torch.testing.assert_close(together[..., column], smooth_boundaries(alone, NONE + 1, 0.2, 2)[..., 0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_boundary_smoothing_keeps_its_precision_under_autocast(dtype):
    labels = label_matrix([6, 3], (0, 1, 3, 0), (0, 2, 3, 1), (1, 0, 2, 1))
    expected = smooth_boundaries(labels, NONE + 1, 0.1, 2)
    with torch.autocast("cpu", dtype=dtype):
        targets = smooth_boundaries(labels, NONE + 1, 0.1, 2)
    torch.testing.assert_close(targets, expected)


@pytest.mark.parametrize("reduction", ["sentence", "batch"])
def test_loss_of_certain_targets_is_that_of_the_labels(reduction):
    labels = torch.tensor([[0, 1, -100], [2, -100, -100]])
    logits, mask = torch.randn(2, 3, 3, requires_grad=True), torch.ones(2, 3, dtype=torch.bool)
    targets = torch.nn.functional.one_hot(labels.clamp(min=0), 3).float()
    losses = [span_loss(logits, labels, mask, reduction, soft) for soft in (None, targets)]
    torch.testing.assert_close(*losses)
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in losses]
    torch.testing.assert_close(*gradients)
    assert gradients[1][labels == -100].eq(0).all()


def test_loss_ignores_sentences_without_spans():
    logits, labels = torch.randn(2, 3, 4), torch.tensor([[0, 1, -100], [-100, -100, -100]])
    mask = torch.ones(2, 3, dtype=torch.bool)
    alone = span_loss(logits[:1], labels[:1], mask[:1], "sentence")
    torch.testing.assert_close(span_loss(logits, labels, mask, "sentence"), alone)
    assert span_loss(logits[1:], labels[1:], mask[1:], "sentence") == 0
