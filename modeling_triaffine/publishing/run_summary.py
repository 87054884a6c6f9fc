"""What is known of a training run, as plain facts beside the model: what its card is written from, now or later.

A summary holds what a stranger may read: names under which things are published, never folders of a machine. How its
facts are taken from a run is in `run_facts.py`, the card made of them in `model_card.py`.
"""

import dataclasses
import json
import math
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..files import open_output

SUMMARY_FILE = "run_summary.json"
RATIOS = ("precision", "recall", "f1")
COUNTS = ("correct", "predicted", "gold")
ENTITY = {"entity_group": str, "score": int | float, "word": str, "start": int, "end": int}


@dataclass(frozen=True)
class Epoch:
    """A row of the training table: the losses, and the scores on the validation data, at the end of an epoch.

    Attributes:
        epoch: passes over the training data so far; a fraction where validation came in between.
        training_loss: mean of what was logged since the row before; None where nothing was.
        kept: whether these are the weights that the run ended with.
    """

    epoch: float
    training_loss: float | None = None
    validation_loss: float | None = None
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    flat_f1: float | None = None
    nested_f1: float | None = None
    kept: bool = False


@dataclass(frozen=True)
class Label:
    """A label in the training data: how many entities have it, and how some of them are spelled."""

    count: int
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Example:
    """A sentence, and what the model finds in it, as the pipeline gives it."""

    text: str
    entities: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for entity in self.entities:
            is_whole = all(isinstance(entity.get(name), kind) for name, kind in ENTITY.items())
            if not (is_whole and 0 <= entity["start"] < entity["end"] <= len(self.text)):
                raise ValueError(f"{entity!r:.200} is no entity of a text of {len(self.text)} characters")


@dataclass(frozen=True)
class Evaluation:
    """Scores of the finished model, in words; ratios are fractions in [0, 1].

    Attributes:
        split: which sentences were scored: "test" or "validation".
        sentences: how many.
        scores: as `score_entities` returns them.
        by_length: as `scores_by_length` returns them.
        candidate_recall: as `candidate_recall` returns it; None for a model that filters no candidates.
    """

    split: str
    sentences: int
    scores: dict[str, Any]
    by_length: dict[str, dict[str, int | float]] = field(default_factory=dict)
    candidate_recall: dict[str, int | float] | None = None

    def __post_init__(self) -> None:
        missing = [name for name in ("by_label", "flat", "nested") if not isinstance(self.scores.get(name), dict)]
        if missing:
            raise ValueError(f"`scores` lack {', '.join(missing)}; give what the evaluation returned, whole")
        rows = {"scores": self.scores, "scores['flat']": self.scores["flat"], "scores['nested']": self.scores["nested"]}
        rows |= {f"scores['by_label'][{label!r}]": row for label, row in self.scores["by_label"].items()}
        rows |= {f"by_length[{length!r}]": row for length, row in self.by_length.items()}
        for where, row in rows.items():
            _check_row(row, where, (*RATIOS, *COUNTS))
        if self.candidate_recall is not None:
            _check_row(self.candidate_recall, "candidate_recall", ("recall", "found", "gold"))


@dataclass(frozen=True)
class RunSummary:
    """Facts of one run; what is not known stays at its default. `RunSummary()` is a model that no run is known of.

    Attributes:
        base_model: id on the Hub of the pretrained encoder, or of the model that was trained on.
        from_scratch: whether the encoder started with random weights.
        dataset: what the data is called, an id on the Hub where it has one.
        language: ISO 639 code(s) of the texts.
        license: the Hub's identifier of the model's license.
        recipe: name of the recipe.
        settings: hyper-parameters by name.
        training_table: one row an epoch.
        evaluation: scores of the finished model.
        training_sentences: how many there were.
        labels: the labels of the training data by name.
        examples: sentences with the model's predictions.
        hardware: what the run was seen on, by name.
        versions: of the software, by name.
        training_seconds: duration of the training; None where nothing was trained yet.
        resumed: whether the run was interrupted; `training_seconds` is then the time since it was last taken up.
        processes: how many trained together.
        gpus: how many of them on a GPU of their own.
        parameters: numbers in the model's weights.

    Raises:
        ValueError: scores that are incomplete or outside [0, 1].
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
    training_seconds: float | None = None
    resumed: bool = False
    processes: int = 1
    gpus: int = 0
    parameters: int | None = None

    @property
    def is_trained(self) -> bool:
        return self.training_seconds is not None

    def to_json(self) -> str:
        """The summary as JSON; a number that is none (the loss of a training gone wrong) becomes null."""
        return json.dumps(_without_nan(dataclasses.asdict(self)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, folder: str | Path) -> Path:
        """Writes the summary into `folder`, whole or not at all."""
        path = Path(folder) / SUMMARY_FILE
        with open_output(path) as output:
            output.write(self.to_json())
        return path

    @classmethod
    def load(cls, folder: str | Path) -> "RunSummary | None":
        """The summary that lies in `folder`; None where there is none.

        Raises:
            ValueError: the file is damaged, or of another version of this package.
        """
        path = Path(folder) / SUMMARY_FILE
        if not path.is_file():
            return None
        try:
            return _read(cls, json.loads(path.read_bytes().decode("utf-8")), "")
        except ValueError as error:  # JSON's and Unicode's errors are such, too
            raise ValueError(
                f"{path} is no summary of a training run: {' '.join(str(error).split())}. Restore the file that the "
                "training wrote; without it (delete it) the model card shows no numbers."
            ) from error


def _check_row(row: Any, where: str, names: tuple[str, ...]) -> None:
    missing = [name for name in names if not isinstance(row, dict) or not _is_number(row.get(name))]
    if missing:
        raise ValueError(f"`{where}` lacks {', '.join(missing)}; give what the evaluation returned, whole")
    for ratio in RATIOS:
        if ratio in row and not 0.0 <= row[ratio] <= 1.0:
            raise ValueError(f"`{where}` has {ratio} = {row[ratio]}; scores are fractions in [0, 1]")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read(kind: Any, value: Any, where: str) -> Any:
    """The value from JSON as the annotation `kind` says; `where` it stands is told in errors."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, value, where)
    if origin is types.UnionType:
        return _read_first_that_fits(arguments, value, where)
    if origin is list and isinstance(value, list):
        return [_read(arguments[0], part, f"{where}[{index}]") for index, part in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {name: _read(arguments[1], part, f"{where}[{name!r}]") for name, part in value.items()}
    if kind is float and _is_number(value):
        return float(value)
    if origin is None and type(value) is kind:
        return value
    raise ValueError(f"{where} is {value!r:.80}, not {getattr(kind, '__name__', kind)}")


def _read_dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'it'} holds {value!r:.80}, not facts by name")
    kinds = typing.get_type_hints(kind)
    unknown = sorted(set(value) - set(kinds))
    if unknown:
        raise ValueError(f"{where or 'it'} has {', '.join(unknown)}, which this version of the package does not know")
    inside = f"{where}." if where else ""
    try:
        return kind(**{name: _read(kinds[name], part, f"{inside}{name}") for name, part in value.items()})
    except TypeError as error:  # a field is missing
        raise ValueError(f"{where or 'it'} is incomplete ({error})") from None


def _read_first_that_fits(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    wanted = [kind for kind in kinds if kind is not type(None)]
    for kind in wanted[:-1]:
        try:
            return _read(kind, value, where)
        except ValueError:
            continue
    return _read(wanted[-1], value, where)
