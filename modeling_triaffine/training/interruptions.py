"""What interrupts a run without an error in the program.

Numbers, memory, disk, an incomplete checkpoint or a signal: each is raised as a [`TrainingFault`], whose message is one
paragraph: what happened, and what to do.
"""

import contextlib
import errno
import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import TrainingArguments

logger = logging.getLogger(__name__)

# Parts of messages of torch, which has no classes for these errors.
OF_MEMORY = ("DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED")
OF_WRITING = ("inline_container.cc", "Parent directory", "I/O error", "I/OError", "IoError")
# Errors of a disk: full, over quota or a limit, read-only, not permitted, broken.
DISK_ERRORS = ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "EIO", "ENOTDIR")
OF_DISK = {getattr(errno, name) for name in DISK_ERRORS if hasattr(errno, name)}
MAX_SENTENCES = 20
# Called gradient_checkpointing before transformers 5.23.
ACTIVATION_CHECKPOINTING = next(
    name for name in ("activation_checkpointing", "gradient_checkpointing") if hasattr(TrainingArguments, name)
)
SMALLER_BATCHES = (
    "--max_subwords_per_batch, or a smaller --per_device_train_batch_size with a larger --gradient_accumulation_steps "
    "(and --per_device_eval_batch_size); "
)
REMEDIES = (
    "Check the sentences. If they are fine, lower the learning rates (--learning_rate, --encoder_learning_rate, "
    "--embeddings_learning_rate) or use --bf16 instead of --fp16, in a new run with the last checkpoint as "
    "--model_name_or_path, because a resumed run keeps its rates."
)
RESUME = "the same command with --resume_from_checkpoint continues from the last complete checkpoint"


class TrainingFault(Exception):  # noqa: N818 - what is at fault is not the program
    """A fault of numbers, memory or disk, or a signal. A command prints its message, one paragraph, and ends with 2."""


class NotFiniteError(TrainingFault, FloatingPointError):
    """The loss, or a weight to be saved, is NaN or infinite."""


class OutOfMemoryError(TrainingFault, RuntimeError):
    """A batch does not fit into memory."""


class SavingError(TrainingFault, OSError):
    """The output folder cannot be written to."""


class DamagedCheckpointError(TrainingFault, ValueError):
    """The checkpoint to resume from is missing or incomplete."""


class ResumeError(TrainingFault, ValueError):
    """The checkpoint cannot be resumed with these options."""


class StoppedError(TrainingFault):
    """A signal stopped the training, which has saved a checkpoint before (`enable_jit_checkpoint`)."""


def check_writable(output_dir: str | Path) -> None:
    """Raises SavingError unless a file can be written to the folder, or to its closest existing parent."""
    existing = Path(output_dir).absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing) as probe:  # has no name, and leaves nothing behind
            probe.write(b"\0")
            probe.flush()
    except OSError as error:
        reason = f"{existing} is a file" if existing.is_file() else f"{existing}: {error.strerror}"
        raise SavingError(
            f"--output_dir {output_dir} cannot be written to ({reason}). Give another folder, or make room and check "
            "the permissions."
        ) from error


def loss_error(update: int, loss: float, sentences: Sequence[str], broken: Sequence[str]) -> NotFiniteError:
    """Returns the error for an update, numbered from 1, whose loss is NaN or infinite.

    `sentences` are the ids in the batches at fault, `broken` the names of weights that were not finite before.
    """
    if broken:
        cause = (
            f"The cause is the previous update, or the model that training started from: {_describe_weights(broken)}."
        )
    else:
        more = f" and {len(sentences) - MAX_SENTENCES} more" if len(sentences) > MAX_SENTENCES else ""
        cause = (
            f"All weights are finite, so the cause is in the batch of the sentences "
            f"{', '.join(map(repr, sentences[:MAX_SENTENCES]))}{more}."
        )
    return NotFiniteError(
        f"The loss of update {update} is {loss}, so training stopped before the weights changed. {cause} {REMEDIES}"
    )


def weights_error(what: str, broken: Sequence[str]) -> NotFiniteError:
    """Returns the error for weights that are NaN or infinite when `what` is to be saved."""
    return NotFiniteError(f"{what} is not saved: {_describe_weights(broken)}. {REMEDIES}")


def _describe_weights(broken: Sequence[str]) -> str:
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return f"the weight {broken[0]}{more} has values that are not finite"


@dataclass
class CurrentBatch:
    """The batch that a trainer computes: its number of sentences, of sub-words in a row, and its first sentence."""

    sentences: int = 0  # as long as there was no batch
    subwords: int = 0
    first: str = ""


@contextlib.contextmanager
def explaining_faults(output_dir: str | Path, batch: CurrentBatch | None = None, process: int = 0) -> Iterator[None]:
    """Raises out-of-memory errors as OutOfMemoryError, and errors of writing to disk as SavingError.

    Args:
        output_dir: the folder that is written to.
        batch: read when an error occurs.
        process: index of this process. A command prints the fault of process 0; the others log theirs.
    """
    try:
        yield
    except TrainingFault:
        raise
    except (RuntimeError, MemoryError, OSError, SafetensorError) as error:
        if isinstance(error.__cause__, TrainingFault):  # wrapped by transformers' search for a batch size
            raise error.__cause__ from None
        fault: TrainingFault
        if _is_out_of_memory(error):
            fault = OutOfMemoryError(_describe_memory(error, batch or CurrentBatch()))
        elif _is_disk(error):
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            fault = SavingError(
                f"{output_dir} could not be written to ({reason}). Make room or restore the permissions; then {RESUME}."
            )
        else:
            raise
        if process > 0:
            logger.error("Process %d: %s", process, fault)
        raise fault from error


def _is_out_of_memory(error: BaseException) -> bool:
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return known or any(sign in str(error) for sign in OF_MEMORY)


def _is_disk(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in OF_DISK
    return any(sign in str(error) for sign in OF_WRITING)


def _describe_memory(error: BaseException, batch: CurrentBatch) -> str:
    # torch's message starts with a place in its own code; its first two sentences state what was requested.
    message = re.sub(r"^\[enforce fail[^]]*\][^.]*\. ", "", str(error)) or type(error).__name__
    # On Windows and arm64 torch words it otherwise, which the search for a batch size does not know.
    message = message.replace("DefaultCPUAllocator: not enough memory", "DefaultCPUAllocator: can't allocate memory")
    reason = ". ".join(message.splitlines()[0].split(". ")[:2]).rstrip(".")
    where, smaller = "", SMALLER_BATCHES
    if batch.sentences == 1:
        name = f", {batch.first[:80]!r}" if batch.first else ""
        where = f" at one sentence of {batch.subwords} sub-words{name}"
        smaller = "end the sentence earlier, or leave it out; "
    elif batch.sentences:
        where = f" at a batch of {batch.sentences} sentences of up to {batch.subwords} sub-words"
    return (
        f"Out of memory{where} ({reason}). To reduce memory: {smaller}--{ACTIVATION_CHECKPOINTING}; --bf16; "
        "or a new model with --triaffine_rank 64."
    )
