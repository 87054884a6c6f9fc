"""The training options: three dataclasses, whose fields are options of the command line and of recipes.

`command_line.py` reads them, and `options.txt` describes them. The options of the model itself are the fields of
`TriaffineConfig`.
"""

import logging
import math
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import torch
from transformers import TrainingArguments
from transformers.trainer_utils import HubStrategy, IntervalStrategy, SaveStrategy, SchedulerType

from ..data.collator import FlatAnnotation
from ..model.acceleration_triaffine import multiplies_bfloat16
from ..model.text_triaffine import SENTENCE_SPLITTERS, WORD_SPLITTERS
from .checkpoints import LATEST

logger = logging.getLogger(__name__)

# The words that a model is trained on, see `corpora.py`.
Words = Literal["auto", "corpus", "text", "both"]
SAMPLING_STRATEGIES = ("group_by_length", "random")
AS_EVALUATED: Any = None  # the default of what follows from other options
# Options of transformers' Trainer and TrainingArguments that are refused, because they would silently do nothing.
WITHOUT_EFFECT = {
    "preprocess_logits_for_metrics": "`compute_metrics` gets entities",
    "label_smoothing_factor": "the model computes its loss itself",
    "prediction_loss_only": "evaluation always scores entities",
    "batch_eval_metrics": "`compute_metrics` gets the entities of the whole data set",
    "include_for_metrics": "`compute_metrics` gets the records",
    "bf16_full_eval": "evaluation computes in the precision of training",
    "fp16_full_eval": "evaluation computes in the precision of training",
    "eval_accumulation_steps": "entities leave the device with every batch",
    "eval_do_concat_batches": "evaluation always scores entities",
    "eval_use_gather_object": "evaluation always scores entities",
    "average_tokens_across_devices": "the loss of an update is the mean over the sentences of all processes",
    "hub_always_push": "the model is uploaded once, when it is finished",
    "length_column_name": "a sentence's length is its number of sub-words",
}
# Number → its least value, and a value that it must be below.
BOUNDS = {
    **{f"per_device_{phase}_batch_size": (1, math.inf) for phase in ("train", "eval")},
    **dict.fromkeys(("gradient_accumulation_steps", "max_subwords_per_batch"), (1, math.inf)),
    **dict.fromkeys(("learning_rate", "encoder_learning_rate", "embeddings_learning_rate"), (0, math.inf)),
    **dict.fromkeys(("weight_decay", "max_grad_norm", "warmup_steps", "min_steps"), (0, math.inf)),
    **dict.fromkeys(("adam_epsilon", "seed", "data_seed", "dataloader_num_workers"), (0, math.inf)),
    **dict.fromkeys(("adam_beta1", "adam_beta2", "ema_decay"), (0, 1)),
}


def parse_number(name: str, text: str) -> int | float:
    """The number that `text` writes; a whole one as an int, which seeds and sizes of batches must be."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}; it must be a number.") from None
    return int(number) if number.is_integer() else number


def refuse_without_effect(name: str) -> NoReturn:
    raise ValueError(f"{name} has no effect in this trainer: {WITHOUT_EFFECT[name]}. Leave it out.")


def check_arguments(args: TrainingArguments) -> None:
    """Raises ValueError for options of transformers that NestedNERTrainer ignores or cannot follow."""
    defaults = TrainingArguments.__dataclass_fields__
    for name in WITHOUT_EFFECT.keys() & defaults.keys():
        if getattr(args, name) not in (defaults[name].default, []):
            refuse_without_effect(name)
    if args.push_to_hub and args.hub_strategy != HubStrategy.END:
        raise ValueError(
            f"hub_strategy is {HubStrategy(args.hub_strategy).value!r}, but uploads during training would replace the "
            "published model by an unfinished one; set hub_strategy to 'end'."
        )
    if args.fp16 and args.device.type == "cpu":
        raise ValueError("fp16 has no effect on a CPU. Leave it out, or choose bf16.")
    config: Any = args.accelerator_config
    if config.dispatch_batches or config.split_batches:
        raise ValueError(
            "accelerator_config sets dispatch_batches or split_batches, which divide a batch among the processes. Here "
            "every process makes batches of its own; leave both out."
        )


@dataclass
class ModelArguments:
    """What a training starts from."""

    model_name_or_path: str | None = None
    keep_labels: bool = False
    learn_span_width: bool = False
    word_vectors: str | None = None
    keep_all_word_vectors: bool = False
    word_splitter: str | None = field(default=None, metadata={"choices": [*WORD_SPLITTERS]})
    sentence_splitter: str | None = field(default=None, metadata={"choices": [*SENTENCE_SPLITTERS]})
    license: str | None = None
    tokenizer_vocab_size: int = 8000


@dataclass
class DataArguments:
    """The data to train, validate and test on."""

    train_file: str | None = None
    validation_file: str | None = None
    test_file: str | None = None
    data_format: str | None = None
    dataset_name: str | None = None
    language: str | None = None
    words: Words = "auto"
    retokenize: bool = False
    flat_annotation: FlatAnnotation | None = None
    pos_tagger: str | None = None
    card_examples: int = 3
    max_train_samples: int | None = None
    max_eval_samples: int | None = None
    max_predict_samples: int | None = None

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
    """`TrainingArguments` with three learning rates and the paper's defaults (the rates are those for GENIA).

    By default the rates decay linearly to zero, and training ends with the checkpoint of the best F1 on the validation
    data. `triaffine-ner train --help` describes all options; these are not in `TrainingArguments`, or differ:

    Attributes:
        learning_rate, encoder_learning_rate: of the triaffine head and of the encoder.
        embeddings_learning_rate: of word, part-of-speech and character embeddings and of the BiLSTM.
        min_steps: least number of updates: small training data gets more epochs.
        ema_decay: decay of a moving average of the weights, to score and save instead of them; None: no average.
        save_strategy: None: as `eval_strategy`, or "epoch" without evaluation.
        save_steps: None: as often as evaluations, or 500.
        train_sampling_strategy: "group_by_length" or "random".
        max_subwords_per_batch: sub-words in a batch of each process, padding included; None: a number of sentences.
        resume_from_checkpoint: a folder, or "latest" for the latest undamaged one in `output_dir`, if any.

    Raises:
        ValueError: an option has no effect in [`NestedNERTrainer`], or its value is not possible.
    """

    output_dir: str = "outputs"
    learning_rate: float = 3e-5
    encoder_learning_rate: float = 3e-5
    embeddings_learning_rate: float = 5e-4
    num_train_epochs: float = 15.0
    min_steps: int = 0
    weight_decay: float = 0.01
    ema_decay: float | None = None
    max_grad_norm: float = 0.1
    do_train: bool = True
    do_eval: bool = True
    eval_strategy: IntervalStrategy | str = "epoch"
    save_strategy: SaveStrategy | str = AS_EVALUATED
    save_steps: float = AS_EVALUATED
    save_total_limit: int | None = 1
    load_best_model_at_end: bool = True
    metric_for_best_model: str | None = "f1"
    logging_steps: float = 50
    logging_nan_inf_filter: bool = False
    train_sampling_strategy: str = "group_by_length"
    max_subwords_per_batch: int | None = None
    hub_strategy: HubStrategy | str = "end"
    remove_unused_columns: bool = False
    label_names: list[str] | None = field(default_factory=lambda: ["labels"])
    ddp_find_unused_parameters: bool | None = False
    resume_from_checkpoint: str | None = field(default=None, metadata={"nargs": "?", "const": LATEST})

    def __post_init__(self) -> None:
        if self.accelerator_config is None and torch.cuda.is_available():
            # Copies pinned batches to the GPU during the previous step.
            self.accelerator_config = {"non_blocking": True}
        # Where this is not set, Accelerate lets each of several processes train alone.
        self.use_cpu |= not torch.accelerator.is_available()
        if self.bf16 and self.use_cpu:
            self.bf16 = multiplies_bfloat16()
            if not self.bf16:
                logger.warning("This processor has no instructions for bfloat16; training computes in float32.")
        self._check_numbers()
        is_evaluated = self.eval_strategy != IntervalStrategy.NO
        self.load_best_model_at_end &= is_evaluated
        if self.save_strategy is None:
            self.save_strategy = self.eval_strategy if is_evaluated else "epoch"
        self._check_steps()
        if self.save_steps is None:
            in_steps = self.save_strategy == self.eval_strategy == IntervalStrategy.STEPS
            self.save_steps = (self.eval_steps or self.logging_steps) if in_steps else 500
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
            given: Any = self.lr_scheduler_kwargs or {}
            self.lr_scheduler_kwargs = {"mode": mode, **given}
        if self.max_subwords_per_batch is not None:
            self._check_batches_by_subwords()
        self._check_parallelism()
        if self.remove_unused_columns:
            raise ValueError(
                "remove_unused_columns is on, but batches are encoded from all columns of the records; leave it off."
            )

    def epochs_for_min_steps(self, batches: int) -> float:
        """`num_train_epochs`, or the first number of epochs, of so many batches, with `min_steps` updates."""
        updates = max(1, math.ceil(batches / self.gradient_accumulation_steps))
        if self.max_steps > 0 or math.ceil(updates * self.num_train_epochs) >= (self.min_steps or 0):
            return self.num_train_epochs
        epochs = math.ceil(self.min_steps / updates)
        logger.info(
            "The training data is small: %d epochs instead of %g, for at least %d updates (min_steps).",
            *(epochs, self.num_train_epochs, self.min_steps),
        )
        return epochs

    def _check_steps(self) -> None:
        """Raises ValueError for numbers of updates between evaluations or checkpoints that come at other times."""
        for name, strategy in (("eval_steps", self.eval_strategy), ("save_steps", self.save_strategy)):
            steps, default = getattr(self, name), TrainingArguments.__dataclass_fields__[name].default
            if steps not in (None, default) and strategy not in (IntervalStrategy.STEPS, IntervalStrategy.NO):
                raise ValueError(
                    f"{name} is {float(steps):g}, but {name.replace('steps', 'strategy')} is "
                    f"{getattr(strategy, 'value', strategy)!r}. Set eval_strategy and save_strategy to 'steps', or "
                    f"leave {name} out."
                )

    def _check_numbers(self) -> None:
        """Raises ValueError for numbers with which training is not possible."""
        for name, (least, limit) in BOUNDS.items():
            value = getattr(self, name)
            if isinstance(value, str):  # as YAML reads 3e-5, which has no point
                value = parse_number(name, value)
                setattr(self, name, value)
            if value is not None and not least <= float(value) < limit:
                below = f" and below {limit}" if limit < math.inf else ""
                raise ValueError(f"{name} is {float(value):g}; it must be at least {least}{below}.")
        if not (self.max_steps > 0 or 0 < self.num_train_epochs < math.inf):
            raise ValueError(
                f"num_train_epochs is {self.num_train_epochs:g} and max_steps {self.max_steps}, so there is nothing to "
                "train; set one of them above 0. To score without training, set do_train to False."
            )
        if self.warmup_steps > 1 and not float(self.warmup_steps).is_integer():
            raise ValueError(
                f"warmup_steps is {self.warmup_steps:g}; give a whole number of updates, or a fraction below 1."
            )
        if self.dataloader_persistent_workers and not self.dataloader_num_workers:
            raise ValueError("dataloader_persistent_workers needs workers; set dataloader_num_workers above 0.")
        if 0 < self.max_steps <= self.warmup_steps:
            raise ValueError(
                f"warmup_steps is {self.warmup_steps:g}, but the training has {self.max_steps} updates (max_steps): "
                "the learning rates would never be reached. Give fewer."
            )

    def _check_batches_by_subwords(self) -> None:
        if self.train_sampling_strategy != "group_by_length":
            raise ValueError(
                "max_subwords_per_batch groups sentences of similar length; it needs train_sampling_strategy "
                "'group_by_length'."
            )
        if self.auto_find_batch_size:
            raise ValueError(
                "auto_find_batch_size sets the number of sentences in a batch, which max_subwords_per_batch replaces; "
                "leave one of the two out."
            )

    def _check_parallelism(self) -> None:
        if self.ema_decay is not None and (self.deepspeed or self.fsdp):
            raise ValueError("ema_decay averages whole weights, but deepspeed and fsdp shard them; leave one out.")
