"""Recipes: a folder with what makes a training repeatable.

    config.json     the model: fields of `TriaffineConfig`, the encoder's full configuration included
    training.yaml   the encoder's weights, and fields of the dataclasses in `arguments.py`; under `purpose` a text in
                    Markdown: what the recipe is for
    README.md       the card, made from the two (`recipe_cards.py`)

The sizes of vocabularies in config.json stand for those that the training data will have. A finished run leaves its own
config.json and training.yaml beside the model, so its folder is the recipe that trains it again.

Reading and writing them is here; how they mix with the command line is in `command_line.py`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CONFIG_FILE = "config.json"
TRAINING_FILE = "training.yaml"
PURPOSE = "purpose"


class RecipeError(ValueError):
    """A recipe that cannot be found or read; the message says where and what to do."""


@dataclass(frozen=True)
class Recipe:
    """What a recipe's two files say, not yet checked against what options there are.

    Attributes:
        folder: where it was read from; None for the empty recipe.
        config: fields of `TriaffineConfig`.
        training: options of a training by name.
        purpose: what the recipe is for, in Markdown; no option of a training.
    """

    folder: Path | None = None
    config: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    purpose: str | None = None


def find_recipe(name_or_folder: str, library: Path | None) -> Path:
    """The folder of a recipe: a folder with a training.yaml, or the name of one in the library.

    Args:
        name_or_folder: what the user asked for. A folder wins over a name in the library.
        library: folder of recipes (`hub_configs` of a checkout), if there is one.

    Raises:
        RecipeError: there is no such recipe; the message lists those of the library.
    """
    candidates = [Path(name_or_folder)] + ([library / name_or_folder] if library else [])
    for folder in candidates:
        if (folder / TRAINING_FILE).is_file():
            return folder
    known = sorted(path.parent.name for path in library.glob(f"*/{TRAINING_FILE}")) if library else []
    raise RecipeError(
        f"There is no recipe {name_or_folder!r}: neither a folder of that name with a {TRAINING_FILE}, nor one of the "
        f"recipes in {library}: {', '.join(known) or 'none'}."
    )


def load_recipe(folder: Path) -> Recipe:
    """Reads a recipe's files.

    Raises:
        RecipeError: a file is missing, is no valid JSON or YAML, or holds no mapping of names to values, or the purpose
            is no text.
    """
    config = _read_mapping(folder / CONFIG_FILE, json.loads)
    training = _read_mapping(folder / TRAINING_FILE, yaml.safe_load)
    purpose = training.pop(PURPOSE, None)
    if not isinstance(purpose, str | None):
        raise RecipeError(f"{folder / TRAINING_FILE}, {PURPOSE!r} must be a text; it is {purpose!r:.80}.")
    return Recipe(folder, config, training, purpose)


def format_training(options: Mapping[str, Any], heading: str) -> str:
    """The text of a training.yaml with these options, under the heading as a comment."""
    comment = "".join(f"# {line}\n" for line in heading.splitlines())
    return comment + yaml.safe_dump(dict(options), sort_keys=False, allow_unicode=True)


def _read_mapping(path: Path, parse: Any) -> dict[str, Any]:
    if not path.is_file():
        raise RecipeError(f"The recipe {path.parent} has no {path.name}; it needs {CONFIG_FILE} and {TRAINING_FILE}.")
    try:
        content = parse(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise RecipeError(f"{path} cannot be read: {' '.join(str(error).split())}.") from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise RecipeError(f"{path} must hold options by name (`name: value` in YAML); it holds {content!r:.80}.")
    return content
