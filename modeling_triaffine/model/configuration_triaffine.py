"""TriaffineConfig: every option of a triaffine model, validated whenever it is set.

It also refers to the remote code of a checkpoint, because every saved folder contains a configuration.
"""

from .checks_triaffine import (  # isort: skip - raises, if versions are too old, before what follows fails
    check_dtype,
    check_integer,
    check_kind,
    check_threshold,
    reading,
    shortened,
)

import copy
import difflib
import functools
from collections.abc import Callable, Iterable
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn

from huggingface_hub.dataclasses import strict
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, GenerationConfig, PretrainedConfig
from transformers.utils import logging

from .kinds_triaffine import ATTENTIONS, NONE_LABEL, SCORINGS, AttentionKind, ScoringKind, names_of
from .options_triaffine import MODEL_OPTIONS, ModelOptions, Option, option, options_of
from .repository_triaffine import (
    AUTO_MAP,
    CUSTOM_PIPELINES,
    HubMixin,
    complete_import,
    save_remote_code,
)

logger = logging.get_logger(__name__)

# Only the caller who loads a model sets these: in a file, they could name attention code on the Hub, or a pickle.
LOADING_FIELDS = (
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("experts_implementation", "_experts_implementation", "_experts_implementation_internal"),
    *("transformers_weights", "fusion_config"),
)
# Fields of an encoder's configuration that are not copied into ours.
LOCAL_FIELDS = ("trust_remote_code", "_name_or_path", "dtype", "torch_dtype")
# Fields of saved models that transformers sets without declaring them, beside those of generation.
UNDECLARED_FIELDS = {
    *(
        "attn_implementation",
        "experts_implementation",
        "name_or_path",
        "output_attentions",
        "torch_dtype",
        "num_labels",
    ),
    *("auto_map", "custom_pipelines", "quantization_config", "tie_word_embeddings", "torchscript", "use_bfloat16"),
    *("finetuning_task", "task_specific_params", "tokenizer_class", "prefix", "pruned_heads", "sep_token_id"),
    *("model_type", "per_layer_config", "return_unused_kwargs", "add_cross_attention", "is_decoder"),
}
LABEL_OPTIONS = ("id2label", "label2id", "num_labels")
WHERE = "TriaffineConfig"
TASK_ALIASES = {"ner": "token-classification"}


class PipelineTasks(dict[str, Any]):
    """Custom pipelines by task or alias of a task.

    transformers looks up the task as the user wrote it. The alias cannot have an entry of its own: `pipeline(model=…)`
    without a task requires a single entry.

    Attributes:
        is_installed: whether the package is imported and handles the tasks in this process. transformers then finds no
            custom pipeline here, and needs no `trust_remote_code`.
    """

    is_installed = False

    def __contains__(self, task: object) -> bool:
        return not self.is_installed and super().__contains__(TASK_ALIASES.get(str(task), task))

    def __getitem__(self, task: str) -> Any:
        return {**super().__getitem__(TASK_ALIASES.get(task, task))}  # transformers writes its classes into it


def _raising_value_errors(cls: Any) -> Any:
    """Converts the errors of a strict dataclass to ValueErrors of one paragraph, as of any other bad argument."""

    def converted(method: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(method)
        def run(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                method(self, *args, **kwargs)
            except StrictDataclassError as error:
                raise ValueError(describe(*args) if method is set_field else str(error.__cause__)) from error

        return run

    def describe(name: str, value: Any) -> str:
        problem = CHECKED[name].problem(value) if name in CHECKED else ""
        problem = problem or f"it must be of type {cls.__dataclass_fields__[name].type}."
        return f"{WHERE}: `{name}` is {shortened(value)}; {problem}"

    set_field = cls.__setattr__
    cls.__setattr__, cls.__init__, cls.validate = map(converted, (set_field, cls.__init__, cls.validate))
    return cls


@_raising_value_errors
@strict
class TriaffineConfig(HubMixin, ModelOptions, PretrainedConfig):
    """Configuration of [`TriaffineForNestedNER`].

    Equations and sections are those of Yuan et al., "Fusing Heterogeneous Factors with Triaffine Mechanism for Nested
    Named Entity Recognition" (Findings of ACL 2022). The defaults are its full model, (h) of its ablation table, with
    the static word vectors, part-of-speech and character parts switched off.

    Args:
        encoder_config: configuration of the word encoder (any `AutoModel` architecture), as object or dict.
        hidden_size: width H of a word representation; the encoder's own width when not given.
        id2label, label2id, num_labels: the labels; the last one is `"None"`, "no entity". With `num_labels=R` alone
            they are named LABEL_0 … LABEL_{R-2}, None.
        temperature: divides the final logits in prediction, so that probabilities are calibrated.
        label_thresholds: lowest probability of an entity by label, for predictions without a threshold of their own; a
            label without one is predicted where it is the likeliest.

    All other fields are those of [`ModelOptions`]; `TriaffineConfig.options()` lists them with their meaning.

    Raises:
        ValueError: a value out of its bounds (also when a field is set later), choices or sizes that do not fit
            together (also by `validate()`), labels without `"None"` as the last one.

    Examples:
        >>> from modeling_triaffine import TriaffineConfig
        >>> config = TriaffineConfig(id2label={0: "Person", 1: "City", 2: "None"}, max_candidates=40)
        >>> config.num_labels, config.max_candidates, config.scoring
        (3, 40, 'triaffine')
    """

    model_type = "triaffine_ner"
    sub_configs = {"encoder_config": AutoConfig}  # noqa: RUF012 - the form transformers reads

    if TYPE_CHECKING:  # their types once the configuration is built
        encoder_config: PretrainedConfig | None = None
        hidden_size: int = 0
        id2label: dict[int, str]
        label2id: dict[str, int]
        num_labels: int
    else:
        encoder_config: PretrainedConfig | dict[str, Any] | None = None
        hidden_size: int | None = option(None, "Width H of a word representation", least=1, most=2**16)

    # Set by calibration, so not among `options()`.
    temperature: float | int = option(1.0, "Divisor of the final logits in prediction", least=1e-3, below=1e3)
    label_thresholds: dict[str, float | int] | None = None

    def __post_init__(self, num_labels: int | None = None, **kwargs: Any) -> None:
        self.encoder_config = _as_encoder_config(self.encoder_config)
        if self.encoder_config is not None:
            width = getattr(self.encoder_config, "hidden_size", None)
            if width is None:
                _fail(
                    f"`encoder_config` is of a {self.encoder_config.model_type!r} model, which has no `hidden_size`, "
                    "so it is not a text encoder; give one, such as BERT"
                )
            self.hidden_size = width if self.hidden_size is None else self.hidden_size
        self.id2label = _resolve_labels(self.id2label, self.label2id, num_labels)
        if "custom_pipelines" in kwargs:
            kwargs["custom_pipelines"] = PipelineTasks(kwargs["custom_pipelines"])
        _tell_of_unknown(type(self), kwargs)
        super().__post_init__(**kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        """Checks bounds and choices; `label2id` follows `id2label`, which `from_pretrained(…, id2label=…)` renames."""
        if name in CHECKED and (problem := CHECKED[name].problem(value)):
            raise ValueError(f"{WHERE}: `{name}` is {shortened(value)}; {problem}")
        if name == "id2label" and value is not None:
            value = _resolve_labels(value, None, None)
            self.label2id = {label: i for i, label in value.items()}
        super().__setattr__(name, value)

    @classmethod
    def options(cls) -> list[Option]:
        """The fields that a user sets, as declared: all but the labels and those that follow from the encoder."""
        return [*MODEL_OPTIONS.values()]

    @property
    def entity_labels(self) -> list[str]:
        """The labels without None, in order."""
        return list(self.id2label.values())[:-1]

    @property
    def num_scores(self) -> int:
        """Columns of the logits: one per label; with `multi_label` none for None."""
        return len(self.id2label) - self.multi_label

    @property
    def attention_kind(self) -> AttentionKind:
        return ATTENTIONS[self.attention]

    @property
    def scoring_kind(self) -> ScoringKind:
        return SCORINGS[self.scoring]

    @property
    def has_tensor(self) -> bool:
        """Whether the model has a triaffine tensor at all, which `triaffine_rank` is about."""
        own = self.cross_span and not self.share_triaffine
        return self.attention_kind.has_tensor or self.scoring_kind.has_tensor or own

    @property
    def has_words(self) -> bool:
        return self.word_embedding_size > 0

    @property
    def has_pos(self) -> bool:
        return self.pos_embedding_size > 0

    @property
    def has_chars(self) -> bool:
        return self.char_lstm_hidden_size > 0

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **options: Any) -> Any:
        """As in transformers; ValueError or OSError, in one paragraph, for a damaged config.json."""
        with reading(str(pretrained_model_name_or_path), "config.json"):
            return super().from_pretrained(pretrained_model_name_or_path, *args, **options)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **options: Any) -> Any:
        """The configuration in a config.json, without its `LOADING_FIELDS`; `options` replace fields.

        `id2label`, `label2id` and `num_labels` replace the labels together, so each of them can be left out.
        """
        id2label, label2id, num_labels = (options.pop(name, None) for name in LABEL_OPTIONS)
        has_names = id2label is not None or label2id is not None
        labels = _resolve_labels(id2label, label2id, num_labels) if has_names or num_labels is not None else None
        with reading("config.json", "a field"):
            fields = _without_loading_fields(config_dict)
            if labels is not None:
                fields = _with_labels(fields, labels, has_names)
            _check_foreign(fields)
            loaded: Any = super().from_dict(fields, **options)
            config = loaded[0] if isinstance(loaded, tuple) else loaded
            config.validate()  # transformers sets options in the finished configuration
            return loaded

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = "AutoConfig") -> None:
        """Does nothing: transformers would add a reference of its own to those of `save_pretrained`."""

    def save_pretrained(self, save_directory: Any, push_to_hub: bool = False, **options: Any) -> None:
        """Writes config.json, and beside it the remote code, to which it refers."""
        self.auto_map, self.custom_pipelines = dict(AUTO_MAP), PipelineTasks(CUSTOM_PIPELINES)
        save_remote_code(save_directory, self._name_or_path)
        super().save_pretrained(save_directory, push_to_hub, **options)

    def validate_labels(self) -> None:
        """`label2id` must be the inverse of `id2label`."""
        _resolve_labels(self.id2label, self.label2id, None)

    def validate_thresholds(self) -> None:
        """Thresholds must be probabilities of existing labels."""
        check_threshold(self.label_thresholds, self.entity_labels, f"{WHERE}: label_thresholds")

    def validate_combination(self) -> None:
        """Attention, scoring and the cross-span stage must provide what they take from each other."""
        attention, scoring = self.attention_kind, self.scoring_kind
        names = f"attention={self.attention!r} and scoring={self.scoring!r}"
        if attention.reads_words != scoring.reads_words:
            fit = names_of(ATTENTIONS, lambda kind: kind.reads_words == scoring.reads_words)
            _fail(
                f"{names} do not fit: the scoring reads {'' if scoring.reads_words else 'no '}inside words, and the "
                f"attention {'weighs them' if attention.reads_words else 'does not'}; attentions that fit are {fit}"
            )
        if scoring.shares_boundaries and not attention.has_boundaries:
            own = names_of(SCORINGS, lambda kind: kind.reads_words and not kind.shares_boundaries)
            _fail(
                f"{names} do not fit: the scoring uses the attention's boundary MLPs, which it does not have; choose "
                f"another attention, or one of the scorings {own}"
            )
        if self.cross_span and not scoring.reads_words:
            _fail(
                f"the cross-span stage needs span representations, which scoring={self.scoring!r} does not build; set "
                "cross_span=False"
            )
        if self.cross_span and self.share_triaffine and not (attention.has_tensor and scoring.has_tensor):
            _fail(
                f"with {names} the span stage has no triaffine tensors W and V to share with the cross-span stage; set "
                "share_triaffine=False or cross_span=False"
            )
        for part in ("word", "pos", "char"):
            vocab, size = getattr(self, f"{part}_vocab_size"), getattr(self, f"{part}_embedding_size")
            if size > 0 and vocab == 0:
                _fail(f"`{part}_embedding_size` is {size} but `{part}_vocab_size` is 0; give the vocabulary's size")
        if (self.char_embedding_size > 0) != (self.char_lstm_hidden_size > 0):
            _fail("`char_embedding_size` and `char_lstm_hidden_size` must both be set, or both be 0")

    def validate_encoder(self) -> None:
        """The encoder must have the width of the words, and a position for each sub-word."""
        if self.encoder_config is None:
            return
        layers = getattr(self.encoder_config, "num_hidden_layers", 0)
        check_integer(f"{WHERE}: encoder_config", "num_hidden_layers", layers, 0, 256)
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


CHECKED = options_of(TriaffineConfig)


def _tell_of_unknown(cls: type[TriaffineConfig], fields: Iterable[str]) -> None:
    """Warns once of fields that neither the class nor transformers knows."""
    unknown = [name for name in fields if not (name in UNDECLARED_FIELDS or name.startswith("_") or hasattr(cls, name))]
    for name in unknown and sorted({*unknown} - GenerationConfig().to_dict().keys()):
        near = difflib.get_close_matches(name, MODEL_OPTIONS, 1, cutoff=0.8)
        meant = f"Did you mean {near[0]!r}?" if near else "Correct it, or update this package if the model is newer."
        logger.warning_once(f"{WHERE} has no option {name!r}, which is kept without an effect. {meant}")


def _without_loading_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a file without `LOADING_FIELDS`, at any depth."""
    return {
        name: _without_loading_fields(value) if isinstance(value, dict) else value
        for name, value in fields.items()
        if name not in LOADING_FIELDS
    }


def _as_encoder_config(encoder_config: PretrainedConfig | dict[str, Any] | None) -> PretrainedConfig | None:
    """A copy of the encoder's configuration without its path, which is local, and its dtype, which the model sets."""
    if encoder_config is None:
        return None
    if isinstance(encoder_config, dict):
        values = {key: value for key, value in encoder_config.items() if key not in LOCAL_FIELDS}
        if "model_type" not in values:
            _fail('`encoder_config` has no "model_type"; give an encoder\'s full configuration, or use from_encoder()')
        with reading(f"{WHERE}: `encoder_config` is not one that transformers knows", "a field"):
            return AutoConfig.for_model(**values)
    encoder_config = copy.deepcopy(encoder_config)
    encoder_config._name_or_path = ""
    encoder_config.dtype = None
    return encoder_config


def _resolve_labels(
    id2label: dict[int, str] | None, label2id: dict[str, int] | None, num_labels: int | None
) -> dict[int, str]:
    """The labels in order, whichever way they are given: ids 0 … R-1, the last named "None"."""
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
        _fail(
            f'the last label, and no other, must be "{NONE_LABEL}" (no entity); got {names}. Give it the highest id, '
            "and count it in num_labels"
        )
    if len(set(names)) != len(names):
        _fail(f"two labels have the same name: {names}")
    if label2id is not None and inverse != id2label:
        _fail("`label2id` is not the inverse of `id2label`; set `id2label` alone, as a whole, which sets both")
    if num_labels is not None and num_labels != len(id2label):
        _fail(f"`num_labels` is {num_labels} but there are {len(id2label)} labels, None included; give as many")
    return id2label


def _with_labels(fields: dict[str, Any], labels: dict[int, str], has_names: bool) -> dict[str, Any]:
    """The fields of a file with other labels, unless only their number was given, and it is the same.

    A calibration stays with labels that are renamed, and is left out with another number of labels.
    """
    old = _resolve_labels(fields.get("id2label"), fields.get("label2id"), fields.get("num_labels"))
    left_out = {*LABEL_OPTIONS} | (set() if len(labels) == len(old) else {"temperature", "label_thresholds"})
    kept = {name: value for name, value in fields.items() if name not in left_out}
    if not has_names and len(labels) == len(old):
        return fields
    if kept.get("label_thresholds"):
        renamed = {name: labels[number] for number, name in old.items()}
        kept["label_thresholds"] = {renamed.get(name, name): value for name, value in kept["label_thresholds"].items()}
    return {**kept, "id2label": labels}


def _check_foreign(fields: dict[str, Any]) -> None:
    """Raises ValueError for invalid fields that transformers would accept unchecked."""
    for name in ("dtype", "torch_dtype"):
        if fields.get(name) is not None:
            check_dtype(WHERE, name, fields[name])
    check_kind(WHERE, "custom_pipelines", fields.get("custom_pipelines", {}), dict, "pipelines by their task")
    code = fields.get("auto_map", {})
    check_kind(WHERE, "auto_map", code, dict, "references to code by the class that reads them")
    for name, reference in code.items():
        check_kind(WHERE, f"auto_map.{name}", reference, str, "a reference to code")


def _labels_by_id(field: str, pairs: Iterable[tuple[Any, Any]]) -> dict[int, str]:
    labels: dict[int, str] = {}
    for given, name in pairs:
        check_kind(WHERE, field, name, str, "every label's name as text")
        try:
            number = int(given) if isinstance(given, str) else index(given)
        except (TypeError, ValueError):
            _fail(f"`{field}` gives {name!r} the id {shortened(given)}; give the labels the ids 0, 1, 2, …")
        if number in labels:
            _fail(f"`{field}` gives {labels[number]!r} and {name!r} the same id {number}; give each its own")
        labels[number] = name
    return labels


def _fail(message: str) -> NoReturn:
    raise ValueError(f"{WHERE}: {message}.")


complete_import(__name__)
