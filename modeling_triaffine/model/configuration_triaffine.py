"""TriaffineConfig: every option of a triaffine model, validated whenever it is set.

It also refers to the remote code of a checkpoint, because every saved folder contains a configuration.
"""

from .checks_triaffine import (  # isort: skip - raises, if versions are too old, before what follows fails
    check_threshold,
    reading,
    shortened,
    too_few_positions,
)

import copy
import difflib
from collections.abc import Iterable, Iterator
from operator import index
from typing import TYPE_CHECKING, Any

from transformers import AutoConfig, PretrainedConfig
from transformers.utils import logging

from .kinds_triaffine import ATTENTIONS, NONE_LABEL, SCORINGS, Kind
from .options_triaffine import MODEL_OPTIONS, ModelOptions, Option, option, options_of
from .repository_triaffine import (
    AUTO_MAP,
    CUSTOM_PIPELINES,
    HubMixin,
    complete_import,
    describe_other,
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


class TriaffineConfig(HubMixin, ModelOptions, PretrainedConfig):
    """Configuration of [`TriaffineForNestedNER`].

    The defaults are the paper's full model, (h) of its ablation table (see [`ModelOptions`]), with the static word
    vectors, part-of-speech and character parts switched off.

    Args:
        encoder_config: configuration of the word encoder (any `AutoModel` architecture), as object or dict.
        hidden_size: width H of a word representation; by default the encoder's own width.
        id2label, label2id, num_labels: the labels; the last one is `"None"`, "no entity". With `num_labels=R` alone
            they are named LABEL_0 … LABEL_{R-2}, None.
        auxiliary_labels: labels that are trained but never predicted: types that a corpus annotates beside
            the wanted ones. They are the last labels before None.
        temperature: divides the final logits in prediction, so that probabilities are calibrated.
        label_thresholds: lowest probability of an entity by label, for predictions that are given no threshold; a
            label without a threshold is predicted where it is the likeliest.

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
        if self.encoder_config is not None:
            self.hidden_size = self.encoder_config.hidden_size if self.hidden_size is None else self.hidden_size
        self.id2label = _resolve_labels(self.id2label, self.label2id, num_labels)
        if "custom_pipelines" in kwargs:
            kwargs["custom_pipelines"] = PipelineTasks(kwargs["custom_pipelines"])
        for name, near in unknown_fields(kwargs, type(self)).items():
            logger.warning_once(f"{WHERE} has no option {name!r}, which is without effect. Did you mean {near!r}?")
        super().__post_init__(**kwargs)
        self.validate()

    def __setattr__(self, name: str, value: Any) -> None:
        """Checks bounds and choices; `label2id` follows `id2label`, which `from_pretrained(…, id2label=…)` renames."""
        if name == "num_labels":
            if value == len(self.__dict__.get("id2label") or ()):
                return
            name, value = "id2label", _resolve_labels(None, None, value)
        if name == "encoder_config" and value is not None:
            value = _as_encoder_config(value)
        if name == "auxiliary_labels" and not isinstance(value, list | None):
            raise ValueError(f"{WHERE}: `auxiliary_labels` is {shortened(value)}; give a list of labels, or None.")
        if name == "label_thresholds" and not isinstance(value, dict | None):
            raise ValueError(f"{WHERE}: `{name}` is {shortened(value)}; give numbers from 0 to 1 by label, or None.")
        if name in CHECKED and (problem := CHECKED[name].problem(value)):
            raise ValueError(f"{WHERE}: `{name}` is {shortened(value)}; {problem}")
        if name == "id2label" and value is not None:
            value = _resolve_labels(value, None, None)
            if old := self.__dict__.get("id2label"):
                self.__dict__.update(_calibration_of_renamed(self.__dict__, old, value))
            self.label2id = {label: i for i, label in value.items()}
        super().__setattr__(name, value)

    @classmethod
    def options(cls) -> list[Option]:
        """The fields that a user sets, as declared: all but the labels and those that follow from the encoder."""
        return [*MODEL_OPTIONS.values()]

    @property
    def entity_labels(self) -> list[str]:
        """The labels that can be predicted, in order: without None and the auxiliary ones, which follow them."""
        return self.trained_labels[: len(self.id2label) - 1 - len(self.auxiliary_labels or ())]

    @property
    def trained_labels(self) -> list[str]:
        """The labels without None, in order."""
        return list(self.id2label.values())[:-1]

    @property
    def num_scores(self) -> int:
        """The number of columns of the logits: one per label; with `multi_label`, None has no column."""
        return len(self.id2label) - self.multi_label

    @property
    def attention_kind(self) -> Kind:
        return ATTENTIONS[self.attention]

    @property
    def scoring_kind(self) -> Kind:
        return SCORINGS[self.scoring]

    @property
    def has_tensor(self) -> bool:
        """True if the model has a triaffine tensor, to which `triaffine_rank` applies."""
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
    def get_config_dict(cls, pretrained_model_name_or_path: Any, **options: Any) -> Any:
        """As in transformers; ValueError for a model of another type, of which transformers only warns."""
        found = super().get_config_dict(pretrained_model_name_or_path, **options)
        model_type = found[0].get("model_type", cls.model_type)
        if model_type != cls.model_type and "encoder_config" not in found[0]:  # subclasses have types of their own
            raise ValueError(f"it is {describe_other(model_type)}")
        return found

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
        save_remote_code(save_directory)
        super().save_pretrained(save_directory, push_to_hub=push_to_hub, **options)

    def validate(self) -> None:
        """Raises ValueError for values that do not fit together; each alone is checked whenever it is set."""
        _resolve_labels(self.id2label, self.label2id, None)
        auxiliary = self.auxiliary_labels or []
        if sorted(self.trained_labels[len(self.entity_labels) :]) != sorted(auxiliary) or not self.entity_labels:
            raise ValueError(
                f"{WHERE}: `auxiliary_labels` is {auxiliary}, but the labels are {self.trained_labels}. Auxiliary "
                "labels are the last of the labels before None, and at least one label is none of them."
            )
        check_threshold(self.label_thresholds, self.entity_labels, f"{WHERE}: label_thresholds")
        for is_wrong, problem in (*self._combinations(), *self._sizes()):
            if is_wrong:
                raise ValueError(f"{WHERE}: {problem}.")

    def _combinations(self) -> Iterator[tuple[bool, str]]:
        """Attention, scoring and the cross-span stage must provide what they take from each other."""
        attention, scoring = self.attention_kind, self.scoring_kind
        names = f"attention={self.attention!r} and scoring={self.scoring!r}"
        fit = [name for name, kind in ATTENTIONS.items() if kind.reads_words == scoring.reads_words]
        own = [name for name, kind in SCORINGS.items() if kind.reads_words and not kind.shares_boundaries]
        yield (
            attention.reads_words != scoring.reads_words,
            f"{names} do not fit: only one of them reads inside words; attentions that fit are {str(fit)[1:-1]}",
        )
        yield (
            scoring.shares_boundaries and not attention.has_boundaries,
            f"{names} do not fit: the scoring uses the attention's boundary MLPs, which it does not have; choose "
            f"another attention, or one of the scorings {str(own)[1:-1]}",
        )
        yield (
            self.cross_span and not scoring.reads_words,
            f"the cross-span stage needs span representations, which scoring={self.scoring!r} does not build; set "
            "cross_span=False",
        )
        yield (
            self.cross_span and self.share_triaffine and not (attention.has_tensor and scoring.has_tensor),
            f"with {names} the span stage has no triaffine tensors W and V to share with the cross-span stage; set "
            "share_triaffine=False or cross_span=False",
        )

    def _sizes(self) -> Iterator[tuple[bool, str]]:
        """Word parts need vocabularies, and the encoder the width of the words and a position for each sub-word."""
        for part in ("word", "pos", "char"):
            vocab, size = getattr(self, f"{part}_vocab_size"), getattr(self, f"{part}_embedding_size")
            problem = f"`{part}_embedding_size` is {size} but `{part}_vocab_size` is 0; give the vocabulary's size"
            yield size > 0 and vocab == 0, problem
        yield (
            (self.char_embedding_size > 0) != (self.char_lstm_hidden_size > 0),
            "`char_embedding_size` and `char_lstm_hidden_size` must both be set, or both be 0",
        )
        width = self.hidden_size if self.encoder_config is None else self.encoder_config.hidden_size
        yield (
            self.hidden_size != width,
            f"`hidden_size` is {self.hidden_size}, but the encoder's width is {width}; leave hidden_size out",
        )
        has_positions = getattr(self.encoder_config, "position_biased_input", True)  # of DeBERTa, relative ones alone
        positions = getattr(self.encoder_config, "max_position_embeddings", None) if has_positions else None
        yield (
            positions is not None and 0 < positions < self.max_subwords,
            too_few_positions(self.max_subwords, positions),
        )


CHECKED = options_of(TriaffineConfig)


def unknown_fields(names: Iterable[str], cls: type[PretrainedConfig] = TriaffineConfig) -> dict[str, str]:
    """Finds names that the class does not have, but that are close to those of options: name → option."""
    unknown = [name for name in names if not hasattr(cls, name)]
    near = {name: difflib.get_close_matches(name, MODEL_OPTIONS, 1, cutoff=0.8) for name in unknown}
    return {name: options[0] for name, options in near.items() if options}


def _without_loading_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a file without `LOADING_FIELDS`, at any depth."""
    return {
        name: _without_loading_fields(value) if isinstance(value, dict) else value
        for name, value in fields.items()
        if name not in LOADING_FIELDS
    }


def _as_encoder_config(encoder_config: PretrainedConfig | dict[str, Any]) -> PretrainedConfig:
    """A copy of the encoder's configuration without its path, which is local, and its dtype, which the model sets."""
    made = copy.deepcopy(encoder_config)
    if isinstance(made, dict):
        values = {key: value for key, value in made.items() if key not in LOCAL_FIELDS}
        with reading(f"{WHERE}: `encoder_config` is not one that transformers knows", "a field"):
            made = AutoConfig.for_model(**values)
    if not isinstance(made, PretrainedConfig) or getattr(made, "hidden_size", None) is None:
        kind = type(made).__name__ if isinstance(made, PretrainedConfig) else shortened(made)
        raise ValueError(
            f"{WHERE}: `encoder_config` is {kind}, which is not the configuration of a text encoder with a "
            "`hidden_size`; give one, such as BertConfig, or use from_encoder()."
        )
    made._name_or_path = ""
    made.dtype = None
    return made


def _resolve_labels(
    id2label: dict[int, str] | None, label2id: dict[str, int] | None, num_labels: int | None
) -> dict[int, str]:
    """The labels in order, whichever way they are given: ids 0 … R-1, the last named "None"."""
    inverse = None if label2id is None else _labels_by_id("label2id", label2id)
    labels = inverse if id2label is None else _labels_by_id("id2label", id2label)
    if labels is None:
        count = 2 if num_labels is None else num_labels
        if problem := Option("num_labels", int, 2, "", least=2, most=2**16).problem(count):
            raise ValueError(f"{WHERE}: `num_labels` is {count!r}; {problem}")
        labels = {**{i: f"LABEL_{i}" for i in range(count - 1)}, count - 1: NONE_LABEL}
    names = list(labels.values())
    for is_wrong, problem in (
        (
            inverse not in (None, labels),
            f"`id2label` has {shortened(sorted(labels.items() - (inverse or labels).items()))}, unlike `label2id`; set "
            "`id2label` alone, as a whole, which sets both (in a file, delete `label2id`)",
        ),
        (
            NONE_LABEL in names[:-1] or names[-1] != NONE_LABEL,
            f'the last label, and no other, must be "{NONE_LABEL}" (no entity); got {names}. Give it the highest id, '
            "and count it in num_labels",
        ),
        (
            num_labels not in (None, len(labels)),
            f"`num_labels` is {num_labels} but there are {len(labels)} labels, None included; give as many",
        ),
    ):
        if is_wrong:
            raise ValueError(f"{WHERE}: {problem}.")
    return labels


def _labels_by_id(field: str, given: Any) -> dict[int, str]:
    """The labels in order, from names by their ids, or ids by their names (`label2id`)."""
    try:
        pairs = [pair if field == "id2label" else pair[::-1] for pair in given.items()]
        labels = sorted((int(number) if isinstance(number, str) else index(number), name) for number, name in pairs)
        names = [name for _, name in labels]
        is_numbered = [number for number, _ in labels] == list(range(len(labels))) and len(labels) >= 2
        is_named = len({*names}) == len(names) and all(isinstance(name, str) for name in names)
    except (AttributeError, TypeError, ValueError):
        is_numbered = is_named = False
    if not (is_numbered and is_named):
        raise ValueError(
            f"{WHERE}: `{field}` is {shortened(given)}; number at least two labels, each with a name of its own, 0, 1, "
            "2, …, the last of them None."
        )
    return dict(labels)


def _with_labels(fields: dict[str, Any], labels: dict[int, str], has_names: bool) -> dict[str, Any]:
    """The fields of a file with other labels, unless only their number was given, and it is the same."""
    old = _resolve_labels(fields.get("id2label"), fields.get("label2id"), fields.get("num_labels"))
    if not has_names and len(labels) == len(old):
        return fields
    kept = {name: value for name, value in fields.items() if name not in LABEL_OPTIONS}
    return {**kept, "id2label": labels, **_calibration_of_renamed(fields, old, labels)}


def _calibration_of_renamed(fields: dict[str, Any], old: dict[int, str], new: dict[int, str]) -> dict[str, Any]:
    """The calibration among the fields, which stays with labels that are renamed; with another number it ends."""
    if len(old) != len(new):
        return {"temperature": 1.0, "label_thresholds": None}
    if not fields.get("label_thresholds"):
        return {}
    names = {label: new[number] for number, label in old.items()}
    return {"label_thresholds": {names.get(name, name): lowest for name, lowest in fields["label_thresholds"].items()}}


complete_import(__name__)
