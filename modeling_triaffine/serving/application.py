"""The HTTP application: routes, limits of requests, and error responses.

Responses are JSON, errors {"detail": "one paragraph"}. The schema is at `/openapi.json`, without a page that displays
it, because such pages load scripts from other servers.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.responses import PlainTextResponse, Response

from ..hosting import public_names
from ..version import __version__
from .annotation_tools import inception_routes, label_studio_routes
from .batching import Answers, Batcher, Item, QueueFullError
from .metrics import Measuring, Metrics
from .middleware import ApiKeys, BodyLimit, Stopping
from .schema import (
    BY_LABEL,
    EXAMPLES,
    FORMS,
    NUMBER,
    EntitiesOfText,
    EntitiesOfTexts,
    Health,
    Limits,
    ManyItems,
    ManyTexts,
    OneText,
    PredictionRequest,
    Problem,
    Queue,
    json_answer,
)

PROBLEMS = {
    400: "The body cannot be parsed: it is compressed, not UTF-8, nested too deeply, or has huge numbers.",
    401: "The request has no valid API key.",
    413: "The body is larger than the limit.",
    415: "The content type is not JSON.",
    422: "The body is not valid JSON or does not match the schema, a label is unknown, or a limit is exceeded.",
    500: "The server failed on this request; other requests are not affected.",
    503: "The queue is full (Retry-After gives the seconds to wait), or the server stopped.",
}
CLIENT_GONE = 499  # as in nginx; nobody reads the response
RETRY_AFTER = "1"  # seconds
# Reported errors of one request; length of a field name in them.
MAX_ERRORS, MAX_NAME_CHARACTERS = 5, 60


def create_application(
    batcher: Batcher, model: str, labels: list[str], limits: Limits, api_keys: Sequence[str] = ()
) -> FastAPI:
    """Creates the application for a running batcher.

    `/health` reports `labels` and the display name ([`public_names`]) of `model`, a folder or Hub id. With `api_keys`,
    every other route requires one of them. Set `application.state.stopping` before shutdown: every response then closes
    its connection.
    """
    (name,) = public_names([model])
    application = guarded_application(limits, api_keys)
    metrics = Metrics(batcher)
    application.add_middleware(Measuring, metrics=metrics)
    application.get("/metrics", summary="Counts, for Prometheus", response_class=PlainTextResponse)(metrics.response)

    async def find(items: Sequence[Item], request: Request) -> Answers:
        check_items(items, labels, limits)
        try:
            future = batcher.submit(items)
        except QueueFullError as error:
            raise HTTPException(503, f"{error} Try again later.", {"Retry-After": RETRY_AFTER}) from None
        found = await answer_while_connected(future, request)
        metrics.count(items, found)
        return found

    @application.post(
        "/predict",
        summary="Entities of one text, of several, or of texts with their own options",
        response_model=EntitiesOfText | EntitiesOfTexts,
    )
    async def predict(
        body: Annotated[PredictionRequest, Body(openapi_examples=EXAMPLES)], request: Request
    ) -> Response:
        found = await find(items_of(body), request)
        return json_answer({"entities": found[0] if isinstance(body, OneText) else found})

    @application.head("/health", include_in_schema=False)
    @application.get("/health", summary="The served model and its state")
    async def health() -> Health:
        return Health(
            status="stopping" if application.state.stopping else "ready",
            model=name,
            labels=labels,
            version=__version__,
            queue=Queue(waiting=batcher.num_waiting, limit=batcher.max_waiting),
            limits=limits,
        )

    application.include_router(label_studio_routes(find, name, labels), prefix="/label-studio")
    application.include_router(inception_routes(find), prefix="/inception")
    return application


def guarded_application(limits: Limits, api_keys: Sequence[str]) -> FastAPI:
    """An application without routes that limits bodies, requires API keys and can be stopped."""
    application = FastAPI(
        title="triaffine-ner",
        summary="Nested named entity recognition: texts in, entities with character offsets out.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        exception_handlers={
            400: answer_unreadable,
            RequestValidationError: answer_invalid,
            Exception: answer_failure,
        },
        responses={status: {"model": Problem, "description": problem} for status, problem in PROBLEMS.items()},
        # For the schema only: the middleware checks keys before the body is read.
        dependencies=[Security(HTTPBearer(auto_error=False))] if api_keys else [],
    )
    application.state.stopping = False
    application.add_middleware(BodyLimit, max_bytes=limits.body_bytes)
    if api_keys:
        application.add_middleware(ApiKeys, keys=api_keys)
    application.add_middleware(Stopping)
    return application


def items_of(body: OneText | ManyTexts | ManyItems) -> list[Item]:
    """The texts of a request with their options."""
    if isinstance(body, ManyTexts):
        return [Item(text, body.threshold, body.overlap, body.labels) for text in body.texts]
    items = body.items if isinstance(body, ManyItems) else [body]
    return [Item(item.text, item.threshold, item.overlap, item.labels) for item in items]


def check_items(items: Sequence[Item], labels: Sequence[str], limits: Limits) -> None:
    """Raises HTTPException if there are too many items, a text is too long, or a label is unknown."""
    if len(items) > limits.texts:
        raise HTTPException(422, f"texts: There are {len(items)}, the limit is {limits.texts}; send several requests.")
    longest = max((len(item.text) for item in items), default=0)
    if longest > limits.text_characters:
        raise HTTPException(
            422, f"A text has {longest} characters, the limit is {limits.text_characters}; send it in parts."
        )
    for item in items:
        by_label = item.threshold if isinstance(item.threshold, dict) else ()
        for field, named in (("threshold", by_label), ("labels", item.labels or ())):
            if not set(named) <= set(labels):
                raise HTTPException(422, f"{field}: The model does not have all of these labels; see /health.")


async def answer_while_connected(future: Future[Answers], request: Request) -> Answers:
    """Waits for the result of a job, and cancels the job if the client disconnects before it runs.

    Raises:
        HTTPException: The model failed, or the client has disconnected.
    """
    answer = asyncio.wrap_future(future)
    disconnection = asyncio.ensure_future(wait_for_disconnection(request))
    try:
        await asyncio.wait((answer, disconnection), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise HTTPException(CLIENT_GONE)
        if answer.exception() is not None:  # the batcher has logged it
            raise HTTPException(500, "The model failed on this request; see the server's log.")
        return answer.result()
    finally:
        disconnection.cancel()
        answer.cancel()


async def wait_for_disconnection(request: Request) -> None:
    """Returns when the client has disconnected. The body of the request must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def answer_invalid(_request: Request, error: Exception) -> Response:
    """422 with a description of the errors, or 415; never repeats the input, which may be long or private."""
    assert isinstance(error, RequestValidationError)
    if isinstance(error.body, bytes):  # FastAPI parses only JSON
        return json_answer({"detail": "Send JSON, with the header Content-Type: application/json."}, 415)
    errors = error.errors()
    described = [describe_error(one) for one in errors[:MAX_ERRORS]]
    if len(errors) > MAX_ERRORS:
        described.append(f"and {len(errors) - MAX_ERRORS} more errors.")
    return json_answer({"detail": " ".join(described)}, 422)


async def answer_unreadable(_request: Request, _error: Exception) -> Response:
    """400 for a body on which the parser of JSON itself fails."""
    return json_answer({"detail": PROBLEMS[400]}, 400)


async def answer_failure(_request: Request, _error: Exception) -> Response:
    """500 for an unexpected error, which uvicorn logs."""
    return json_answer({"detail": "The server failed on this request; see its log."}, 500)


def describe_error(error: dict[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return f"The body is not valid JSON: {error['ctx']['error']}, at character {error['loc'][1]}."
    # ("body", form of the request, field, …); in other routes ("body", field, …)
    fields = error["loc"][2 if error["loc"][1:2] and error["loc"][1] in FORMS else 1 :]
    names = [str(part)[:MAX_NAME_CHARACTERS] for part in fields if part not in (NUMBER, BY_LABEL)]
    where = ".".join(names) or "body"
    return f"{where}: {error['msg']}."
