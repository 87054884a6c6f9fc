"""TriaffineConfig: every choice that makes a nested-NER triaffine model, checked when it is built.

It writes the references to the remote code of a checkpoint, too, since the configuration is what every saved folder
holds. What the choices compute stands in `triaffine_ops.py` and `modeling_triaffine.py`.
"""

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from transformers import AutoConfig, PretrainedConfig

from .checks_triaffine import check_dtype, check_integer, check_kind, check_number, reading, shortened
from .repository_triaffine import AUTO_MAP, CUSTOM_PIPELINES, PushMixin, code_reference, save_remote_code

NONE_LABEL = "None"

ATTENTIONS = ("triaffine", "triaffine_no_label", "label", "linear", "none")
SCORINGS = ("triaffine", "linear", "linear_boundary", "linear_boundary_shared", "biaffine", "biaffine_shared")
CHOICES: dict[str, tuple[str, ...]] = {
    "attention": ATTENTIONS,
    "scoring": SCORINGS,
    "cross_span_axis": ("key", "query"),
    "loss_reduction": ("sentence", "batch"),
    "subword_pooling": ("max", "first", "mean"),
    "char_readout": ("both_ends", "last_character"),
    "context": ("none", "previous_sentence", "document"),
}

# The least and the most of each size and count. The most is far above any use: what a damaged or hostile file says is
# refused before it fills the memory.
INTEGERS: dict[str, tuple[int, int]] = {
    "hidden_size": (1, 2**16),
    "triaffine_dim": (1, 2**14),
    "triaffine_rank": (1, 2**14),
    "max_candidates": (1, 2**12),
    "max_span_width": (1, 2**16),
    "max_subwords": (1, 2**16),
    **{f"{part}_vocab_size": (0, 2**26) for part in ("word", "pos", "char")},
    **{f"{part}_embedding_size": (0, 2**14) for part in ("word", "pos", "char")},
    "char_lstm_hidden_size": (0, 2**14),
    "lstm_hidden_size": (0, 2**14),
    "lstm_layers": (1, 16),
}
OPTIONAL = ("hidden_size", "triaffine_rank", "max_span_width")  # may be None
ENCODER_LAYERS = (0, 256)
# The least of each number, and what it is below.
NUMBERS: dict[str, tuple[float, float]] = {
    "aux_loss_weight": (0.0, float("inf")),
    "triaffine_init_std": (1e-9, float("inf")),
    **{f"{part}_dropout": (0.0, 1.0) for part in ("encoder", "word", "pos", "char", "lstm", "mlp")},
}
SWITCHES = ("cross_span", "share_triaffine")
# Chosen where a model is loaded, not by its file: it could name code on the Hub to compute attention with, or a pickle.
LOADING_FIELDS = (
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("experts_implementation", "_experts_implementation", "_experts_implementation_internal"),
    *("transformers_weights", "fusion_config"),
)
# Fields of an encoder's configuration that do not travel in ours.
LOCAL_FIELDS = ("trust_remote_code", "_name_or_path", "dtype", "torch_dtype")
WHERE = "TriaffineConfig"


class TriaffineConfig(PushMixin, PretrainedConfig):
    """Configuration of [`TriaffineForNestedNER`].

    Equations and sections are those of Yuan et al., "Fusing Heterogeneous Factors with Triaffine Mechanism for Nested
    Named Entity Recognition" (Findings of ACL 2022). The defaults are its full model, (h) of its ablation table, with
    the static word vectors, part-of-speech and character parts switched off.

    Args:
        encoder_config: configuration of the word encoder (any `AutoModel` architecture), as object or dict.
        id2label, label2id, num_labels: the labels; the last one is `"None"`, "no entity". With `num_labels=R` alone
            they are named LABEL_0 … LABEL_{R-2}, None.
        hidden_size: width H of a word representation; the encoder's own width when not given.
        triaffine_dim: width d of the triaffine inputs.
        max_candidates: m, how many spans of a sentence enter the cross-span stage.
        attention: how the inside words of a span are weighed (section 3, ablations (a), (c)-(e)).
        scoring: how a span's representation is scored (section 4, ablations (a), (b), (f)).
        cross_span: whether candidates look at each other (section 6); without it the model is (g).
        cross_span_axis: `"key"` takes the softmax over the related spans (paper), `"query"` over the scored ones
            (what the published code computes).
        share_triaffine: cross-span stage re-uses the tensors W, V and the label bias of the span stage.
        triaffine_rank: rank ρ of the triaffine tensors as sums of rank-one terms; None keeps them full.
        max_span_width: widest span scored, in words; None scores all.
        aux_loss_weight: μ_aux, weight of the span stage's loss.
        loss_reduction: `"sentence"`: mean over sentences of the mean over a sentence's spans; `"batch"`: one mean
            over all spans of the batch.
        triaffine_init_std: σ of W and V when they are full.
        subword_pooling: how a word's sub-words become one vector.
        word_vocab_size, word_embedding_size: static word vectors (0 = off).
        pos_vocab_size, pos_embedding_size: part-of-speech embeddings (0 = off).
        char_vocab_size, char_embedding_size, char_lstm_hidden_size: character BiLSTM, sizes a direction (0 = off).
        char_readout: where the character BiLSTM is read: `"both_ends"`, each direction's last state, or
            `"last_character"`, both directions there (what the published code computes).
        lstm_hidden_size, lstm_layers: BiLSTM over the words, size a direction (0 = off).
        encoder_dropout, word_dropout, pos_dropout, char_dropout, lstm_dropout, mlp_dropout: dropout probabilities of
            the encoder's output, of each embedding, between BiLSTM layers, and between MLP layers.
        max_subwords: sub-words the encoder sees at once, specials included; longer sentences are windowed.
        context: neighbouring sentences shown to the encoder around a sentence.

    Raises:
        ValueError: a choice that does not exist, sizes that do not fit, labels without `"None"` as the last one.
    """

    model_type = "triaffine_ner"
    sub_configs = {"encoder_config": AutoConfig}  # noqa: RUF012 - the form transformers reads

    def __init__(
        self,
        encoder_config: PretrainedConfig | dict[str, Any] | None = None,
        id2label: dict[int, str] | None = None,
        label2id: dict[str, int] | None = None,
        num_labels: int | None = None,
        hidden_size: int | None = None,
        triaffine_dim: int = 256,
        max_candidates: int = 30,
        attention: str = "triaffine",
        scoring: str = "triaffine",
        cross_span: bool = True,
        cross_span_axis: str = "key",
        share_triaffine: bool = True,
        triaffine_rank: int | None = None,
        max_span_width: int | None = None,
        aux_loss_weight: float = 1.0,
        loss_reduction: str = "sentence",
        triaffine_init_std: float = 0.01,
        subword_pooling: str = "max",
        word_vocab_size: int = 0,
        word_embedding_size: int = 0,
        pos_vocab_size: int = 0,
        pos_embedding_size: int = 0,
        char_vocab_size: int = 0,
        char_embedding_size: int = 0,
        char_lstm_hidden_size: int = 0,
        char_readout: str = "both_ends",
        lstm_hidden_size: int = 512,
        lstm_layers: int = 2,
        encoder_dropout: float = 0.0,
        word_dropout: float = 0.2,
        pos_dropout: float = 0.2,
        char_dropout: float = 0.2,
        lstm_dropout: float = 0.2,
        mlp_dropout: float = 0.1,
        max_subwords: int = 192,
        context: str = "none",
        **kwargs: Any,
    ):
        self.encoder_config = _as_encoder_config(encoder_config)
        if hidden_size is None and self.encoder_config is not None:
            hidden_size = self.encoder_config.hidden_size
        self.hidden_size = hidden_size  # type: ignore[assignment]
        self.triaffine_dim = triaffine_dim
        self.max_candidates = max_candidates
        self.attention = attention
        self.scoring = scoring
        self.cross_span = cross_span
        self.cross_span_axis = cross_span_axis
        self.share_triaffine = share_triaffine
        self.triaffine_rank = triaffine_rank
        self.max_span_width = max_span_width
        self.aux_loss_weight = aux_loss_weight
        self.loss_reduction = loss_reduction
        self.triaffine_init_std = triaffine_init_std
        self.subword_pooling = subword_pooling
        self.word_vocab_size = word_vocab_size
        self.word_embedding_size = word_embedding_size
        self.pos_vocab_size = pos_vocab_size
        self.pos_embedding_size = pos_embedding_size
        self.char_vocab_size = char_vocab_size
        self.char_embedding_size = char_embedding_size
        self.char_lstm_hidden_size = char_lstm_hidden_size
        self.char_readout = char_readout
        self.lstm_hidden_size = lstm_hidden_size
        self.lstm_layers = lstm_layers
        self.encoder_dropout = encoder_dropout
        self.word_dropout = word_dropout
        self.pos_dropout = pos_dropout
        self.char_dropout = char_dropout
        self.lstm_dropout = lstm_dropout
        self.mlp_dropout = mlp_dropout
        self.max_subwords = max_subwords
        self.context = context
        id2label = _resolve_labels(id2label, label2id, num_labels)
        super().__init__(id2label=id2label, label2id={name: i for i, name in id2label.items()}, **kwargs)
        self.check()

    if TYPE_CHECKING:  # transformers allows None for what is always there here
        id2label: dict[int, str]
        label2id: dict[str, int]
        num_labels: int
        hidden_size: int

    @property
    def has_words(self) -> bool:
        return self.word_embedding_size > 0

    @property
    def has_pos(self) -> bool:
        return self.pos_embedding_size > 0

    @property
    def has_chars(self) -> bool:
        return self.char_lstm_hidden_size > 0

    @property
    def code_repository(self) -> str | None:
        """The Hub repository that holds the remote code; None where the code lies beside the configuration."""
        references = getattr(self, "auto_map", {}).values()
        return next((reference.split("--")[0] for reference in references if "--" in reference), None)

    def refer_to_code(self, repository: str | None) -> None:
        """Refers to the remote code in a Hub repository, or (None) in the files that `save_pretrained` writes."""
        self.auto_map = {name: code_reference(reference, repository) for name, reference in AUTO_MAP.items()}
        self.custom_pipelines = {
            task: {**entry, "impl": code_reference(str(entry["impl"]), repository)}
            for task, entry in CUSTOM_PIPELINES.items()
        }

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **options: Any) -> Any:
        """As of transformers; ValueError or OSError, in one paragraph, for a damaged config.json."""
        with reading(str(pretrained_model_name_or_path), "config.json"):
            return super().from_pretrained(pretrained_model_name_or_path, *args, **options)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **options: Any) -> Any:
        """The configuration that a config.json holds, but for `LOADING_FIELDS`, which only the caller chooses."""
        with reading("config.json", "a field"):
            fields = {name: value for name, value in config_dict.items() if name not in LOADING_FIELDS}
            _check_foreign(fields)
            return super().from_dict(fields, **options)

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = "AutoConfig") -> None:
        """Nothing to register: transformers would put a reference of its own among those of `refer_to_code`."""

    def save_pretrained(self, save_directory: Any, push_to_hub: bool = False, **options: Any) -> None:
        """Writes config.json with the references to the remote code, and beside it that code if it is not elsewhere."""
        self.refer_to_code(self.code_repository)
        if self.code_repository is None:
            save_remote_code(save_directory, self._name_or_path)
        super().save_pretrained(save_directory, push_to_hub, **options)

    def check(self) -> None:
        """Raises ValueError for a choice that does not exist or sizes that do not fit; a model checks its own."""
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                _fail(f"`{name}` is {getattr(self, name)!r}; choose one of {', '.join(map(repr, choices))}")
        for name, (least, most) in INTEGERS.items():
            if getattr(self, name) is not None or name not in OPTIONAL:
                check_integer(WHERE, name, getattr(self, name), least, most)
        for name, limits in NUMBERS.items():
            check_number(WHERE, name, getattr(self, name), *limits)
        for name in SWITCHES:
            check_kind(WHERE, name, getattr(self, name), bool, "true or false")
        self._check_combination()
        self._check_encoder()

    def _check_combination(self) -> None:
        """Attention, scoring and cross-span stage must have what each takes from the other."""
        biaffine = self.scoring in ("biaffine", "biaffine_shared")
        if biaffine != (self.attention == "none"):
            _fail(
                f"attention={self.attention!r} and scoring={self.scoring!r} do not fit: biaffine scoring reads no "
                'inside words and goes with attention="none", every other scoring needs an attention'
            )
        if self.scoring == "linear_boundary_shared" and self.attention == "label":
            _fail(
                'scoring="linear_boundary_shared" uses the attention\'s boundary MLPs, which attention="label" does '
                'not have; take scoring="linear_boundary" or another attention'
            )
        if self.cross_span and biaffine:
            _fail(
                "the cross-span stage needs span representations, which biaffine scoring does not build; "
                "set cross_span=False"
            )
        shares_missing = self.attention not in ("triaffine", "triaffine_no_label") or self.scoring != "triaffine"
        if self.cross_span and self.share_triaffine and shares_missing:
            _fail(
                f"with attention={self.attention!r} and scoring={self.scoring!r} the span stage has no triaffine "
                "tensors W and V to share with the cross-span stage; set share_triaffine=False or cross_span=False"
            )
        for part in ("word", "pos", "char"):
            vocab, size = getattr(self, f"{part}_vocab_size"), getattr(self, f"{part}_embedding_size")
            if size > 0 and vocab == 0:
                _fail(f"`{part}_embedding_size` is {size} but `{part}_vocab_size` is 0; give the vocabulary's size")
        if (self.char_embedding_size > 0) != (self.char_lstm_hidden_size > 0):
            _fail("`char_embedding_size` and `char_lstm_hidden_size` are switched on together, or both are 0")

    def _check_encoder(self) -> None:
        if self.encoder_config is None:
            return
        layers = getattr(self.encoder_config, "num_hidden_layers", 0)
        check_integer(f"{WHERE}: encoder_config", "num_hidden_layers", layers, *ENCODER_LAYERS)
        if self.hidden_size != self.encoder_config.hidden_size:
            _fail(
                f"`hidden_size` is {self.hidden_size}, but the encoder's width is {self.encoder_config.hidden_size}; "
                "leave hidden_size out"
            )
        positions = getattr(self.encoder_config, "max_position_embeddings", None)
        if positions is not None and 0 < positions < self.max_subwords:
            _fail(
                f"`max_subwords` is {self.max_subwords}, but the encoder has positions for {positions} sub-words only; "
                f"set max_subwords to at most {positions}"
            )


def _as_encoder_config(encoder_config: PretrainedConfig | dict[str, Any] | None) -> PretrainedConfig | None:
    """A copy of the encoder's configuration without what belongs to the place it was read from.

    Its path is this machine's business, and its dtype would make an encoder of another precision than the head's.
    """
    if encoder_config is None:
        return None
    check_kind(WHERE, "encoder_config", encoder_config, (dict, PretrainedConfig), "an encoder's full configuration")
    if isinstance(encoder_config, dict):
        values = {key: value for key, value in encoder_config.items() if key not in LOCAL_FIELDS}
        if "model_type" not in values:
            _fail('`encoder_config` has no "model_type"; give an encoder\'s full configuration, or use from_encoder()')
        with reading(f"{WHERE}: `encoder_config` is none that transformers knows", "a field"):
            return AutoConfig.for_model(**values)
    encoder_config = copy.deepcopy(encoder_config)
    encoder_config._name_or_path = ""
    encoder_config.dtype = None
    return encoder_config


def _resolve_labels(
    id2label: dict[int, str] | None, label2id: dict[str, int] | None, num_labels: int | None
) -> dict[int, str]:
    """The one label order there is: ids 0 … R-1, the last named "None"."""
    if id2label is not None:
        check_kind(WHERE, "id2label", id2label, dict, "the labels' names by their ids")
        id2label = _labels_by_id("id2label", id2label.items())
    if label2id is not None:
        check_kind(WHERE, "label2id", label2id, dict, "the labels' ids by their names")
        inverse = _labels_by_id("label2id", ((i, name) for name, i in label2id.items()))
        id2label = inverse if id2label is None else id2label
    if id2label is None:
        count = 2 if num_labels is None else num_labels
        check_integer(WHERE, "num_labels", count, 2, 2**16)
        id2label = {**{i: f"LABEL_{i}" for i in range(count - 1)}, count - 1: NONE_LABEL}
    if len(id2label) < 2 or sorted(id2label) != list(range(len(id2label))):
        _fail(f"`id2label` must number at least two labels 0, 1, 2, …; got the ids {shortened(sorted(id2label))}")
    id2label = dict(sorted(id2label.items()))
    names = list(id2label.values())
    if names[-1] != NONE_LABEL or NONE_LABEL in names[:-1]:
        _fail(f'the last label, and no other, must be "{NONE_LABEL}" (no entity); got {names}')
    if len(set(names)) != len(names):
        _fail(f"two labels have the same name: {names}")
    if label2id is not None and inverse != id2label:
        _fail("`label2id` is not the inverse of `id2label`; give only one of them")
    if num_labels is not None and num_labels != len(id2label):
        _fail(f"`num_labels` is {num_labels} but there are {len(id2label)} labels; leave num_labels out")
    return id2label


def _check_foreign(fields: dict[str, Any]) -> None:
    """Raises ValueError for what transformers would take from a file as it is."""
    for name in ("dtype", "torch_dtype"):
        if fields.get(name) is not None:
            check_dtype(WHERE, name, fields[name])
    code = fields.get("auto_map", {})
    check_kind(WHERE, "auto_map", code, dict, "references to code by the class that reads them")
    for name, reference in code.items():
        check_kind(WHERE, f"auto_map.{name}", reference, str, "a reference to code")


def _labels_by_id(field: str, pairs: Iterable[tuple[Any, Any]]) -> dict[int, str]:
    labels = {}
    for number, name in pairs:
        check_kind(WHERE, field, name, str, "every label's name as text")
        try:
            labels[int(number)] = name
        except (TypeError, ValueError, OverflowError):
            _fail(f"`{field}` gives {name!r} the id {shortened(number)}; give the labels the ids 0, 1, 2, …")
    return labels


def _fail(message: str) -> None:
    raise ValueError(f"{WHERE}: {message}.")
