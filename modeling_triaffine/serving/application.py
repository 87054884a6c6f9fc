"""The HTTP application: routes and error responses.

Responses are JSON, errors {"detail": "one paragraph"}. The schema is at `/openapi.json`, without a page that displays
it, because such pages load scripts from other servers.
"""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from ..addresses import public_names
from ..drawing.templates import render_html
from ..version import __version__
from .batching import Batcher, Item
from .inception import Document, RecommenderRequest
from .label_studio import SetupRequest, TasksRequest, interface_of, log_refused, prediction
from .middleware import Answering, ApiKeys, Metrics
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
MAX_ERRORS, MAX_CHARACTERS = 5, 300  # reported errors of one request, and the length of each


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
    if api_keys:
        application.add_middleware(ApiKeys, keys=api_keys)
    metrics = Metrics()
    application.add_middleware(Answering, metrics=metrics)
    find = Predictor(batcher, limits, metrics)

    @application.post(
        "/predict", summary="Entities of one text, of several, or of items", response_model=dict[str, Entities]
    )
    async def predict(body: PredictionRequest, request: Request) -> Response:
        items = []
        for given in [body] if body.items is None else body.items:
            check_labels(given, labels)
            texts = [given.text] if given.text is not None else getattr(given, "texts", [])
            items += [Item(text, given.threshold, given.overlap, given.labels) for text in texts]
        found = await find(items, request)
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
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    application.include_router(label_studio_routes(find, name, labels), prefix=LABEL_STUDIO)
    application.include_router(inception_routes(find), prefix=INCEPTION)
    return application


def label_studio_routes(find: Predictor, model: str, labels: Sequence[str]) -> APIRouter:
    """The routes of an ML backend, https://labelstud.io/guide/ml_create, which shows `model` as the model version."""
    routes = APIRouter(tags=["Label Studio"])

    @routes.get("/health", summary="Health of the backend")
    async def health() -> dict[str, str]:
        return {"status": "UP", "model_version": model}

    @routes.get("/versions", summary="Versions of the model")
    async def versions() -> dict[str, list[str]]:
        return {"versions": [model]}

    @routes.post("/setup", summary="Connect a project", response_model=dict[str, str])
    async def setup(body: SetupRequest | None = None) -> Response:
        interface_of(body.label_config if body else None, labels)
        return json_answer({"model_version": model})

    @routes.post("/webhook", summary="Ignores changes of annotations")
    @routes.post("/train", summary="Ignores a request to train")
    async def ignore() -> dict[str, str]:
        return {}

    @routes.post("/predict", summary="Predictions for tasks")
    async def predict(body: TasksRequest, request: Request) -> Response:
        interface = interface_of(body.label_config, labels)
        texts = [task.data.get(interface.text_field) for task in body.tasks]
        items = [Item(text, labels=interface.labels) for text in texts if isinstance(text, str)]
        found = iter(await find.each(items, request, find.limits.label_studio_seconds))
        no_text = HTTPException(422, f"The task has no text in data.{interface.text_field}.")
        outcomes = [next(found) if isinstance(text, str) else no_text for text in texts]
        log_refused(body.tasks, outcomes)
        results = [prediction(text, outcome, interface, model) for text, outcome in zip(texts, outcomes, strict=True)]
        return json_answer({"results": results, "model_version": model})

    return routes


def inception_routes(find: Predictor) -> APIRouter:
    """The routes of an external recommender, as INCEpTION's developer guide describes it."""
    routes = APIRouter(tags=["INCEpTION"])

    @routes.post("/train", status_code=204, summary="Ignores documents to train on")
    async def ignore() -> None:
        return

    @routes.post("/predict", summary="A document with suggestions")
    async def predict(body: RecommenderRequest, request: Request) -> Response:
        document = Document(body)
        (entities,) = await find([Item(document.text)], request)
        return json_answer({"document": document.with_suggestions(entities)})

    return routes


async def answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    return problem_answer(request.scope, error.status_code, error.detail, error.headers)


async def answer_invalid(request: Request, error: Exception) -> Response:
    """422 with a description of the errors, or 415; never repeats the input, which may be long or private."""
    assert isinstance(error, RequestValidationError)
    if isinstance(error.body, bytes):  # FastAPI parses only JSON
        return problem_answer(request.scope, 415, "Send JSON, with the header Content-Type: application/json.")
    described = []
    for fault in error.errors()[:MAX_ERRORS]:
        place = ".".join(map(str, fault["loc"][1:])) or "body"
        reason = f" ({fault['ctx']['error']})" if fault["type"] == "json_invalid" else ""
        described.append(f"{place}: {fault['msg']}{reason}."[-MAX_CHARACTERS:])
    return problem_answer(request.scope, 422, " ".join(described))
