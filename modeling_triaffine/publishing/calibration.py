"""Saves a calibration in a model's folder: in configuration, summary and card."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard

from ..evaluation.reliability import Calibration
from ..model.configuration_triaffine import TriaffineConfig
from .model_card import CARD_NAME, card_text, is_ours, renew_card, repository_name
from .repository import EDITABLE
from .run_summary import Evaluation, RunSummary


def check_unscored(folder: Path, split: str, entities: Sequence[Sequence[Mapping[str, Any]]]) -> None:
    """Raises ValueError for the training sentences, and those of the scores in the card, which would be too good.

    They are recognized by the name of their split, or by the numbers of sentences and of gold entities per label.
    """
    summary = RunSummary.load(folder) or RunSummary()
    if split not in ("validation", "test") and len(entities) == summary.training_sentences:
        raise ValueError(
            "The model was trained on these sentences, so its probabilities on them are too high. Calibrate on others "
            "(--split, or another file)."
        )
    scored = summary.evaluation
    if scored is not None and (split == scored.split or _have_counts_of(scored, entities)):
        advice = ", or score a test split: repeat the command of the run with --do_predict --resume_from_checkpoint"
        raise ValueError(
            f"The scores in the model's card are from the {scored.split} split, {scored.sentences:,} sentences, and "
            f"would be too good with thresholds tuned on it. Calibrate on others (--split, or another file, whose name "
            f"is not that of the split){'' if scored.split == 'test' else advice}."
        )


def _have_counts_of(scored: Evaluation, entities: Sequence[Sequence[Mapping[str, Any]]]) -> bool:
    """Whether there are as many sentences as were scored, with as many gold entities of each label."""
    distinct = ({(one["start"], one["end"], one["type"]) for one in of_sentence} for of_sentence in entities)
    counts = Counter(label for spans in distinct for _, _, label in spans)
    gold = {label: row["gold"] for label, row in scored.scores["by_label"].items() if row["gold"]}
    return len(entities) == scored.sentences and dict(counts) == gold


def save_calibration(folder: Path, calibration: Calibration) -> None:
    """Saves temperature and thresholds in the model's configuration, and their origin in summary and card.

    An edited card and edited files for an endpoint are kept.
    """
    config = TriaffineConfig.from_pretrained(folder)
    config.temperature, config.label_thresholds = calibration.temperature, calibration.thresholds or None
    summary = RunSummary.load(folder) or RunSummary()
    summary.calibration = calibration
    card = folder / CARD_NAME
    own = card_text(card.read_bytes()) if card.is_file() else ""
    with tempfile.TemporaryDirectory(prefix=".calibration.", dir=folder) as staging:
        for name in EDITABLE:
            if (folder / name).is_file():
                shutil.copyfile(folder / name, Path(staging) / name)
        config.save_pretrained(staging)
        summary.save(staging)
        if is_ours(own):
            name = ModelCard(own).data.get("model_name") or repository_name(folder)
            new = renew_card(own, config, model_name=name, summary=summary)
            (Path(staging) / CARD_NAME).write_text(new, encoding="utf-8", newline="")
        for path in Path(staging).iterdir():
            os.replace(path, folder / path.name)
