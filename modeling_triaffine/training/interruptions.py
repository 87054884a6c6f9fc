"""What interrupts a run without an error in the program, and the checkpoint from which it is resumed.

Numbers, memory, disk or an incomplete checkpoint: each is raised as a [`TrainingFault`], whose message is one
paragraph: what happened, and what to do.

The Trainer saves, rotates and loads checkpoints. It writes `trainer_state.json` last, and deletes older checkpoints
only then. A process killed at any moment therefore leaves at least the previous checkpoint, and the unfinished one
lacks a readable state.
"""

import contextlib
import errno
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..publishing.run_summary import SUMMARY_FILE
from .arguments import NestedNERTrainingArguments
from .options import LATEST

logger = logging.getLogger(__name__)

# Parts of messages of torch, which has no classes for these errors.
OF_MEMORY = ("DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED")
OF_WRITING = ("inline_container.cc", "Parent directory", "I/O error", "I/OError", "IoError")
# Errors of a disk: full, over quota or a limit, read-only, not permitted, broken.
DISK_ERRORS = ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "EIO", "ENOTDIR")
OF_DISK = {getattr(errno, name) for name in DISK_ERRORS if hasattr(errno, name)}
MAX_SENTENCES = 20
# Written last: a folder with it is that of a finished run.
RESULTS_FILE = "all_results.json"
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
    """A fault of numbers, memory or disk. A command prints its message, one paragraph, and ends with code 2."""


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


# ---- Checkpoints ----


def list_checkpoints(output_dir: str | Path) -> list[Path]:
    """Returns the folders `checkpoint-N` of a run, incomplete ones included, by update."""
    paths = Path(output_dir).glob(f"{PREFIX_CHECKPOINT_DIR}-*")
    return sorted((path for path in paths if path.name.split("-", 1)[1].isdecimal()), key=_update)


def is_complete(checkpoint: str | Path) -> bool:
    """Whether the Trainer finished saving a checkpoint: it writes the state after all other files."""
    try:
        TrainerState.load_from_json(str(Path(checkpoint) / TRAINER_STATE_NAME))
    except (OSError, ValueError, TypeError):
        return False
    return True


def find_checkpoint(wanted: str | bool | None, output_dir: str | Path) -> str | None:
    """The checkpoint to resume from; None to start from scratch.

    `wanted` is the folder of a checkpoint; True or "latest" for the latest complete one in `output_dir`, if any. Raises
    DamagedCheckpointError if it is not a checkpoint, or its state is cut off or unreadable.
    """
    if not wanted:
        return None
    if wanted is True or wanted == LATEST:
        latest_first = reversed(list_checkpoints(output_dir))
        return next((str(checkpoint) for checkpoint in latest_first if is_complete(checkpoint)), None)
    if not is_complete(wanted):
        raise DamagedCheckpointError(
            f"{wanted} is not a complete checkpoint: it has no {TRAINER_STATE_NAME} that can be read. Give a folder "
            "checkpoint-N of an earlier run, or --resume_from_checkpoint without a path for the latest complete one in "
            "the output folder."
        )
    return str(wanted)


def choose_checkpoint(training: NestedNERTrainingArguments) -> str | None:
    """The checkpoint that a run, with these arguments, resumes from; None to start from scratch.

    Raises:
        ValueError: the run would overwrite an earlier one, or there is no such checkpoint.
        SavingError: the output folder cannot be written to.
    """
    if training.should_save:
        check_writable(training.output_dir)
    folder, resumes = Path(training.output_dir), bool(training.resume_from_checkpoint)
    checkpoint = find_checkpoint(training.resume_from_checkpoint, folder)
    if checkpoint is not None or not training.do_train:
        return checkpoint
    checkpoints = list_checkpoints(folder)
    if checkpoints and not resumes:
        raise ValueError(
            f"--output_dir {folder} has {checkpoints[-1].name} of an earlier run. Add --resume_from_checkpoint to "
            "continue that run, or give another folder."
        )
    # A run that was killed while it saved can be begun again; one that has its results is finished.
    was_killed = resumes and not (folder / RESULTS_FILE).exists()
    if (folder / SUMMARY_FILE).exists() and not was_killed:
        missing = ", and no checkpoint to resume from" if resumes else ""
        raise ValueError(
            f"--output_dir {folder} has the model of an earlier run{missing}. Delete it, or give another folder."
        )
    return None


def remove_incomplete(output_dir: str | Path, start: str | None) -> None:
    """Removes incomplete checkpoints later than the one that training starts from; warns of them and of complete ones.

    The rotation counts folders, so it could otherwise keep an incomplete checkpoint and delete the last complete one.
    """
    first = -1 if start is None else TrainerState.load_from_json(str(Path(start) / TRAINER_STATE_NAME)).global_step
    for checkpoint in list_checkpoints(output_dir):
        if _update(checkpoint) <= first:
            continue
        if is_complete(checkpoint):
            logger.warning(
                "%s is later than the checkpoint that training starts from, so the latest checkpoint may belong to an "
                "abandoned run. Delete it, or name the checkpoint when you resume.",
                checkpoint,
            )
        else:
            logger.warning("Removing %s, which is incomplete: training was killed while it was saved.", checkpoint)
            shutil.rmtree(checkpoint)


def _update(checkpoint: Path) -> int:
    return int(checkpoint.name.split("-")[1])
