"""The span head: words → span scores → cross-span scores → losses.

`TriaffineSpanHead` = attention + scoring (`factors_triaffine.py`) + `CrossSpanStage` + `span_loss`; the
algebra is in `triaffine_ops.py`.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import initialization as init
from transformers.utils import ModelOutput

from .configuration_triaffine import TriaffineConfig
from .factors_triaffine import (
    BIAFFINE_MODULES,
    MLP,
    PART_MODULES,
    Boundaries,
    SpanPart,
    WordVectors,
    project_words,
    tensor_of,
)
from .triaffine_blocks import at_least_float32, without_tiny_gradients
from .triaffine_ops import (
    Factor,
    SpanScores,
    TriaffineFactor,
    TriaffineWeight,
    candidate_attention,
    cross_span_scores,
    gather_spans,
    num_labels,
    select_candidates,
    span_mask,
    span_scores,
    span_scores_reference,
    triaffine_pairs,
    triaffine_pairs_reference,
)

# Logit of the entity labels where there is no span; that of None is 0. Within the range of half precision.
NO_SPAN_LOGIT = -1e4


@dataclass
class NestedNEROutput(ModelOutput):
    """Output of head and model. Span indices (i, j) are both inclusive; with `multi_label`, None has no column."""

    loss: Tensor | None = None  # aux_loss_weight · loss_aux + loss_main, or loss_aux without the cross-span stage
    loss_aux: Tensor | None = None  # [`span_loss`] of `span_logits` over all spans
    loss_main: Tensor | None = None  # [`span_loss`] of `logits` over the candidates
    span_logits: Tensor | None = None  # [B, N, N, R]: p_ij of the span stage
    candidates: Tensor | None = None  # [B, m, 2], ordered by (i, j)
    candidate_mask: Tensor | None = None  # [B, m]: which candidates exist
    logits: Tensor | None = None  # [B, m, R]: pᶜ of the candidates
    span_attentions: Tensor | None = None  # [B, m, N, R]: α of the candidates; R is 1 if it has no labels
    cross_span_attentions: Tensor | None = None  # [B, m, m, R]: β, axes l, g
    hidden_states: tuple[Tensor, ...] | None = None  # the encoder's, if requested; a row per window of long sentences


class CrossSpanStage(nn.Module):
    """Attention between the candidates of a sentence: pᶜ_lr = Σ_g β_lgr t_lgr + b_r."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.axis = config.cross_span_axis
        self.shares = config.share_triaffine
        dim = config.triaffine_dim
        self.attention_boundaries, self.scoring_boundaries = Boundaries(config), Boundaries(config)
        self.attention_span = MLP(dim, dim, 1, config.mlp_dropout)
        self.scoring_span = MLP(dim, dim, 1, config.mlp_dropout)
        if not self.shares:
            self.attention_triaffine = tensor_of(config, config.attention_kind)
            self.scoring_triaffine = tensor_of(config, config.scoring_kind)
            self.label_bias = nn.Parameter(torch.empty(config.num_scores))
            self.reset_parameters()

    def reset_parameters(self) -> None:
        if not self.shares:
            init.normal_(self.label_bias)

    def word_mlps(self) -> list[MLP | Boundaries]:
        """Its MLPs of words, for [`project_words`]."""
        return [self.attention_boundaries, self.scoring_boundaries]

    def forward(
        self,
        words: WordVectors,
        spans: Tensor,
        candidates: Tensor,
        mask: Tensor,
        shared: tuple[TriaffineWeight, TriaffineWeight, Tensor] | None,
        reference: bool,
    ) -> tuple[Tensor, Tensor]:
        """Final scores pᶜ [B, m, R] of the candidates [B, m, 2], and their attention β [B, m, m, R].

        Reads the words as projected by `word_mlps`, spans h_gr [B, R, m, d], and (W, V, b) if the span stage shares it.
        """
        if shared is None:
            shared = self.attention_triaffine(), self.scoring_triaffine(), self.label_bias
        attention_weight, scoring_weight, label_bias = shared
        pairs = triaffine_pairs_reference if reference else triaffine_pairs

        def scores(boundaries: Boundaries, of_spans: Tensor, weight: TriaffineWeight) -> Tensor:
            # Representations by an attention without labels (R = 1) serve every label.
            return pairs(words[boundaries], of_spans.expand(-1, num_labels(weight), -1, -1), weight, candidates)

        queries = scores(self.attention_boundaries, self.attention_span(spans), attention_weight)
        values = scores(self.scoring_boundaries, self.scoring_span(spans), scoring_weight)
        final, attention = cross_span_scores(queries, values, mask, self.axis)
        return final + label_bias, attention


class TriaffineSpanHead(nn.Module):
    """Words → span scores: span stage, choice of candidates, cross-span stage, losses.

    `config` has `hidden_size` set; its `max_candidates` is read at every call.
    """

    reference = False  # compute by the plain einsums that define the model, for comparison; slow and large

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        config.validate()  # fields may have been set since it was built
        self.config = config
        self.label_bias = nn.Parameter(torch.empty(config.num_scores))
        if config.scoring_kind.reads_words:
            self.attention = PART_MODULES[config.attention](config, config.attention_kind)
            self.scoring = PART_MODULES[config.scoring](config, config.scoring_kind)
        else:
            self.biaffine = BIAFFINE_MODULES[config.scoring](config)
        if config.cross_span:
            self.cross_span = CrossSpanStage(config)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.label_bias)

    def forward(
        self,
        hidden: Tensor,
        lengths: Tensor,
        labels: Tensor | None = None,
        packed_words: Tensor | None = None,
        targets: Tensor | None = None,
    ) -> NestedNEROutput:
        """Scores all spans, and with `labels` also their losses.

        hidden [B, N, H]: word representations; lengths [B]: words of each sentence. The others are those of
        `TriaffineForNestedNER.forward`; `packed_words` is read on a GPU with full tensors only.
        """
        device = hidden.device.type
        if torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.float16:
            with torch.autocast(device, enabled=False):  # products of three vectors exceed float16's range
                return self.forward(hidden.to(self.label_bias.dtype), lengths, labels, packed_words, targets)
        valid = span_mask(lengths, hidden.shape[1], self.config.max_span_width)
        factors = None
        if not self.config.scoring_kind.reads_words:
            spans = SpanScores(self.biaffine(hidden))
        else:
            words = self.project(hidden)
            attention, scoring = factors = self.factors(words)
            score = span_scores_reference if self.reference else span_scores
            spans = score(attention, scoring, lengths, self.config.max_span_width, packed_words)
        scores = spans.scores.permute(0, 2, 3, 1) + self.label_bias
        # All other pairs of words are scored as None, so that callers need no mask.
        none_columns = 0 if self.config.multi_label else 1
        no_span = functional.pad(scores.new_full((scores.shape[-1] - none_columns,), NO_SPAN_LOGIT), (0, none_columns))
        fields: dict[str, Any] = {"span_logits": torch.where(valid.unsqueeze(-1), scores, no_span)}
        if factors is not None and self.config.cross_span:
            fields |= self._score_candidates(words, factors, spans, fields["span_logits"], valid)
        if labels is not None:
            fields |= self._losses(fields, labels, valid, targets)
        return NestedNEROutput(**fields)

    def project(self, hidden: Tensor) -> WordVectors:
        """The words [B, N, H] as projected by all MLPs of the head."""
        across = self.cross_span.word_mlps() if self.config.cross_span else []
        return project_words(hidden, [*self.attention.word_mlps(), *self.scoring.word_mlps(), *across])

    def factors(self, words: WordVectors) -> tuple[Factor, Factor]:
        """The factors of s and o."""
        return self.attention(words), self.scoring(words, self.attention.boundaries)

    def _score_candidates(
        self, words: WordVectors, factors: tuple[Factor, Factor], spans: SpanScores, span_logits: Tensor, valid: Tensor
    ) -> dict[str, Tensor]:
        """The cross-span stage: the candidates and their final scores."""
        config = self.config
        attention, scoring = factors
        options = config.max_candidates, config.max_span_width, config.multi_label
        candidates, mask = select_candidates(span_logits, valid, *options)
        inside = candidate_attention(attention, candidates, valid.shape[1], spans.attention_cube)
        representations = self.represent(words, inside)
        shared = None
        if config.share_triaffine:
            shared = self._weight(attention, self.attention), self._weight(scoring, self.scoring), self.label_bias
        logits, attentions = self.cross_span(words, representations, candidates, mask, shared, self.reference)
        if config.cross_span_residual:
            logits = logits + gather_spans(span_logits, candidates)
        return {
            "candidates": candidates,
            "candidate_mask": mask,
            "logits": logits,
            "span_attentions": inside.permute(0, 2, 3, 1),
            "cross_span_attentions": attentions,
        }

    @staticmethod
    def _weight(factor: Factor, stage: SpanPart) -> TriaffineWeight:
        """The stage's tensor: if it is full, as the factor has prepared it."""
        return factor.weight if isinstance(factor, TriaffineFactor) else stage.triaffine()

    def represent(self, words: WordVectors, attention: Tensor) -> Tensor:
        """h_gr = Σ_k α_gkr x_k of spans with this attention to inside words [B, R, m, N]: [B, R, m, d]."""
        values = words[self.scoring.inside]
        return (attention.to(values.dtype).flatten(1, 2) @ values).unflatten(1, attention.shape[1:3])

    def _losses(
        self, fields: dict[str, Tensor], labels: Tensor, valid: Tensor, targets: Tensor | None
    ) -> dict[str, Tensor]:
        """Cross-entropies over all spans, and over the candidates if there are any."""
        config = self.config
        if targets is None and config.boundary_smoothing:
            targets = smoothed_targets(labels, valid, config)
        loss_of = partial(span_loss, reduction=config.loss_reduction, multi_label=config.multi_label)
        span_targets = None if targets is None else targets.flatten(1, 2)
        span_logits = fields["span_logits"].flatten(1, 2)
        loss_aux = loss_of(span_logits, labels.flatten(1, 2), valid.flatten(1), targets=span_targets)
        if "logits" not in fields:
            return {"loss": loss_aux, "loss_aux": loss_aux}
        candidates = fields["candidates"]
        candidate_targets = None if targets is None else gather_spans(targets, candidates)
        candidate_labels = gather_spans(labels, candidates)
        loss_main = loss_of(fields["logits"], candidate_labels, fields["candidate_mask"], targets=candidate_targets)
        loss = config.aux_loss_weight * loss_aux + loss_main
        return {"loss": loss, "loss_aux": loss_aux, "loss_main": loss_main}


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
    cross-entropies.

    Args:
        logits [B, S, R], labels [B, S], mask [B, S]: with `multi_label` logits and labels [B, S, R - 1].
        reduction: "sentence": mean over sentences of the mean over each one's spans, without sentences that have none;
            "batch": one mean over all spans. Without any span 0.
        targets: soft targets, of the shape of `logits`; `labels` is then used only for its -100 positions.
    """
    labels = torch.where(mask.unsqueeze(-1) if multi_label else mask, labels, -100)
    span_losses = _binary_cross_entropies if multi_label else _cross_entropies
    losses, is_known = span_losses(without_tiny_gradients(at_least_float32(logits)), labels, targets)
    losses = torch.where(is_known, losses, 0.0)
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
    return torch.where(is_known, losses, 0.0).sum(-1), is_known.any(-1)


def smoothed_targets(labels: Tensor, valid: Tensor, config: TriaffineConfig) -> Tensor:
    """Applies [`smooth_boundaries`] as configured; pairs that are no span, or too wide, take no part."""
    scored = valid.unsqueeze(-1) if config.multi_label else valid
    smoothing = config.boundary_smoothing, config.boundary_smoothing_distance
    return smooth_boundaries(torch.where(scored, labels, -100), config.num_labels, *smoothing)


def smooth_boundaries(labels: Tensor, num_labels: int, smoothing: float, distance: int) -> Tensor:
    """Soft targets [B, N, N, R] in place of `labels` [B, N, N], for entities whose boundaries are uncertain.

    With several labels per span, labels [B, N, N, R - 1] give targets of the same shape.

    An entity keeps 1 - ε of its label's probability. The spans whose boundaries are d words off (head and tail
    together) form ring d; each of the rings 1, …, D receives ε / D in equal parts. Parts of spans that do not exist
    (-100) stay with the entity. The rest of a span's probability is None's.

    Source: Zhu and Li, "Boundary Smoothing for Named Entity Recognition" (ACL 2022), equation 5, as in their code.
    """
    num_words, offsets = labels.shape[1], range(-distance, distance + 1)
    shares = {
        (head, tail): smoothing / (4 * distance * (abs(head) + abs(tail)))  # ring d has 4·d spans
        for head in offsets
        for tail in offsets
        if 0 < abs(head) + abs(tail) <= distance
    }
    multi_label = labels.dim() == 4
    if multi_label:
        exists, entities = labels != -100, labels == 1
    else:
        exists = labels.unsqueeze(-1) != -100
        entities = labels.unsqueeze(-1) == torch.arange(num_labels - 1, device=labels.device)
    # What each span (i, j) receives when each span of `exists`, and of `entities`, gives away its shares. Sums of
    # slices: a convolution would be computed in half precision under autocast, and in TF32 on CUDA.
    both = torch.cat([exists, entities], dim=-1).to(torch.get_default_dtype())
    padded = functional.pad(both, (0, 0, *(distance,) * 4))
    received = torch.zeros_like(both)
    for (head, tail), share in shares.items():
        rows, columns = (slice(distance + off, distance + off + num_words) for off in (head, tail))
        received.add_(padded[:, rows, columns], alpha=share)
    # The shares are symmetric: what a span receives of `exists` is also what it gives to spans that exist.
    size = exists.shape[-1]
    smoothed = both[..., size:] * (1 - received[..., :size]) + received[..., size:]
    if multi_label:
        return smoothed.clamp(max=1.0)
    return torch.cat([smoothed, (1 - smoothed.sum(-1, keepdim=True)).clamp(min=0.0)], dim=-1)
