"""The facts of a training run, saved as JSON beside the model, from which its card is written.

A summary is public: it has published names only, never folders of a machine. `training/summary.py` collects the
facts, `model_card.py` builds the card. pydantic checks the fields, of Python and of a file alike.
"""

import dataclasses
import json
import logging
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    InstanceOf,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic.dataclasses import dataclass

from ..evaluation.reliability import Calibration
from ..evaluation.scores import Scores, check_row, summary_metrics
from ..files import write_text
from ..model.configuration_triaffine import TriaffineConfig
from ..parsing import DataError, decode_object

logger = logging.getLogger(__name__)

SUMMARY_FILE = "run_summary.json"


def _as_scores(value: Any) -> Any:
    """Scores of a file, or made here, if they are complete and from 0 to 1."""
    if not isinstance(value, Mapping):
        return value
    scores = value if isinstance(value, Scores) else Scores(value)
    scores.check()
    return scores


def _check_recall(row: dict[str, Any]) -> dict[str, Any]:
    check_row(row, "candidate_recall", ("recall", "found", "gold"))
    return row


CheckedRow = Annotated[dict[str, Any], AfterValidator(lambda row: check_row(row, "row"))]
CheckedScores = Annotated[InstanceOf[Scores], BeforeValidator(_as_scores)]


@dataclass(config=ConfigDict(extra="forbid"))
class Epoch:
    """Losses, and scores on the validation data, of an evaluation during training.

    Attributes:
        epoch: number of epochs so far; a fraction if validated within an epoch.
        update: number of updates so far.
        training_loss: mean of the losses logged since the previous row; None without any.
        kept: whether the run ended with these weights.
        scores: the scores on the validation data, by `summary_metrics`; in JSON, beside the other facts.
    """

    epoch: StrictFloat
    training_loss: StrictFloat | None = None
    validation_loss: StrictFloat | None = None
    kept: StrictBool = False
    update: StrictInt | None = None
    scores: dict[StrictStr, StrictFloat | None] = field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _take_scores(cls, row: Any) -> Any:
        """In a file, the scores are beside the other facts."""
        if not isinstance(row, dict):
            return row
        scores = {name: value for name, value in row.items() if name in summary_metrics()}
        return {**{name: value for name, value in row.items() if name not in scores}, "scores": scores}

    @model_serializer(mode="wrap")
    def _put_scores_beside(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        facts: dict[str, Any] = serialize(self)
        scores = facts.pop("scores")
        return {**facts, **scores}


@dataclass(config=ConfigDict(extra="forbid"))
class Label:
    """A label in the training data: the number of its entities, and some of them as examples."""

    count: StrictInt
    examples: list[StrictStr] = field(default_factory=list)


@dataclass(config=ConfigDict(extra="forbid"))
class Example:
    """A sentence with its predicted entities, as the pipeline returns them."""

    text: StrictStr
    entities: list[dict[str, Any]] = field(default_factory=list)


@dataclass(config=ConfigDict(extra="forbid"))
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

    split: StrictStr
    sentences: StrictInt
    scores: CheckedScores
    by_length: dict[StrictStr, CheckedRow] = field(default_factory=dict)
    candidate_recall: Annotated[dict[str, Any], AfterValidator(_check_recall)] | None = None
    raw_text: CheckedScores | None = None
    unscored: list[StrictStr] = field(default_factory=list)


@dataclass(config=ConfigDict(extra="forbid"))
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

    base_model: StrictStr | None = None
    from_scratch: StrictBool = False
    dataset: StrictStr | None = None
    language: StrictStr | list[StrictStr] | None = None
    license: StrictStr | None = None
    recipe: StrictStr | None = None
    settings: dict[StrictStr, Any] = field(default_factory=dict)
    training_table: list[Epoch] = field(default_factory=list)
    evaluation: Evaluation | None = None
    training_sentences: StrictInt | None = None
    labels: dict[StrictStr, Label] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)
    hardware: dict[StrictStr, StrictStr | StrictInt | StrictFloat] = field(default_factory=dict)
    versions: dict[StrictStr, StrictStr] = field(default_factory=dict)
    training_seconds: StrictFloat | None = None
    resumed: StrictBool = False
    processes: StrictInt = 1
    gpus: StrictInt = 0
    parameters: StrictInt | None = None
    calibration: Calibration | None = None

    @property
    def is_trained(self) -> bool:
        return self.training_seconds is not None

    def of_model(self, config: TriaffineConfig) -> "RunSummary":
        """The summary without what is not of the model any more.

        That is a calibration that was undone in its configuration and, if its labels were changed there, the results.
        """
        summary, found = self, self.calibration
        if [label for label in config.entity_labels if label in self.labels] != [*self.labels]:
            logger.warning(
                "The results of the run are of the labels %s, not of the model's %s, so its card has none.",
                ", ".join(self.labels),
                ", ".join(config.entity_labels),
            )
            summary = dataclasses.replace(self, labels={}, evaluation=None, training_table=[], examples=[])
        if found and (found.temperature, found.thresholds) != (config.temperature, config.label_thresholds or {}):
            return dataclasses.replace(summary, calibration=None)
        return summary

    def to_json(self) -> str:
        """The summary as JSON, with null for NaN and infinity."""
        facts = json.loads(json.dumps(SUMMARY.dump_python(self)), parse_constant=lambda _: None)
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
            return SUMMARY.validate_python(decode_object(path.read_bytes()))
        except (DataError, ValidationError) as error:
            problem = error.problem if isinstance(error, DataError) else _first_problem(error)
            raise ValueError(
                f"{path} is not a summary of a training run: {problem}. Restore the file that the run wrote, or "
                "delete it for a model card without numbers."
            ) from error


def _first_problem(invalid: ValidationError) -> str:
    """The first error of a file: its place, what is expected there, and what is there."""
    error = invalid.errors()[0]
    place = ".".join(map(str, error["loc"]))
    if error["type"] == "value_error":  # of a function here, which names the value
        return f"{place}: {error['msg'].removeprefix('Value error, ')}"
    if error["type"] == "missing":
        return f"{place} is missing"
    return f"{place} is {error['input']!r:.200}: {error['msg']}"


SUMMARY: TypeAdapter[RunSummary] = TypeAdapter(RunSummary)
