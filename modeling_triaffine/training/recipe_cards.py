"""Writes the card, `README.md`, of each recipe in a folder. Run it after a change of a recipe or the card's template.

python -m modeling_triaffine.training.recipe_cards hub_configs/
"""

import argparse
from pathlib import Path

from huggingface_hub import ModelCard

from ..errors import ending_plainly
from ..files import write_text
from ..model.configuration_triaffine import TriaffineConfig
from ..publishing.model_card import CARD_NAME, build_model_card
from ..publishing.run_summary import RunSummary
from .plan import TRAINING_FILE, RecipeError, load_recipe, training_options

# Output folder of the commands in a recipe's card.
OUTPUTS = "outputs"
# Of the recipes, which come with the package; the license of a model depends on encoder and data.
LICENSE = "apache-2.0"


def build_recipe_card(folder: Path) -> ModelCard:
    """The card of the recipe in `folder`.

    Raises:
        RecipeError: the recipe cannot be read, or has no `purpose`.
        ValueError: its config.json does not describe a model.
    """
    recipe = load_recipe(folder)
    if not recipe.purpose:
        raise RecipeError(
            f"{folder / TRAINING_FILE} has no `purpose:`; add a sentence that says what the recipe is for."
        )
    config = TriaffineConfig.from_pretrained(folder)
    encoder, name = recipe.training.get("model_name_or_path"), folder.resolve().name
    given = {**recipe.training, **recipe.config}
    known = training_options()
    settings = {name: value for name, value in given.items() if name in known and known[name].in_card != "never"}
    summary = RunSummary(
        base_model=encoder,
        from_scratch=encoder is None,
        language=recipe.training.get("language"),
        license=recipe.training.get("license", LICENSE),
        recipe=name,
        settings=settings,
    )
    return build_model_card(config, model_name=f"{OUTPUTS}/{name}", summary=summary, purpose=recipe.purpose)


def write_recipe_cards(library: Path) -> list[Path]:
    """Writes the card of every recipe in the library; returns their paths.

    Raises:
        RecipeError, ValueError: as [`build_recipe_card`].
    """
    folders = sorted(path.parent for path in library.glob(f"*/{TRAINING_FILE}"))
    cards = {folder / CARD_NAME: str(build_recipe_card(folder)) for folder in folders}
    for path, card in cards.items():
        write_text(path, card)
    return [*cards]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path, help="folder of recipes, such as hub_configs")
    with ending_plainly():
        print(*write_recipe_cards(parser.parse_args().library), sep="\n")


if __name__ == "__main__":
    main()
