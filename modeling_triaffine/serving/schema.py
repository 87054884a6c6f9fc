"""Requests and responses: pydantic models, the schema at `/openapi.json`, and how responses are encoded."""

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import HTTPException
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError
from starlette.responses import Response
from starlette.types import Scope

from ..files import SURROGATES
from ..model.kinds_triaffine import OVERLAPS
from ..model.options_triaffine import PREDICTION_OPTIONS, PredictionOptions

logger = logging.getLogger(__name__)

HUB_PATH = "/"
LABEL_STUDIO, INCEPTION = ANNOTATION_TOOLS = "/label-studio", "/inception"
"""Where the routes of annotation tools are."""
PROBLEMS = {
    400: "The body cannot be parsed: it is compressed, not Unicode, nested too deeply, or has huge numbers.",
    401: "The request has no valid API key.",
    413: "The body is larger than the limit.",
    415: "The content type is not JSON.",
    422: "The body is not valid JSON or does not match the schema, a label is unknown, or a limit is exceeded.",
    500: "The server failed on this request; other requests are not affected.",
    503: "The queue is full (Retry-After gives the seconds to wait), or the server stopped.",
}

# Forms of a value, in brackets; error messages leave them out.
NUMBER, BY_LABEL, ONE, SEVERAL = UNNAMED = "<number>", "<by label>", "<one>", "<several>"
Probability = Annotated[float, Field(ge=0, le=1)]
# Discriminators, here and below, make errors refer to the intended form only.
Threshold = Annotated[
    Annotated[Probability | None, Tag(NUMBER)] | Annotated[dict[str, Probability], Tag(BY_LABEL)],
    Discriminator(lambda value: BY_LABEL if isinstance(value, dict) else NUMBER),
]


def _known_policy(name: str) -> str:
    if name not in OVERLAPS:
        raise PydanticCustomError("overlap", "Input should be {known}", {"known": ", ".join(OVERLAPS)})
    return name


Overlap = Annotated[str, AfterValidator(_known_policy), WithJsonSchema({"type": "string", "enum": [*OVERLAPS]})]


MOST_FIELDS = 30
_THRESHOLD = PREDICTION_OPTIONS["threshold"]


class OneError(FailFast):
    """Ends the checks of a list at its first error: each takes a kilobyte. Hashable, as parts of a union must be."""

    __hash__ = object.__hash__


def _distinct(labels: list[str]) -> list[str]:
    return list(dict.fromkeys(labels))


# Each once, so that a long list, once its labels are known, costs no more than the model's.
Labels = Annotated[list[str], OneError(), AfterValidator(_distinct)]


class _Strict(BaseModel):
    """What has no other fields. Of many others, too, there is one error alone."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, body: Any) -> Any:
        if isinstance(body, dict) and len(body) > MOST_FIELDS:
            raise ValueError(f"there are {len(body)} fields; known are {', '.join(cls.model_fields)}")
        return body


class Options(_Strict):
    threshold: Threshold = Field(
        None,
        description=f"{_THRESHOLD.doc}, {{label: t}}: all spans whose best entity label has it, even if no entity is "
        f"likelier. Labels without one, or all with null: {_THRESHOLD.unset}.",
    )
    labels: Labels | None = Field(None, description="Labels of the entities to return; null: all.")
    overlap: Overlap = Field(
        PredictionOptions.overlap,
        description=f"Overlapping entities to keep: {'; '.join(f'{n}: {p.meaning}' for n, p in OVERLAPS.items())}.",
    )


def check_labels(options: Options, labels: Collection[str]) -> None:
    """Raises HTTPException if the options name a label that is not among these."""
    named = {
        "threshold": options.threshold if isinstance(options.threshold, dict) else (),
        "labels": options.labels or (),
        "ignore_labels": {*(getattr(options, "ignore_labels", None) or ())} - {"O"},  # ignored by default
    }
    for field, names in named.items():
        if not set(names) <= set(labels):
            raise HTTPException(422, f"{field}: The model does not have all of these labels; see /health.")


class OneText(Options):
    """One text."""

    text: str = Field(description="Raw text; the model splits it into sentences and words.")


class ManyTexts(Options):
    """Several independent texts."""

    texts: Annotated[list[str], OneError()] = Field(description="Raw texts; may be empty.")


class ManyItems(_Strict):
    """Several independent texts, each with its own options."""

    items: Annotated[list[OneText], OneError()] = Field(description="Texts with their options; may be empty.")


FORMS = ("items", "texts", "text")


def _which(body: Any) -> str:
    return next((form for form in FORMS if isinstance(body, dict) and form in body), "text")


PredictionRequest = Annotated[
    Annotated[OneText, Tag("text")] | Annotated[ManyTexts, Tag("texts")] | Annotated[ManyItems, Tag("items")],
    Discriminator(_which),
]
EXAMPLES: dict[str, Any] = {
    "one text": {"value": {"text": "The mayor of Port Velmar resigned."}},
    "several texts": {
        "summary": "Several texts, flat entities with a probability of at least 0.5",
        "value": {"texts": ["The mayor of Port Velmar resigned.", "It rained."], "threshold": 0.5, "overlap": "flat"},
    },
    "items": {
        "summary": "Texts with their own options",
        "value": {
            "items": [
                {"text": "The mayor of Port Velmar resigned.", "labels": ["PERSON"]},
                {"text": "Kestrel University is in Orsk.", "threshold": {"LOCATION": 0.3}},
            ]
        },
    },
}
"""Example requests in the schema."""


class Entity(BaseModel):
    """One entity; others may be inside it or around it."""

    entity_group: str = Field(description="Label.")
    score: float = Field(description="Probability of the label.", ge=0, le=1)
    word: str = Field(description="The text of the entity: text[start:end].")
    start: int = Field(description="First character, counted from 0 in Unicode code points.", ge=0)
    end: int = Field(description="Last character, exclusive.", ge=1)


class EntitiesOfText(BaseModel):
    """Response to one text."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "entities": [
                        {"entity_group": "PERSON", "score": 0.9978, "word": "The mayor of Orsk", "start": 0, "end": 17},
                        {"entity_group": "LOCATION", "score": 0.9999, "word": "Orsk", "start": 13, "end": 17},
                    ]
                }
            ]
        }
    )

    entities: list[Entity] = Field(description="Sorted by start, then longest first.")


class EntitiesOfTexts(BaseModel):
    """Response to several texts or items."""

    entities: list[list[Entity]] = Field(description="The entities of each text, in the order of the texts.")


class Queue(BaseModel):
    waiting: int = Field(description="Waiting requests, not counting running ones.", ge=0)
    limit: int = Field(description="Length of the queue; further requests get 503.", ge=1)


class Limits(BaseModel):
    """Limits of a request; a larger body is answered with 413, more or longer texts with 422."""

    body_bytes: int = Field(ge=1)
    texts: int = Field(ge=1)
    text_characters: int = Field(ge=1)
    label_studio_seconds: int = Field(ge=1, description="For a Label Studio request; later tasks get no prediction.")


class Health(BaseModel):
    """The served model and the state of the server."""

    status: Literal["ready", "stopping"] = Field(description="Whether the server accepts requests or is shutting down.")
    model: str = Field(description="Hub id of the model, or the name of its folder.")
    labels: list[str] = Field(description="The possible values of `entity_group`.")
    version: str = Field(description="Version of modeling_triaffine.")
    queue: Queue
    limits: Limits


class Problem(BaseModel):
    """An error."""

    detail: str = Field(description="What is wrong, where, and how to fix it.")


class HubProblem(BaseModel):
    """An error in the Hub's form."""

    error: str = Field(description="What is wrong, where, and how to fix it.")


def add_limits(schema: dict[str, Any], labels: Sequence[str], limits: Limits) -> None:
    """Adds to an OpenAPI schema what the server checks itself: the model's labels, numbers and lengths of texts."""
    text, texts = {"maxLength": limits.text_characters}, {"maxItems": limits.texts}
    one_text, many_texts, many_items, hub = (
        schema["components"]["schemas"][name]["properties"]
        for name in ("OneText", "ManyTexts", "ManyItems", "HubRequest")
    )
    one_text["text"] |= text
    many_texts["texts"] |= texts
    many_texts["texts"]["items"] |= text
    many_items["items"] |= texts
    for form in hub["inputs"]["oneOf"]:
        form |= {**texts, "items": form["items"] | text} if form["type"] == "array" else text
    for name in ("OneText", "ManyTexts", "HubParameters"):
        options = schema["components"]["schemas"][name]["properties"]
        ignored = options["ignore_labels"]["anyOf"] if "ignore_labels" in options else ()
        for form in (*options["labels"]["anyOf"], *ignored, *options["threshold"]["oneOf"]):
            if form.get("type") == "array":
                form["items"]["enum"] = [*labels, *(["O"] if any(form is one for one in ignored) else [])]
            elif form.get("type") == "object":
                form["propertyNames"] = {"enum": [*labels]}


def problem_answer(scope: Scope, status: int, problem: str, headers: Mapping[str, str] | None = None) -> Response:
    """The response to an error. Those to annotation tools, which show a person little of it, are logged."""
    path = scope["path"]
    if path.startswith(ANNOTATION_TOOLS):
        logger.warning("%s %s: %d: %s", scope["method"], quote(path), status, " ".join(problem.split()))
    answer = json_answer({"error" if path == HUB_PATH else "detail": problem}, status)
    answer.headers.update(headers or {})
    return answer


def json_answer(content: Any, status: int = 200) -> Response:
    """A JSON response in UTF-8; lone surrogates, which UTF-8 cannot encode, become JSON escapes."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", SURROGATES)
    return Response(body, status, media_type="application/json")
