"""The model: words → span scores → cross-span scores → loss.

Read from the bottom up: `TriaffineForNestedNER` = encoder + `WordRepresentation` (`words_triaffine.py`) +
`TriaffineSpanHead`; the head = `SpanAttention` + `SpanScoring` (`factors_triaffine.py`) + `CrossSpanStage`. The
algebra is in `triaffine_ops.py`, the reading of entities out of scores in `decoding_triaffine.py`. Sections are those
of Yuan et al. (Findings of ACL 2022).
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from .configuration_triaffine import PushMixin, TriaffineConfig
from .factors_triaffine import (
    MLP,
    BiaffineScoring,
    Boundaries,
    SpanAttention,
    SpanScoring,
    TriaffineTensor,
    mlp_squared_norm,
)
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
    span_loss,
    span_mask,
    span_scores,
    span_scores_reference,
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
        # The boundary MLPs run over the words once, not once a candidate that starts or ends there.
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
        config.check()  # fields may have been set since it was built
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

    def save_memory(self, on: bool = True) -> None:
        """Least memory in training with full tensors: nothing kept for backward, gradients added in place.

        The tensors' gradients then go straight to `grad` of the parameters, past autograd: not together with
        data-parallel training, gradient hooks or `torch.autograd.grad`. Values and gradients are the same.
        """
        self.kept_bytes = 0 if on else None
        for module in self.modules():
            if isinstance(module, TriaffineTensor):
                module.gradient_in_place = on

    def forward(
        self, hidden: Tensor, lengths: Tensor, labels: Tensor | None = None, packed_words: Tensor | None = None
    ) -> SpanHeadOutput:
        """hidden [B, N, H]; lengths [B], words of each sentence; labels [B, N, N], -100 where no span is.

        packed_words [n]: index b·N + k of the words, ordered by k, then b, when it was made on the host; without it
        the head packs the words itself on the CPU, and computes with padding elsewhere.
        """
        device = hidden.device.type
        if torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.float16:
            with torch.autocast(device, enabled=False):  # products of three vectors leave float16's range
                return self.forward(hidden.float(), lengths, labels, packed_words)
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
        # What is no span of the sentence says None, so that nobody downstream needs the mask.
        nothing = functional.pad(scores.new_full((scores.shape[-1] - 1,), NO_SPAN_LOGIT), (0, 1))
        fields = {"span_logits": torch.where(valid.unsqueeze(-1), scores, nothing)}
        if factors is not None and self.config.cross_span:
            fields |= self._score_candidates(hidden, *factors, spans, fields["span_logits"], valid)
        if labels is not None:
            fields |= self._losses(fields, labels, valid)
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
        candidates, mask = select_candidates(span_logits, valid, config.max_candidates, config.max_span_width)
        inside = candidate_attention(attention, candidates, hidden.shape[1], spans.attention_cube)
        # h_gr [B, R, m, d]: built for the candidates only
        representations = inside.to(values.dtype) @ values.unsqueeze(1)
        shared = None
        if config.share_triaffine:
            assert isinstance(attention, TriaffineFactor)  # the configuration refuses to share tensors
            assert isinstance(scoring, TriaffineFactor)  # that are not there
            shared = attention.weight, scoring.weight, self.label_bias
        logits, cross_span_attentions = self.cross_span(
            hidden, representations, candidates, mask, shared, self.reference
        )
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


class TriaffineForNestedNER(PushMixin, PreTrainedModel):
    """Nested named entity recognition by span classification with triaffine attention and scoring.

    ```python
    model = TriaffineForNestedNER.from_encoder("bert-base-cased", id2label={0: "protein", 1: "DNA", 2: "None"})
    ```
    """

    config_class = TriaffineConfig
    base_model_prefix = ""
    main_input_name = "input_ids"
    _no_split_modules: list[str] = []  # noqa: RUF012 - merged with the encoder's by transformers
    # A model loaded in float16 has its head in float32: products of three vectors leave float16's range.
    _keep_in_fp32_modules = ["head"]  # noqa: RUF012
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True

    # Makes a whole repository of a model and uploads it. The package sets this (its cards and checks stay at home);
    # a model that runs as remote code does without.
    push_repository: Callable[..., Any] | None = None

    def __init__(self, config: TriaffineConfig):
        super().__init__(config)
        if config.encoder_config is None:
            raise ValueError("TriaffineForNestedNER: the configuration has no `encoder_config`; use from_encoder().")
        self.encoder = AutoModel.from_config(config.encoder_config)
        if getattr(self.encoder, "pooler", None) is not None:
            self.encoder.pooler = None  # nobody reads it; data-parallel training complains of unused weights
        _check_positions(self.encoder, config.max_subwords)
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
        unknown = sorted(set(config_kwargs) - set(inspect.signature(TriaffineConfig.__init__).parameters))
        if unknown:
            raise ValueError(f"from_encoder: TriaffineConfig has no field {', '.join(map(repr, unknown))}.")
        encoder_config = AutoConfig.from_pretrained(name_or_path)
        if config is None:
            config = TriaffineConfig(encoder_config=encoder_config, **config_kwargs)
        elif config_kwargs:
            raise ValueError("from_encoder: give either `config` or its fields as keywords, not both.")
        else:
            fields = {key: value for key, value in config.to_dict().items() if key != "hidden_size"}
            config = TriaffineConfig(**{**fields, "encoder_config": encoder_config})
        model = cls(config)
        pretrained, report = AutoModel.from_pretrained(name_or_path, dtype=torch.float32, output_loading_info=True)
        missing = sorted(set(report["missing_keys"]) & set(model.encoder.state_dict()))
        if missing:
            raise ValueError(f"from_encoder: {name_or_path} has no weights for {', '.join(missing)}; is it an encoder?")
        model.encoder.load_state_dict(pretrained.state_dict(), strict=False)  # a pooler is left out
        _check_weights(model.encoder, f"The weights in {name_or_path}")
        model.match_low_rank_start()
        return model

    @torch.no_grad()
    def match_low_rank_start(self) -> None:
        """Scales the low-rank factors of a model that was never trained to the words that its encoder makes.

        Drawn for words near 0, which a BiLSTM makes, they would give scores many times too large on an encoder's own
        vectors: with these, by their mean square on random sub-words, the scores have about unit variance too.
        """
        if self.config.triaffine_rank is None:
            return
        training = self.training
        self.eval()
        moment = self._hidden_of_random_subwords().square().mean().item()
        self.train(training)
        norm = mlp_squared_norm(moment, self.config.hidden_size, self.config.triaffine_dim)
        for module in self.head.modules():
            if isinstance(module, TriaffineTensor):
                module.match_inputs(norm)

    def _hidden_of_random_subwords(self) -> Tensor:
        """Word representations [4, 32, H] of sub-words that are drawn alike in every process."""
        shape = (4, 32)
        vocabulary = self.encoder.config.vocab_size
        input_ids = torch.randint(vocabulary, shape, generator=torch.Generator().manual_seed(0)).to(self.device)
        unknown = torch.zeros_like(input_ids)
        return self.represent_words(
            input_ids,
            attention_mask=torch.ones_like(input_ids),
            word_index=torch.arange(shape[1], device=self.device).expand(shape),
            num_words=torch.full((shape[0],), shape[1], device=self.device),
            word_ids=unknown,
            pos_ids=unknown,
            char_ids=unknown.unsqueeze(-1),
        )

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        wants_report = kwargs.pop("output_loading_info", False)
        kwargs["use_safetensors"] = True  # a pickle from a stranger could run code
        where = f"The weights in {pretrained_model_name_or_path}"
        try:
            loaded: Any = super().from_pretrained(
                pretrained_model_name_or_path, *args, output_loading_info=True, **kwargs
            )
        except SafetensorError as error:
            raise ValueError(f"{where} are damaged or cut off ({error}); copy or download the file again.") from None
        except RuntimeError as error:
            if "ignore_mismatched_sizes" not in str(error):
                raise
            raise ValueError(
                f"{where} have other shapes than its config.json says (the table above lists them): the two files are "
                "not of one model. Restore the config.json that was saved with the weights, or save the model again."
            ) from None
        model, report = loaded
        missing = ", ".join(sorted(report["missing_keys"]))
        if missing:
            raise ValueError(
                f"{where} lack {missing}, which would be random numbers; save the model again, or build one on an "
                "encoder with from_encoder()."
            )
        _check_weights(model, where)
        return (model, report) if wants_report else model

    def save_pretrained(  # type: ignore[override]
        self,
        save_directory: Any,
        is_main_process: bool = True,
        state_dict: dict[str, Tensor] | None = None,
        push_to_hub: bool = False,
        **options: Any,
    ) -> None:
        """As of transformers, with its order of arguments; pushes, from the main process, the whole repository."""
        options |= {"is_main_process": is_main_process, "state_dict": state_dict}
        super().save_pretrained(save_directory, push_to_hub and is_main_process, **options)

    def push_to_hub(  # type: ignore[override]
        self, repo_id: str, *, private: bool | None = True, **options: Any
    ) -> Any:
        """Uploads the whole repository: weights, code, processor, card and what an endpoint needs, in one commit.

        A new repository is private unless `private` is False. `processor=` is needed where the model was not loaded
        from a place that holds one; for the other options see [`publishing.push_model`]. As remote code, without this
        package, a model uploads what `save_pretrained` writes, as any model of transformers does.
        """
        push = super().push_to_hub if self.push_repository is None else self.push_repository
        return push(repo_id, private=private, **options)

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.set_input_embeddings(value)

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
        packed_words: Tensor | None = None,
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
            packed_words [n]: index b·N + k of the batch's words, ordered by k, then b, as the processor's `pad` makes
                it; spares a GPU the padding. N is then that of the longest sentence.
            labels [B, N, N]: label of each span (i, j), -100 where no span is.
        """
        longest = None if labels is None else labels.shape[1]
        encoded = self._encode(input_ids, attention_mask, token_type_ids, output_hidden_states)
        hidden = self._represent_words(encoded, word_index, num_words, word_ids, pos_ids, char_ids, longest)
        fields = dict(self.head(hidden, num_words, labels, packed_words))
        if not output_attentions:
            fields = {name: value for name, value in fields.items() if not name.endswith("_attentions")}
        if output_hidden_states:
            fields["hidden_states"] = encoded.hidden_states
        return NestedNEROutput(**fields)

    def represent_words(
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
    ) -> Tensor:
        """h_1 … h_N of each sentence (section 2), what the head reads: [B, N, H]; arguments as of `forward`."""
        encoded = self._encode(input_ids, attention_mask, token_type_ids, output_hidden_states=False)
        return self._represent_words(encoded, word_index, num_words, word_ids, pos_ids, char_ids)

    def _represent_words(self, encoded, word_index, num_words, word_ids, pos_ids, char_ids, longest=None):
        """Words of the encoder's output; `longest` is N where it is known without asking the device."""
        longest = max(1, int(num_words.max())) if longest is None else longest
        states = encoded.last_hidden_state.reshape(*word_index.shape, -1)
        words = pool_subwords(states, word_index, longest, self.config.subword_pooling)
        return self.words(words, num_words, word_ids, pos_ids, char_ids).to(self.head.label_bias.dtype)

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


@torch.no_grad()
def broken_weights(model: nn.Module) -> list[str]:
    """Names of the weights that hold NaN or infinity. Those on the meta device or quantized are not looked at."""
    return [
        name
        for name, weight in model.named_parameters()
        if not weight.is_meta and weight.is_floating_point() and weight.element_size() > 1  # no float8
        if not weight.sum(dtype=torch.float32).isfinite()  # one pass and no copy, unlike isfinite().all()
    ]


def _check_weights(model: nn.Module, where: str) -> None:
    broken = broken_weights(model)
    if broken:
        raise ValueError(
            f"{where} hold numbers that are not finite (NaN or infinity), in {', '.join(broken[:5])}"
            f"{f' and {len(broken) - 5} more' if len(broken) > 5 else ''}: every score would be one, too. Take an "
            "earlier checkpoint, or copy or download the file again."
        )


def _check_positions(encoder: nn.Module, max_subwords: int) -> None:
    """Encoders of RoBERTa's family count positions from behind their padding index: fewer than their table has rows."""
    table = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    if isinstance(table, nn.Embedding) and table.padding_idx is not None:
        positions = table.num_embeddings - table.padding_idx - 1
        if max_subwords > positions:
            raise ValueError(
                f"`max_subwords` is {max_subwords}, but the encoder has positions for {positions} sub-words only; set "
                f"max_subwords to at most {positions}."
            )
