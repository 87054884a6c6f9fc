"""Requests and responses: pydantic models, limits, and how responses are encoded."""

import json
import logging
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response
from starlette.types import Scope

from ..drawing.safe_text import clean
from ..files import SURROGATES
from ..model.kinds_triaffine import OVERLAPS
from ..model.options_triaffine import PREDICTION_OPTIONS, PredictionOptions

logger = logging.getLogger(__name__)

HUB_PATH = "/"
LABEL_STUDIO, INCEPTION = ANNOTATION_TOOLS = "/label-studio", "/inception"  # of their routes

# Of texts, tasks, items and labels. A list ends at its first error: each error takes a kilobyte.
MAX_ITEMS = 10_000

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


class TextItem(Options):
    """A text with its own options."""

    text: str


class PredictionRequest(Options):
    """One text, several, or items with their own options."""

    text: str | None = Field(None, description="Raw text; the model splits it into sentences and words.")
    texts: Strings | None = Field(None, description="Several independent texts; may be empty.")
    items: Annotated[list[TextItem], Field(fail_fast=True, max_length=MAX_ITEMS)] | None = Field(
        None, description="Several independent texts with their own options; may be empty."
    )

    @model_validator(mode="after")
    def _has_one_form(self) -> "PredictionRequest":
        if sum(given is not None for given in (self.text, self.texts, self.items)) != 1:
            raise ValueError("give one of text, texts and items")
        if self.items is not None and self.model_fields_set != {"items"}:
            raise ValueError("options of items are inside the items")
        return self


class HubParameters(Options):
    """The Hub's parameters, and those of `/predict`."""

    aggregation_strategy: Literal["simple", "first", "average", "max"] | None = Field(
        None,
        description="No effect: these strategies differ in how they join sub-words, and here entities are whole spans "
        'of words. "none", which asks for sub-words, is an error.',
    )
    ignore_labels: Strings | None = Field(None, description="Labels of the entities to leave out.")
    stride: int | None = Field(None, ge=0, description="No effect: long texts are processed sentence by sentence.")


class HubRequest(BaseModel):
    """A request of `huggingface_hub.InferenceClient.token_classification`; other fields are ignored."""

    inputs: str | Strings = Field(description="A raw text, or several independent ones.")
    parameters: HubParameters | None = None


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
    label_studio_seconds: For a request of Label Studio; later tasks get no prediction.
    """

    body_bytes: int
    texts: int
    text_characters: int
    waiting: int
    label_studio_seconds: int


def check_labels(options: Options, labels: Collection[str]) -> None:
    """Raises HTTPException if the options name a label that is not among these."""
    thresholds = options.threshold if isinstance(options.threshold, dict) else ()
    ignored = getattr(options, "ignore_labels", None) or ()
    if not {*thresholds, *(options.labels or ()), *ignored} <= {*labels, "O"}:  # which the Hub's clients ignore
        raise HTTPException(422, "The model does not have all of these labels; see /health.")


def problem_answer(scope: Scope, status: int, problem: str, headers: Mapping[str, str] | None = None) -> Response:
    """The response to an error. Those to annotation tools, which show a person little of it, are logged."""
    path = scope["path"]
    if path.startswith(ANNOTATION_TOOLS):
        logger.warning("%s %s: %d: %s", scope["method"], clean(path), status, clean(problem))
    answer = json_answer({"error" if path == HUB_PATH else "detail": problem}, status)
    answer.headers.update(headers or {})
    return answer


def json_answer(content: Any, status: int = 200) -> Response:
    """A JSON response in UTF-8; lone surrogates, which UTF-8 cannot encode, become JSON escapes."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", SURROGATES)
    return Response(body, status, media_type="application/json")
