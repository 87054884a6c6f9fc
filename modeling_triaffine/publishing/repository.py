"""Assembles a Hub repository in a folder, which `upload.py` uploads, and saves a calibration in a model's folder.

The names of files say which may be part of one; all others stay behind.
"""

import os
import shutil
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from huggingface_hub.utils import validate_repo_id
from transformers.utils import CONFIG_NAME, PROCESSOR_NAME

from ..evaluation.calibration import Calibration
from ..model.configuration_triaffine import TriaffineConfig
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import VOCABULARIES_FILE, TriaffineProcessor
from ..model.repository_triaffine import HANDLER_FILE, REMOTE_CODE_FILES, REQUIREMENTS_FILE
from .model_card import CARD_NAME, card_of_folder
from .run_summary import SUMMARY_FILE, RunSummary

WEIGHTS = ("model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json")
# The last six are those of other versions of transformers.
OF_PROCESSOR = (
    *("tokenizer.json", "tokenizer_config.json", PROCESSOR_NAME, VOCABULARIES_FILE),
    *("special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt", "*.model"),
)
# Perhaps written by people.
WRITTEN = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "CITATION.cff", HANDLER_FILE, REQUIREMENTS_FILE)
# Taken from the model's folder, where they are; the code is that of this package.
TAKEN = (*WEIGHTS, *OF_PROCESSOR, *WRITTEN, CONFIG_NAME, SUMMARY_FILE, CARD_NAME)
# Removed from the Hub where a new version of the model has no such file.
OUTDATED = (*WEIGHTS, SUMMARY_FILE, "*_triaffine.py", "triaffine_*.py")


def assemble_repository(
    folder: Path,
    target: Path,
    repo_id: str,
    *,
    new_card: bool = False,
    tags: Sequence[str] | str | None = None,
    with_processor: bool = True,
) -> str:
    """Fills `target` with the repository of the model saved in `folder`; returns a list of its files to print.

    The code is that of this package. A card is written, from the run's summary, unless the folder has its own.

    Args:
        folder: folder of the model, which must exist as long as `target`: large files are links.
        target: empty folder.
        repo_id: name on the Hub, `"owner/name"`.
        new_card: whether to write a card in place of the folder's.
        tags: further tags of a new card.
        with_processor: False for a model without a processor.
    """
    validate_repo_id(repo_id)
    # First: of another kind of model it says so, where the configuration would warn of each of its fields.
    processor = TriaffineProcessor.from_pretrained(folder) if with_processor else None
    model = TriaffineForNestedNER.from_pretrained(folder)
    if processor is not None:
        processor.check_fits(model.config)
    names = sorted(os.listdir(folder))
    for name in (name for name in names if matches(name, TAKEN)):
        _take(folder / name, target)
    for part in (model.config, processor):
        if part is not None:
            part.save_pretrained(target)  # keeps the folder's own files for an endpoint
    if new_card or not has_own_card(folder):
        (target / CARD_NAME).write_text(card_of_folder(folder, repo_id, tags), encoding="utf-8", newline="")
    left_behind = [name for name in names if not (matches(name, TAKEN) or name in REMOTE_CODE_FILES)]
    lines = [f"{path.stat().st_size / 1000:>12,.1f} kB  {path.name}" for path in sorted(target.iterdir())]
    return "\n".join([*lines, *([f"Left out: {', '.join(left_behind)}."] if left_behind else [])])


def _take(path: Path, target: Path) -> None:
    """Copies a file into the folder `target`; weights, which may be large, as links where the system has them."""
    original = path.resolve()
    if not original.is_relative_to(path.parent.resolve()) or not original.is_file():
        raise ValueError(f"{path} is a folder, or a link out of the model's folder; put a file in its place.")
    if matches(path.name, WEIGHTS):
        try:
            (target / path.name).symlink_to(original)
        except OSError:  # Windows asks for a privilege
            shutil.copyfile(original, target / path.name)
    else:
        shutil.copyfile(original, target / path.name)


def has_own_card(folder: Path) -> bool:
    """True if a model's folder has a card other than its run has written, under the folder's name."""
    path = folder / CARD_NAME
    return path.is_file() and path.read_text(encoding="utf-8", errors="replace") != card_of_folder(folder)


def save_calibration(folder: Path, calibration: Calibration) -> None:
    """Saves temperature and thresholds in the model's configuration, and their origin in its run's summary and card."""
    is_own = has_own_card(folder)
    config = TriaffineConfig.from_pretrained(folder)
    config.temperature, config.label_thresholds = calibration.temperature, calibration.thresholds or None
    summary = RunSummary.load(folder) or RunSummary()
    summary.calibration = calibration
    summary.save(folder)
    config.save_pretrained(folder)
    if not is_own:
        (folder / CARD_NAME).write_text(card_of_folder(folder), encoding="utf-8", newline="")


def matches(name: str, patterns: Sequence[str]) -> bool:
    """True if a name matches one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
