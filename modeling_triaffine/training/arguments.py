"""The options of a training: three dataclasses, whose fields are options of the command line and of recipes.

How they are read from a recipe and the command line is in `command_line.py`; the options of the model itself are the
fields of `TriaffineConfig`.
"""

# ruff: noqa: RUF009 - `_option` makes a field, as `dataclasses.field` does

import math
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import torch
from transformers import TrainingArguments
from transformers.trainer_utils import HubStrategy, IntervalStrategy, SaveStrategy, SchedulerType

from ..data.collator import FlatAnnotation
from .checkpoints import LATEST

# Whose words a model is trained on, see `corpora.py`.
Words = Literal["auto", "corpus", "text", "both"]
SAMPLING_STRATEGIES = ("group_by_length", "random")
# Options of transformers' Trainer and its arguments that would silently do nothing here, so that they are refused.
WITHOUT_EFFECT = {
    "model_init": "it trains the model that it is given; to try several, make a trainer for each",
    "compute_metrics": "evaluation always scores entities; score `predict_entities` yourself",
    "preprocess_logits_for_metrics": "evaluation always scores entities",
    "compute_loss_func": "the model computes its loss itself",
    "label_smoothing_factor": "the model computes its loss itself",
    "prediction_loss_only": "evaluation always scores entities",
    "batch_eval_metrics": "evaluation always scores entities",
    "include_for_metrics": "evaluation always scores entities",
    "bf16_full_eval": "evaluation computes in the precision of training",
    "fp16_full_eval": "evaluation computes in the precision of training",
    "eval_accumulation_steps": "entities leave the device with every batch",
    "eval_do_concat_batches": "evaluation always scores entities",
    "eval_use_gather_object": "evaluation always scores entities",
    "average_tokens_across_devices": "the loss of an update is the mean over the sentences of all processes",
    "hub_always_push": "the model is uploaded once, when it is finished",
    "length_column_name": "a sentence's length is its number of sub-words",
}
# Numbers that may be 0, which switches something off, but not less.
NOT_NEGATIVE = (
    "learning_rate",
    "encoder_learning_rate",
    "embeddings_learning_rate",
    "weight_decay",
    "max_grad_norm",
    "warmup_steps",
    "adam_epsilon",
    "seed",
)


def _option(default: Any, help: str, **of_parser: Any) -> Any:
    """A field with its meaning, and what else the command line's parser should know of it."""
    return field(default=default, metadata={"help": help, **of_parser})


def refuse_without_effect(name: str) -> NoReturn:
    raise ValueError(f"{name} has no effect in this trainer: {WITHOUT_EFFECT[name]}. Leave it out.")


def check_arguments(args: TrainingArguments) -> None:
    """Raises ValueError for options of transformers, in plain arguments too, that this trainer does not follow."""
    defaults = TrainingArguments.__dataclass_fields__
    for name in WITHOUT_EFFECT.keys() & defaults.keys():
        if getattr(args, name) not in (defaults[name].default, []):
            refuse_without_effect(name)
    if args.push_to_hub and args.hub_strategy != HubStrategy.END:
        raise ValueError(
            f"hub_strategy is {HubStrategy(args.hub_strategy).value!r}, but uploads during training would replace the "
            "published model by an unfinished one; set hub_strategy to 'end'."
        )
    config: Any = args.accelerator_config
    if config.dispatch_batches or config.split_batches:
        raise ValueError(
            "accelerator_config asks for dispatch_batches or split_batches, which cut a batch into equal parts for the "
            "processes. Here every process makes batches of its own, which cannot be cut; leave both out."
        )


@dataclass
class ModelArguments:
    """Where a new model starts from."""

    model_name_or_path: str | None = _option(
        None,
        "Pretrained encoder: a folder or a name on the Hub. Without one, the encoder that the recipe's "
        "config.json describes is trained from scratch, with a tokenizer learned from the training data.",
    )
    keep_labels: bool = _option(
        False,
        "Going on with a trained model, keep those of its labels that the training data does not annotate: "
        "their probabilities, as the model gives them, are learned with the data's own labels.",
    )
    learn_span_width: bool = _option(
        False,
        "A new model scores no span wider than the widest entity of its training data, which it keeps as "
        "max_span_width: faster, and entities that are wider than any in training are not found.",
    )
    word_vectors: str | None = _option(
        None,
        "File of static word vectors for a new model: .vec or .bin of fastText, text or "
        "binary of word2vec, GloVe's text. Words without one are one unknown word; they are counted.",
    )
    keep_all_word_vectors: bool = _option(
        False,
        "Keep all vectors of the file, not only those of the data's words, for words seen later. "
        "They are weights: 4 bytes a number in the model, and 16 in training.",
    )
    license: str | None = _option(None, "License of the model for its card, as the Hub calls it (apache-2.0).")
    tokenizer_vocab_size: int = _option(
        8000, "Size of the vocabulary of a tokenizer that is learned from the training data."
    )


@dataclass
class DataArguments:
    """Which sentences to train, choose and test on."""

    train_file: str | None = _option(
        None, "Training data: a JSON-lines file, a folder with one file a split, or a corpus file."
    )
    validation_file: str | None = _option(None, "Validation data; default: the split of that name in --train_file.")
    test_file: str | None = _option(None, "Test data; default: the split of that name in --train_file.")
    data_format: str | None = _option(None, "Format of the data files; default: recognized by their names and content.")
    dataset_name: str | None = _option(None, "What the model card calls the data: an id on the Hub, or a name.")
    language: str | None = _option(None, "Language of the data for the model card (en).")
    words: Words = _option(
        "auto",
        "Words to train on: those of the corpus, those that the model cuts raw text into, or both, one "
        "after the other. auto: text where the corpus keeps its text, both where it has words only, corpus where "
        "the model reads the corpus' parts of speech. Entities are aligned by characters, lost ones counted.",
    )
    retokenize: bool = _option(False, "The old name of --words text.")
    flat_annotation: FlatAnnotation | None = _option(
        None,
        "Which of nested entities the training data annotates, if only some: spans inside an entity "
        "(outermost), around one (innermost) or both (any) are left out of the loss, so that the model can find "
        "nested entities nevertheless. Default: all entities are annotated.",
    )
    pos_tagger: str | None = _option(
        None,
        "A spaCy pipeline, by name or folder, that tags the sentences that come without parts of speech, "
        "for a model with pos_embedding_size.",
    )
    card_examples: int = _option(
        3, "Validation sentences shown in the model card; 0 where the corpus' text must not be published."
    )
    max_train_samples: int | None = _option(None, "Train on this many sentences only (a quick trial).")
    max_eval_samples: int | None = _option(None, "Validate on this many sentences only.")
    max_predict_samples: int | None = _option(None, "Test on this many sentences only.")

    def __post_init__(self) -> None:
        if self.card_examples < 0:
            raise ValueError(f"card_examples is {self.card_examples}; give 0 to show no sentence, or more.")
        if self.retokenize and self.words not in ("auto", "text"):
            raise ValueError(
                f"retokenize is the old name of words='text', but words is {self.words!r}; leave one of the two out."
            )
        if self.retokenize:
            self.words = "text"


@dataclass
class NestedNERTrainingArguments(TrainingArguments):
    """`TrainingArguments` with three learning rates and the paper's defaults (its rates are those of GENIA).

    `learning_rate` is the rate of the triaffine head. The rates fall linearly to zero over the updates really made.
    The best checkpoint, by F1 on the validation data, is the model that training ends with.
    """

    output_dir: str = _option("outputs", "Folder of the checkpoints and the finished model.")
    learning_rate: float = _option(3e-5, "Learning rate of the triaffine head.")
    encoder_learning_rate: float = _option(3e-5, "Learning rate of the pretrained encoder.")
    embeddings_learning_rate: float = _option(
        5e-4, "Learning rate of the word, part-of-speech and character embeddings and of the BiLSTM."
    )
    num_train_epochs: float = _option(15.0, "Passes over the training data.")
    weight_decay: float = _option(0.01, "Decoupled weight decay; none on biases, norms and the label bias.")
    ema_decay: float | None = _option(
        None,
        "Evaluate and save an exponential moving average of the weights with this decay (0.99) instead of "
        "the weights themselves. Default: no average.",
    )
    max_grad_norm: float = _option(0.1, "Gradients are clipped to this norm; 0: never.")
    do_train: bool = _option(True, "Train.")
    do_eval: bool = _option(True, "Score the final model on the validation data.")
    eval_strategy: IntervalStrategy | str = _option("epoch", "When to score the validation data: no, steps or epoch.")
    save_strategy: SaveStrategy | str = _option("epoch", "When to save a checkpoint: no, steps, epoch or best.")
    save_total_limit: int | None = _option(1, "Checkpoints kept, beside the best one. Default: the last.")
    load_best_model_at_end: bool = _option(
        True, "End with the best checkpoint by --metric_for_best_model, not the last."
    )
    metric_for_best_model: str | None = _option("f1", "What makes a checkpoint the best.")
    logging_steps: float = _option(50, "Updates between two logs of loss and rates.")
    logging_nan_inf_filter: bool = _option(
        False, "Hide losses that are not numbers from the logs. Off: nothing is hidden."
    )
    train_sampling_strategy: str = _option(
        "group_by_length", f"How batches are made: {' or '.join(SAMPLING_STRATEGIES)}."
    )
    max_subwords_per_batch: int | None = _option(
        None,
        "Most sub-words in a batch of one process, with padding: as many sentences of similar length as "
        "fit, in training and evaluation, instead of the number of sentences in --per_device_train_batch_size and "
        "--per_device_eval_batch_size.",
    )
    save_memory: bool = _option(
        False,
        "Full triaffine tensors with the least memory: the backward pass recomputes, and their "
        "gradients are added in place. Slower; the same numbers; one process only.",
    )
    hub_strategy: HubStrategy | str = _option(
        "end", "With --push_to_hub: end, the finished model is uploaded, nothing before."
    )
    remove_unused_columns: bool = _option(False, "Must stay off: records are encoded late.")
    label_names: list[str] | None = field(
        default_factory=lambda: ["labels"], metadata={"help": "Name of the model's labels; not to be changed."}
    )
    ddp_find_unused_parameters: bool | None = _option(
        False, "Every weight of the model is used in every step, so this can stay off."
    )
    resume_from_checkpoint: str | None = _option(
        None,
        "Resume from this checkpoint; without a path from the latest undamaged one in --output_dir, or from scratch if "
        "there is none.",
        nargs="?",
        const=LATEST,
    )

    def __post_init__(self) -> None:
        if self.accelerator_config is None and torch.cuda.is_available():
            # Copies pinned batches to the GPU while the step before is computed.
            self.accelerator_config = {"non_blocking": True}
        self._check_numbers()
        if self.eval_strategy == IntervalStrategy.NO:
            self.load_best_model_at_end = False
        check_of_trainer: Any = super().__post_init__  # untyped in transformers
        check_of_trainer()
        if self.train_sampling_strategy not in SAMPLING_STRATEGIES:
            raise ValueError(
                f"train_sampling_strategy is {self.train_sampling_strategy!r}; this trainer makes batches by "
                f"{' or '.join(SAMPLING_STRATEGIES)}."
            )
        check_arguments(self)
        if self.lr_scheduler_type == SchedulerType.REDUCE_ON_PLATEAU:
            mode = "max" if self.greater_is_better else "min"  # PyTorch's default lowers the rates while F1 rises
            self.lr_scheduler_kwargs = {"mode": mode, **(self.lr_scheduler_kwargs or {})}
        if self.max_subwords_per_batch is not None:
            self._check_batches_by_subwords(self.max_subwords_per_batch)
        if self.remove_unused_columns:
            raise ValueError(
                "remove_unused_columns is on, but records are encoded when a batch is made, and need their columns "
                "until then; leave it off."
            )

    def _check_numbers(self) -> None:
        """Raises ValueError, before anything is loaded, for numbers that allow no training."""
        for name in ("per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; the least is 1.")
        for name in NOT_NEGATIVE:
            value = float(getattr(self, name))
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} is {value:g}; give a number of 0 or more.")
        if self.ema_decay is not None and not 0 < self.ema_decay < 1:
            raise ValueError(f"ema_decay is {self.ema_decay:g}; it must be above 0 and below 1.")
        if not (self.max_steps > 0 or 0 < self.num_train_epochs < math.inf):
            raise ValueError(
                f"num_train_epochs is {self.num_train_epochs:g} and max_steps {self.max_steps}, so there is nothing to "
                "train; give a number above 0 for one of them. To score without training, set do_train to false."
            )
        if self.warmup_steps > 1 and not float(self.warmup_steps).is_integer():
            raise ValueError(
                f"warmup_steps is {self.warmup_steps:g}; give a whole number of updates, or below 1 a share of them."
            )
        if 0 < self.max_steps <= self.warmup_steps:
            raise ValueError(
                f"warmup_steps is {self.warmup_steps:g}, but the training has {self.max_steps} updates (max_steps): "
                "the learning rates would never be reached. Take fewer."
            )
        for name in ("adam_beta1", "adam_beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name):g}; it must be at least 0 and below 1.")

    def _check_batches_by_subwords(self, max_subwords: int) -> None:
        if max_subwords < 1:
            raise ValueError(f"max_subwords_per_batch is {max_subwords}; the least is 1.")
        if self.train_sampling_strategy != "group_by_length":
            raise ValueError(
                "max_subwords_per_batch puts sentences of like length together; it needs train_sampling_strategy "
                "'group_by_length'."
            )
        if self.auto_find_batch_size:
            raise ValueError(
                "auto_find_batch_size tries other numbers of sentences, but with max_subwords_per_batch batches hold a "
                "number of sub-words; leave one of the two out."
            )
