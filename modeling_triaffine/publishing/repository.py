"""Assembles the files of a Hub repository from a saved model; `upload.py` uploads it.

The names of files say which may be part of one; all others stay behind.
"""

import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from safetensors import SafetensorError, safe_open
from transformers.utils import CONFIG_NAME, PROCESSOR_NAME

from ..files import new_folder
from ..model.configuration_triaffine import TriaffineConfig
from ..model.model_triaffine import ADAPTED, MERGE_ADAPTERS
from ..model.processing_triaffine import VOCABULARIES_FILE, TriaffineProcessor
from ..model.repository_triaffine import (
    HANDLER_FILE,
    REMOTE_CODE_FILES,
    REQUIREMENTS,
    REQUIREMENTS_FILE,
    check_index,
)
from ..parsing import DataError, decode_text
from .model_card import CARD_NAME, card_text, check_repo_id, is_edited, renew_card
from .run_summary import SUMMARY_FILE, RunSummary

CALIBRATION_DIAGRAM = "calibration.svg"
# Written by publishing unless somebody has edited them: the card, and the files for an endpoint.
EDITABLE = (CARD_NAME, HANDLER_FILE, REQUIREMENTS_FILE)
WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5}\.safetensors|\.safetensors(\.index\.json)?)")
OF_PROCESSOR = {"tokenizer.json", "tokenizer_config.json", PROCESSOR_NAME, VOCABULARIES_FILE}
# Of other versions of transformers, and superseded by tokenizer.json.
OF_PROCESSOR |= {"special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"}
OF_PROCESSOR |= {"spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model"}
MADE = {*REMOTE_CODE_FILES, *EDITABLE, *OF_PROCESSOR, CONFIG_NAME, SUMMARY_FILE, CALIBRATION_DIAGRAM}
# Written by people, so never removed.
LEGAL_FILE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE)([._-][\w.-]+)?|CITATION\.cff", re.IGNORECASE)
WEIGHTS_FILE = "model.safetensors"
HANDLER = Path(__file__).parents[1] / "model" / HANDLER_FILE


@dataclass(frozen=True)
class Repository:
    """Files ready to be copied or uploaded.

    Attributes:
        repo_id: name on the Hub.
        files: name in the repository → local file.
        left_behind: files of the checkpoint that are not part of a repository.
        edited: files for people or endpoints that are those of the checkpoint, because somebody edited them.
    """

    repo_id: str
    files: dict[str, Path]
    left_behind: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)

    def describe(self) -> str:
        """The files with their sizes, and what is left out."""
        sizes = {name: path.stat().st_size for name, path in sorted(self.files.items())}
        width = max(map(len, sizes))
        lines = [self.repo_id, *(f"  {name:<{width}}  {format_size(size):>9}" for name, size in sizes.items())]
        lines.append(f"{len(sizes)} files, {format_size(sum(sizes.values()))}.")
        for name in self.edited:
            remedy = "--new-card replaces it" if name == CARD_NAME else "delete it in the checkpoint to replace it"
            lines.append(f"{name} was edited and is kept; {remedy}.")
        if self.left_behind:
            lines.append(f"Left out: {', '.join(self.left_behind)}.")
        return "\n".join(lines)


def assemble_repository(
    checkpoint: Path,
    staging: Path,
    repo_id: str,
    *,
    new_card: bool = False,
    tags: Sequence[str] | str | None = None,
    with_processor: bool = True,
) -> Repository:
    """The repository of a saved model with its processor.

    The code is that of this package. The card is written from the run's summary unless somebody edited it; an edited
    handler and edited requirements are kept, and licenses included.

    Args:
        checkpoint: folder of the model. It must exist until its files are uploaded.
        staging: empty folder for all other files.
        repo_id: name on the Hub, `"owner/name"`.
        new_card: whether to replace an edited card.
        tags: further tags of a new card.
        with_processor: False for a model without a processor.

    Raises:
        ValueError: the checkpoint is incomplete, or a name cannot be that of a repository.
        OSError: a file of the checkpoint is missing.
    """
    check_repo_id("repo_id", repo_id)
    # First: of another kind of model it says so, where the configuration would warn of each of its fields.
    processor = TriaffineProcessor.from_pretrained(checkpoint) if with_processor else None
    config = TriaffineConfig.from_pretrained(checkpoint)
    if processor is not None:
        processor.check_fits(config)
    names = sorted(os.listdir(checkpoint))
    given = {name: (checkpoint / name).read_bytes() for name in EDITABLE if name in names}
    try:
        own_card = decode_text(given.get(CARD_NAME, b""))
    except DataError as error:  # the Hub takes no such card
        raise ValueError(f"{checkpoint / CARD_NAME}: {error}") from None
    edited = [name for name, content in given.items() if is_edited_file(name, content)]
    if new_card and CARD_NAME in edited:
        edited.remove(CARD_NAME)
    for name in edited:
        shutil.copyfile(checkpoint / name, staging / name)
    summary = _copy_summary(checkpoint, staging, config)
    for part in (config, processor):
        if part is not None:
            part.save_pretrained(staging)  # keeps files for an endpoint
    if CARD_NAME not in edited:
        card = renew_card(own_card, config, model_name=repo_id, summary=summary, tags=tags)
        (staging / CARD_NAME).write_text(card, encoding="utf-8", newline="")
    files = {path.name: path for path in staging.iterdir()}
    weights = weight_files(names)
    _check_weights(checkpoint, weights)
    files |= {name: checkpoint / name for name in (*weights, *filter(is_legal, names))}
    left_behind = [name for name in names if not is_part(name)]
    return Repository(repo_id, files, left_behind, edited)


def _copy_summary(checkpoint: Path, staging: Path, config: TriaffineConfig) -> RunSummary | None:
    """Copies the summary, if there is one, and the diagram of a calibration that the model still has."""
    found = RunSummary.load(checkpoint)
    if found is None:
        return None
    summary = found.of_model(config)
    summary.save(staging)
    diagram = checkpoint / CALIBRATION_DIAGRAM
    if summary.calibration is not None and diagram.is_file():
        shutil.copyfile(diagram, staging / CALIBRATION_DIAGRAM)
    return summary


def write_repository(repository: Repository, folder: Path) -> None:
    """Copies the files to a new folder, which appears when it is complete."""
    with new_folder(folder) as unfinished:
        for name, path in repository.files.items():
            shutil.copyfile(path, unfinished / name)


def is_edited_file(name: str, content: bytes) -> bool:
    """Whether somebody wrote or edited a file of this name, one of `EDITABLE`."""
    if name == CARD_NAME:
        return is_edited(card_text(content))
    if name == REQUIREMENTS_FILE:
        return content.split() != REQUIREMENTS.encode().split()
    return content.splitlines() != HANDLER.read_bytes().splitlines()


def is_made(name: str) -> bool:
    """Whether publishing writes, and may remove, a file of this name."""
    return name in MADE or WEIGHTS.fullmatch(name) is not None


def is_legal(name: str) -> bool:
    """Whether a file of this name is a license, a notice or a citation, which is published with the model."""
    return LEGAL_FILE.fullmatch(name) is not None


def is_part(name: str) -> bool:
    """Whether a file of this name may be part of a repository."""
    return is_made(name) or is_legal(name)


def format_size(count: float) -> str:
    """A number of bytes in units of 1000, as on the Hub."""
    for unit in ("bytes", "kB", "MB"):
        if count < 999.5:  # else three digits would be 1e+03
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def weight_files(names: list[str]) -> list[str]:
    """The files of the weights: one, or shards with their index."""
    return [WEIGHTS_FILE] if WEIGHTS_FILE in names else [name for name in names if WEIGHTS.fullmatch(name)]


def _check_weights(checkpoint: Path, weights: Sequence[str]) -> None:
    """Raises ValueError if files of the weights are missing (an upload would delete those on the Hub) or useless."""
    check_index(checkpoint, {})
    expected = {WEIGHTS_FILE}
    for index in (name for name in weights if name.endswith(".json")):
        expected = set(json.loads((checkpoint / index).read_text(encoding="utf-8"))["weight_map"].values())
    missing = sorted(expected.difference(weights))
    if missing:
        raise ValueError(f"{checkpoint} has no {', '.join(missing)}: its weights are incomplete. Save the model again.")
    for path in (checkpoint / name for name in sorted(expected)):
        try:
            with safe_open(path, "pt") as tensors:
                tensor_names = list(tensors.keys())
        except SafetensorError as error:
            raise ValueError(f"The weights in {path} are damaged or cut off ({error}); copy the file again.") from None
        if any(name.startswith(ADAPTED) for name in tensor_names):
            raise ValueError(
                f"The encoder in {path} was saved with PEFT adapters, so nothing was published; {MERGE_ADAPTERS}, and "
                "save the model again."
            )
