"""Finds the checkpoint to resume from: the latest that is complete and readable.

The Trainer saves, rotates and loads checkpoints. It writes `trainer_state.json` last, after [`NestedNERTrainer`] has
listed all other files of the checkpoint in it, and deletes older checkpoints only then. A process killed at any moment
therefore leaves at least the previous checkpoint, and `find_damage` recognizes the unfinished one.
"""

import errno
import json
import logging
import shutil
import zipfile
from pathlib import Path

from safetensors import safe_open
from transformers import TrainerState
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from .faults import DamagedCheckpointError
from .options import LATEST

logger = logging.getLogger(__name__)

# Key in `TrainerState.stateful_callbacks`, part of trainer_state.json: name → size in bytes of each file.
FILES = "checkpoint_files"
# Files written after the list, or removed after it: transformers marks a checkpoint while it saves at SIGTERM.
UNLISTED = (TRAINER_STATE_NAME, "checkpoint-is-incomplete.txt")


def list_files(checkpoint: str | Path) -> dict[str, int]:
    """Returns the size in bytes of every file of a checkpoint but `UNLISTED` ones, by its path in the folder."""
    paths = [path for path in sorted(Path(checkpoint).rglob("*")) if path.is_file() and path.name not in UNLISTED]
    return {path.relative_to(checkpoint).as_posix(): path.stat().st_size for path in paths}


def list_checkpoints(output_dir: str | Path) -> list[Path]:
    """Returns the folders `checkpoint-N` of a run, damaged ones included, by update."""
    paths = Path(output_dir).glob(f"{PREFIX_CHECKPOINT_DIR}-*")
    return sorted((path for path in paths if path.name.split("-", 1)[1].isdecimal()), key=_update)


def find_damage(checkpoint: str | Path) -> str | None:
    """Returns the first file of a checkpoint that is missing, cut off or unreadable, and why; None if there is none.

    The values of the weights are not checked; loading the model does so.
    """
    checkpoint = Path(checkpoint)
    if not (checkpoint / TRAINER_STATE_NAME).is_file():
        return f"{TRAINER_STATE_NAME} is missing"
    found = list_files(checkpoint)
    for name in (TRAINER_STATE_NAME, *found):
        reason = _find_damage_of_file(checkpoint / name)
        if reason is not None:
            return f"{name}: {reason}"
    state = json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
    if not isinstance(state, dict):
        return f"{TRAINER_STATE_NAME} is not a JSON object"
    listed = (state.get("stateful_callbacks") or {}).get(FILES, {})  # none in checkpoints of earlier versions
    for name, size in listed.items():
        if name not in found:
            return f"{name} is missing"
        if found[name] != size:
            return f"{name} has {found[name]} bytes instead of {size}"
    return None


def find_checkpoint(wanted: str | bool | None, output_dir: str | Path) -> str | None:
    """Returns the checkpoint to resume from; None to start from scratch.

    Args:
        wanted: folder of a checkpoint; True or "latest" for the latest undamaged one in `output_dir`, if any.
        output_dir: the folder of the run.

    Raises:
        FileNotFoundError: `wanted` is not a checkpoint.
        DamagedCheckpointError: one of its files is missing, cut off or unreadable.
    """
    if not wanted:
        return None
    if wanted is True or wanted == LATEST:
        latest_first = reversed(list_checkpoints(output_dir))
        return next((str(checkpoint) for checkpoint in latest_first if find_damage(checkpoint) is None), None)
    if not (Path(wanted) / TRAINER_STATE_NAME).is_file():
        raise FileNotFoundError(
            f"{wanted} is not a checkpoint: it has no {TRAINER_STATE_NAME}. Give a folder checkpoint-N of an earlier "
            "run, or --resume_from_checkpoint without a path for the latest one in the output folder."
        )
    damage = find_damage(wanted)
    if damage is not None:
        raise DamagedCheckpointError(
            f"The checkpoint {wanted} is damaged or incomplete ({damage}). Resume from another one, or give "
            "--resume_from_checkpoint without a path for the latest undamaged one in the output folder."
        )
    return str(wanted)


def remove_damaged(output_dir: str | Path, start: str | None) -> None:
    """Removes damaged checkpoints later than the one that training starts from; warns of them and of undamaged ones.

    The rotation counts folders, so it could otherwise keep a damaged checkpoint and delete the last undamaged one.
    """
    first = -1 if start is None else TrainerState.load_from_json(str(Path(start) / TRAINER_STATE_NAME)).global_step
    for checkpoint in list_checkpoints(output_dir):
        if _update(checkpoint) <= first:
            continue
        damage = find_damage(checkpoint)
        if damage is None:
            logger.warning(
                "%s is later than the checkpoint that training starts from: the latest checkpoint may be one of an "
                "abandoned course. Delete it, or name the checkpoint when you resume.",
                checkpoint,
            )
        else:
            logger.warning("Removing %s, which is incomplete or damaged (%s).", checkpoint, damage)
            shutil.rmtree(checkpoint)


def _update(checkpoint: Path) -> int:
    return int(checkpoint.name.split("-")[1])


def _find_damage_of_file(path: Path) -> str | None:
    try:
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".safetensors":  # compares the header with the size of the file
            with safe_open(path, framework="pt"):
                pass
        elif path.suffix in (".pt", ".pth", ".bin"):  # zip archives with check sums; nothing is unpickled
            with zipfile.ZipFile(path) as archive:
                part = archive.testzip()
            if part is not None:
                return f"wrong check sum of {part}"
    except (OSError, MemoryError) as error:
        if getattr(error, "errno", None) != errno.EINVAL:  # a damaged archive names a place before the file's start
            raise
        return str(error)
    except Exception as error:  # of zipfile, struct, zlib …: each has its own for bytes that make no sense
        return str(error) or type(error).__name__
    return None
