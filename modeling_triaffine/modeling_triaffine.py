"""The model: words → span scores → cross-span scores → loss.

Read from the bottom up: `TriaffineForNestedNER` = encoder + `WordRepresentation` (`words_triaffine.py`) +
`TriaffineSpanHead`; the head = `SpanAttention` + `SpanScoring` (span stage) + `CrossSpanStage`. The algebra is in
`triaffine_ops.py`, the reading of entities out of scores in `decoding_triaffine.py`. Sections are those of Yuan et
al. (Findings of ACL 2022).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from .configuration_triaffine import TriaffineConfig
from .triaffine_ops import (
    AdditiveFactor,
    Factor,
    TriaffineFactor,
    TriaffineWeight,
    append_one,
    candidate_attention,
    cross_span_scores,
    gather_boundaries,
    gather_spans,
    select_candidates,
    span_loss,
    span_mask,
    span_scores,
    triaffine_pairs,
)
from .words_triaffine import WordRepresentation, pool_subwords

# Logit of every entity label, None having 0, where there is no span; within the range of half precision.
NO_SPAN_LOGIT = -1e4


@dataclass
class SpanHeadOutput(ModelOutput):
    """What the span head makes of a batch of sentences. Span indices (i, j) are both inclusive.

    loss: `aux_loss_weight` · loss_aux + loss_main, or loss_aux alone without the cross-span stage.
    loss_aux, loss_main: cross-entropy of span_logits over all spans, of logits over the candidates.
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


@dataclass
class NestedNEROutput(SpanHeadOutput):
    """[`SpanHeadOutput`] and, when asked for, the encoder's hidden states (a row a window when windowed)."""

    hidden_states: tuple[Tensor, ...] | None = None


class MLP(nn.Sequential):
    """Linear layers with ReLU and dropout between them, none after the last (section 1)."""

    def __init__(self, input_size: int, size: int, layers: int, dropout: float):
        modules: list[nn.Module] = [nn.Linear(input_size, size)]
        for _ in range(layers - 1):
            modules += [nn.ReLU(), nn.Dropout(dropout), nn.Linear(size, size)]
        super().__init__(*modules)


class TriaffineTensor(nn.Module):
    """The weights W (or V): one (d+1) × d × (d+1) slice a label, or its rank-ρ factors.

    Stored label first and inside axis second, [R, d, d+1, d+1], so that contracting it with the inside words is one
    matrix product without a copy. At rank ρ: W_r[a, c, e] = Σ_ρ head_r[a, ρ] · inside_r[c, ρ] · tail_r[e, ρ].
    """

    def __init__(self, labels: int, dim: int, rank: int | None, std: float):
        super().__init__()
        self.std = std
        self.rank = rank
        if rank is None:
            self.weight = nn.Parameter(torch.empty(labels, dim, dim + 1, dim + 1))
        else:
            self.head = nn.Parameter(torch.empty(labels, dim + 1, rank))
            self.inside = nn.Parameter(torch.empty(labels, dim, rank))
            self.tail = nn.Parameter(torch.empty(labels, dim + 1, rank))
        self.reset_parameters()

    def forward(self) -> TriaffineWeight:
        return self.weight if self.rank is None else (self.head, self.inside, self.tail)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """W ~ N(0, σ²) when full.

        The gradient of a low-rank factor is a product with the other two, so factors that only match the variance of
        the full tensor hardly learn: they are drawn so that a score has about unit variance whatever the rank and
        width. With torch's initialisation of the MLPs an inside vector has squared norm 1/3, a boundary vector 4/3.
        """
        if self.rank is None:
            init.normal_(self.weight, std=self.std)
            return
        projected_std = self.rank ** (-1 / 6)
        for factor, squared_norm in ((self.head, 4 / 3), (self.inside, 1 / 3), (self.tail, 4 / 3)):
            init.normal_(factor, std=projected_std / squared_norm**0.5)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={tuple(value.shape)}" for name, value in self.named_parameters())


class Boundaries(nn.Module):
    """The MLPs of the head and the tail of a span: [B, N, H] → 2 × [B, N, d]."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.head = MLP(config.hidden_size, config.triaffine_dim, 2, config.mlp_dropout)
        self.tail = MLP(config.hidden_size, config.triaffine_dim, 2, config.mlp_dropout)

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return self.head(hidden), self.tail(hidden)


class SpanAttention(nn.Module):
    """How much a label attends to each inside word of a span: s_ijkr (section 3, ablations (c), (d), (e))."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.kind = config.attention
        dim, labels = config.triaffine_dim, config.num_labels
        self.inside = MLP(config.hidden_size, dim, 2, config.mlp_dropout)
        if self.kind == "label":
            self.query = nn.Parameter(torch.empty(labels, dim))
            self.reset_parameters()
            return
        self.boundaries = Boundaries(config)
        if self.kind == "linear":
            # Equal to (d) in value: terms in i and j alone cancel in a softmax over k. Kept as the paper prints it.
            self.linear_head, self.linear_tail = nn.Linear(dim, labels), nn.Linear(dim, labels)
            self.linear_inside = nn.Linear(dim, labels)
        else:
            labels = 1 if self.kind == "triaffine_no_label" else labels
            self.triaffine = TriaffineTensor(labels, dim, config.triaffine_rank, config.triaffine_init_std)

    def reset_parameters(self) -> None:
        if self.kind == "label":
            init.normal_(self.query)

    def forward(self, hidden: Tensor) -> tuple[Factor, tuple[Tensor, Tensor] | None]:
        """hidden [B, N, H] → s as a factor, and the boundary vectors (for scoring="linear_boundary_shared")."""
        insides = self.inside(hidden)
        if self.kind == "label":
            return AdditiveFactor(insides @ self.query.transpose(0, 1)), None
        heads, tails = self.boundaries(hidden)
        if self.kind == "linear":
            factor: Factor = AdditiveFactor(
                self.linear_inside(insides), self.linear_head(heads), self.linear_tail(tails)
            )
        else:
            factor = TriaffineFactor(append_one(heads), insides, append_one(tails), self.triaffine())
        return factor, (heads, tails)


class SpanScoring(nn.Module):
    """What each inside word says for a label: o_ijkr (section 4, ablations (b), (f)); p_ijr = Σ_k α_ijkr o_ijkr."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.kind = config.scoring
        dim, labels = config.triaffine_dim, config.num_labels
        self.inside = MLP(config.hidden_size, dim, 2, config.mlp_dropout)
        if self.kind in ("triaffine", "linear_boundary"):
            self.boundaries = Boundaries(config)
        if self.kind == "triaffine":
            self.triaffine = TriaffineTensor(labels, dim, config.triaffine_rank, config.triaffine_init_std)
        else:
            self.linear_inside = nn.Linear(dim, labels)
        if self.kind in ("linear_boundary", "linear_boundary_shared"):
            self.linear_head, self.linear_tail = nn.Linear(dim, labels), nn.Linear(dim, labels)

    def forward(self, hidden: Tensor, shared: tuple[Tensor, Tensor] | None) -> tuple[Factor, Tensor]:
        """hidden [B, N, H], the attention's boundaries → o as a factor, and the values [B, N, d] h_ijr is made of."""
        values = self.inside(hidden)
        if self.kind == "linear":
            return AdditiveFactor(self.linear_inside(values)), values
        boundaries = shared if self.kind == "linear_boundary_shared" else self.boundaries(hidden)
        assert boundaries is not None  # the configuration refuses the one attention that has none
        heads, tails = boundaries
        if self.kind == "triaffine":
            return TriaffineFactor(append_one(heads), values, append_one(tails), self.triaffine()), values
        scores = self.linear_inside(values), self.linear_head(heads), self.linear_tail(tails)
        return AdditiveFactor(*scores), values


class BiaffineScoring(nn.Module):
    """Ablation (a), no inside words: p_ijr = [h_i; 1]ᵀ V_r [h_j; 1], two MLPs; or the published code's form of it."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.shared = config.scoring == "biaffine_shared"
        labels = config.num_labels
        if self.shared:
            size = config.hidden_size // 2
            dropout = config.mlp_dropout
            self.projection = nn.Sequential(
                nn.Linear(config.hidden_size, size), nn.Dropout(dropout), nn.Linear(size, size), nn.Dropout(dropout)
            )
            self.linear = nn.Parameter(torch.empty(labels, size))
        else:
            size = config.triaffine_dim + 1
            self.boundaries = Boundaries(config)
        self.weight = nn.Parameter(torch.empty(labels, size, size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """N(0, 1), as published."""
        init.normal_(self.weight)
        if self.shared:
            init.normal_(self.linear)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden [B, N, H] → p without its bias [B, R, N, N]."""
        if self.shared:
            heads = tails = self.projection(hidden)
        else:
            heads, tails = (append_one(boundary) for boundary in self.boundaries(hidden))
        # [B, 1, N, a] × [R, a, e] × [B, 1, e, N]
        scores = heads.unsqueeze(1) @ self.weight @ tails.unsqueeze(1).transpose(-1, -2)
        if self.shared:
            linear = (heads @ self.linear.transpose(0, 1)).transpose(1, 2)
            scores = scores + linear.unsqueeze(-1) + linear.unsqueeze(-2)
        return scores


class CrossSpanStage(nn.Module):
    """Candidates look at each other (section 6): pᶜ_lr = Σ_g β_lgr t_lgr + b_r."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.axis = config.cross_span_axis
        self.shares = config.share_triaffine
        dim, labels = config.triaffine_dim, config.num_labels
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
    ) -> tuple[Tensor, Tensor]:
        """hidden [B, N, H], spans h_gr [B, R, m, d], candidates [B, m, 2], mask [B, m], (W, V, b) of the span stage.

        Returns pᶜ [B, m, R] and β [B, m, m, R].
        """
        if shared is None:
            shared = self.attention_triaffine(), self.scoring_triaffine(), self.label_bias
        attention_weight, scoring_weight, label_bias = shared
        query = self._scores(
            hidden, self.attention_boundaries, self.attention_span(spans), candidates, attention_weight
        )
        related = self._scores(hidden, self.scoring_boundaries, self.scoring_span(spans), candidates, scoring_weight)
        scores, attention = cross_span_scores(query, related, mask, self.axis)
        return scores + label_bias, attention

    @staticmethod
    def _scores(
        hidden: Tensor, boundaries: Boundaries, spans: Tensor, candidates: Tensor, weight: TriaffineWeight
    ) -> Tensor:
        """TriAff of the candidates' boundaries with each candidate's representation: [B, R, l, g]."""
        # The boundary MLPs run over the words once, not once a candidate that starts or ends there.
        heads, tails = boundaries(hidden)
        heads, tails = gather_boundaries(heads, tails, candidates)
        labels = (weight if isinstance(weight, Tensor) else weight[0]).shape[0]
        # Spans of a label-free attention serve every label; a label-free weight looks at spans of that attention only.
        spans = spans.expand(-1, labels, -1, -1)
        return triaffine_pairs(append_one(heads), spans, append_one(tails), weight)


class TriaffineSpanHead(nn.Module):
    """Words to scores of their spans: span stage, choice of candidates, cross-span stage, losses (sections 3 to 7).

    Args:
        config: [`TriaffineConfig`] with `hidden_size` set. `max_candidates` is read at every call.
    """

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        if config.hidden_size is None:
            raise ValueError(
                "TriaffineSpanHead: the configuration has no `hidden_size` and no encoder; set hidden_size."
            )
        self.config = config
        self.label_bias = nn.Parameter(torch.empty(config.num_labels))
        if config.attention == "none":
            self.biaffine = BiaffineScoring(config)
        else:
            self.attention, self.scoring = SpanAttention(config), SpanScoring(config)
        if config.cross_span:
            self.cross_span = CrossSpanStage(config)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.label_bias)

    def forward(self, hidden: Tensor, lengths: Tensor, labels: Tensor | None = None) -> SpanHeadOutput:
        """hidden [B, N, H]; lengths [B], words of each sentence; labels [B, N, N], -100 where no span is."""
        valid = span_mask(lengths, hidden.shape[1], self.config.max_span_width)
        if self.config.attention == "none":
            scores, attention, values = self.biaffine(hidden), None, None
        else:
            scores, attention, values = self._score_spans(hidden)
        # What is no span of the sentence says None, so that nobody downstream needs the mask.
        nothing = functional.pad(scores.new_full((scores.shape[1] - 1,), NO_SPAN_LOGIT), (0, 1))
        fields = {
            "span_logits": torch.where(valid.unsqueeze(-1), scores.permute(0, 2, 3, 1) + self.label_bias, nothing)
        }
        if attention is not None and values is not None and self.config.cross_span:
            fields |= self._score_candidates(hidden, attention, values, fields["span_logits"], valid)
        if labels is not None:
            fields |= self._losses(fields, labels, valid)
        return SpanHeadOutput(**fields)

    def _score_spans(self, hidden: Tensor) -> tuple[Tensor, Factor, Tensor]:
        """Sections 3 and 4: p without its bias [B, R, N, N], s as a factor, and the values h_ijr is made of."""
        attention, boundaries = self.attention(hidden)
        scoring, values = self.scoring(hidden, boundaries)
        return span_scores(attention, scoring, hidden.shape[1], self.config.max_span_width), attention, values

    def _score_candidates(
        self, hidden: Tensor, attention: Factor, values: Tensor, span_logits: Tensor, valid: Tensor
    ) -> dict[str, Tensor]:
        """Sections 5 and 6: the candidates and their final scores."""
        config = self.config
        candidates, mask = select_candidates(span_logits, valid, config.max_candidates, config.max_span_width)
        inside = candidate_attention(attention, candidates, hidden.shape[1])
        # h_gr [B, R, m, d]: built for the candidates only
        spans = inside.to(values.dtype) @ values.unsqueeze(1)
        shared = None
        if config.share_triaffine:
            shared = self.attention.triaffine(), self.scoring.triaffine(), self.label_bias
        logits, cross_span_attentions = self.cross_span(hidden, spans, candidates, mask, shared)
        return {
            "candidates": candidates,
            "candidate_mask": mask,
            "logits": logits,
            "span_attentions": inside.permute(0, 2, 3, 1),
            "cross_span_attentions": cross_span_attentions,
        }

    def _losses(self, fields: dict[str, Tensor], labels: Tensor, valid: Tensor) -> dict[str, Tensor]:
        """Section 7: over all spans, and over the candidates where there are any."""
        reduction = self.config.loss_reduction
        loss_aux = span_loss(fields["span_logits"].flatten(1, 2), labels.flatten(1), valid.flatten(1), reduction)
        if "logits" not in fields:
            return {"loss": loss_aux, "loss_aux": loss_aux}
        chosen = gather_spans(labels, fields["candidates"])
        loss_main = span_loss(fields["logits"], chosen, fields["candidate_mask"], reduction)
        loss = self.config.aux_loss_weight * loss_aux + loss_main
        return {"loss": loss, "loss_aux": loss_aux, "loss_main": loss_main}


class TriaffineForNestedNER(PreTrainedModel):
    """Nested named entity recognition by span classification with triaffine attention and scoring.

    ```python
    model = TriaffineForNestedNER.from_encoder("bert-base-cased", id2label={0: "protein", 1: "DNA", 2: "None"})
    ```
    """

    config_class = TriaffineConfig
    base_model_prefix = ""
    main_input_name = "input_ids"
    _no_split_modules: list[str] = []  # noqa: RUF012 - merged with the encoder's by transformers
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True

    def __init__(self, config: TriaffineConfig):
        super().__init__(config)
        if config.encoder_config is None:
            raise ValueError("TriaffineForNestedNER: the configuration has no `encoder_config`; use from_encoder().")
        self.encoder = AutoModel.from_config(config.encoder_config)
        if getattr(self.encoder, "pooler", None) is not None:
            self.encoder.pooler = None  # nobody reads it; data-parallel training complains of unused weights
        self.supports_gradient_checkpointing = self.encoder.supports_gradient_checkpointing
        self.words = WordRepresentation(config)
        self.head = TriaffineSpanHead(config)
        self.post_init()

    @classmethod
    def from_encoder(
        cls, name_or_path: str, config: TriaffineConfig | None = None, **config_kwargs: Any
    ) -> "TriaffineForNestedNER":
        """A fresh model on a pretrained encoder, in float32.

        Args:
            name_or_path: folder or Hub name of any `AutoModel` encoder.
            config: configuration without or with an encoder; the pretrained encoder's configuration is put in.
            config_kwargs: fields of [`TriaffineConfig`], when `config` is not given; the labels at least.
        """
        encoder_config = AutoConfig.from_pretrained(name_or_path)
        if config is None:
            config = TriaffineConfig(encoder_config=encoder_config, **config_kwargs)
        elif config_kwargs:
            raise ValueError("from_encoder: give either `config` or its fields as keywords, not both.")
        else:
            fields = {key: value for key, value in config.to_dict().items() if key != "hidden_size"}
            config = TriaffineConfig(**{**fields, "encoder_config": encoder_config})
        model = cls(config)
        pretrained = AutoModel.from_pretrained(name_or_path, dtype=torch.float32)
        missing = model.encoder.load_state_dict(pretrained.state_dict(), strict=False).missing_keys
        if missing:
            raise ValueError(f"from_encoder: {name_or_path} has no weights for {', '.join(missing)}; is it an encoder?")
        return model

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)
        except RuntimeError as error:
            if "ignore_mismatched_sizes" not in str(error):
                raise
            raise ValueError(
                f"The weights in {pretrained_model_name_or_path} have other shapes than its config.json says (the "
                "table above lists them): the two files are not of one model. Restore the config.json that was saved "
                "with the weights, or save the model again."
            ) from None

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def _init_weights(self, module: nn.Module) -> None:
        """Modules of ours start as their `reset_parameters` says: torch's default, or the paper's (section 1)."""
        reset = getattr(module, "reset_parameters", None)
        if reset is not None:
            reset()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        word_index: Tensor,
        num_words: Tensor,
        *,
        token_type_ids: Tensor | None = None,
        word_ids: Tensor | None = None,
        pos_ids: Tensor | None = None,
        char_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> NestedNEROutput:
        """Scores of all spans of each sentence. B sentences, S sub-words, N words, C characters.

        Args:
            input_ids, attention_mask [B, S]: sub-words with their context. S above `max_subwords` is read as windows of
                `max_subwords` one after the other, as the processor lays out a long sentence.
            word_index [B, S]: the word of each sub-word; -1 for specials, context and padding.
            num_words [B]: words of each sentence.
            token_type_ids [B, S]: 1 for context (ignored by encoders without segments).
            word_ids, pos_ids [B, N], char_ids [B, N, C]: ids of the optional word parts.
            labels [B, N, N]: label of each span (i, j), -100 where no span is.
        """
        longest = labels.shape[1] if labels is not None else max(1, int(num_words.max()))
        encoded = self._encode(input_ids, attention_mask, token_type_ids, output_hidden_states)
        states = encoded.last_hidden_state.reshape(*input_ids.shape, -1)
        words = pool_subwords(states, word_index, longest, self.config.subword_pooling)
        hidden = self.words(words, num_words, word_ids, pos_ids, char_ids)
        fields = dict(self.head(hidden, num_words, labels))
        if not output_attentions:
            fields = {name: value for name, value in fields.items() if not name.endswith("_attentions")}
        if output_hidden_states:
            fields["hidden_states"] = encoded.hidden_states
        return NestedNEROutput(**fields)

    def _encode(self, input_ids, attention_mask, token_type_ids, output_hidden_states):
        """Runs the encoder over rows of at most `max_subwords`; windows of long sentences become rows of their own."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None and (getattr(self.encoder.config, "type_vocab_size", 0) or 0) >= 2:
            inputs["token_type_ids"] = token_type_ids
        width = self.config.max_subwords
        if input_ids.shape[1] <= width:
            return self.encoder(**inputs, output_hidden_states=output_hidden_states)
        inputs = {name: values.reshape(-1, width) for name, values in inputs.items()}
        # Windows of padding only, beside a longer sentence, would attend to nothing.
        inputs["attention_mask"] = inputs["attention_mask"].index_fill(
            1, torch.zeros(1, dtype=torch.long, device=input_ids.device), 1
        )
        return self.encoder(**inputs, output_hidden_states=output_hidden_states)
