"""The span head as plain einsums in the layout of the published implementation, for comparison.

Span stage, candidates and cross-span stage of Yuan et al. (2022), written down directly: full tensors stored [head,
inside, tail, label], every triaffine one call of opt_einsum, the whole cube of scores in memory, gradients by autograd
alone. opt_einsum contracts the tensor's first axis first, which needs no copy of the tensor.
"""

import opt_einsum
import torch
from torch import Tensor, nn

from modeling_triaffine.model.span_head_triaffine import NestedNEROutput, TriaffineSpanHead, span_loss
from modeling_triaffine.model.triaffine_ops import (
    append_one,
    gather_spans,
    gather_words,
    masked_softmax,
    select_candidates,
    span_mask,
)

# s_ijkr of all spans (x, y) and words z; q_lgr of all pairs of candidates. W: [i, k, j, r], head, inside, tail, label.
CUBE = "bxi,bzk,ikjr,byj->bxyzr"
PAIRS = "bli,bgrk,ikjr,blj->blgr"


def contract(equation: str, *operands: Tensor) -> Tensor:
    """opt_einsum's contraction in the precision of autocast, which does not cast its tensordot."""
    device = operands[0].device.type
    if torch.is_autocast_enabled(device):
        operands = tuple(operand.to(torch.get_autocast_dtype(device)) for operand in operands)
    with torch.autocast(device, enabled=False):
        product: Tensor = opt_einsum.contract(equation, *operands)
        return product


def read_boundaries(boundaries: nn.Module, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """The words by the MLPs of heads and tails."""
    return boundaries.head(hidden), boundaries.tail(hidden)


class PublishedHead(nn.Module):
    """A head with full, shared tensors, computed as published. It shares everything but the tensors with `head`.

    Args:
        head: triaffine attention and scoring, cross-span stage, no limit to the width of spans.
    """

    def __init__(self, head: TriaffineSpanHead):
        super().__init__()
        self.head = head
        self.attention_weight, self.scoring_weight = (
            nn.Parameter(stage.triaffine.weight.detach().permute(2, 1, 3, 0).contiguous())
            for stage in (head.attention, head.scoring)
        )

    def forward(self, hidden: Tensor, lengths: Tensor, labels: Tensor | None = None) -> NestedNEROutput:
        """hidden [B, N, H], lengths [B], labels [B, N, N]: as of [`TriaffineSpanHead`]."""
        head, num_words = self.head, hidden.shape[1]
        words = torch.arange(num_words, device=hidden.device)
        inside = (words >= words[:, None, None]) & (words <= words[:, None])  # [i, j, k]
        valid = span_mask(lengths, num_words)

        heads, tails = read_boundaries(head.attention.boundaries, hidden)
        attention = contract(
            CUBE, append_one(heads), head.attention.inside(hidden), self.attention_weight, append_one(tails)
        )
        alpha = masked_softmax(attention, inside.unsqueeze(-1), dim=3)
        heads, tails = read_boundaries(head.scoring.boundaries, hidden)
        values = head.scoring.inside(hidden)
        scores = contract(CUBE, append_one(heads), values, self.scoring_weight, append_one(tails))
        span_logits = (alpha * scores).sum(3) + head.label_bias  # [B, N, N, R]

        candidates, mask = select_candidates(span_logits, valid, head.config.max_candidates)
        spans = contract("bmzr,bzd->bmrd", gather_spans(alpha, candidates), values)
        stage = head.cross_span
        query = self._pairs(hidden, stage.attention_boundaries, stage.attention_span(spans), candidates, True)
        related = self._pairs(hidden, stage.scoring_boundaries, stage.scoring_span(spans), candidates, False)
        beta = masked_softmax(query, mask[:, None, :, None], dim=2)
        logits = (beta * related).sum(2) + head.label_bias  # [B, m, R]

        loss = None
        if labels is not None:
            reduction = head.config.loss_reduction
            loss = span_loss(span_logits.flatten(1, 2), labels.flatten(1), valid.flatten(1), reduction)
            loss = loss + span_loss(logits, gather_spans(labels, candidates), mask, reduction)
        return NestedNEROutput(
            loss=loss, span_logits=span_logits, candidates=candidates, candidate_mask=mask, logits=logits
        )

    def _pairs(
        self, hidden: Tensor, boundaries: nn.Module, spans: Tensor, candidates: Tensor, attention: bool
    ) -> Tensor:
        """TriAff(h_i, h_j, h_gr) of the candidates l = (i, j) and g: [B, l, g, R]."""
        of_heads, of_tails = read_boundaries(boundaries, hidden)
        heads, tails = gather_words(of_heads, candidates[..., 0]), gather_words(of_tails, candidates[..., 1])
        weight = self.attention_weight if attention else self.scoring_weight
        return contract(PAIRS, append_one(heads), spans, weight, append_one(tails))

    def triaffine_gradients(self) -> dict[str, Tensor]:
        """Gradients of the two tensors by the names and in the layout of `head`."""
        gradients = {"attention": self.attention_weight.grad, "scoring": self.scoring_weight.grad}
        return {f"{stage}.triaffine.weight": grad.permute(3, 1, 0, 2) for stage, grad in gradients.items()}
