"""The HTTP application: requests, routes and error responses.

Responses are JSON, errors {"detail": "one paragraph"}. The schema is at `/openapi.json`, without a page that displays
it, because such pages load scripts from other servers.
"""

import re
from collections.abc import Sequence, Set
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from ..drawing.predictions_page import render_html
from ..installed_models import public_names
from ..model.kinds_triaffine import OVERLAPS
from ..model.options_triaffine import PREDICTION_OPTIONS, PredictionOptions
from ..version import __version__
from .annotation_tools import inception_routes, label_studio_routes
from .answering import HUB_PATH, MAX_ITEMS, Answering, Limits, Predictor, json_answer, problem_answer
from .batching import Batcher, Item

Probability = Annotated[float, Field(ge=0, le=1)]
Strings = Annotated[list[str], Field(fail_fast=True, max_length=MAX_ITEMS)]

_THRESHOLD = PREDICTION_OPTIONS["threshold"]
OF_PYDANTIC = re.compile(r"str|constrained-float|(list|dict)\[.*\]")  # types of a union, in the place of an error


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


class PredictionRequest(Options):
    """One text or several, with options for all."""

    text: str | None = Field(None, description="Raw text; the model splits it into sentences and words.")
    texts: Strings | None = Field(None, description="Several independent texts; may be empty.")

    @model_validator(mode="after")
    def _has_one_form(self) -> "PredictionRequest":
        if (self.text is None) == (self.texts is None):
            raise ValueError("give one of text and texts")
        return self


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


class Entity(BaseModel):
    """One entity: its label, probability, text[start:end], and offsets in code points; others may be inside it."""

    entity_group: str
    score: float
    word: str
    start: int
    end: int


Entities = list[Entity] | list[list[Entity]]


def create_application(
    batcher: Batcher, model: str, labels: list[str], limits: Limits, api_keys: Sequence[str] = ()
) -> FastAPI:
    """Creates the application for a running batcher.

    `/health` reports `labels` and the display name ([`public_names`]) of `model`, a folder or Hub id. With `api_keys`,
    every other route requires one of them. Set `application.state.stopping` before shutdown: every response then closes
    its connection.
    """
    (name,) = public_names([model])
    application = FastAPI(
        title="triaffine-ner",
        summary="Nested named entity recognition: texts in, entities with character offsets out.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        max_body_size=limits.body_bytes,
        exception_handlers={StarletteHTTPException: answer_error, RequestValidationError: answer_invalid},
        responses={422: {"description": "The request is invalid, or exceeds a limit."}},
    )
    application.state.stopping = False
    registry = CollectorRegistry()
    application.add_middleware(Answering, registry=registry, keys=api_keys)
    find = Predictor(batcher, limits, registry)

    async def entities_of(
        text: str | list[str], options: Options, request: Request, ignored: Set[str] = frozenset()
    ) -> list[Any]:
        thresholds = options.threshold if isinstance(options.threshold, dict) else ()
        if not {*thresholds, *(options.labels or ())} <= {*labels}:
            raise HTTPException(422, "The model does not have all of these labels; see /health.")
        kept = {*(labels if options.labels is None else options.labels)} - ignored
        texts = [text] if isinstance(text, str) else text
        entities = await find([Item(one, options.threshold, options.overlap, kept) for one in texts], request)
        return entities[0] if isinstance(text, str) else entities

    @application.post("/predict", summary="Entities of one text or of several", response_model=dict[str, Entities])
    async def predict(body: PredictionRequest, request: Request) -> Response:
        text = body.texts or [] if body.text is None else body.text
        return json_answer({"entities": await entities_of(text, body, request)})

    @application.post(HUB_PATH, summary="Requests of the Hub's client", response_model=Entities)
    async def predict_for_hub(body: HubRequest, request: Request) -> Response:
        options = body.parameters or HubParameters.model_validate({})
        return json_answer(await entities_of(body.inputs, options, request, {*(options.ignore_labels or ())}))

    @application.head("/", include_in_schema=False)
    @application.get("/", include_in_schema=False)
    async def home(request: Request) -> Response:
        paths = application.openapi()["paths"]
        routes = [(verb.upper(), path, its["summary"]) for path, verbs in paths.items() for verb, its in verbs.items()]
        url = str(request.base_url).rstrip("/")
        return HTMLResponse(render_html("serving/home.html", model=name, labels=labels, url=url, routes=routes))

    @application.head("/health", include_in_schema=False)
    @application.get("/health", summary="The served model and its state", response_model=dict[str, Any])
    async def health() -> Response:
        status = "stopping" if application.state.stopping else "ready" if batcher.is_alive else "failed"
        answer: dict[str, Any] = {"status": status, "model": name, "labels": labels, "version": __version__}
        answer |= {"queue": {"waiting": find.waiting}, "limits": limits.model_dump()}
        return json_answer(answer, 503 if status == "failed" else 200)

    @application.get("/metrics", summary="Counts, for Prometheus", response_class=PlainTextResponse)
    async def count() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    application.include_router(label_studio_routes(find, name, labels))
    application.include_router(inception_routes(find))
    return application


async def answer_error(request: Request, error: StarletteHTTPException) -> Response:
    return problem_answer(request.scope, error.status_code, error.detail, error.headers)


async def answer_invalid(request: Request, error: RequestValidationError) -> Response:
    """422 with a description of the innermost error, or 415; never repeats the input, which may be long or private."""
    if isinstance(error.body, bytes):  # FastAPI parses only JSON
        return problem_answer(request.scope, 415, "Send JSON, with the header Content-Type: application/json.")
    fault = max(error.errors(), key=lambda fault: len(fault["loc"]))  # in a union, of the type that fits best
    fields = (part for part in map(str, fault["loc"][1:]) if not OF_PYDANTIC.fullmatch(part))
    place, problem = ".".join(fields) or "body", fault["msg"].removeprefix("Value error, ")
    reason = f" ({fault['ctx']['error']})" if fault["type"] == "json_invalid" else ""
    return problem_answer(request.scope, 422, f"{place}: {problem}{reason}.")
