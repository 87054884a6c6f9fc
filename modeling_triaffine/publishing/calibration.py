"""Saves a calibration in a model's folder: in its configuration, and in the summary of its run for the card."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..evaluation.calibration_result import Calibration
from ..model.configuration_triaffine import TriaffineConfig
from .model_card import CARD_NAME, card_of_folder
from .repository import has_own_card
from .run_summary import RunSummary


def check_unscored(folder: Path, split: str, entities: Sequence[Sequence[Mapping[str, Any]]]) -> None:
    """Raises ValueError for the training sentences, and those that were scored: thresholds would be too good there.

    They are recognized by the name of their split, or by the numbers of sentences and of entities.
    """
    summary = RunSummary.load(folder) or RunSummary()
    scored, numbers = summary.evaluation, (len(entities), sum(map(len, entities)))
    is_known = split not in ("validation", "test") and len(entities) == summary.training_sentences
    if scored is not None:
        is_known |= split == scored.split or numbers == (scored.sentences, scored.scores["gold"])
    if is_known:
        raise ValueError(
            f"The model was trained on these {len(entities)} sentences, or its card has their scores. Thresholds would "
            "be too good there: calibrate on others (--split, or another file)."
        )


def save_calibration(folder: Path, calibration: Calibration) -> None:
    """Saves temperature and thresholds in the model's configuration, and their origin in its run's summary and card."""
    is_own = has_own_card(folder)
    config = TriaffineConfig.from_pretrained(folder)
    config.temperature, config.label_thresholds = calibration.temperature, calibration.thresholds or None
    summary = RunSummary.load(folder) or RunSummary()
    summary.calibration = calibration
    summary.save(folder)
    config.save_pretrained(folder)
    if not is_own:
        (folder / CARD_NAME).write_text(card_of_folder(folder), encoding="utf-8", newline="")
