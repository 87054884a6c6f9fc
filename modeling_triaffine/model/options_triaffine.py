"""The options of a model and of prediction, each declared once: type, default, bounds, choices and meaning.

Configuration, help, recipes, cards, page, server and spaCy component read the declarations. This file imports no
third-party library, so that help and shell completion start fast.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from .kinds_triaffine import ATTENTIONS, OVERLAPS, SCORINGS

DECLARED = "option"  # key of an [`Option`] in the metadata of a field
TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}


@dataclass(frozen=True)
class Option:
    """A setting that a person may change, with all that help, checks and tables need to know of it."""

    name: str
    type: type  # int, float, bool or str; object if only the library that declares the option knows the type
    default: Any
    doc: str  # its meaning, without a full stop
    # The choices of a str with their meanings ("" where the name says it); empty if any str is valid.
    meanings: Mapping[str, str] = field(default_factory=dict)
    least: float = -math.inf
    most: float = math.inf
    below: float = math.inf
    optional: bool = False  # whether it may be None
    unset: str = ""  # the meaning of None
    metavar: str = ""  # placeholder of the value in help texts
    section: str = ""  # heading under which help lists it
    in_card: Literal["always", "if set", "never"] = "if set"  # among the settings of a model card
    is_path: bool = False  # the value may be a file or folder of this machine
    bare: str = ""  # its value where a command line names the option without a value
    many: bool = False  # takes several values
    required: bool = False  # on a command line

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.meanings)

    def problem(self, value: Any) -> str:
        """The end of the error for an invalid value, which says what the value must be; empty for a valid value."""
        if self.type is object or (value is None and self.optional):
            return ""
        if self.meanings:
            is_choice = isinstance(value, str) and value in self.meanings
            return "" if is_choice else f"choose one of {', '.join(map(repr, self.meanings))}."
        kinds: Any = (int, float) if self.type is float else (self.type,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and self.type is not bool):
            return f"it must be {TYPE_NAMES[self.type]}."
        if isinstance(value, bool | str) or (self.least <= value < self.below and value <= self.most):
            return ""  # NaN is in no bounds
        return f"it must be {self.bounds or 'a finite number'}."

    def check(self, value: Any, where: str = "") -> None:
        """Raises ValueError for an invalid value, which begins with `where`."""
        if problem := self.problem(value):
            raise ValueError(f"{where}`{self.name}` is {value!r:.80}; {problem}")

    @property
    def bounds(self) -> str:
        """The values that a number may have: "from 1 to 8", "at least 0 and below 1"; empty for any."""
        if self.most < math.inf:
            return f"from {self.least:g} to {self.most:.12g}"
        bounds = [f"at least {self.least:g}"] if self.least > -math.inf else []
        bounds += [f"below {self.below:g}"] if self.below < math.inf else []
        return " and ".join(bounds)


def option(default: Any, doc: str, choices: Mapping[str, Any] | None = None, **facts: Any) -> Any:
    """Declares a field of a dataclass. choices: name → its meaning, or a kind, which has one; facts: see [`Option`]."""
    meanings = {name: getattr(choice, "meaning", choice) for name, choice in (choices or {}).items()}
    return field(default=default, metadata={DECLARED: Option("", object, default, doc, meanings, **facts)})


def options_of(holder: Any) -> dict[str, Option]:
    """The options that a dataclass declares, by name, with the types of its fields."""
    found = {}
    for member in fields(holder):
        declared: Option | None = member.metadata.get(DECLARED)
        if declared is not None:
            kinds: Any = get_args(member.type) if get_origin(member.type) is UnionType else (member.type,)
            known = next((kind for kind in (float, int, bool, str) if kind in kinds), object)
            optional = NoneType in kinds or declared.default is None
            kind = str if declared.meanings else known
            found[member.name] = replace(declared, name=member.name, type=kind, optional=optional)
    return found


def _size(default: int | None, doc: str, most: int = 2**14, **facts: Any) -> Any:
    """Declares a size. The upper bound is far above any use, so that no tensor of a damaged size fills memory."""
    return option(default, doc, least=1, most=most, **facts)


def _part(doc: str, default: int = 0) -> Any:
    return option(default, f"{doc}; 0: none", least=0, most=2**14)


def _vocabulary(of: str) -> Any:
    return option(0, f"Size of the vocabulary of {of}, set by the training data", least=0, most=2**26, in_card="never")


def _dropout(default: float, place: str) -> Any:
    return option(default, f"Dropout probability {place}", least=0, below=1)


@dataclass(kw_only=True, repr=False, eq=False)  # as every configuration of transformers
class ModelOptions:
    """The fields of [`TriaffineConfig`] that a person sets.

    Symbols and letters of ablations are those of Yuan et al., "Fusing Heterogeneous Factors with Triaffine Mechanism
    for Nested Named Entity Recognition" (Findings of ACL 2022).
    """

    triaffine_dim: int = _size(256, "Width d of the triaffine inputs")
    triaffine_rank: int | None = _size(
        None, "Rank of triaffine tensors as sums of rank-one terms", unset="none, for full tensors", metavar="N|none"
    )
    max_candidates: int = _size(30, "Number m of candidate spans of a sentence, for the cross-span stage", most=2**12)
    max_span_width: int | None = _size(
        None, "Widest span that is scored, in words", most=2**16, unset="none, for all spans", metavar="N|none"
    )
    multi_label: bool = option(False, "Whether a span can have several labels, each with a probability of its own")
    auxiliary_labels: list[str] | None = option(  # noqa: RUF009 - as all the others, of immutable types
        None,
        "Labels that are trained and never predicted: types that the corpus annotates beside the wanted ones",
        unset="none",
        metavar="LABEL …",
        many=True,
    )
    attention: str = option("triaffine", "How the words inside a span are weighted", ATTENTIONS)
    scoring: str = option("triaffine", "What a span is scored from", SCORINGS)
    cross_span: bool = option(True, "Whether candidates attend to each other; false is ablation (g)")
    cross_span_axis: str = option(
        "key",
        "What the softmax of the attention between candidates runs over",
        {"key": "the related spans, as in the paper", "query": "the scored spans, as in the published code"},
    )
    cross_span_residual: bool = option(False, "Whether the final scores are the sum of the span and cross-span scores")
    share_triaffine: bool = option(True, "Whether the cross-span stage reuses W, V and label bias of the span stage")
    triaffine_init_std: float | int = option(0.01, "Initial standard deviation of full tensors", least=1e-9)
    aux_loss_weight: float | int = option(1.0, "Weight of the span stage's loss", least=0)
    loss_reduction: str = option(
        "sentence",
        "How the loss of a batch is averaged",
        {"sentence": "over the spans of a sentence, then over sentences", "batch": "over all spans"},
    )
    boundary_smoothing: float | int = option(
        0.0, "Share ε of an entity's probability that neighboring spans get in the loss; 0: off", least=0, below=1
    )
    boundary_smoothing_distance: int = _size(1, "Distance D of those spans, head and tail together", most=2**6)
    context: str = option(
        "none",
        "Neighboring sentences that the encoder reads as context",
        {"none": "", "previous_sentence": "", "document": "as many as fit, on both sides"},
    )
    max_subwords: int = _size(
        192, "Sub-words that the encoder reads at once, with special tokens; longer sentences are windowed", most=2**16
    )
    subword_pooling: str = option("max", "How a word's sub-words are pooled", {"max": "", "first": "", "mean": ""})
    mix_layers: bool = option(False, "Whether words are read from a learned average of all encoder layers")
    word_vocab_size: int = _vocabulary("static word vectors")
    word_embedding_size: int = _part("Width of static word vectors")
    pos_vocab_size: int = _vocabulary("parts of speech")
    pos_embedding_size: int = _part("Width of part-of-speech embeddings")
    char_vocab_size: int = _vocabulary("characters")
    char_embedding_size: int = _part("Width of character embeddings")
    char_lstm_hidden_size: int = _part("Width of the character BiLSTM in each direction")
    char_readout: str = option(
        "both_ends",
        "Where the character BiLSTM is read",
        {"both_ends": "the last state of each direction", "last_character": "both directions at the last character"},
    )
    lstm_hidden_size: int = _part("Width of the BiLSTM over words in each direction", default=512)
    lstm_layers: int = _size(2, "Layers of the BiLSTM over words", most=16)
    encoder_dropout: float | int = _dropout(0.0, "of the encoder's output")
    word_dropout: float | int = _dropout(0.2, "of static word vectors")
    pos_dropout: float | int = _dropout(0.2, "of part-of-speech embeddings")
    char_dropout: float | int = _dropout(0.2, "of character embeddings")
    lstm_dropout: float | int = _dropout(0.2, "between layers of the BiLSTM")
    mlp_dropout: float | int = _dropout(0.1, "between layers of MLPs")


MODEL_OPTIONS = options_of(ModelOptions)


@dataclass(kw_only=True, repr=False, eq=False)
class ProcessorOptions:
    """The fields of [`TriaffineProcessor`] that a person sets beside `context` and `max_subwords`."""

    word_splitter: str = option(
        "punctuation",
        "Where words of texts end",
        {
            "punctuation": "at white space, punctuation and symbols",
            "letters_and_digits": "also between letters and digits",
            "syllables": "in Korean also at every syllable",
            "characters": "at every character",
            "whitespace": "at white space alone",
        },
    )
    sentence_splitter: str = option(
        "punctuation",
        "Where sentences end",
        {"punctuation": "at punctuation", "lines": "at each line", "none": "with the text"},
    )
    max_sentence_words: int = _size(256, "Most words of a sentence of raw text that is not scored in windows", 2**12)


PROCESSOR_OPTIONS = options_of(ProcessorOptions)


@dataclass(kw_only=True, repr=False, eq=False)
class PredictionOptions:
    """The options of prediction, which pipeline, commands, server and spaCy component share."""

    threshold: float | None = option(
        None,
        "Minimum probability of an entity, for all labels or by label",
        least=0,
        most=1,
        unset="the model's own thresholds, or the most likely label of each span",
        metavar="PROBABILITY",
    )
    batch_size: int | None = _size(
        None,
        "Sentences of average length in a forward pass; fewer if they are long",
        most=2**20,
        unset="32, or as many as fit on a GPU",
    )
    overlap: str = option("all", "Which overlapping entities to keep", OVERLAPS)


PREDICTION_OPTIONS = options_of(PredictionOptions)
