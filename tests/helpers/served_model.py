"""What the tests of the HTTP service ask, and of which model."""

from pathlib import Path

from modeling_triaffine import NestedNERPipeline
from tests.helpers.tiny import tiny_model, tiny_processor

WAIT = 60  # seconds, for what comes in far less
TEXTS = ["The IL-2 gene binds protein. It is DNA!", "", "gene", "naïve café — 中文 gene"]


def save_finding_model(folder: Path, encoder: str) -> str:
    """A tiny model that finds entities without a threshold, too."""
    NestedNERPipeline(model=tiny_model(encoder, seed=1), processor=tiny_processor(encoder)).save_pretrained(folder)
    return str(folder)
