"""Interruptions of a training: faults, signals, and the checkpoints from which it goes on.

The Trainer saves, rotates and loads checkpoints. It writes `trainer_state.json` last, and deletes older checkpoints
only then. A process killed at any moment therefore leaves at least the previous checkpoint, and the unfinished one
lacks a readable state.
"""

import contextlib
import hashlib
import json
import logging
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer import OPTIMIZER_NAME, TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..evaluation.scores import summary_metrics
from ..publishing.run_summary import SUMMARY_FILE
from .options import LATEST

logger = logging.getLogger(__name__)

RESULTS_FILE = "all_results.json"  # written last: a folder with it is that of a finished run

# Called gradient_checkpointing before transformers 5.23.
ACTIVATION_CHECKPOINTING = next(
    name for name in ("activation_checkpointing", "gradient_checkpointing") if hasattr(TrainingArguments, name)
)
MOST_SECONDS = 300.0  # between two checkpoints
# The key of `TrainingCallback.facts` in a checkpoint. Under the name of its class, transformers could replace it.
FACTS = "training_facts"
# Options that a resumed run keeps: the states of optimizer and sampler, and the best score, depend on them.
KEPT = (
    *("learning_rate", "encoder_learning_rate", "embeddings_learning_rate", "weight_decay", "ema_decay", "optim"),
    *("seed", "data_seed", "adam_beta1", "adam_beta2", "adam_epsilon", "metric_for_best_model", "greater_is_better"),
)


class TrainingFault(Exception):  # noqa: N818 - the fault is not the program's
    """Numbers, memory, a checkpoint or a signal end a training. A command prints the message and ends with code 2."""


class NotFiniteError(TrainingFault, FloatingPointError):
    """The loss, or a weight to be saved, is NaN or infinite."""

    def __init__(self, problem: str):
        super().__init__(
            f"{problem} Check the sentences. If they are fine, lower the learning rates or use --bf16 in place of "
            "--fp16, in a new run with the last checkpoint as --model_name_or_path: a resumed run keeps its rates."
        )


class OutOfMemoryError(TrainingFault, RuntimeError):
    """A batch does not fit into memory."""


class CheckpointError(TrainingFault, ValueError):
    """The checkpoint to resume from is missing, damaged, or of a training on other data."""


class StoppedError(TrainingFault):
    """SIGINT or SIGTERM stopped the training, which has saved a checkpoint."""


@contextlib.contextmanager
def explaining_memory() -> Iterator[None]:
    """Raises OutOfMemoryError for what does not fit."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise OutOfMemoryError(
            f"Out of memory ({str(error).partition('. GPU ')[0] or 'on the CPU'}). To reduce memory: "
            "--max_subwords_per_batch, or a smaller --per_device_train_batch_size with a larger "
            f"--gradient_accumulation_steps; --{ACTIVATION_CHECKPOINTING}; --bf16; or a new model with "
            "--triaffine_rank 64."
        ) from error


# ---- Checkpoints ----


def loading(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a method of the Trainer: its error for a damaged file names another checkpoint to resume from."""

    def loads(trainer: Any, checkpoint: str | None, *arguments: Any) -> None:
        try:
            load(trainer, checkpoint, *arguments)
        except Exception as error:  # pickle, torch, JSON and safetensors have their own errors for damaged files
            damaged = Path(str(checkpoint))
            others = [path for path in list_checkpoints(damaged.parent) if path != damaged and read_state(path)]
            remedy = f"--resume_from_checkpoint {others[-1]} resumes from another" if others else "Start a new run"
            problem = f"{type(error).__name__}: {str(error).partition('. ')[0]}"
            raise CheckpointError(f"The checkpoint {checkpoint} cannot be loaded ({problem}). {remedy}.") from error

    return loads


def list_checkpoints(output_dir: str | Path) -> list[Path]:
    """The folders `checkpoint-N` of a run, incomplete ones included, by update."""
    # Not by transformers' own function: it also lists `checkpoint-3-copy`, which is a person's and must not be renamed.
    paths = Path(output_dir).glob(f"{PREFIX_CHECKPOINT_DIR}-*/")
    numbered = [path for path in paths if path.name.split("-", 1)[1].isdecimal()]
    return sorted(numbered, key=lambda path: int(path.name.split("-")[1]))


def read_state(checkpoint: str | Path) -> TrainerState | None:
    """The Trainer's state in a checkpoint; None for one that is incomplete."""
    try:
        return TrainerState.load_from_json(str(Path(checkpoint) / TRAINER_STATE_NAME))
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def find_checkpoint(wanted: str | bool | None, output_dir: str | Path) -> str | None:
    """The checkpoint to resume from; None to start from scratch.

    `wanted` is its folder, or True or "latest" for the latest complete one in `output_dir`, if any. CheckpointError if
    the folder is not a complete checkpoint.
    """
    if wanted is True or wanted == LATEST:
        complete = [str(checkpoint) for checkpoint in list_checkpoints(output_dir) if read_state(checkpoint)]
        if complete:
            return complete[-1]
        logger.warning("There is no complete checkpoint in %s to resume from: starting from scratch.", output_dir)
    elif wanted:
        if read_state(wanted) is None:
            raise CheckpointError(f"{wanted} is not a complete checkpoint: {TRAINER_STATE_NAME} is missing or damaged.")
        return str(wanted)
    return None


def choose_checkpoint(wanted: str | bool | None, output_dir: str | Path) -> str | None:
    """The checkpoint that a run resumes from; None to start. Raises ValueError if it would overwrite an earlier run."""
    checkpoint, folder = find_checkpoint(wanted, output_dir), Path(output_dir)
    results = folder / RESULTS_FILE
    left = [*list_checkpoints(folder), *(path for path in (results, folder / SUMMARY_FILE) if path.exists())]
    # A run without results was killed, perhaps before its first checkpoint: --resume_from_checkpoint begins it again.
    if checkpoint is None and left and (results.exists() or not wanted):
        remedy = "Add --resume_from_checkpoint to continue a run with checkpoints, or give another folder"
        raise ValueError(f"--output_dir {folder} has {left[-1].name} of an earlier run. {remedy}.")
    return checkpoint


def set_incomplete_aside(output_dir: str | Path) -> None:
    """Renames incomplete checkpoints, which the Trainer's rotation would count, and keep in place of complete ones."""
    for checkpoint in list_checkpoints(output_dir):
        if read_state(checkpoint) is None:
            aside = checkpoint.with_name(f"incomplete-{checkpoint.name}-{time.time_ns()}")
            logger.warning("%s is incomplete, as if killed while it was saved; renamed to %s.", checkpoint, aside.name)
            checkpoint.rename(aside)


# ---- Events ----


class TrainingCallback(TrainerCallback):
    """Checks what a training resumes, saves in time, stops at a signal, and logs scores.

    Attributes:
        facts: the options in `KEPT` and a digest of the training data. They are saved in every checkpoint.
        sampler: the sampler of the run, which needs to know the epoch: if several processes resume in the middle of an
            epoch, accelerate wraps it twice, and neither wrapper passes the epoch on.
        most_evaluations: number of epochs, evenly spaced up to the last, that may end with an evaluation or checkpoint,
            where `min_steps` asks for many; None for all of them.
        planned: number of updates of the training that is resumed; 0 without one.
        has_signal: whether this process was told to stop.
        is_stopping: whether any process was: this update is the last one.
        is_due: whether a checkpoint is due in any process.
    """

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.sampler: Any = None
        self.most_evaluations: int | None = None
        self.planned = 0
        self.has_signal = self.is_stopping = self.is_due = False
        self.saved_at = math.inf

    def prepare(self, args: Any, checkpoint: str | None, records: Any, objective: str = "") -> None:
        """Takes over the options that a checkpoint keeps; raises CheckpointError if it is of another objective."""
        if args.should_save:
            set_incomplete_aside(args.output_dir)
        state: Any = None if checkpoint is None else read_state(checkpoint)
        self.planned = 0 if state is None else state.max_steps
        earlier = {} if state is None else state.stateful_callbacks.get(FACTS, {})
        changed = {name: old for name, old in earlier.items() if name in KEPT and old != getattr(args, name, None)}
        vars(args).update(changed)
        if changed:
            named = ", ".join(f"{name} {value}" for name, value in changed.items())
            logger.warning("Options stay as in the checkpoint: %s. A new run from it can have others.", named)
        digest = hashlib.blake2b(objective.encode(), digest_size=8)
        for row in () if records is None else zip(records["tokens"][:], records["entities"][:], strict=True):
            digest.update(json.dumps(row).encode())
        data = None if records is None else digest.hexdigest()
        if data != earlier.get("data", data):
            problem = "The checkpoint is of other sentences, --teacher, --keep_labels or --flat_annotation"
            remedy = "Resume with the same, or start a new run with it as --model_name_or_path"
            raise CheckpointError(f"{problem}. {remedy}.")
        self.facts = {"data": data, **{name: getattr(args, name) for name in KEPT if hasattr(args, name)}}
        if checkpoint is not None:
            if not (Path(checkpoint) / OPTIMIZER_NAME).is_file():
                raise CheckpointError(f"{checkpoint} has no optimizer (save_only_model). Start a new run from it.")
            logger.info("Resuming from %s.", checkpoint)

    @contextlib.contextmanager
    def noting_signals(self) -> Iterator[None]:
        """Notes the first SIGINT or SIGTERM within the block; the second one has its usual effect."""

        def note(number: int, frame: FrameType | None) -> None:
            self.has_signal = True
            restore()
            logger.warning("Stopping after this update, with a checkpoint. The next signal stops at once.")

        def restore() -> None:
            for number, handler in handlers.items():
                signal.signal(number, handler)

        self.has_signal = False
        handlers: dict[int, Any] = {}
        with contextlib.suppress(ValueError):  # other threads than the main one cannot set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                handlers[number] = signal.signal(number, note)
        try:
            yield
        finally:
            restore()

    def wants_checkpoint(self, args: Any) -> bool:
        return args.save_strategy != "no" and time.monotonic() - self.saved_at >= MOST_SECONDS

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        # Not beyond `planned`: resuming a finished training makes one more update than planned, and may be repeated.
        if state.max_steps < min(state.global_step, self.planned):
            raise CheckpointError(f"The checkpoint's update {state.global_step} exceeds --num_train_epochs; raise it.")
        self.saved_at, self.is_stopping, self.is_due = time.monotonic(), False, False
        states: Any = state.stateful_callbacks
        states[FACTS] = self.facts
        if args.save_strategy != "no":
            after = f"after update {args.save_steps}" if args.save_strategy == "steps" else "after an epoch"
            logger.info("The first checkpoint comes %s, or after %.0f minutes.", after, MOST_SECONDS / 60)

    def on_epoch_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.sampler is not None:
            self.sampler.set_epoch(int(state.epoch or 0))

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> TrainerControl:
        self.is_stopping &= not control.should_training_stop  # else this update is the last one anyway
        # The end of an epoch evaluates before it saves: a checkpoint from before would be resumed without its scores.
        ends_epoch = float(state.epoch or 0).is_integer()
        control.should_save |= (self.is_due or self.is_stopping) and not ends_epoch
        control.should_training_stop |= self.is_stopping
        args.save_only_model &= not self.is_stopping  # the run goes on from this checkpoint
        control.should_log |= control.should_evaluate  # the loss up to this evaluation
        return control

    def on_epoch_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> TrainerControl:
        ends_epoch = float(state.epoch or 0).is_integer()
        if self.is_stopping and not ends_epoch:
            control.should_evaluate = control.should_save = False
        elif self.most_evaluations is not None and (self.is_stopping or not control.should_training_stop):
            epoch, epochs = round(state.epoch or 0), state.num_train_epochs
            if self.most_evaluations * (epoch - 1) // epochs == self.most_evaluations * epoch // epochs:
                control.should_evaluate = control.should_save = False
        control.should_save |= ends_epoch and (self.is_stopping or self.is_due)
        control.should_log |= control.should_evaluate
        return control

    def on_save(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self.saved_at, self.is_due = time.monotonic(), False

    def on_log(self, args: Any, state: TrainerState, control: TrainerControl, logs: Any = None, **kwargs: Any) -> None:
        place = f"Update {state.global_step} of {state.max_steps}, epoch {state.epoch or 0:.4g}"
        if "loss" in logs:
            logger.info("%s: training loss %.4g", place, float(logs["loss"]))
        for prefix in (name.removesuffix("_loss") for name in logs if name.endswith("_loss")):
            if f"{prefix}_f1" in logs:
                of_set = prefix.replace("eval", "", 1).replace("_", " ", 1)  # the name, if there are several sets
                scores, loss = format_metrics(logs, prefix), float(logs[f"{prefix}_loss"])
                logger.info("%s:%s %s, loss %.4g", place, of_set, scores, loss)


def format_metrics(logs: Mapping[str, float], prefix: str = "eval") -> str:
    """The scores of an evaluation in percent, for a line of the log: `precision 71.2, recall 69.0, F1 70.1, …`."""
    scores = {title: logs.get(f"{prefix}_{name}") for name, title in summary_metrics().items()}
    return ", ".join(f"{title} {100 * float(score):.1f}" for title, score in scores.items() if score is not None)
