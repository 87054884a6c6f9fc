"""Assembles the files of a Hub repository: of a saved checkpoint, or of the code alone; `upload.py` uploads it.

The names of files say which may be part of one; all others stay behind.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import ModelCard, ModelCardData

from ..drawing.safe_text import markdown_text
from ..files import new_folder
from ..model.configuration_triaffine import TriaffineConfig
from ..model.processing_triaffine import TriaffineProcessor
from ..model.repository_triaffine import (
    HANDLER_FILE,
    REMOTE_CODE_FILES,
    REQUIREMENTS_FILE,
    check_index,
    save_remote_code,
)
from ..model.vocabularies_triaffine import VOCABULARIES_FILE
from ..parsing import DataError, decode_text
from ..version import __version__
from .card_mark import card_text, is_edited, mark_card
from .card_tables import code_table
from .model_card import CARD_NAME, check_repo_id, renew_card
from .run_summary import SUMMARY_FILE, RunSummary

CONFIG_FILE, PROCESSOR_FILE = "config.json", "processor_config.json"
CALIBRATION_DIAGRAM = "calibration.svg"
# Written by publishing unless somebody has edited them: the card, and the files for an endpoint.
EDITABLE = (CARD_NAME, HANDLER_FILE, REQUIREMENTS_FILE)
WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5}\.safetensors|\.safetensors(\.index\.json)?)")
OF_PROCESSOR = {"tokenizer.json", "tokenizer_config.json", PROCESSOR_FILE, VOCABULARIES_FILE}
# Of other versions of transformers, and superseded by tokenizer.json.
OF_PROCESSOR |= {"special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"}
OF_PROCESSOR |= {"spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model"}
MADE = {*REMOTE_CODE_FILES, *EDITABLE, *OF_PROCESSOR, CONFIG_FILE, SUMMARY_FILE, CALIBRATION_DIAGRAM}
# Written by people, so never removed.
LEGAL_FILE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE)([._-][\w.-]+)?|CITATION\.cff", re.IGNORECASE)
WEIGHTS_FILE = "model.safetensors"
LICENSE_FILE = "LICENSE"
CODE_CARD = Path(__file__).with_name("code_card.md.jinja")
HANDLER = Path(__file__).parents[1] / "model" / HANDLER_FILE
# As written by any version of this package.
OUR_REQUIREMENTS = re.compile(rb"torch(>=[\d.]+)?\s+transformers>=[\d.]+\s*")

LICENSE_NOTE = """\
Copyright 2026 The modeling_triaffine developers

Licensed under the Apache License, Version 2.0 (the "License"); you may not use these files except in compliance with
the License. You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
"AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
language governing permissions and limitations under the License.
"""


@dataclass(frozen=True)
class Repository:
    """Files ready to be copied or uploaded.

    Attributes:
        repo_id: name on the Hub.
        files: name in the repository → local file.
        left_behind: files of the checkpoint that are not part of a repository.
        code_repository: the repository with the code, if it is another one.
        edited: files for people or endpoints that are those of the checkpoint, because somebody edited them.
    """

    repo_id: str
    files: dict[str, Path]
    left_behind: list[str] = field(default_factory=list)
    code_repository: str | None = None
    edited: list[str] = field(default_factory=list)

    def describe(self) -> str:
        """The files with their sizes, and what is left out."""
        sizes = {name: path.stat().st_size for name, path in sorted(self.files.items())}
        width = max(map(len, sizes))
        lines = [self.repo_id, *(f"  {name:<{width}}  {format_size(size):>9}" for name, size in sizes.items())]
        lines.append(f"{len(sizes)} files, {format_size(sum(sizes.values()))}.")
        if self.code_repository:
            lines.append(f"The code is that in {self.code_repository}.")
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
    code_repository: str | None = None,
    new_card: bool = False,
    tags: Sequence[str] | str | None = None,
    with_processor: bool = True,
) -> Repository:
    """The repository of a saved model with its processor.

    The code is that of this package, which reads the checkpoints of older versions. The card is written from the run's
    summary unless somebody edited it; an edited handler and edited requirements are kept, and licenses included.

    Args:
        checkpoint: folder of the model. It must exist until its files are uploaded.
        staging: empty folder for all other files.
        repo_id: name on the Hub, `"owner/name"`.
        code_repository: the repository with the code; default: the one that the checkpoint refers to, if any, else the
            code is part of this repository.
        new_card: whether to replace an edited card.
        tags: further tags of a new card.
        with_processor: False for a model without a processor.

    Raises:
        ValueError: the checkpoint is incomplete, or a name cannot be that of a repository.
        OSError: a file of the checkpoint is missing.
    """
    check_repo_id("repo_id", repo_id)
    config = TriaffineConfig.from_pretrained(checkpoint)
    parts: list[TriaffineConfig | TriaffineProcessor] = [config]
    if with_processor:
        processor = TriaffineProcessor.from_pretrained(checkpoint)
        processor.check_fits(config)
        parts.append(processor)
    code_repository = code_repository or config.code_repository
    if code_repository is not None:
        _check_code_name(code_repository, repo_id)
    names = sorted(os.listdir(checkpoint))
    given = {name: (checkpoint / name).read_bytes() for name in EDITABLE if name in names}
    try:
        own_card = decode_text(given.get(CARD_NAME, b""))
    except DataError as error:  # the Hub takes no such card
        raise ValueError(f"{checkpoint / CARD_NAME}: {error}") from None
    edited = [name for name, content in given.items() if is_edited_file(name, content)]
    if new_card and CARD_NAME in edited:
        edited.remove(CARD_NAME)
    for name in {SUMMARY_FILE, CALIBRATION_DIAGRAM, *edited}.intersection(names):
        shutil.copyfile(checkpoint / name, staging / name)
    for part in parts:
        part.refer_to_code(code_repository)
        part.save_pretrained(staging)  # keeps files for an endpoint
    if CARD_NAME not in edited:
        card = renew_card(own_card, config, model_name=repo_id, summary=RunSummary.load(checkpoint), tags=tags)
        (staging / CARD_NAME).write_text(card, encoding="utf-8", newline="")
    files = {path.name: path for path in staging.iterdir()}
    weights = _weights(names)
    _check_weights(checkpoint, weights)
    files |= {name: checkpoint / name for name in (*weights, *filter(is_legal, names))}
    left_behind = [name for name in names if not is_part(name)]
    return Repository(repo_id, files, left_behind, code_repository, edited)


def assemble_code_repository(staging: Path, repo_id: str) -> Repository:
    """The repository of the code alone, written to the empty folder `staging`; models in others refer to it."""
    check_repo_id("repo_id", repo_id)
    save_remote_code(staging)
    (staging / LICENSE_FILE).write_text(LICENSE_NOTE, encoding="utf-8")
    metadata = ModelCardData(license="apache-2.0", library_name="transformers", tags=["nested-ner", "triaffine"])
    title = markdown_text(repo_id.split("/")[-1])
    card = ModelCard.from_template(
        metadata, template_path=str(CODE_CARD), title=title, version=__version__, code=code_table().markdown()
    )
    (staging / CARD_NAME).write_text(mark_card(str(card)), encoding="utf-8")
    names = (*REMOTE_CODE_FILES, LICENSE_FILE, CARD_NAME)
    return Repository(repo_id, {name: staging / name for name in names})


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
        return not OUR_REQUIREMENTS.fullmatch(content)
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


def has_code_only(names: Iterable[str]) -> bool:
    """Whether files are those of a repository of shared code, without model and processor."""
    names = set(names)
    return not names.isdisjoint(REMOTE_CODE_FILES) and names.isdisjoint({CONFIG_FILE, PROCESSOR_FILE})


def format_size(count: float) -> str:
    """A number of bytes in units of 1000, as on the Hub."""
    for unit in ("bytes", "kB", "MB"):
        if count < 999.5:  # else three digits would be 1e+03
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _check_code_name(code_repository: str, repo_id: str) -> None:
    check_repo_id("code_repository", code_repository)
    if code_repository == repo_id:
        raise ValueError(
            f"{repo_id} cannot be both the model's repository and its code repository. Leave the latter out to "
            "publish the code with the weights, or give another one."
        )


def _weights(names: list[str]) -> list[str]:
    """The files of the weights: one, or shards with their index."""
    return [WEIGHTS_FILE] if WEIGHTS_FILE in names else [name for name in names if WEIGHTS.fullmatch(name)]


def _check_weights(checkpoint: Path, weights: Sequence[str]) -> None:
    """Raises ValueError if files of the weights are missing; an upload would delete those on the Hub."""
    check_index(checkpoint, {})
    expected = {WEIGHTS_FILE}
    for index in (name for name in weights if name.endswith(".json")):
        expected = set(json.loads((checkpoint / index).read_text(encoding="utf-8"))["weight_map"].values())
    missing = sorted(expected.difference(weights))
    if missing:
        raise ValueError(f"{checkpoint} has no {', '.join(missing)}: its weights are incomplete. Save the model again.")
