"""What stops a training without an error in the program: each is a [`TrainingFault`], which says what to do."""

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

import torch
from transformers import TrainingArguments

logger = logging.getLogger(__name__)

# Called gradient_checkpointing before transformers 5.23.
ACTIVATION_CHECKPOINTING = next(
    name for name in ("activation_checkpointing", "gradient_checkpointing") if hasattr(TrainingArguments, name)
)
REMEDIES = (
    "Check the sentences. If they are fine, lower the learning rates or use --bf16 in place of --fp16, in a new run "
    "with the last checkpoint as --model_name_or_path: a resumed run keeps its rates."
)
RESUME = "the same command with --resume_from_checkpoint continues from the last complete checkpoint"


class TrainingFault(Exception):  # noqa: N818 - what is at fault is not the program
    """A fault of numbers, memory or disk, or a signal. A command prints its message, one paragraph, and ends with 2."""


class NotFiniteError(TrainingFault, FloatingPointError):
    """The loss, or a weight to be saved, is NaN or infinite."""


class OutOfMemoryError(TrainingFault, RuntimeError):
    """A batch does not fit into memory."""


class SavingError(TrainingFault, OSError):
    """A checkpoint cannot be written."""


class CheckpointError(TrainingFault, ValueError):
    """The checkpoint to resume from is missing, damaged, or of a training on other data."""


class StoppedError(TrainingFault):
    """SIGINT or SIGTERM stopped the training, which has saved a checkpoint."""


class Signals:
    """Notes the first SIGINT or SIGTERM within the block; the second one ends the process as ever."""

    received: int | None = None

    def __enter__(self) -> "Signals":
        self._handlers = {}
        if threading.current_thread() is threading.main_thread():  # other threads cannot set handlers
            self._handlers = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self.__exit__()
        logger.warning("Stopping after this update, with a checkpoint. The next signal stops at once.")


def loss_error(update: int, loss: float, sentences: Sequence[str], broken: Sequence[str]) -> NotFiniteError:
    """The error for a loss that is not finite; `broken` are names of weights that were not finite before the update."""
    named = ", ".join(map(repr, sentences[:20]))
    cause = f"All weights are finite, so the cause is in the batch of the sentences {named}."
    if broken:
        cause = f"The cause is the previous update, or the model that training started from: {_describe(broken)}."
    return NotFiniteError(
        f"The loss of update {update} is {loss}, so training stopped before the weights changed. {cause} {REMEDIES}"
    )


def weights_error(what: str, broken: Sequence[str]) -> NotFiniteError:
    """The error for weights that are NaN or infinite when `what` is to be saved."""
    return NotFiniteError(f"{what} is not saved: {_describe(broken)}. {REMEDIES}")


def _describe(broken: Sequence[str]) -> str:
    return f"{len(broken)} weights, such as {broken[0]}, have values that are not finite"


@contextlib.contextmanager
def explaining_memory(batch: Sequence[int] = ()) -> Iterator[None]:
    """Raises OutOfMemoryError for what does not fit; `batch` has the sentences and sub-words of the batch then."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        where = f" at a batch of {batch[0]} sentences of up to {batch[1]} sub-words" if batch else ""
        raise OutOfMemoryError(
            f"Out of memory{where} ({str(error).partition('. GPU ')[0] or 'on the CPU'}). To reduce memory: "
            "--max_subwords_per_batch, or a smaller --per_device_train_batch_size with a larger "
            f"--gradient_accumulation_steps; --{ACTIVATION_CHECKPOINTING}; --bf16; or a new model with "
            "--triaffine_rank 64."
        ) from error
