"""The cards of recipes, made from what the recipes say themselves, by the builder of all cards.

python -m modeling_triaffine.publishing.recipe_cards hub_configs/

writes `README.md` into each recipe's folder anew. Do so after a recipe has changed; a test compares.
"""

import argparse
from pathlib import Path

from huggingface_hub import ModelCard

from ..errors import exit_with_message
from ..model.configuration_triaffine import TriaffineConfig
from ..training.preparation import VOCABULARY_SIZES
from ..training.recipes import TRAINING_FILE, Recipe, RecipeError, load_recipe
from .model_card import build_model_card, save_model_card
from .run_summary import RunSummary

# Where a recipe's model is trained to, in the commands of its card.
OUTPUTS = "outputs"
# Recipes are published with the package, under its license; a model's depends on encoder and data.
LICENSE = "apache-2.0"
# Options that a card says in other places than its table of settings.
TOLD_ELSEWHERE = ("model_name_or_path", "language", "license")
# Fields of config.json that are no hyper-parameters; the sizes of vocabularies follow from the data.
NO_SETTINGS = ("model_type", "encoder_config", "id2label", *VOCABULARY_SIZES.values())


def build_recipe_card(folder: Path) -> ModelCard:
    """The card of the recipe in `folder`.

    Raises:
        RecipeError: the recipe cannot be read or does not say what it is for.
        ValueError: its config.json describes no model.
    """
    recipe = load_recipe(folder)
    if not recipe.purpose:
        raise RecipeError(f"{folder / TRAINING_FILE} does not say under `purpose:` what the recipe is for; add it.")
    config = TriaffineConfig.from_pretrained(folder)
    summary = _plan(recipe, folder.resolve().name)
    return build_model_card(config, model_name=f"{OUTPUTS}/{summary.recipe}", summary=summary, purpose=recipe.purpose)


def write_recipe_cards(library: Path) -> list[Path]:
    """Writes the card of every recipe in the library; returns their paths.

    Raises:
        RecipeError, ValueError: as of [`build_recipe_card`]; or there is no recipe.
    """
    folders = sorted(path.parent for path in library.glob(f"*/{TRAINING_FILE}"))
    if not folders:
        raise RecipeError(f"There is no recipe in {library}: no folder in it has a {TRAINING_FILE}.")
    cards = {folder: build_recipe_card(folder) for folder in folders}
    return [save_model_card(folder, card) for folder, card in cards.items()]


def _plan(recipe: Recipe, name: str) -> RunSummary:
    """What the recipe says of a run, in its own words: what it leaves out has the default value."""
    encoder = recipe.training.get("model_name_or_path")
    of_training = {option: value for option, value in recipe.training.items() if option not in TOLD_ELSEWHERE}
    of_model = {field: value for field, value in recipe.config.items() if field not in NO_SETTINGS}
    return RunSummary(
        base_model=encoder,
        from_scratch=encoder is None,
        language=recipe.training.get("language"),
        license=recipe.training.get("license", LICENSE),
        recipe=name,
        settings={**of_training, **of_model},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path, help="folder of recipes, such as hub_configs")
    try:
        for path in write_recipe_cards(parser.parse_args().library):
            print(path)
    except (ValueError, OSError) as error:
        exit_with_message(error)


if __name__ == "__main__":
    main()
