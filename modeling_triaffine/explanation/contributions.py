"""The scores of one span and their terms: attention times value, by inside word and by candidate.

Both stages of the model are weighted sums, p_ijr = Σ_k α_ijkr · o_ijkr + b_r and pᶜ_lr = Σ_g β_lgr · t_lgr + b_r,
so their terms add up to the score exactly. Only o and t are computed here, for the given span; attention and scores
come from the model's forward pass.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..model.span_head_triaffine import CrossSpanStage, SpanHeadOutput, TriaffineSpanHead
from ..model.triaffine_ops import candidate_attention, gather_spans, label_probabilities, triaffine_pairs


@dataclass(frozen=True)
class StageScores:
    """The scores of a span in one stage, by label: logit = Σ contributions + bias.

    Attributes:
        logits: of R labels.
        probabilities: softmax over the labels, or with `multi_label` the sigmoid; in the final stage with the model's
            temperature.
        bias: that of the label; in the cross-span stage of a model with `cross_span_residual` plus the logit of the
            span stage.
        attention: [R, K], α of K inside words, or β of K candidates, which sums to 1.
        contributions: [R, K], attention times value, in logits. Both are None if the stage has no attention (ablation
            (a)).
    """

    logits: list[float]
    probabilities: list[float]
    bias: list[float]
    attention: list[list[float]] | None
    contributions: list[list[float]] | None


def span_stage_scores(
    head: TriaffineSpanHead, hidden: Tensor, output: SpanHeadOutput, span: tuple[int, int]
) -> StageScores:
    """p_ijr of the span (i, j), both inclusive, by inside word.

    hidden [1, N, H]: the words of one sentence; output: the head's output for them in eval mode.
    """
    (i, j), is_final = span, not head.config.cross_span
    assert output.span_logits is not None
    logits = output.span_logits[0, i, j]
    if not head.config.scoring_kind.reads_words:
        return _stage_scores(head, is_final, logits, head.label_bias)
    attention_factor, scoring_factor = head.factors(head.read(hidden))
    spans = torch.tensor([[span]], device=hidden.device)
    attention = candidate_attention(attention_factor, spans, hidden.shape[1])[0, :, 0, i : j + 1]
    values = scoring_factor.spans(spans)[0, :, 0, i : j + 1]
    return _stage_scores(head, is_final, logits, head.label_bias, attention, values)


def cross_span_stage_scores(
    head: TriaffineSpanHead, hidden: Tensor, output: SpanHeadOutput, position: int
) -> StageScores:
    """pᶜ_lr of the candidate l at `position`, by candidate; arguments as in [`span_stage_scores`].

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
    chosen = (part.select(axis, position) for part in (attention, values))
    return _stage_scores(head, True, output.logits[0, position], bias, *chosen)


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


def _stage_scores(
    head: TriaffineSpanHead,
    is_final: bool,
    logits: Tensor,
    bias: Tensor,
    attention: Tensor | None = None,
    values: Tensor | None = None,
) -> StageScores:
    """logits, bias [R]; attention and values [R or 1, K]: attention without labels has one row."""
    temperature = head.config.temperature if is_final else 1.0
    probabilities = label_probabilities(logits, head.config.multi_label, temperature)[: len(logits)]
    scores = logits.tolist(), probabilities.tolist(), bias.tolist()
    if attention is None or values is None:
        return StageScores(*scores, None, None)
    contributions = attention * values.to(attention.dtype)
    return StageScores(*scores, attention.expand_as(contributions).tolist(), contributions.tolist())
