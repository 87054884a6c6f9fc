"""The model card of a trained (or not yet trained) nested-NER model: metadata and text, from what is known about it.

What is not known is left out or said to be missing; no number is made up. Here is what a card consists of; the front
matter is made in `card_metadata.py`, the sections in `card_sections.py` and `card_results.py`; the facts come from a
[`RunSummary`].
"""

from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard

from ..files import open_output
from . import card_results, card_sections
from .card_metadata import build_metadata
from .run_summary import RunSummary

CARD_NAME = "README.md"


def build_model_card(
    config: Any, *, model_name: str, summary: RunSummary | None = None, purpose: str | None = None
) -> ModelCard:
    """The card of one model repository.

    Args:
        config: the model's `TriaffineConfig`; labels, the kind of model and where its code lies are read from it.
        model_name: the repository's id on the Hub, `"user/name"`: title, loading code, name in the results.
        summary: what is known of the run that made the model. Without one, the card says "Not trained yet" wherever
            numbers would stand.
        purpose: for the card of a recipe, in Markdown: what the recipe is for. The summary then holds the recipe's name
            and settings.

    Raises:
        ValueError: the model or the base model has a name that no repository on the Hub can have.
    """
    summary = summary or RunSummary()
    metadata = build_metadata(model_name, summary)
    sections = {
        "What it is for": card_sections.describe_purpose(config, summary),
        "Training a model": card_sections.describe_command(model_name, summary.recipe) if purpose else "",
        "Use": card_sections.describe_use(config, model_name, summary.examples),
        "Demo page and endpoint": card_sections.describe_hosting(config, model_name, summary.examples),
        "Labels": card_sections.describe_labels(config, summary),
        "Scores": card_results.describe_scores(config, summary),
        "Model": card_sections.describe_model(config, summary),
        "Training": card_results.describe_training(summary),
        "Citation": card_sections.CITATION,
    }
    title = model_name.split("/")[-1].replace("_", r"\_")
    headed = [f"## {name}\n\n{text}" for name, text in sections.items() if text]
    opening = [card_sections.introduce(summary, purpose), card_sections.draw_example(summary.examples)]
    body = "\n\n".join([f"# {title}", *opening, *headed])
    return ModelCard(f"---\n{metadata.to_yaml()}\n---\n\n{body}\n")


def save_model_card(folder: str | Path, card: ModelCard) -> Path:
    """Writes the card as `README.md` into `folder`, in one step: a reader sees the old card or the whole new one."""
    path = Path(folder) / CARD_NAME
    with open_output(path) as output:
        output.write(str(card))
    return path
