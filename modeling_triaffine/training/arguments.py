"""The training arguments: transformers', with the options that `options.py` declares, and what must fit together."""

import logging
import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from transformers import TrainingArguments
from transformers.debug_utils import DebugOption
from transformers.trainer_utils import HubStrategy, IntervalStrategy

from ..model.options_triaffine import DECLARED
from ..model.triaffine_weights import multiplies_bfloat16
from .options import OWN_OPTIONS, TrainingOptions, read_value

logger = logging.getLogger(__name__)

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
    "optim_target_modules": "GaLore and APOLLO, which read it, are not supported",
}


def without_effect(name: str) -> str:
    """The error for an option that is refused."""
    return f"{name} has no effect in this trainer: {WITHOUT_EFFECT[name]}. Leave it out."


def check_arguments(args: TrainingArguments, options: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Raises ValueError for arguments, or `options` of a trainer, that NestedNERTrainer ignores or cannot follow."""
    defaults = TrainingArguments.__dataclass_fields__
    for name in WITHOUT_EFFECT:
        is_changed = name in defaults and getattr(args, name) not in (defaults[name].default, [])
        if is_changed or options.get(name) is not None:
            raise ValueError(without_effect(name))
    if args.push_to_hub and args.hub_strategy != HubStrategy.END:
        raise ValueError(
            f"hub_strategy is {HubStrategy(args.hub_strategy).value!r}, but uploads during training would replace the "
            "published model with an unfinished one; set hub_strategy to 'end'."
        )
    if args.label_names is not None and [*args.label_names] != ["labels"]:
        raise ValueError(
            f"label_names is {args.label_names!r}, but the labels of a batch are in `labels`, so evaluation would have "
            "no loss. Leave it out."
        )
    if DebugOption.UNDERFLOW_OVERFLOW in args.debug:
        raise ValueError(
            f"debug is {DebugOption.UNDERFLOW_OVERFLOW.value!r}, which cannot read the masks of this model. Leave it "
            "out: a loss that is not finite is an error in any case, which names the sentences."
        )
    if args.fp16 and args.device.type == "cpu":
        raise ValueError("fp16 has no effect on a CPU. Leave it out, or choose bf16.")
    config: Any = args.accelerator_config
    if config.dispatch_batches or config.split_batches:
        raise ValueError(
            "accelerator_config sets dispatch_batches or split_batches, which divide a batch among the processes. "
            "Here every process makes its own batches; leave both out."
        )
    if isinstance(args, NestedNERTrainingArguments):
        args._check_conflicts()


def _readable_by_argparse(cls: Any) -> Any:
    """Gives declared fields the metadata that transformers' HfArgumentParser passes on, for parsers of one's own."""
    for name, one in cls.__dataclass_fields__.items():
        if declared := one.metadata.get(DECLARED):
            cls.__dataclass_fields__[name] = copied = copy(one)  # the declaration's own field stays as it is
            copied.metadata = MappingProxyType({"help": declared.doc.replace("%", "%%")})
    return cls


@_readable_by_argparse
@dataclass
class NestedNERTrainingArguments(TrainingOptions, TrainingArguments):
    """`TrainingArguments` with three learning rates and the paper's defaults (the rates are those for GENIA).

    By default the rates decay linearly to zero, and training ends with the checkpoint of the best F1 on the validation
    data. `triaffine-ner train --help` describes the options that differ from transformers', [`TrainingOptions`].

    Raises:
        ValueError: an option has no effect in [`NestedNERTrainer`], or its value is not possible.

    Examples:
        >>> from modeling_triaffine import NestedNERTrainingArguments
        >>> arguments = NestedNERTrainingArguments("outputs/mine", encoder_learning_rate=5e-5, use_cpu=True)
        >>> arguments.learning_rate, arguments.num_train_epochs
        (3e-05, 15.0)
    """

    output_dir: str = TrainingOptions.output_dir  # never None, which transformers allows
    label_names: list[str] | None = field(
        default_factory=lambda: ["labels"], metadata={"help": "Name of the labels in a batch; only labels is possible."}
    )

    def __post_init__(self) -> None:
        if self.accelerator_config is None and torch.cuda.is_available():
            # Copies pinned batches to the GPU during the previous step.
            self.accelerator_config = {"non_blocking": True}
        # Where this is not set, Accelerate lets each of several processes train alone.
        self.use_cpu |= not torch.accelerator.is_available()
        if self.bf16 and self.use_cpu:
            self.bf16 = multiplies_bfloat16()
            if not self.bf16:
                logger.warning("This processor multiplies float32 faster than bfloat16; training computes in float32.")
        for name, declared in OWN_OPTIONS.items():
            value = getattr(self, name, None)
            if value is not None and (declared.meanings or declared.type in (int, float)):
                setattr(self, name, read_value(declared, value))
        is_evaluated = self.eval_strategy != IntervalStrategy.NO
        self.load_best_model_at_end &= is_evaluated
        if self.save_strategy is None:
            self.save_strategy = self.eval_strategy if is_evaluated else "epoch"
        if self.save_steps is None:
            in_steps = self.save_strategy == self.eval_strategy == IntervalStrategy.STEPS
            self.save_steps = (self.eval_steps or self.logging_steps) if in_steps else 500
        self._check_best_is_saved()
        if self.greater_is_better is None and "f1_" in (self.metric_for_best_model or ""):
            self.greater_is_better = True  # transformers takes f1_Weight_loss, the F1 of a label, for a loss
        is_scored_at_end = self.do_eval
        check_of_trainer: Any = super().__post_init__  # untyped in transformers
        check_of_trainer()
        self.do_eval = is_scored_at_end  # which transformers turns on where training evaluates
        check_arguments(self)
        if self.lr_scheduler_type in ("reduce_lr_on_plateau", "greedy"):
            mode = "max" if self.greater_is_better else "min"  # their default lowers the rates while F1 rises
            given: Any = self.lr_scheduler_kwargs or {}
            self.lr_scheduler_kwargs = {"mode": mode, **given}

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

    def _check_best_is_saved(self) -> None:
        """Raises ValueError if the best checkpoint is wanted, and there is not one for every evaluation.

        transformers accepts evaluations between checkpoints, and may then name an update without one the best.
        """
        evaluated, problem = self.eval_steps or self.logging_steps, ""
        if self.save_strategy not in (self.eval_strategy, "best"):
            problem = f"eval_strategy is {self.eval_strategy!r} and save_strategy {self.save_strategy!r}"
        elif self.save_strategy == IntervalStrategy.STEPS and float(self.save_steps) != float(evaluated):
            problem = f"eval_steps is {float(evaluated):g} and save_steps {float(self.save_steps):g}"
        if problem and self.load_best_model_at_end:
            raise ValueError(
                f"{problem}, but the best checkpoint is one of those at an evaluation. Set both alike, or set "
                "load_best_model_at_end to False (--no_load_best_model_at_end)."
            )

    def _check_conflicts(self) -> None:
        """Raises ValueError for options that exclude each other, or train nothing."""
        if self.max_steps <= 0 and not 0 < self.num_train_epochs < math.inf:
            raise ValueError(
                f"num_train_epochs is {self.num_train_epochs:g} and max_steps {self.max_steps}, so there is nothing to "
                "train; set one of them above 0. To score without training, set do_train to False."
            )
        for name, strategy in (("eval_steps", self.eval_strategy), ("save_steps", self.save_strategy)):
            steps, default = getattr(self, name), TrainingArguments.__dataclass_fields__[name].default
            if steps not in (None, default) and strategy not in (IntervalStrategy.STEPS, IntervalStrategy.NO):
                raise ValueError(
                    f"{name} is {float(steps):g}, but {name.replace('steps', 'strategy')} is "
                    f"{getattr(strategy, 'value', strategy)!r}. Set eval_strategy and save_strategy to 'steps', or "
                    f"leave {name} out."
                )
        if self.push_to_hub and not self.do_train:
            raise ValueError(
                "push_to_hub publishes the trained model, but without do_train there is none. Publish an existing "
                "model with triaffine-ner publish."
            )
        if self.max_subwords_per_batch is not None and self.train_sampling_strategy != "group_by_length":
            raise ValueError(
                "max_subwords_per_batch groups sentences of similar length; it needs train_sampling_strategy "
                "'group_by_length'."
            )
        if self.max_subwords_per_batch is not None and self.auto_find_batch_size:
            raise ValueError(
                "auto_find_batch_size sets the number of sentences in a batch, which max_subwords_per_batch replaces; "
                "leave out one of the two."
            )
        if self.dataloader_persistent_workers and not self.dataloader_num_workers:
            raise ValueError(
                "dataloader_persistent_workers keeps processes, but dataloader_num_workers is 0, so there are none. "
                "Set dataloader_num_workers above 0, or leave out dataloader_persistent_workers."
            )
        if self.ema_decay is not None and (self.deepspeed or self.fsdp):
            raise ValueError(
                "ema_decay averages whole weights, but deepspeed and fsdp shard them; leave out one of the two."
            )
        optimizer = getattr(self.optim, "value", self.optim)
        if self.ema_decay is not None and optimizer.startswith("schedule_free"):
            raise ValueError(f"ema_decay averages weights, which {optimizer} does itself; leave out one of the two.")
