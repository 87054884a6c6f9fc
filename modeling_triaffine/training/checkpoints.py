"""Folders on disk that are either whole or not there: checkpoints and the finished model.

Everything is written into `OUTPUT_DIR/_incomplete` and renamed when it is whole; what is thrown away is renamed into it
first. A process that is killed at any moment therefore leaves whole checkpoints and, in `_incomplete`, leftovers that
the next start removes. What goes into a checkpoint is decided in `trainer.py`.
"""

import json
import os
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

# The leading underscore keeps the folder out of uploads to the Hub (`Trainer.push_to_hub` leaves out "_*").
INCOMPLETE = "_incomplete"
CHECKPOINT_NAME = re.compile(r"checkpoint-(\d+)")
# The Trainer writes this file last, and reads it first.
STATE_FILE = "trainer_state.json"
# Asks for the latest whole checkpoint, instead of naming one.
LATEST = "latest"


def incomplete_folder(output_dir: str | Path) -> Path:
    """Where things are written until they are whole."""
    return Path(output_dir) / INCOMPLETE


def remove_leftovers(output_dir: str | Path) -> bool:
    """Removes what a killed process was writing or deleting; returns whether there was anything."""
    folder = incomplete_folder(output_dir)
    if not folder.exists():
        return False
    shutil.rmtree(folder)
    return True


def list_checkpoints(output_dir: str | Path) -> list[Path]:
    """The whole checkpoints in a folder, earliest step first."""
    found = {
        int(match.group(1)): path
        for path in Path(output_dir).glob("checkpoint-*")
        if (match := CHECKPOINT_NAME.fullmatch(path.name)) and (path / STATE_FILE).is_file()
    }
    return [found[step] for step in sorted(found)]


def find_checkpoint(wanted: str | bool | None, output_dir: str | Path) -> str | None:
    """The checkpoint to go on from; None where training starts from scratch.

    Args:
        wanted: folder of a checkpoint; True or "latest" for the latest whole one in `output_dir`, if there is any yet.
        output_dir: where the run writes its checkpoints.

    Raises:
        FileNotFoundError: `wanted` is a folder that is no whole checkpoint.
    """
    if not wanted:
        return None
    if wanted is True or wanted == LATEST:
        found = list_checkpoints(output_dir)
        return str(found[-1]) if found else None
    if not (Path(wanted) / STATE_FILE).is_file():
        raise FileNotFoundError(
            f"{wanted} is no checkpoint to go on from: it has no {STATE_FILE}. Give a folder checkpoint-N of an "
            "earlier run, or --resume_from_checkpoint without a path for the latest one in the output folder."
        )
    return str(wanted)


def find_damage(checkpoint: str | Path) -> str | None:
    """What is wrong with the first file of a checkpoint that cannot be read, and its name; None where all can.

    Numbers of weights are not looked at: that is done when they are loaded.
    """
    for path in sorted(path for path in Path(checkpoint).rglob("*") if path.is_file()):
        try:
            if path.suffix == ".json":
                json.loads(path.read_text(encoding="utf-8"))
            elif path.suffix == ".safetensors":
                with safe_open(path, framework="pt"):
                    pass
            elif path.suffix in (
                ".pt",
                ".pth",
                ".bin",
            ):  # as torch writes them: archives with check sums, nothing is unpickled
                with zipfile.ZipFile(path) as archive:
                    part = archive.testzip()
                if part is not None:
                    raise zipfile.BadZipFile(f"wrong check sum of {part}")
        except (OSError, ValueError, SafetensorError, zipfile.BadZipFile) as error:
            return f"{path.relative_to(checkpoint)}: {error}"
    return None


def publish_folder(source: Path, target: Path) -> None:
    """Gives a finished folder its name; an older folder of that name makes way."""
    _flush_to_disk(source)
    if target.exists():
        discard(target)
    source.rename(target)
    _flush_entries(target.parent)


def publish_files(source: Path, target: Path, last: str) -> None:
    """Moves the files and folders of `source` into `target`, `last` (what makes them usable) after all others.

    An older `last` is removed first: a mixture of old and new files can never be taken for a whole.
    """
    _flush_to_disk(source)
    (target / last).unlink(missing_ok=True)
    for path in sorted(source.iterdir(), key=lambda path: path.name == last):
        if path.is_dir():
            publish_folder(path, target / path.name)
        else:
            path.replace(target / path.name)
    _flush_entries(target)
    source.rmdir()


def write_whole(path: Path, text: str) -> None:
    """Writes a text file that is there whole or not at all."""
    temporary = incomplete_folder(path.parent) / path.name
    temporary.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file that is there whole or not at all, and leaves nothing else behind."""
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=2))
    remove_leftovers(path.parent)


def discard(folder: Path) -> None:
    """Deletes a folder without ever leaving half of it under its name."""
    doomed = incomplete_folder(folder.parent) / f"discarded-{folder.name}"
    doomed.parent.mkdir(exist_ok=True)
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    shutil.rmtree(doomed)


def discard_old_checkpoints(output_dir: str | Path, limit: int | None, keep: set[Path]) -> None:
    """Deletes the earliest checkpoints until `limit` are left; those in `keep` always stay. No limit, no deletion."""
    if not limit:
        return
    checkpoints = list_checkpoints(output_dir)
    kept = {path.resolve() for path in keep}
    removable = [checkpoint for checkpoint in checkpoints if checkpoint.resolve() not in kept]
    for checkpoint in removable[: max(0, len(checkpoints) - limit)]:
        discard(checkpoint)


def _flush_to_disk(folder: Path) -> None:
    """Forces content to disk before a rename: otherwise a power cut could leave the new name with empty files."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _flush_entries(folder: Path) -> None:
    """Forces a folder's new names to disk, where the system allows it (Windows does not)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
