"""The HTTP application: routes and error responses.

Responses are JSON, errors {"detail": "one paragraph"}. The schema is at `/openapi.json`, without a page that displays
it, because such pages load scripts from other servers.
"""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from ..installed_models import public_names
from ..drawing.pages import render_html
from ..version import __version__
from .annotation_tools import inception_routes, label_studio_routes
from .answering import Answering, Metrics, Predictor
from .batching import Batcher
from .schema import HUB_PATH, Entity, HubRequest, Limits, PredictionRequest, json_answer, problem_answer

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
    metrics = Metrics()
    application.add_middleware(Answering, metrics=metrics, keys=api_keys)
    find = Predictor(batcher, limits, metrics)

    @application.post("/predict", summary="Entities of one text or of several", response_model=dict[str, Entities])
    async def predict(body: PredictionRequest, request: Request) -> Response:
        found = await find(body.to_items(labels), request)
        return json_answer({"entities": found if body.text is None else found[0]})

    @application.post(HUB_PATH, summary="Requests of the Hub's client", response_model=Entities)
    async def predict_for_hub(body: HubRequest, request: Request) -> Response:
        found = await find(body.to_items(labels), request)
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

    application.include_router(label_studio_routes(find, name, labels))
    application.include_router(inception_routes(find))
    return application


async def answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    return problem_answer(request.scope, error.status_code, error.detail, error.headers)


async def answer_invalid(request: Request, error: Exception) -> Response:
    """422 with a description of the innermost error, or 415; never repeats the input, which may be long or private."""
    assert isinstance(error, RequestValidationError)
    if isinstance(error.body, bytes):  # FastAPI parses only JSON
        return problem_answer(request.scope, 415, "Send JSON, with the header Content-Type: application/json.")
    fault = max(error.errors(), key=lambda fault: len(fault["loc"]))  # of a choice, the one that was meant
    place = ".".join(map(str, fault["loc"][1:])) or "body"
    reason = f" ({fault['ctx']['error']})" if fault["type"] == "json_invalid" else ""
    return problem_answer(request.scope, 422, f"{place}: {fault['msg']}{reason}.")
