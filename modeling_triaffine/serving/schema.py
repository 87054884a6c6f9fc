"""Requests and responses: pydantic models, the items that requests ask for, limits, and the encoding of responses."""

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Annotated, Any, Literal

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response
from starlette.types import Scope

from ..drawing.safe_text import clean, shorten, visible_json
from ..files import SURROGATES
from ..model.kinds_triaffine import OVERLAPS
from ..model.options_triaffine import PREDICTION_OPTIONS, PredictionOptions
from .batching import Item

logger = logging.getLogger(__name__)

HUB_PATH = "/"
LABEL_STUDIO, INCEPTION = ANNOTATION_TOOLS = "/label-studio", "/inception"  # of their routes

# Of texts, tasks and labels. A list ends at its first error: each error takes a kilobyte.
MAX_ITEMS = 10_000
LONGEST_PROBLEM = 300  # characters

Probability = Annotated[float, Field(ge=0, le=1)]
Strings = Annotated[list[str], Field(fail_fast=True, max_length=MAX_ITEMS)]

_THRESHOLD = PREDICTION_OPTIONS["threshold"]


class Options(BaseModel):
    """Options of a prediction; other fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)

    threshold: Probability | dict[str, Probability] | None = Field(
        None,
        description=f"{_THRESHOLD.doc}, {{label: t}}: all spans whose best entity label has it, even if no entity is "
        f"likelier. Labels without one, or all with null: {_THRESHOLD.unset}.",
    )
    labels: Strings | None = Field(None, description="Labels of the entities to return; null: all.")
    overlap: str = Field(
        PredictionOptions.overlap,
        pattern=f"^({'|'.join(OVERLAPS)})$",
        description=f"Overlapping entities to keep: {'; '.join(f'{n}: {p.meaning}' for n, p in OVERLAPS.items())}.",
    )

    def items_of(self, texts: Iterable[str], labels: Collection[str], ignored: Set[str] = frozenset()) -> list[Item]:
        """The texts with these options, for a model with these labels, some of which are ignored.

        Raises:
            HTTPException: The options name another label.
        """
        thresholds = self.threshold if isinstance(self.threshold, dict) else ()
        if not {*thresholds, *(self.labels or ()), *ignored} <= {*labels}:
            raise HTTPException(422, "The model does not have all of these labels; see /health.")
        kept = {*(labels if self.labels is None else self.labels)} - ignored
        return [Item(text, self.threshold, self.overlap, kept) for text in texts]


class PredictionRequest(Options):
    """One text or several, with options for all."""

    text: str | None = Field(None, description="Raw text; the model splits it into sentences and words.")
    texts: Strings | None = Field(None, description="Several independent texts; may be empty.")

    @model_validator(mode="after")
    def _has_one_form(self) -> "PredictionRequest":
        if (self.text is None) == (self.texts is None):
            raise ValueError("give one of text and texts")
        return self

    def to_items(self, labels: Collection[str]) -> list[Item]:
        return self.items_of([self.text] if self.text is not None else self.texts or [], labels)


class HubParameters(Options):
    """The Hub's parameters, and those of `/predict`."""

    # Without effect: entities are whole spans of words, and "none", which asks for sub-words, is an error.
    aggregation_strategy: Literal["simple", "first", "average", "max"] | None = None
    stride: int | None = None
    ignore_labels: Strings | None = Field(None, description="Labels of the entities to leave out.")


class HubRequest(BaseModel):
    """A request of `huggingface_hub.InferenceClient.token_classification`; other fields are ignored."""

    inputs: str | Strings = Field(description="A raw text, or several independent ones.")
    parameters: HubParameters | None = None

    def to_items(self, labels: Collection[str]) -> list[Item]:
        options = self.parameters or HubParameters.model_validate({})
        ignored = {*(options.ignore_labels or ())} - {"O"}  # which clients of the Hub ignore by default
        return options.items_of([self.inputs] if isinstance(self.inputs, str) else self.inputs, labels, ignored)


class Entity(BaseModel):
    """One entity: its label, probability, text[start:end], and offsets in code points; others may be inside it."""

    entity_group: str
    score: float
    word: str
    start: int
    end: int


class Limits(BaseModel):
    """Limits of the server: a larger body is answered with 413, more or longer texts with 422.

    waiting: Requests that wait for their answer; further ones get 503.
    """

    body_bytes: int
    texts: int
    text_characters: int
    waiting: int


def problem_answer(scope: Scope, status: int, problem: str, headers: Mapping[str, str] | None = None) -> Response:
    """The response to an error. Those to annotation tools, which show a person little of it, are logged."""
    path, problem = scope["path"], shorten(problem, LONGEST_PROBLEM)
    if path.startswith(ANNOTATION_TOOLS):
        logger.warning("%s %s: %d: %s", scope["method"], clean(path), status, problem)
    answer = json_answer({"error" if path == HUB_PATH else "detail": problem}, status)
    answer.headers.update(headers or {})
    return answer


def json_answer(content: Any, status: int = 200) -> Response:
    """A JSON response in UTF-8; controls, and lone surrogates, which UTF-8 cannot encode, become JSON escapes."""
    body = visible_json(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
    return Response(body.encode("utf-8", SURROGATES), status, media_type="application/json")
