"""The trained models that the package brings along, found by a name without a slash: `names-en`, `genia`."""

import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "names-en"
"""The model that is used where none is named."""
WEIGHTS = "model.safetensors"


def library() -> Path:
    """The folder of recipes and models: in the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "hub_configs"
    return installed if installed.is_dir() else package.parent / "hub_configs"


def installed_models() -> dict[str, Path]:
    """The folders of the models in the package, by name."""
    return {path.parent.name: path.parent for path in sorted(library().glob(f"*/{WEIGHTS}"))}


def find_model(name: str | None = None) -> str:
    """The folder or the Hub name of a model: a folder of that name, a model of the package, or else one on the Hub.

    A folder without config.json is searched for a model in `model/`.

    Args:
        name: None takes [`DEFAULT_MODEL`].

    Raises:
        FileNotFoundError: a name that is not OWNER/NAME is none of them, or the package lacks the weights; the message
            lists the models that are installed.

    Examples:
        >>> from modeling_triaffine.installed_models import find_model
        >>> find_model("owner/name")
        'owner/name'
    """
    name = name or DEFAULT_MODEL
    folder = Path(name).expanduser()
    if folder.is_dir():
        inner = folder / "model"
        is_outside = not (folder / "config.json").is_file() and (inner / "config.json").is_file()
        return str(inner if is_outside else folder)
    models = installed_models()
    if name in models:
        return str(models[name])
    if name.count("/") == 1 and name[0].isalnum():  # others are paths
        return name
    listed = ", ".join(models) or "none: install it again"
    raise FileNotFoundError(
        f"There is no model {name!r}: it is neither a folder nor one of the models of this package ({listed}). Give a "
        "folder, one of these names, or a name on the Hub, OWNER/NAME."
    )


def find_and_name(name: str | os.PathLike[str] | None) -> str:
    """Calls [`find_model`], and names the model that is taken where nobody named one."""
    found = find_model(None if name is None else str(name))
    if name is None:
        logger.warning(
            "The model is %s: %s has its labels, scores and license.", DEFAULT_MODEL, Path(found, "README.md")
        )
    return found
