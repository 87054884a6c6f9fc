"""The HTTP application: routes, limits of requests, and error responses.

Responses are JSON, errors {"detail": "one paragraph"}. The schema is at `/openapi.json`, without a page that displays
it, because such pages load scripts from other servers.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import PlainTextResponse, Response

from ..addresses import public_names
from ..data.schema import CorpusError
from ..version import __version__
from .batching import Answers, Batcher, Item, QueueFullError
from .finding import RETRY_SECONDS, Outcome, run, run_in_parts
from .hub import hub_routes
from .inception_recommender import inception_routes
from .label_studio_backend import label_studio_routes
from .metrics import Measuring, Metrics
from .middleware import ApiKeys, BodyLimit, Stopping
from .schema import (
    EXAMPLES,
    FORMS,
    INCEPTION,
    LABEL_STUDIO,
    PROBLEMS,
    UNNAMED,
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
    add_limits,
    check_labels,
    json_answer,
    problem_answer,
)

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
        check_items(items, limits)
        found = await run(batcher, items, request)
        metrics.count(items, found)
        return found

    async def find_each(items: Sequence[Item], request: Request) -> list[Outcome]:
        problems = [problem_of(item.text, limits) for item in items]
        outcomes = await run_in_parts(
            find,
            [item for item, problem in zip(items, problems, strict=True) if not problem],
            request,
            min(batcher.max_batch_texts, limits.texts),
            batcher.max_batch_characters,
            limits.label_studio_seconds,
        )
        remaining = iter(outcomes)
        return [problem or next(remaining) for problem in problems]

    @application.post(
        "/predict",
        summary="Entities of one text, of several, or of texts with their own options",
        response_model=EntitiesOfText | EntitiesOfTexts,
    )
    async def predict(
        body: Annotated[PredictionRequest, Body(openapi_examples=EXAMPLES)], request: Request
    ) -> Response:
        for options in body.items if isinstance(body, ManyItems) else [body]:
            check_labels(options, labels)
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

    application.include_router(hub_routes(find, labels))
    application.include_router(label_studio_routes(find_each, name, labels), prefix=LABEL_STUDIO)
    application.include_router(inception_routes(find), prefix=INCEPTION)
    add_limits(application.openapi(), labels, limits)  # FastAPI keeps the schema, and returns it at /openapi.json
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
            StarletteHTTPException: answer_error,
            RequestValidationError: answer_invalid,
            QueueFullError: answer_busy,
            CorpusError: answer_unfit,
            ImportError: answer_unfit,
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


def check_items(items: Sequence[Item], limits: Limits) -> None:
    """Raises HTTPException if there are too many items or a text is too long."""
    problem = next(filter(None, (problem_of(item.text, limits) for item in items)), "")
    if len(items) > limits.texts:
        problem = f"texts: There are {len(items)}, the limit is {limits.texts}; send several requests."
    if problem:
        raise HTTPException(422, problem)


def problem_of(text: str, limits: Limits) -> str:
    """Why a text is refused; empty if it is not."""
    if len(text) <= limits.text_characters:
        return ""
    return f"A text has {len(text)} characters, the limit is {limits.text_characters}; send it in parts."


async def answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    return problem_answer(request.scope, error.status_code, error.detail, error.headers)


async def answer_invalid(request: Request, error: Exception) -> Response:
    """422 with a description of the errors, or 415; never repeats the input, which may be long or private."""
    assert isinstance(error, RequestValidationError)
    if isinstance(error.body, bytes):  # FastAPI parses only JSON
        return problem_answer(request.scope, 415, "Send JSON, with the header Content-Type: application/json.")
    errors = error.errors()
    described = [describe_error(one) for one in errors[:MAX_ERRORS]]
    if len(errors) > MAX_ERRORS:
        described.append(f"and {len(errors) - MAX_ERRORS} more errors.")
    return problem_answer(request.scope, 422, " ".join(described))


async def answer_unreadable(request: Request, _error: Exception) -> Response:
    """400 for a body on which the parser of JSON itself fails."""
    return problem_answer(request.scope, 400, PROBLEMS[400])


async def answer_unfit(request: Request, error: Exception) -> Response:
    """422 for a project or document that does not fit, 501 for one that needs an extra which is not installed."""
    return problem_answer(request.scope, 422 if isinstance(error, CorpusError) else 501, str(error))


async def answer_busy(request: Request, error: Exception) -> Response:
    """503 while the queue is full."""
    return problem_answer(request.scope, 503, f"{error} Try again later.", {"Retry-After": str(RETRY_SECONDS)})


async def answer_failure(request: Request, _error: Exception) -> Response:
    """500 for an unexpected error, which uvicorn logs."""
    return problem_answer(request.scope, 500, "The server failed on this request; see its log.")


def describe_error(error: dict[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return f"The body is not valid JSON: {error['ctx']['error']}, at character {error['loc'][1]}."
    place = list(error["loc"][1:])  # without "body"
    if place and place[0] in FORMS:  # the form of a request to /predict, before its field
        del place[0]
    names = [str(part)[:MAX_NAME_CHARACTERS] for part in place if part not in UNNAMED]
    return f"{'.'.join(names) or 'body'}: {error['msg']}."
