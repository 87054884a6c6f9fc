"""The cards of recipes: up to date in `hub_configs/`, and made from a recipe's own words."""

import re
from pathlib import Path

import pytest
from huggingface_hub import ModelCard

from modeling_triaffine.training import recipe_cards
from tests.helpers.cards import find, section
from tests.helpers.micro_training import REPOSITORY, write_recipe

LIBRARY = REPOSITORY / "hub_configs"
RECIPES = sorted(path.parent for path in LIBRARY.glob("*/training.yaml"))


@pytest.mark.contract
@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: folder.name)
def test_the_cards_of_the_recipes_are_up_to_date(folder: Path):
    written = (folder / "README.md").read_text(encoding="utf-8")
    assert written == str(recipe_cards.build_recipe_card(folder)), (
        "run: python -m modeling_triaffine.training.recipe_cards hub_configs/"
    )


def test_a_recipes_card(tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    training = {"purpose": "For **tests**.\n", "model_name_or_path": "tester/encoder", "learning_rate": "1e-3"}
    folder = write_recipe(tmp_path / "some-recipe", training=training)
    monkeypatch.setattr("sys.argv", ["recipe_cards", str(tmp_path)])
    recipe_cards.main()
    assert capsys.readouterr().out == f"{folder / 'README.md'}\n"
    card = ModelCard.load(folder / "README.md")
    assert card.data.base_model == "tester/encoder"
    assert card.text.strip().startswith("# some-recipe\n\nFor **tests**.\n\nThis is a recipe")
    assert find(r"triaffine-ner train --recipe (\S+)", section(card, "Training"))[1] == folder.name
    settings = section(card, "Settings")
    assert "[`tester/encoder`](https://huggingface.co/tester/encoder) (`bert`, 1 layers, 16 wide)" in settings
    assert {("learning_rate", "1e-3"), ("triaffine_rank", "4")} <= set(re.findall("`([^`]+)` = `([^`]+)`", settings))
    assert not re.search("purpose|encoder_config|model_name_or_path", settings)
    assert re.findall(r"^#+ (.*)", card.text, re.MULTILINE) == ["some-recipe", "Training", "Settings", "Citation"]


def test_recipes_without_a_card_to_make(tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    purposeless = write_recipe(tmp_path / "purposeless", training={"learning_rate": 1})
    monkeypatch.setattr("sys.argv", ["recipe_cards", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        recipe_cards.main()
    assert end.value.code == 2
    assert "training.yaml has no `purpose:`" in capsys.readouterr().err
    assert not (purposeless / "README.md").exists()
