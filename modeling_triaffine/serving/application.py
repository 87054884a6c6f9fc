"""The HTTP application: routes and error responses.

Responses are JSON, errors {"detail": "one paragraph"}. The schema is at `/openapi.json`, without a page that displays
it, because such pages load scripts from other servers.
"""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from ..addresses import public_names
from ..drawing.templates import render_html
from ..version import __version__
from .batching import Batcher, Item
from .inception_recommender import inception_routes
from .label_studio_backend import label_studio_routes
from .metrics import Metrics
from .middleware import Answering, ApiKeys
from .predictor import Predictor
from .schema import (
    HUB_PATH,
    INCEPTION,
    LABEL_STUDIO,
    Entity,
    HubParameters,
    HubRequest,
    Limits,
    PredictionRequest,
    check_labels,
    json_answer,
    problem_answer,
)

Entities = list[Entity] | list[list[Entity]]
# Reported errors of one request; length of a field's name and of a message in them.
MAX_ERRORS, MAX_NAME_CHARACTERS, MAX_MESSAGE_CHARACTERS = 5, 60, 300


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
        exception_handlers={HTTPException: answer_error, RequestValidationError: answer_invalid},
        responses={422: {"description": "The request is invalid, or exceeds a limit."}},
    )
    application.state.stopping = False
    if api_keys:
        application.add_middleware(ApiKeys, keys=api_keys)
    metrics = Metrics(batcher)
    application.add_middleware(Answering, metrics=metrics)
    find = Predictor(batcher, limits, metrics)

    @application.post(
        "/predict", summary="Entities of one text, of several, or of items", response_model=dict[str, Entities]
    )
    async def predict(body: PredictionRequest, request: Request) -> Response:
        given = [body] if body.items is None else body.items
        for options in given:
            check_labels(options, labels)
        texts = [[one.text] if one.text is not None else one.texts for one in given]
        found = await find(
            [
                Item(text, one.threshold, one.overlap, one.labels)
                for one, several in zip(given, texts, strict=True)
                for text in several or ()
            ],
            request,
        )
        return json_answer({"entities": found if body.text is None else found[0]})

    @application.post(HUB_PATH, summary="Requests of the Hub's client", response_model=Entities)
    async def predict_for_hub(body: HubRequest, request: Request) -> Response:
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        options = body.parameters or HubParameters.model_validate({})
        check_labels(options, labels)
        kept = labels if options.labels is None else options.labels
        kept = [label for label in kept if label not in (options.ignore_labels or ())]
        found = await find([Item(text, options.threshold, options.overlap, kept) for text in texts], request)
        return json_answer(found[0] if isinstance(body.inputs, str) else found)

    @application.get("/", include_in_schema=False)
    async def home(request: Request) -> Response:
        paths = application.openapi()["paths"]
        routes = [(verb.upper(), path, one["summary"]) for path, verbs in paths.items() for verb, one in verbs.items()]
        url = str(request.base_url).rstrip("/")
        return HTMLResponse(render_html("serving/home.html", model=name, labels=labels, url=url, routes=routes))

    @application.head("/health", include_in_schema=False)
    @application.get("/health", summary="The served model and its state", response_model=dict[str, Any])
    async def health() -> Response:
        status = "stopping" if application.state.stopping else "ready" if batcher.is_alive else "failed"
        state = {"status": status, "model": name, "labels": labels, "version": __version__}
        queue = {"waiting": batcher.num_waiting, "limit": batcher.max_waiting}
        answer = {**state, "queue": queue, "limits": limits.model_dump()}
        return json_answer(answer, 503 if status == "failed" else 200)

    application.get("/metrics", summary="Counts, for Prometheus", response_class=PlainTextResponse)(metrics.response)
    application.include_router(label_studio_routes(find, name, labels), prefix=LABEL_STUDIO)
    application.include_router(inception_routes(find), prefix=INCEPTION)
    return application


async def answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_answer(request.scope, error.status_code, error.detail, error.headers)


async def answer_invalid(request: Request, error: Exception) -> Response:
    """422 with a description of the errors, or 415; never repeats the input, which may be long or private."""
    assert isinstance(error, RequestValidationError)
    if isinstance(error.body, bytes):  # FastAPI parses only JSON
        return problem_answer(request.scope, 415, "Send JSON, with the header Content-Type: application/json.")
    described = []
    for one in error.errors()[:MAX_ERRORS]:
        place = ".".join(str(part)[:MAX_NAME_CHARACTERS] for part in one["loc"][1:])  # without "body"
        reason = one.get("ctx", {}).get("error", "") if one["type"] == "json_invalid" else ""
        described.append(f"{place or 'body'}: {one['msg'][:MAX_MESSAGE_CHARACTERS]}{reason and f' ({reason})'}.")
    return problem_answer(request.scope, 422, " ".join(described))
