"""The trained models that the package brings along, found by a name without a slash: `names-en`, `genia`."""

import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "names-en"  # used where no model is named


def library() -> Path:
    """The folder of recipes and models: in the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "hub_configs"
    return installed if installed.is_dir() else package.parent / "hub_configs"


def installed_models() -> dict[str, Path]:
    """The folders of the models in the package, by name."""
    return {path.parent.name: path.parent for path in sorted(library().glob("*/model.safetensors"))}


def find_model(name: str | None = None) -> str:
    """The folder or the Hub name of a model: a folder of that name, a model of the package, or else one on the Hub.

    Without a name it is [`DEFAULT_MODEL`]. A folder without config.json is searched for a model in `model/`.

    Raises:
        FileNotFoundError: it is none of them; of OWNER/NAME, a folder OWNER is here. The message lists the models.
    """
    name = DEFAULT_MODEL if name is None else name
    folder = Path(name).expanduser()
    if name and folder.is_dir():  # Path("") would be the working directory
        inner = folder / "model"  # of a run that has its corpus beside it
        return str(inner if inner.is_dir() and not (folder / "config.json").exists() else folder)
    models = installed_models()
    if name in models:
        return str(models[name])
    if name.count("/") == 1 and name[0].isalnum() and not folder.parent.is_dir():  # others are paths
        return name
    listed = ", ".join(models) or "none: install it again"
    raise FileNotFoundError(
        f"There is no model {name!r}: it is neither a folder nor one of the models of this package ({listed}). Give a "
        "folder, one of these names, or a name on the Hub, OWNER/NAME, where no folder OWNER is."
    )


def find_and_name(name: str | os.PathLike[str] | None) -> str:
    """Calls [`find_model`]; where nobody named a model, logs what the default one finds, and how well."""
    found = find_model(None if name is None else str(name))
    if name is None:
        from huggingface_hub import metadata_load

        from .model.configuration_triaffine import TriaffineConfig

        labels = TriaffineConfig.from_pretrained(found).entity_labels
        card: Any = metadata_load(Path(found, "README.md"))
        score = card["model-index"][0]["results"][0]["metrics"][0]["value"]
        facts = DEFAULT_MODEL, ", ".join(labels), card["language"], 100 * score, card["license"]
        logger.warning("%s finds %s; language %s; F1 %.1f; license %s", *facts)
    return found


def public_names(places: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Display names of models, which do not reveal where on this machine these are.

    A Hub id is its own display name. A folder is named by its last part, or by its last two where training chose the
    last (`model`, `checkpoint-500`); equal names are numbered.
    """
    names = []
    for place in map(str, places):
        parts = Path(place).resolve().parts
        named = parts[-2:] if re.fullmatch(r"model|checkpoint-\d+", parts[-1]) else parts[-1:]
        names.append(Path(*named).as_posix() if os.path.isdir(place) else place)
    return [
        f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]
