"""RunSummary: the facts of a training run, one JSON file beside the model, from which its card is made."""

import dataclasses
import logging
from dataclasses import field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from ..evaluation.calibration import Calibration
from ..files import write_text
from ..model.configuration_triaffine import TriaffineConfig

logger = logging.getLogger(__name__)

SUMMARY_FILE = "run_summary.json"


@dataclass
class Epoch:
    """Losses, and scores on the validation data, of an evaluation during training."""

    epoch: float  # number so far, a fraction if validated within one
    training_loss: float | None = None  # mean of the losses logged since the previous row; None without any
    validation_loss: float | None = None
    kept: bool = False  # whether the run ended with these weights
    update: int | None = None  # number so far
    scores: dict[str, float | None] = field(default_factory=dict)  # on the validation data, by `summary_metrics`


@dataclass
class Example:
    """A sentence with its predicted entities, as the pipeline returns them."""

    text: str
    entities: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Evaluation:
    """Scores of the trained model, plain data of [`Scores`]; ratios are fractions in [0, 1], lengths are in words."""

    split: str  # "test" or "validation"
    sentences: int
    scores: dict[str, Any]  # on given words
    by_length: dict[str, dict[str, Any]] = field(default_factory=dict)
    candidate_recall: dict[str, Any] | None = None  # None for a model without candidates
    raw_text: dict[str, Any] | None = None  # on raw text, matched by characters; None if the corpus has words only
    unscored: list[str] = field(default_factory=list)  # labels that --keep_labels kept, and the split does not annotate


@dataclass
class RunSummary:
    """Facts of a run; unknown ones have their defaults. `RunSummary()` is that of a model without a known run."""

    base_model: str | None = None  # Hub id of the pretrained encoder, or of the model that was trained further
    from_scratch: bool = False  # whether the encoder started with random weights
    dataset: str | None = None  # Hub id of the data, or several with commas between them, or a title
    language: str | list[str] | None = None  # ISO 639 code(s) of the texts
    license: str | None = None  # the Hub's identifier of the model's license
    recipe: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)  # hyper-parameters by name
    training_table: list[Epoch] = field(default_factory=list)
    evaluation: Evaluation | None = None
    training_sentences: int | None = None
    label_counts: dict[str, int] = field(default_factory=dict)  # entities in the training data
    examples: list[Example] = field(default_factory=list)  # predictions on sentences that it was not trained on
    hardware: dict[str, str | int | float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    training_seconds: float | None = None  # since the run began, or was last resumed; None if it is not trained
    resumed: bool = False
    processes: int = 1  # that trained together
    gpus: int = 0
    parameters: int | None = None  # of the model, their number
    calibration: Calibration | None = None

    @property
    def is_trained(self) -> bool:
        return self.training_seconds is not None

    def of_model(self, config: TriaffineConfig) -> "RunSummary":
        """Returns the summary without results of other labels, and without a calibration that was undone."""
        summary, found = self, self.calibration
        if [label for label in config.entity_labels if label in self.label_counts] != [*self.label_counts]:
            logger.warning("The run had other labels (%s), so the card has no results.", ", ".join(self.label_counts))
            summary = dataclasses.replace(self, label_counts={}, evaluation=None, training_table=[], examples=[])
        if found and (found.temperature, found.thresholds) != (config.temperature, config.label_thresholds or {}):
            summary = dataclasses.replace(summary, calibration=None)
        return summary

    def save(self, folder: str | Path) -> None:
        """Writes the summary atomically into `folder`, with null for NaN and infinity."""
        write_text(Path(folder) / SUMMARY_FILE, TypeAdapter(RunSummary).dump_json(self, indent=2).decode() + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> "RunSummary | None":
        """Returns the summary in `folder`; None if there is none, ValueError if it is damaged."""
        path = Path(folder) / SUMMARY_FILE
        if not path.is_file():
            return None
        try:
            return TypeAdapter(cls).validate_json(path.read_bytes())
        except ValidationError as error:
            remedy = "Restore it, or delete it for a card without numbers."
            raise ValueError(f"{path} is damaged: {' '.join(str(error).split())}. {remedy}") from error
