"""The facts of a training run, saved as JSON beside the model, from which its card is written.

A summary is public: it has published names only, never folders of a machine. `training/run_facts.py` collects the
facts, `model_card.py` builds the card.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from huggingface_hub.dataclasses import strict
from huggingface_hub.errors import StrictDataclassError

from ..evaluation.reliability import Calibration
from ..evaluation.scores import Scores, check_row, summary_metrics
from ..files import write_text
from ..model.kinds_triaffine import TextEntity
from ..parsing import DataError, decode_object

SUMMARY_FILE = "run_summary.json"
ENTITY = {name: int | float if kind is float else kind for name, kind in get_type_hints(TextEntity).items()}


@strict
@dataclass
class Epoch:
    """Losses, and scores on the validation data, of an evaluation during training.

    Attributes:
        epoch: number of epochs so far; a fraction if validated within an epoch.
        update: number of updates so far; None in the summaries of older versions.
        training_loss: mean of the losses logged since the previous row; None without any.
        kept: whether the run ended with these weights.
        scores: the scores on the validation data, by `summary_metrics`; in JSON, beside the other facts.
    """

    epoch: float | int
    training_loss: float | int | None = None
    validation_loss: float | int | None = None
    kept: bool = False
    update: int | None = None
    scores: dict[str, float | int | None] = field(default_factory=dict)

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> "Epoch":
        """The row from JSON, where the scores are beside the other facts."""
        scores = {name: value for name, value in row.items() if name in summary_metrics()}
        return cls(**{name: value for name, value in row.items() if name not in scores}, scores=scores)


@strict
@dataclass
class Label:
    """A label in the training data: the number of its entities, and some of them as examples."""

    count: int
    examples: list[str] = field(default_factory=list)


@strict
@dataclass
class Example:
    """A sentence with its predicted entities, as the pipeline returns them."""

    text: str
    entities: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for entity in self.entities:
            is_complete = all(isinstance(entity.get(name), kind) for name, kind in ENTITY.items())
            if not (is_complete and 0 <= entity["start"] < entity["end"] <= len(self.text)):
                raise ValueError(f"{entity!r:.200} is not an entity of a text of {len(self.text)} characters")


@strict
@dataclass
class Evaluation:
    """Scores of the trained model; ratios are fractions in [0, 1], lengths are in words.

    Attributes:
        split: the scored split, "test" or "validation".
        sentences: number of its sentences.
        scores: scores on given words, as returned by `score_entities`.
        raw_text: the same on raw text, matched by characters; None if the corpus has words only.
        by_length: as returned by `scores_by_length`.
        candidate_recall: as returned by the function of this name; None for a model without candidates.
        unscored: labels that the model kept (--keep_labels) and the split does not annotate.

    Raises:
        ValueError: scores are incomplete or outside [0, 1].
    """

    split: str
    sentences: int
    scores: Scores
    by_length: dict[str, dict[str, int | float]] = field(default_factory=dict)
    candidate_recall: dict[str, int | float] | None = None
    raw_text: Scores | None = None
    unscored: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scores.check("scores")
        if self.raw_text is not None:
            self.raw_text.check("raw_text")
        for length, row in self.by_length.items():
            check_row(row, f"by_length[{length!r}]")
        if self.candidate_recall is not None:
            check_row(self.candidate_recall, "candidate_recall", ("recall", "found", "gold"))


@strict
@dataclass
class RunSummary:
    """Facts of a run; unknown ones have their defaults. `RunSummary()` is that of a model without a known run.

    Attributes:
        base_model: Hub id of the pretrained encoder, or of the model that was trained further.
        from_scratch: whether the encoder started with random weights.
        dataset: Hub id of the data, or its title.
        language: ISO 639 code(s) of the texts.
        license: the Hub's identifier of the model's license.
        settings: hyper-parameters by name.
        training_sentences: number of sentences in the training data.
        labels: the labels of the training data by name.
        examples: sentences with predictions of the model.
        training_seconds: duration of the training; None if the model is not trained.
        resumed: whether the run was resumed; `training_seconds` is then the time since the last resumption.
        processes, gpus: number of processes that trained together, and of GPUs.
        parameters: number of parameters of the model.
    """

    base_model: str | None = None
    from_scratch: bool = False
    dataset: str | None = None
    language: str | list[str] | None = None
    license: str | None = None
    recipe: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    training_table: list[Epoch] = field(default_factory=list)
    evaluation: Evaluation | None = None
    training_sentences: int | None = None
    labels: dict[str, Label] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)
    hardware: dict[str, str | int | float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    training_seconds: float | int | None = None
    resumed: bool = False
    processes: int = 1
    gpus: int = 0
    parameters: int | None = None
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        for name, label in (self.calibration.labels if self.calibration else {}).items():
            for part, row in (("before", label.before), ("after", label.after)):
                check_row(row, f"calibration.labels[{name!r}].{part}")

    @property
    def is_trained(self) -> bool:
        return self.training_seconds is not None

    def to_json(self) -> str:
        """The summary as JSON, with null for NaN and infinity."""
        facts = json.loads(json.dumps(dataclasses.asdict(self)), parse_constant=lambda _: None)
        for row in facts["training_table"]:
            row |= row.pop("scores")
        return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"

    def save(self, folder: str | Path) -> Path:
        """Writes the summary atomically into `folder`; returns its path."""
        path = Path(folder) / SUMMARY_FILE
        write_text(path, self.to_json())
        return path

    @classmethod
    def load(cls, folder: str | Path) -> "RunSummary | None":
        """The summary in `folder`; None if there is none.

        Raises:
            ValueError: the file is damaged, or of a newer version of this package.
        """
        path = Path(folder) / SUMMARY_FILE
        if not path.is_file():
            return None
        try:
            summary: RunSummary = _from_json(cls, decode_object(path.read_bytes()), "")
        except ValueError as error:
            problem = error.problem if isinstance(error, DataError) else " ".join(str(error).split())
            raise ValueError(
                f"{path} is not a summary of a training run: {problem}. Restore the file as the training wrote it, or "
                "delete it for a model card without numbers."
            ) from error
        return summary


def _from_json(kind: Any, value: Any, where: str) -> Any:
    """A value of the type `kind` from JSON, its dataclasses from objects; errors begin with the place, `where`."""
    inner = get_args(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        try:
            types = get_type_hints(kind)
            fields = {name: _from_json(types.get(name), part, name) for name, part in value.items()}
            return kind.from_json(fields) if kind is Epoch else kind(**fields)
        except (ValueError, TypeError, AttributeError, StrictDataclassError) as error:
            raise ValueError(f"{where}: {error}" if where else str(error)) from error
    if get_origin(kind) is list and isinstance(value, list):
        return [_from_json(inner[0], part, f"{where}[{number}]") for number, part in enumerate(value)]
    if get_origin(kind) is dict and isinstance(value, dict):
        return {name: _from_json(inner[1], part, f"{where}[{name!r}]") for name, part in value.items()}
    if kind is Scores and isinstance(value, dict):
        return Scores(value)
    optional = [one for one in inner if dataclasses.is_dataclass(one) or one is Scores]
    return _from_json(optional[0], value, where) if optional and value is not None else value
