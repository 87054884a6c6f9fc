"""The terms of one span's scores as tensors: attention times value, by inside word and by candidate.

Both stages of the model are weighted sums, p_ijr = Σ_k α_ijkr · o_ijkr + b_r and pᶜ_lr = Σ_g β_lgr · t_lgr + b_r,
so their terms add up to the score exactly. Only o and t are computed here, for the given span; attention and scores
come from the model's forward pass.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..model.span_head_triaffine import CrossSpanStage, SpanHeadOutput, TriaffineSpanHead
from ..model.triaffine_ops import candidate_attention, gather_spans, triaffine_pairs


class StageParts(NamedTuple):
    """The scores of one span in one stage: logits = Σ contributions + bias.

    logits, bias [R]: the bias is the label's, in the cross-span stage with `cross_span_residual` plus p. attention,
    contributions [R, K], over K inside words or candidates; None if the stage has no attention (ablation (a)).
    """

    logits: Tensor
    bias: Tensor
    attention: Tensor | None
    contributions: Tensor | None


def span_stage_parts(
    head: TriaffineSpanHead, hidden: Tensor, output: SpanHeadOutput, span: tuple[int, int]
) -> StageParts:
    """p_ijr of the span (i, j), both inclusive, by inside word.

    hidden [1, N, H]: the words of one sentence; output: the head's output for them in eval mode.
    """
    i, j = span
    assert output.span_logits is not None
    logits = output.span_logits[0, i, j]
    if not head.config.scoring_kind.reads_words:
        return StageParts(logits, head.label_bias, None, None)
    attention_factor, scoring_factor = head.factors(head.read(hidden))
    spans = torch.tensor([[span]], device=hidden.device)
    attention = candidate_attention(attention_factor, spans, hidden.shape[1])[0, :, 0, i : j + 1]
    values = scoring_factor.spans(spans)[0, :, 0, i : j + 1]
    return _parts(logits, head.label_bias, attention, values)


def cross_span_stage_parts(
    head: TriaffineSpanHead, hidden: Tensor, output: SpanHeadOutput, position: int
) -> StageParts:
    """pᶜ_lr of the candidate l at `position`, by candidate; arguments as in [`span_stage_parts`].

    With `cross_span_axis="key"` the sum is over the related spans g that l attends to; with "query" (published code)
    the span is the related one, and the sum is over the spans l that attend to it.
    """
    stage: CrossSpanStage = head.cross_span
    assert output.logits is not None
    assert output.cross_span_attentions is not None
    bias: Tensor = head.label_bias if stage.shares else stage.label_bias
    if head.config.cross_span_residual:  # the span stage's score does not depend on the candidates
        assert output.candidates is not None
        assert output.span_logits is not None
        bias = bias + gather_spans(output.span_logits, output.candidates)[0, position]
    attention = output.cross_span_attentions[0].permute(2, 0, 1)  # [R, l, g]
    values = _candidate_values(head, hidden, output)
    axis = {"key": 1, "query": 2}[stage.axis]
    return _parts(output.logits[0, position], bias, attention.select(axis, position), values.select(axis, position))


def _candidate_values(head: TriaffineSpanHead, hidden: Tensor, output: SpanHeadOutput) -> Tensor:
    """t_lgr = TriAff(h_i, h_j, h_gr, V_r) of all candidates: [R, l, g]."""
    stage: CrossSpanStage = head.cross_span
    assert output.candidates is not None
    assert output.span_attentions is not None
    words = head.read(hidden)
    representations = head.represent(words, output.span_attentions.permute(0, 3, 1, 2))
    spans = stage.scoring_span(representations).expand(-1, head.config.num_scores, -1, -1)
    tensor = head.scoring.triaffine if stage.shares else stage.scoring_triaffine
    return triaffine_pairs(words[stage.scoring_boundaries], spans, tensor(), output.candidates)[0]


def _parts(logits: Tensor, bias: Tensor, attention: Tensor, values: Tensor) -> StageParts:
    """attention and values [R or 1, K]; attention without labels has one row."""
    contributions = attention * values.to(attention.dtype)
    return StageParts(logits, bias, attention.expand_as(contributions), contributions)
