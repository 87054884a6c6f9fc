"""Publishes a model in memory, with what belongs to it in the folder or repository that it was loaded from."""

import contextlib
import logging
import shutil
import tempfile
from pathlib import Path
from typing import Any

from huggingface_hub import CommitInfo
from torch import Tensor

from ..model.model_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor
from .repository import WRITTEN, matches
from .upload import fetch_model, publish_folder

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

    Licenses and files for an endpoint come from the folder or repository that it was loaded from. Its scores do not,
    because the weights may differ: [`publish_folder`] publishes a saved model with them.

    Args:
        repo_id: `"owner/name"`, or the name alone for a repository of the user.
        processor: default: the one saved where the model was loaded from. Without any, the model is published alone,
            and the repository keeps its processor.
        state_dict: weights to publish in place of the model's, as in `save_pretrained`.
        max_shard_size: maximum size of a file of weights; None: 50 GB.
        token: default: the token of `hf auth login` or `HF_TOKEN`.
        options: of [`publish_folder`], such as `tags`, `private` and `commit_message`.
    """
    with tempfile.TemporaryDirectory() as saved, tempfile.TemporaryDirectory() as fetched:
        folder, origin = Path(saved), _fetch_origin(model, token, Path(fetched))
        if processor is None and origin is not None:
            with contextlib.suppress(FileNotFoundError):
                processor = TriaffineProcessor.from_pretrained(origin)
        model.save_pretrained(folder, state_dict=state_dict, max_shard_size=max_shard_size or "50GB")
        if processor is None:
            logger.warning("%s is published without a processor; give `processor=`.", repo_id)
        else:
            processor.save_pretrained(folder)
        for path in origin.iterdir() if origin is not None else ():
            if matches(path.name, WRITTEN):
                shutil.copyfile(path, folder / path.name)
        has_processor = processor is not None
        return publish_folder(folder, repo_id, with_processor=has_processor, token=token, **options).commit


def _fetch_origin(model: TriaffineForNestedNER, token: str | bool | None, folder: Path) -> Path | None:
    """Returns the folder that the model was loaded from, or `folder` with its repository; None if it is gone."""
    given: dict[str, Any] = {"token": token, **model.origin}
    name, subfolder = str(model.config.name_or_path), given.pop("subfolder", "")
    try:
        return fetch_model(name, folder, **given) / subfolder if name else None
    except (ValueError, OSError):
        return None
