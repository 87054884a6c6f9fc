"""The checkpoints in a run's folder: those that are complete, and the one from which a run is resumed.

The Trainer saves, rotates and loads checkpoints. It writes `trainer_state.json` last, and deletes older checkpoints
only then. A process killed at any moment therefore leaves at least the previous checkpoint, and the unfinished one
lacks a readable state.
"""

import logging
import shutil
from pathlib import Path

from filelock import FileLock, Timeout
from transformers import TrainerState
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..publishing.run_summary import SUMMARY_FILE
from .interruptions import CheckpointError
from .options import LATEST

logger = logging.getLogger(__name__)

# Written last: a folder with it is that of a finished run.
RESULTS_FILE = "all_results.json"
LOCK_FILE = ".lock"


def list_checkpoints(output_dir: str | Path) -> list[Path]:
    """The folders `checkpoint-N` of a run, incomplete ones included, by update."""
    paths = Path(output_dir).glob(f"{PREFIX_CHECKPOINT_DIR}-*")
    return sorted((path for path in paths if path.name.split("-", 1)[1].isdecimal()), key=_update)


def read_state(checkpoint: str | Path) -> TrainerState | None:
    """The Trainer's state in a checkpoint; None for one that is incomplete."""
    try:
        return TrainerState.load_from_json(str(Path(checkpoint) / TRAINER_STATE_NAME))
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def find_checkpoint(wanted: str | bool | None, output_dir: str | Path) -> str | None:
    """The checkpoint to resume from; None to start from scratch.

    `wanted` is the folder of a checkpoint; True or "latest" for the latest complete one in `output_dir`, if any. Raises
    CheckpointError if it is not a complete checkpoint.
    """
    if not wanted:
        return None
    if wanted is True or wanted == LATEST:
        latest_first = reversed(list_checkpoints(output_dir))
        found = next((str(checkpoint) for checkpoint in latest_first if read_state(checkpoint)), None)
        if found is None:
            logger.warning("There is no complete checkpoint in %s to resume from: starting from scratch.", output_dir)
        return found
    if read_state(wanted) is None:
        raise CheckpointError(
            f"{wanted} is not a complete checkpoint: it has no {TRAINER_STATE_NAME} that can be read. {_before(wanted)}"
        )
    return str(wanted)


def damaged(checkpoint: str | Path, error: Exception) -> CheckpointError:
    """The error for a checkpoint of which a file cannot be loaded."""
    return CheckpointError(
        f"The checkpoint {checkpoint} cannot be loaded ({type(error).__name__}: {str(error).partition('. ')[0]}). "
        f"{_before(checkpoint)}"
    )


def _before(checkpoint: str | Path) -> str:
    """What to do without a checkpoint: resume from the complete one before it, if there is one."""
    folder = Path(checkpoint)
    earlier = [path for path in list_checkpoints(folder.parent) if path.name != folder.name and read_state(path)]
    if not earlier:
        return "There is no other complete one, so start a new run in another folder."
    return f"Resume from another one: --resume_from_checkpoint {earlier[-1]}"


def choose_checkpoint(wanted: str | bool | None, output_dir: str | Path, do_train: bool) -> str | None:
    """The checkpoint that a run resumes from; None to start. Raises ValueError if it would overwrite an earlier run."""
    checkpoint = find_checkpoint(wanted, output_dir) if do_train else None
    if checkpoint is not None:
        return checkpoint
    folder = Path(output_dir)
    files = (folder / RESULTS_FILE, folder / SUMMARY_FILE)
    left = [*list_checkpoints(folder), *(path for path in files if path.exists())]
    # A run that was killed while it saved can be begun again; one that has its results is finished.
    if left and not (wanted and not (folder / RESULTS_FILE).exists()):
        raise ValueError(
            f"--output_dir {folder} has {left[-1].name} of an earlier run. Add --resume_from_checkpoint to continue a "
            "run with checkpoints, or give another folder."
        )
    return None


def lock_folder(output_dir: str | Path) -> FileLock:
    """The lock of a run's folder, held until it is released; raises ValueError if another process holds it."""
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK_FILE, timeout=0, is_singleton=True)
    try:
        lock.acquire()
    except Timeout as error:
        raise ValueError(f"Another run is writing to --output_dir {folder}. Give another folder.") from error
    return lock


def remove_incomplete(output_dir: str | Path, start: TrainerState | None) -> None:
    """Removes incomplete checkpoints later than the one that training starts from; warns of them and of complete ones.

    The rotation counts folders, so it could otherwise keep an incomplete checkpoint and delete the last complete one.
    """
    for checkpoint in list_checkpoints(output_dir):
        if start is not None and _update(checkpoint) <= start.global_step:
            continue
        if read_state(checkpoint):
            logger.warning("%s is of a run that was not resumed, and the latest checkpoint may be its.", checkpoint)
        else:
            logger.warning("Removing %s, which is incomplete: training was killed while it was saved.", checkpoint)
            shutil.rmtree(checkpoint)


def _update(checkpoint: Path) -> int:
    return int(checkpoint.name.split("-")[1])
