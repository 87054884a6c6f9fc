"""Publishes a model in memory, with what belongs to it in the folder or repository that it was loaded from."""

import contextlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import CommitInfo
from safetensors import safe_open
from torch import Tensor
from transformers.utils import CONFIG_NAME

from ..model.model_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor
from ..model.repository_triaffine import HANDLER_FILE, REQUIREMENTS_FILE, origin_of
from .hub_requests import download, names_on_hub
from .model_card import CARD_NAME
from .repository import CALIBRATION_DIAGRAM, is_legal, is_part, weight_files
from .run_summary import SUMMARY_FILE
from .upload import publish_folder

logger = logging.getLogger(__name__)


def push_model(
    model: TriaffineForNestedNER,
    repo_id: str,
    *,
    processor: TriaffineProcessor | None = None,
    state_dict: dict[str, Tensor] | None = None,
    max_shard_size: int | str | None = None,
    token: str | bool | None = None,
    **options: Any,
) -> CommitInfo:
    """Publishes a model in memory; `model.push_to_hub` calls this.

    The card is that of the folder or repository the model was loaded from, if the weights are unchanged; otherwise it
    has no scores.

    Args:
        repo_id: `"owner/name"`, or the name alone for a repository of the user.
        processor: default: the one saved where the model was loaded from. Without any, the model is published alone,
            and the repository keeps its processor.
        state_dict: weights to publish in place of the model's, as in `save_pretrained`.
        max_shard_size: maximum size of a file of weights; None: 50 GB.
        token: default: the token of `hf auth login` or `HF_TOKEN`.
        options: of [`publish_folder`] and [`upload_repository`], such as `tags`, `private` and `commit_message`.

    Raises:
        ValueError, OSError: the encoder has adapters, model and processor do not match, or the upload failed; in one
            paragraph.
    """
    processor = processor or _find_processor(model, token)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, state_dict=state_dict, max_shard_size=max_shard_size or "50GB")
        if processor is not None:
            processor.save_pretrained(folder)
        _copy_from_origin(Path(folder), model, token)
        has_processor = processor is not None
        return publish_folder(Path(folder), repo_id, with_processor=has_processor, token=token, **options).commit


def _find_processor(model: TriaffineForNestedNER, token: str | bool | None) -> TriaffineProcessor | None:
    """The processor saved where the model was loaded from; None if there is none."""
    origin = origin_of(str(model.config.name_or_path))
    try:
        return TriaffineProcessor.from_pretrained(origin, **{"token": token, **model.origin}) if origin else None
    except OSError as error:
        logger.warning("The model is published without a processor. %s", error)
        return None


def _copy_from_origin(folder: Path, model: TriaffineForNestedNER, token: str | bool | None) -> None:
    """Copies what people wrote from where the model was loaded; card and summary only if weights and labels match."""
    origin = _folder_of_origin(model, token)
    if origin is None:
        return
    names = sorted(os.listdir(origin))
    copied = [name for name in names if is_legal(name) or name in (HANDLER_FILE, REQUIREMENTS_FILE)]
    results = [name for name in names if name in (CARD_NAME, SUMMARY_FILE, CALIBRATION_DIAGRAM)]
    if results:
        theirs = [origin / name for name in weight_files(names) if name.endswith(".safetensors")]
        labels, their_labels = (
            json.loads((one / CONFIG_NAME).read_bytes()).get("id2label") for one in (folder, origin)
        )
        if labels == their_labels and _same_weights(list(folder.glob("*.safetensors")), theirs):
            copied += results
        else:
            name = model.config.name_or_path
            logger.warning("Weights or labels differ from those in %s, so its card and scores are left out.", name)
    for name in copied:
        shutil.copyfile(origin / name, folder / name)


def _folder_of_origin(model: TriaffineForNestedNER, token: str | bool | None) -> Path | None:
    """The folder that the model was loaded from, of a Hub repository its local copy; None if it is gone."""
    options: dict[str, Any] = {"token": token, **model.origin}
    name, subfolder = origin_of(str(model.config.name_or_path)), options.pop("subfolder", "")
    if not name or Path(name, subfolder).is_dir():
        return Path(name, subfolder) if name else None
    try:
        names = names_on_hub(name, token=options["token"], revision=options.get("revision"))
        parts = [file for file in names if is_part(os.path.relpath(file, subfolder or "."))]
        return download(name, parts, **options) / subfolder
    except (ValueError, OSError):
        return None


def _same_weights(files: Sequence[Path], others: Sequence[Path]) -> bool:
    """Whether two models have equal tensors of the same precision, however they are divided into files."""
    with contextlib.ExitStack() as stack:

        def tensors(paths: Sequence[Path]) -> dict[str, Any]:
            opened = [stack.enter_context(safe_open(path, framework="pt")) for path in paths]
            return {name: weights for weights in opened for name in weights.keys()}  # noqa: SIM118

        def is_same(name: str) -> bool:
            one, other = ours[name].get_tensor(name), theirs[name].get_tensor(name)
            return one.dtype == other.dtype and torch.equal(one, other)

        ours, theirs = tensors(files), tensors(others)
        return ours.keys() == theirs.keys() and all(map(is_same, ours))
