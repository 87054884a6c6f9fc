"""Recipes: folders that define a run.

    config.json     fields of `TriaffineConfig`, with the full configuration of the encoder
    training.yaml   fields of the dataclasses in `arguments.py`, and `purpose`, a description in Markdown
    README.md       the card, generated from the two (`recipe_cards.py`)

The training data determines the sizes of vocabularies, whatever config.json says. A finished run has its own
config.json and training.yaml beside the model, so its folder is a recipe that repeats it.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CONFIG_FILE = "config.json"
TRAINING_FILE = "training.yaml"
PURPOSE = "purpose"
LIBRARY = "hub_configs"


class RecipeError(ValueError):
    """A recipe that cannot be found or read."""


@dataclass(frozen=True)
class Recipe:
    """The unchecked contents of the two files in `folder`; None for the empty recipe."""

    folder: Path | None = None
    config: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    purpose: str | None = None


def recipe_library() -> Path:
    """The folder `hub_configs` of the package: inside it when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / LIBRARY
    return installed if installed.is_dir() else package.parent / LIBRARY


def find_recipe(name_or_folder: str) -> Path:
    """The folder of a recipe, given as a folder with a training.yaml or by its name in the package's library.

    Raises:
        RecipeError: there is no such recipe; the message lists those of the library.
    """
    library = recipe_library()
    for folder in (Path(name_or_folder), library / name_or_folder):
        if (folder / TRAINING_FILE).is_file():
            return folder
    known = sorted(path.parent.name for path in library.glob(f"*/{TRAINING_FILE}"))
    near = difflib.get_close_matches(name_or_folder, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise RecipeError(
        f"There is no recipe {name_or_folder!r}: it is neither a folder of that name with a {TRAINING_FILE}, nor one "
        "of the "
        f"recipes in {library}: {', '.join(known) or 'none'}.{hint}"
    )


def load_recipe(folder: Path) -> Recipe:
    """Reads a recipe's files.

    Raises:
        RecipeError: a file is missing, not valid JSON or YAML, or not a mapping; or the purpose is not a string.
    """
    config = _read_mapping(folder / CONFIG_FILE, json.loads)
    training = _read_mapping(folder / TRAINING_FILE, yaml.safe_load)
    purpose = training.pop(PURPOSE, None)
    if not isinstance(purpose, str | None):
        raise RecipeError(f"{folder / TRAINING_FILE}, {PURPOSE!r} must be a string; it is {purpose!r:.80}.")
    return Recipe(folder, config, training, purpose)


def format_training(options: Mapping[str, Any], heading: str) -> str:
    """The text of a training.yaml with these options below a comment."""
    comment = "".join(f"# {line}\n" for line in heading.splitlines())
    return comment + yaml.safe_dump(dict(options), sort_keys=False, allow_unicode=True)


def _read_mapping(path: Path, parse: Any) -> dict[str, Any]:
    if not path.is_file():
        raise RecipeError(f"The recipe {path.parent} has no {path.name}; it needs {CONFIG_FILE} and {TRAINING_FILE}.")
    try:
        content = parse(path.read_text(encoding="utf-8-sig"))
    except (ValueError, yaml.YAMLError) as error:
        raise RecipeError(f"{path} cannot be read: {' '.join(str(error).split())}.") from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise RecipeError(f"{path} must be a mapping of options (`name: value` in YAML); it is {content!r:.80}.")
    return content
