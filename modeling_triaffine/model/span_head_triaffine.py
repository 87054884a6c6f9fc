"""The span head: words → span scores → cross-span scores → losses (sections 3 to 7 of Yuan et al., 2022).

`TriaffineSpanHead` = `SpanAttention` + `SpanScoring` (`factors_triaffine.py`) + `CrossSpanStage`. The algebra is in
`triaffine_ops.py`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import initialization as init
from transformers.utils import ModelOutput

from .configuration_triaffine import TriaffineConfig
from .factors_triaffine import (
    MLP,
    BiaffineScoring,
    Boundaries,
    SpanAttention,
    SpanScoring,
    TriaffineTensor,
)
from .losses_triaffine import smooth_boundaries, span_loss
from .triaffine_ops import (
    Factor,
    PairFactor,
    SpanScores,
    TriaffineFactor,
    TriaffineWeight,
    append_one,
    candidate_attention,
    cross_span_scores,
    cross_span_scores_reference,
    gather_boundaries,
    gather_spans,
    num_labels,
    select_candidates,
    span_mask,
    span_scores,
    span_scores_reference,
)

# Logit of every entity label, None having 0, where there is no span; within the range of half precision.
NO_SPAN_LOGIT = -1e4


@dataclass
class SpanHeadOutput(ModelOutput):
    """What the span head makes of a batch of sentences. Span indices (i, j) are both inclusive.

    R columns are those of the labels; without None's where a span can have several labels (`multi_label`).
    loss: `aux_loss_weight` · loss_aux + loss_main, or loss_aux alone without the cross-span stage.
    loss_aux, loss_main: [`span_loss`] of span_logits over all spans, of logits over the candidates.
    span_logits [B, N, N, R]: p_ij of the span stage. candidates [B, m, 2], candidate_mask [B, m], logits [B, m, R]: pᶜ.
    span_attentions [B, m, N, R]: α of the candidates. cross_span_attentions [B, m, m, R]: β, axes l, g.
    """

    loss: Tensor | None = None
    loss_aux: Tensor | None = None
    loss_main: Tensor | None = None
    span_logits: Tensor | None = None
    candidates: Tensor | None = None
    candidate_mask: Tensor | None = None
    logits: Tensor | None = None
    span_attentions: Tensor | None = None
    cross_span_attentions: Tensor | None = None


class CrossSpanStage(nn.Module):
    """Candidates look at each other (section 6): pᶜ_lr = Σ_g β_lgr t_lgr + b_r."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.axis = config.cross_span_axis
        self.shares = config.share_triaffine
        dim, labels = config.triaffine_dim, config.num_scores
        self.attention_boundaries, self.scoring_boundaries = Boundaries(config), Boundaries(config)
        self.attention_span = MLP(dim, dim, 1, config.mlp_dropout)
        self.scoring_span = MLP(dim, dim, 1, config.mlp_dropout)
        if not self.shares:
            rank, std = config.triaffine_rank, config.triaffine_init_std
            attention_labels = 1 if config.attention == "triaffine_no_label" else labels
            self.attention_triaffine = TriaffineTensor(attention_labels, dim, rank, std)
            self.scoring_triaffine = TriaffineTensor(labels, dim, rank, std)
            self.label_bias = nn.Parameter(torch.empty(labels))
            self.reset_parameters()

    def reset_parameters(self) -> None:
        if not self.shares:
            init.normal_(self.label_bias)

    def forward(
        self,
        hidden: Tensor,
        spans: Tensor,
        candidates: Tensor,
        mask: Tensor,
        shared: tuple[TriaffineWeight, TriaffineWeight, Tensor] | None,
        reference: bool,
    ) -> tuple[Tensor, Tensor]:
        """hidden [B, N, H], spans h_gr [B, R, m, d], candidates [B, m, 2], mask [B, m], (W, V, b) of the span stage.

        Returns pᶜ [B, m, R] and β [B, m, m, R].
        """
        if shared is None:
            shared = self.attention_triaffine(), self.scoring_triaffine(), self.label_bias
        attention_weight, scoring_weight, label_bias = shared
        query = self._factor(
            hidden, self.attention_boundaries, self.attention_span(spans), candidates, attention_weight
        )
        related = self._factor(hidden, self.scoring_boundaries, self.scoring_span(spans), candidates, scoring_weight)
        score = cross_span_scores_reference if reference else cross_span_scores
        scores, attention = score(query, related, mask, self.axis)
        return scores + label_bias, attention

    @staticmethod
    def _factor(
        hidden: Tensor, boundaries: Boundaries, spans: Tensor, candidates: Tensor, weight: TriaffineWeight
    ) -> PairFactor:
        """TriAff of the candidates' boundaries with each candidate's representation."""
        # The boundary MLPs run over the words once, not once per candidate that starts or ends there.
        heads, tails = boundaries(hidden)
        heads, tails = gather_boundaries(heads, tails, candidates)
        # Spans of a label-free attention serve every label; a label-free weight looks at spans of that attention only.
        spans = spans.expand(-1, num_labels(weight), -1, -1)
        return PairFactor(append_one(heads), spans, append_one(tails), weight)


class TriaffineSpanHead(nn.Module):
    """Words to scores of their spans: span stage, choice of candidates, cross-span stage, losses (sections 3 to 7).

    Args:
        config: [`TriaffineConfig`] with `hidden_size` set. `max_candidates` is read at every call.

    Attributes:
        reference: compute by the plain einsums that define the model: slow and large, to compare with.
        kept_bytes: memory for what the backward pass of full tensors would else make again; None: a quarter of what is
            free. See also `save_memory`.
    """

    reference = False
    kept_bytes: int | None = None

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        if config.hidden_size is None:
            raise ValueError(
                "TriaffineSpanHead: the configuration has no `hidden_size` and no encoder; set hidden_size."
            )
        config.validate()  # fields may have been set since it was built
        self.config = config
        self.label_bias = nn.Parameter(torch.empty(config.num_scores))
        if config.attention == "none":
            self.biaffine = BiaffineScoring(config)
        else:
            self.attention, self.scoring = SpanAttention(config), SpanScoring(config)
        if config.cross_span:
            self.cross_span = CrossSpanStage(config)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.label_bias)

    def save_memory(self, on: bool = True) -> None:
        """Least memory in training with full tensors: nothing kept for backward, gradients added in place.

        The tensors' gradients are added to `grad` of the parameters, bypassing autograd: do not combine this with
        data-parallel training, gradient hooks or `torch.autograd.grad`. Values and gradients are the same.
        """
        self.kept_bytes = 0 if on else None
        for module in self.modules():
            if isinstance(module, TriaffineTensor):
                module.gradient_in_place = on

    def forward(
        self,
        hidden: Tensor,
        lengths: Tensor,
        labels: Tensor | None = None,
        packed_words: Tensor | None = None,
        targets: Tensor | None = None,
    ) -> SpanHeadOutput:
        """hidden [B, N, H]; lengths [B], words of each sentence; labels [B, N, N], -100 for invalid spans.

        With `multi_label`, labels [B, N, N, R - 1]: 1 for the labels that a span has, 0 for the others, or -100.
        packed_words [n]: index b·N + k of the words, ordered by k, then b, when it was made on the host; without it
        the head packs the words itself on the CPU, and computes with padding elsewhere.
        targets [B, N, N, R]: probabilities to learn instead of the labels, of which then only -100 counts.
        """
        device = hidden.device.type
        if torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.float16:
            with torch.autocast(device, enabled=False):  # products of three vectors leave float16's range
                return self.forward(hidden.float(), lengths, labels, packed_words, targets)
        valid = span_mask(lengths, hidden.shape[1], self.config.max_span_width)
        factors = None
        if self.config.attention == "none":
            spans = SpanScores(self.biaffine(hidden))
        else:
            attention, boundaries = self.attention(hidden)
            scoring, values = self.scoring(hidden, boundaries)
            factors = attention, scoring, values
            score = span_scores_reference if self.reference else span_scores
            width = self.config.max_span_width
            spans = score(attention, scoring, lengths, width, packed_words, self.kept_bytes)
        scores = spans.scores.permute(0, 2, 3, 1) + self.label_bias
        # Invalid spans are set to None, so that callers need no mask.
        of_none = self.config.num_scores - len(self.config.entity_labels)  # columns: 1, or 0 with several labels a span
        nothing = functional.pad(scores.new_full((scores.shape[-1] - of_none,), NO_SPAN_LOGIT), (0, of_none))
        fields = {"span_logits": torch.where(valid.unsqueeze(-1), scores, nothing)}
        if factors is not None and self.config.cross_span:
            fields |= self._score_candidates(hidden, *factors, spans, fields["span_logits"], valid)
        if labels is not None:
            fields |= self._losses(fields, labels, valid, targets)
        return SpanHeadOutput(**fields)

    def _score_candidates(
        self,
        hidden: Tensor,
        attention: Factor,
        scoring: Factor,
        values: Tensor,
        spans: SpanScores,
        span_logits: Tensor,
        valid: Tensor,
    ) -> dict[str, Tensor]:
        """Sections 5 and 6: the candidates and their final scores."""
        config = self.config
        candidates, mask = select_candidates(
            span_logits, valid, config.max_candidates, config.max_span_width, config.multi_label
        )
        inside = candidate_attention(attention, candidates, hidden.shape[1], spans.attention_cube)
        # h_gr [B, R, m, d]: built for the candidates only
        representations = inside.to(values.dtype) @ values.unsqueeze(1)
        shared = None
        if config.share_triaffine:
            # TriaffineConfig rejects share_triaffine without triaffine tensors.
            assert isinstance(attention, TriaffineFactor)
            assert isinstance(scoring, TriaffineFactor)
            shared = attention.weight, scoring.weight, self.label_bias
        logits, cross_span_attentions = self.cross_span(
            hidden, representations, candidates, mask, shared, self.reference
        )
        if config.cross_span_residual:
            logits = logits + gather_spans(span_logits, candidates)
        return {
            "candidates": candidates,
            "candidate_mask": mask,
            "logits": logits,
            "span_attentions": inside.permute(0, 2, 3, 1),
            "cross_span_attentions": cross_span_attentions,
        }

    def _losses(
        self, fields: dict[str, Tensor], labels: Tensor, valid: Tensor, targets: Tensor | None
    ) -> dict[str, Tensor]:
        """Section 7: over all spans, and over the candidates where there are any."""
        config = self.config
        if targets is None and config.boundary_smoothing:
            distance = config.boundary_smoothing_distance
            targets = smooth_boundaries(labels, config.num_labels, config.boundary_smoothing, distance)
        loss_aux = span_loss(
            fields["span_logits"].flatten(1, 2),
            labels.flatten(1, 2),
            valid.flatten(1),
            config.loss_reduction,
            None if targets is None else targets.flatten(1, 2),
            config.multi_label,
        )
        if "logits" not in fields:
            return {"loss": loss_aux, "loss_aux": loss_aux}
        candidates = fields["candidates"]
        loss_main = span_loss(
            fields["logits"],
            gather_spans(labels, candidates),
            fields["candidate_mask"],
            config.loss_reduction,
            None if targets is None else gather_spans(targets, candidates),
            config.multi_label,
        )
        loss = config.aux_loss_weight * loss_aux + loss_main
        return {"loss": loss, "loss_aux": loss_aux, "loss_main": loss_main}
