"""Writes the card, `README.md`, of each recipe in hub_configs. Run it after a change of a recipe or the template.

python docs/_site/write_recipe_cards.py
"""

from pathlib import Path

from modeling_triaffine.commands.options import as_written
from modeling_triaffine.files import write_text
from modeling_triaffine.installed_models import library
from modeling_triaffine.model.configuration_triaffine import TriaffineConfig
from modeling_triaffine.publishing.model_card import build_model_card
from modeling_triaffine.publishing.run_summary import RunSummary
from modeling_triaffine.training.plan import TRAINING_FILE, load_recipe, training_options

# Output folder of the commands in a recipe's card.
OUTPUTS = "outputs"
# Of the recipes, which come with the package; the license of a model depends on encoder and data.
LICENSE = "apache-2.0"


def recipe_card(folder: Path) -> str:
    """The card of the recipe in `folder`."""
    recipe, name = load_recipe(folder), folder.resolve().name
    encoder, known = recipe.training.get("model_name_or_path"), training_options()
    written = {name: as_written(value) for name, value in recipe.training.items()}  # as in training.yaml
    settings = {
        option: value
        for option, value in {**written, **recipe.config}.items()
        if option in known and known[option].in_card != "never"
    }
    summary = RunSummary(
        base_model=encoder,
        from_scratch=encoder is None,
        language=recipe.training.get("language"),
        license=recipe.training.get("license", LICENSE),
        recipe=name,
        settings=settings,
    )
    config = TriaffineConfig.from_pretrained(folder)
    card = build_model_card(config, model_name=f"{OUTPUTS}/{name}", summary=summary, purpose=recipe.purpose)
    return str(card)


def write_recipe_cards(recipes: Path) -> None:
    for path in sorted(recipes.glob(f"*/{TRAINING_FILE}")):
        write_text(path.parent / "README.md", recipe_card(path.parent))


if __name__ == "__main__":
    write_recipe_cards(library())
