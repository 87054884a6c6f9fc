"""The checkpoints in a run's folder: those that are complete, and the one from which a run is resumed.

The Trainer saves, rotates and loads checkpoints. It writes `trainer_state.json` last, and deletes older checkpoints
only then. A process killed at any moment therefore leaves at least the previous checkpoint, and the unfinished one
lacks a readable state.
"""

import logging
import shutil
from pathlib import Path

from transformers import TrainerState
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..publishing.run_summary import SUMMARY_FILE
from .arguments import NestedNERTrainingArguments
from .interruptions import DamagedCheckpointError, check_writable
from .options import LATEST

logger = logging.getLogger(__name__)

# Written last: a folder with it is that of a finished run.
RESULTS_FILE = "all_results.json"


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
    if not training.do_train and any((folder / name).exists() for name in (SUMMARY_FILE, RESULTS_FILE)):
        raise ValueError(
            f"--output_dir {folder} has the results of an earlier run, which scoring a model would overwrite. Give "
            "another folder."
        )
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
