"""A Hub repository before it is on the Hub: its files, put together from a saved checkpoint, or of the code alone.

What a repository may consist of is decided in `contents.py`; it gets to the Hub in `upload.py`.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..model.configuration_triaffine import TriaffineConfig
from ..model.processing_triaffine import TriaffineProcessor
from ..model.repository_triaffine import HANDLER_FILE, REMOTE_CODE_FILES, REQUIREMENTS_FILE, save_remote_code
from ..version import __version__
from .card_mark import is_draft, is_edited, is_ours, mark_card, take_over_metadata
from .card_metadata import check_repo_id
from .contents import WEIGHTS, is_legal, refuse_unknown, sort_out
from .model_card import CARD_NAME, build_model_card
from .run_summary import SUMMARY_FILE, RunSummary

WEIGHTS_FILE = "model.safetensors"
LICENSE_FILE = "LICENSE"
HANDLER = Path(__file__).parents[1] / "model" / HANDLER_FILE
# What every version of this package has written, with its own least version of transformers.
OUR_REQUIREMENTS = re.compile(rb"torch\s+transformers>=[\d.]+\s*")

LICENSE_NOTE = """\
Copyright 2026 The modeling_triaffine developers

Licensed under the Apache License, Version 2.0 (the "License"); you may not use these files except in compliance with
the License. You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
"AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
language governing permissions and limitations under the License.
"""

CODE_CARD = """\
---
license: apache-2.0
library_name: transformers
tags:
- nested-ner
- triaffine
---

# {title}

The code of models for nested named entity recognition, made by `modeling_triaffine` {version}. There are no weights \
here: checkpoints in other repositories refer to these files, and `trust_remote_code=True` runs them when such a \
checkpoint is loaded. `transformers` and `torch` are all they need. They are licensed under the Apache License, \
Version 2.0 (see `LICENSE`).

This repository may change; to go on with the code you have read, pin its commit:

```python
from transformers import pipeline

ner = pipeline("token-classification", model="CHECKPOINT", trust_remote_code=True, code_revision="COMMIT")
```
"""


@dataclass(frozen=True)
class Repository:
    """Files that only have to be copied or uploaded.

    Attributes:
        repo_id: what the repository is called on the Hub.
        files: where each file lies now, by its name in the repository.
        left_behind: names in the checkpoint that are no part of a repository.
        code_repository: the repository with the code, where it is another one.
        card_is_edited: whether the card is the checkpoint's own, edited by somebody, and not written anew.
        own_endpoint: what an endpoint reads and is the checkpoint's own, too.
    """

    repo_id: str
    files: dict[str, Path]
    left_behind: list[str] = field(default_factory=list)
    code_repository: str | None = None
    card_is_edited: bool = False
    own_endpoint: list[str] = field(default_factory=list)

    def describe(self) -> str:
        """The files with their sizes, and what is left out."""
        sizes = {name: path.stat().st_size for name, path in sorted(self.files.items())}
        width = max(map(len, sizes))
        lines = [self.repo_id, *(f"  {name:<{width}}  {format_size(size):>9}" for name, size in sizes.items())]
        lines.append(f"{len(sizes)} files, {format_size(sum(sizes.values()))}.")
        if self.code_repository:
            lines.append(f"The code is that in {self.code_repository}.")
        if self.card_is_edited:
            lines.append(f"{CARD_NAME} was edited and stays as it is; --new-card writes it anew.")
        for name in self.own_endpoint:
            lines.append(f"{name} is the checkpoint's own and stays as it is; deleted there, it is written anew.")
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
    tags: Sequence[str] | None = None,
    with_processor: bool = True,
) -> Repository:
    """The repository of a saved model with its processor.

    The code is that of this package, which reads what older versions of it have saved. The card is written from the
    run's summary, where there is one, unless somebody has edited the checkpoint's; a handler or requirements of an
    endpoint that are not as this package writes them stay as they are. A licence beside the model goes with it.

    Args:
        checkpoint: folder of the model; only read, and it must stay there until its files are uploaded.
        staging: empty folder for all other files.
        repo_id: what the repository will be called, `"owner/name"`.
        code_repository: the repository that holds the code; None: the one that the checkpoint refers to, or none, and
            the code is part of this repository.
        new_card: write the card anew in any case.
        tags: of the card that is written, beside the usual ones.
        with_processor: False publishes a model that has none yet.

    Raises:
        ValueError: the checkpoint holds unknown files, is not whole, or a name is none of a repository.
        OSError: a part of the checkpoint is missing.
    """
    check_repo_id("repo_id", repo_id)
    contents = sort_out(os.listdir(checkpoint))
    refuse_unknown(contents.unknown, str(checkpoint))
    config = TriaffineConfig.from_pretrained(checkpoint)
    parts: list[TriaffineConfig | TriaffineProcessor] = [config]
    if with_processor:
        processor = TriaffineProcessor.from_pretrained(checkpoint)
        processor.check_fits(config)
        parts.append(processor)
    code_repository = code_repository or config.code_repository
    if code_repository is not None:
        _check_code_name(code_repository, repo_id)
    endpoint = [checkpoint / name for name in (HANDLER_FILE, REQUIREMENTS_FILE)]
    own_endpoint = [path.name for path in endpoint if path.is_file() and is_own_endpoint(path)]
    for name in own_endpoint:
        shutil.copyfile(checkpoint / name, staging / name)  # what is there is not written over
    for part in parts:
        part.refer_to_code(code_repository)
        part.save_pretrained(staging)
    if SUMMARY_FILE in contents.parts:
        shutil.copyfile(checkpoint / SUMMARY_FILE, staging / SUMMARY_FILE)
    own_card = None if new_card else _edited_card(checkpoint)
    (staging / CARD_NAME).write_bytes(own_card or _new_card(checkpoint, config, repo_id, tags or ()))
    files = {path.name: path for path in staging.iterdir()}
    files |= {name: checkpoint / name for name in (*_weights(contents.parts), *filter(is_legal, contents.parts))}
    return Repository(repo_id, files, contents.left_behind, code_repository, own_card is not None, own_endpoint)


def assemble_code_repository(staging: Path, repo_id: str) -> Repository:
    """The repository of the code alone, to which checkpoints in others refer; `staging` is an empty folder for it."""
    check_repo_id("repo_id", repo_id)
    title = repo_id.split("/")[-1].replace("_", r"\_")
    save_remote_code(staging)
    (staging / LICENSE_FILE).write_text(LICENSE_NOTE, encoding="utf-8")
    card = mark_card(CODE_CARD.format(title=title, version=__version__))
    (staging / CARD_NAME).write_text(card, encoding="utf-8")
    names = (*REMOTE_CODE_FILES, LICENSE_FILE, CARD_NAME)
    return Repository(repo_id, {name: staging / name for name in names})


def write_repository(repository: Repository, folder: Path) -> None:
    """Copies the files into a folder, which then holds them and nothing else.

    The folder of an earlier call is replaced as a whole, when all is ready to take its place. Such a folder is known by
    the card in it, as publishing wrote it: changes to the card are never lost, changes to other files there are.

    Raises:
        ValueError: the folder is one that the files come from or that is worked in, or holds what an earlier call has
            not written.
    """
    folder = folder.resolve()
    if Path.cwd().is_relative_to(folder):
        raise ValueError(f"{folder} is the folder you are in, or one around it, and cannot be replaced; give another.")
    if folder in {path.resolve().parent for path in repository.files.values()}:
        raise ValueError(f"{folder} is where the model lies; give another folder for its repository.")
    if folder.exists():
        _check_replaceable(folder, set(repository.files))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        for name, path in repository.files.items():
            shutil.copyfile(path, new / name)
        if folder.exists():
            folder.rename(Path(temporary) / "old")
        new.rename(folder)


def _check_replaceable(folder: Path, names: set[str]) -> None:
    """Raises ValueError where a folder holds more than the repository, with the given `names`, of an earlier call."""
    there = set(os.listdir(folder))
    contents = sort_out(there - names)
    refuse_unknown([*contents.unknown, *contents.left_behind, *filter(is_legal, contents.parts)], str(folder))
    card = folder / CARD_NAME
    if there and not (card.is_file() and is_ours(card.read_text(encoding="utf-8"))):
        raise ValueError(
            f"{folder} holds files, and no {CARD_NAME} as publishing wrote it: an earlier dry run did not make it, "
            "or somebody has edited it since. Give another folder, or remove this one."
        )


def format_size(count: float) -> str:
    """Bytes as the Hub writes them: in units of 1000."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _check_code_name(code_repository: str, repo_id: str) -> None:
    check_repo_id("code_repository", code_repository)
    if code_repository == repo_id:
        raise ValueError(
            f"{repo_id} is to hold the model and to be its code repository, too. Leave the code repository out, and "
            "the code is published beside the weights; or give the code a repository of its own."
        )


def _edited_card(checkpoint: Path) -> bytes | None:
    """The checkpoint's card where it is somebody's own work."""
    path = checkpoint / CARD_NAME
    if not path.is_file() or not is_edited(path.read_text(encoding="utf-8")):
        return None
    return path.read_bytes()


def is_own_endpoint(path: Path) -> bool:
    """Whether a file for an endpoint, a handler or its requirements, is not as this package writes it."""
    if path.name == REQUIREMENTS_FILE:
        return not OUR_REQUIREMENTS.fullmatch(path.read_bytes())
    return path.read_bytes().splitlines() != HANDLER.read_bytes().splitlines()


def _new_card(checkpoint: Path, config: TriaffineConfig, repo_id: str, tags: Sequence[str]) -> bytes:
    card = build_model_card(config, model_name=repo_id, summary=RunSummary.load(checkpoint))
    metadata: Any = card.data
    metadata.tags = list(dict.fromkeys([*metadata.tags, *([tags] if isinstance(tags, str) else tags)]))
    own = checkpoint / CARD_NAME
    if own.is_file() and is_draft(draft := own.read_text(encoding="utf-8")):
        take_over_metadata(card, draft)
    return mark_card(str(card)).encode("utf-8")


def _weights(names: list[str]) -> list[str]:
    """The files that transformers reads the weights from: one, or its parts with their index."""
    return [WEIGHTS_FILE] if WEIGHTS_FILE in names else [name for name in names if WEIGHTS.fullmatch(name)]
