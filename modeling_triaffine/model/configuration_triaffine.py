"""TriaffineConfig: every option of a triaffine model, validated whenever it is set.

It also refers to the remote code of a checkpoint, because every saved folder contains a configuration.
"""

from .checks_triaffine import check_threshold, reading  # isort: skip - raises if versions are too old

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from transformers import AutoConfig, PretrainedConfig

from .kinds_triaffine import ATTENTIONS, NONE_LABEL, SCORINGS, Kind
from .options_triaffine import ModelOptions, Option, option, options_of
from .repository_triaffine import AUTO_MAP, CUSTOM_PIPELINES, HubMixin, complete_import, save_remote_code

# Only the caller who loads a model sets these: in a file, they could name attention code on the Hub, or a pickle.
LOADING_FIELDS = (
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("experts_implementation", "_experts_implementation", "_experts_implementation_internal"),
    *("transformers_weights", "fusion_config"),
)
LOCAL_FIELDS = ("trust_remote_code", "_name_or_path", "dtype", "torch_dtype")  # of an encoder, not copied into ours
WHERE = "TriaffineConfig"
TASK_ALIASES = {"ner": "token-classification"}


class PipelineTasks(dict[str, Any]):
    """Custom pipelines by task. Aliases have no entries: transformers infers the task of a call from a single one."""

    # True if the package is imported and handles the tasks in this process: transformers then finds no custom pipeline
    # here, and does not ask for `trust_remote_code`.
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

    All other fields are those of [`ModelOptions`].

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

    # Set by calibration, so not among the `ModelOptions`.
    temperature: float | int = option(1.0, "Divisor of the final logits in prediction", least=1e-3, below=1e3)
    label_thresholds: dict[str, float | int] | None = None

    def __post_init__(self, num_labels: int | None = None, **kwargs: Any) -> None:
        if self.encoder_config is not None:
            self.hidden_size = self.encoder_config.hidden_size if self.hidden_size is None else self.hidden_size
        self.id2label = _resolve_labels(self.id2label, self.label2id, num_labels)
        if "custom_pipelines" in kwargs:
            kwargs["custom_pipelines"] = PipelineTasks(kwargs["custom_pipelines"])
        super().__post_init__(**kwargs)
        self.validate()

    def __setattr__(self, name: str, value: Any) -> None:
        """Checks bounds and choices; `label2id` follows `id2label`, which `from_pretrained(…, id2label=…)` renames."""
        if name == "encoder_config" and value is not None:
            value = _as_encoder_config(value)
        if name == "num_labels":  # transformers would give the last label a number, too
            known = self.__dict__.get("id2label") or {}
            name, value = "id2label", known if len(known) == value else _resolve_labels(None, None, value)
        if name in CHECKED:
            CHECKED[name].check(value, f"{WHERE}: ")
        if name == "id2label" and value is not None:
            value = _resolve_labels(value, None, None)
            self._follow_labels(self.__dict__.get("id2label"), value)
            self.label2id = {label: i for i, label in value.items()}
        super().__setattr__(name, value)

    def _follow_labels(self, old: dict[int, str] | None, new: dict[int, str]) -> None:
        """Renamed labels keep their thresholds; another number of labels removes temperature and thresholds.

        Auxiliary labels that were renamed or removed are no longer listed as auxiliary.
        """
        if old and old != new and self.auxiliary_labels:
            self.auxiliary_labels = [name for name in self.auxiliary_labels if name in new.values()] or None
        if old and len(old) != len(new):
            self.temperature, self.label_thresholds = 1.0, None
        elif old and self.label_thresholds:
            names = {label: new[number] for number, label in old.items()}
            self.label_thresholds = {names.get(name, name): lowest for name, lowest in self.label_thresholds.items()}

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

    @classmethod
    def get_config_dict(cls, pretrained_model_name_or_path: Any, **options: Any) -> Any:
        """Extends transformers': a damaged file and a model of another type are a ValueError, not a warning."""
        with reading(str(pretrained_model_name_or_path), "config.json"):
            found = super().get_config_dict(pretrained_model_name_or_path, **options)
            model_type = found[0].get("model_type", cls.model_type)
            if model_type != cls.model_type and "encoder_config" not in found[0]:  # subclasses have types of their own
                raise ValueError(
                    f"it is a model of type {model_type!r}, not one that was trained to find entities. Give a trained "
                    "one, or start one from it with `triaffine-ner train --model_name_or_path` or "
                    "TriaffineForNestedNER.from_encoder()."
                )
            return found

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **options: Any) -> Any:
        """Returns the configuration of a config.json, without its `LOADING_FIELDS`; `options` replace fields.

        `id2label`, `label2id` and `num_labels` replace the labels together, so each of them can be left out.
        """
        id2label, label2id, num_labels = (options.pop(name, None) for name in ("id2label", "label2id", "num_labels"))
        labels = _resolve_labels(id2label, label2id, num_labels)  # LABEL_0, … if none are given
        has_names = id2label is not None or label2id is not None
        with reading("config.json or an argument in place of it", "a field"):
            loaded: Any = super().from_dict(_without_loading_fields(config_dict), **options)
            config = loaded[0] if isinstance(loaded, tuple) else loaded
            if has_names or num_labels not in (None, config.num_labels):
                config.id2label = labels
            config.validate()  # transformers sets options in the finished configuration
            return loaded

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
        check_threshold({**(self.label_thresholds or {})}, self.entity_labels, f"{WHERE}: label_thresholds")
        for problem in self._problems():
            raise ValueError(f"{WHERE}: {problem}.")

    def _problems(self) -> Iterator[str]:
        """Says what does not fit together; attention, scoring and cross-span stage take parts from each other."""
        attention, scoring = self.attention_kind, self.scoring_kind
        names = f"attention={self.attention!r} and scoring={self.scoring!r}"
        if attention.reads_words != scoring.reads_words:
            fit = [name for name, kind in ATTENTIONS.items() if kind.reads_words == scoring.reads_words]
            yield f"{names} do not fit: only one of them reads inside words; attentions that fit are {str(fit)[1:-1]}"
        if scoring.shares_boundaries and not attention.has_boundaries:
            yield f"{names} do not fit: the scoring uses the attention's boundary MLPs, which it does not have"
        if self.cross_span and not scoring.reads_words:
            yield f"scoring={self.scoring!r} builds no span representations to relate; set cross_span=False"
        if self.cross_span and self.share_triaffine and not (attention.has_tensor and scoring.has_tensor):
            yield f"{names} have no tensors W and V to share; set share_triaffine=False or cross_span=False"
        for part in ("word", "pos", "char"):
            if getattr(self, f"{part}_embedding_size") and not getattr(self, f"{part}_vocab_size"):
                yield f"`{part}_embedding_size` is set but `{part}_vocab_size` is 0; give the vocabulary's size"
        if (self.char_embedding_size > 0) != (self.char_lstm_hidden_size > 0):
            yield "`char_embedding_size` and `char_lstm_hidden_size` must both be set, or both be 0"
        width = self.hidden_size if self.encoder_config is None else self.encoder_config.hidden_size
        if self.hidden_size != width:
            yield f"`hidden_size` is {self.hidden_size}, but the encoder's width is {width}; leave hidden_size out"


CHECKED = options_of(TriaffineConfig)


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
        kind = type(made).__name__ if isinstance(made, PretrainedConfig) else f"{made!r:.80}"
        remedy = "give that of a text encoder with a `hidden_size`, such as BertConfig, or use from_encoder()"
        raise ValueError(f"{WHERE}: `encoder_config` is {kind}; {remedy}.")
    made._name_or_path = ""
    made.dtype = None
    return made


def _resolve_labels(
    id2label: dict[int, str] | None, label2id: dict[str, int] | None, num_labels: int | None
) -> dict[int, str]:
    """The labels in order, whichever way they are given: ids 0 … R-1, the last named "None"."""
    if id2label is None and label2id is not None:
        id2label = {number: name for name, number in label2id.items()}
    labels = None if id2label is None else _in_order(id2label)
    if labels is None:
        count = 2 if num_labels is None else num_labels
        Option("num_labels", int, 2, "", least=2, most=2**16).check(count, f"{WHERE}: ")
        labels = {**{i: f"LABEL_{i}" for i in range(count - 1)}, count - 1: NONE_LABEL}
    names = list(labels.values())
    if label2id is not None and sorted((int(number), name) for name, number in label2id.items()) != [*labels.items()]:
        raise ValueError(f"{WHERE}: `label2id` is {label2id!r:.80}, unlike `id2label`; delete or leave it out.")
    if NONE_LABEL in names[:-1] or names[-1] != NONE_LABEL:
        raise ValueError(f'{WHERE}: the last label, and no other, must be "{NONE_LABEL}" (no entity); got {names}.')
    if num_labels not in (None, len(labels)):
        raise ValueError(f"{WHERE}: `num_labels` is {num_labels} but there are {len(labels)} labels, None included.")
    return labels


def _in_order(id2label: Any) -> dict[int, str]:
    """The labels by their ids, which may be strings, as in JSON."""
    try:
        labels = sorted((int(number), name) for number, name in id2label.items())
    except (AttributeError, TypeError, ValueError):
        labels = []
    names = {name for _, name in labels if isinstance(name, str)}
    if [number for number, _ in labels] != [*range(max(2, len(labels)))] or len(names) < len(labels):
        remedy = "number at least two labels, each with a name of its own, 0, 1, 2, …, the last of them None"
        raise ValueError(f"{WHERE}: `id2label` is {id2label!r:.80}; {remedy}.")
    return dict(labels)


complete_import(__name__)
