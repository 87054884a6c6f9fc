"""The HTTP application: routes, limits, and error responses.

Every response is JSON, of an error {"detail": "one paragraph"}. The schema is at `/openapi.json`; no page displays it,
because such pages load scripts from other servers.
"""

import asyncio
import json
from concurrent.futures import Future
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..files import SURROGATES
from ..hosting import public_names
from ..version import __version__
from .batching import Answers, Batcher, Decoding, QueueFullError
from .schema import EntitiesOfText, EntitiesOfTexts, Health, Limits, OneText, PredictionRequest, Problem, Queue

PROBLEMS = {
    400: "The body cannot be parsed: it is not UTF-8, or its JSON is nested too deeply.",
    413: "The body is larger than the limit.",
    415: "The content type is not JSON.",
    422: "The body is not valid JSON or does not match the schema: a field is unknown, or a text too long.",
    500: "The model failed on this request; other requests are not affected.",
    503: "The queue is full, and Retry-After says when to try again; or the server stopped.",
}
CLIENT_GONE = 499  # nginx's code; nobody reads the response
RETRY_AFTER = "1"  # seconds
# Listed of one request; shown of a field's name.
MAX_ERRORS, MAX_NAME_CHARACTERS = 5, 60


def create_application(batcher: Batcher, model: str, labels: list[str], limits: Limits) -> FastAPI:
    """The application in front of a running batcher.

    `/health` reports `labels` and the display name of `model`, a folder or Hub id: see [`public_names`]. Set
    `application.state.stopping` to shut down: from then on, every response closes its connection.
    """
    (name,) = public_names([model])
    application = FastAPI(
        title="triaffine-ner",
        summary="Nested named entity recognition: texts in, entities with character offsets out.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        exception_handlers={RequestValidationError: answer_invalid},
    )
    application.state.stopping = False
    application.add_middleware(BodyLimit, max_bytes=limits.body_bytes)
    application.add_middleware(Stopping)

    @application.post(
        "/predict",
        summary="Entities of one text, or of several",
        response_model=EntitiesOfText | EntitiesOfTexts,
        responses={status: {"model": Problem, "description": problem} for status, problem in PROBLEMS.items()},
    )
    async def predict(body: PredictionRequest, request: Request) -> Response:
        texts = [body.text] if isinstance(body, OneText) else body.texts
        check_limits(texts, limits)
        try:
            future = batcher.submit(texts, Decoding(body.threshold, body.overlap))
        except QueueFullError as error:
            raise HTTPException(503, f"{error} Try again later.", {"Retry-After": RETRY_AFTER}) from None
        found = await answer_while_connected(future, request)
        return json_answer({"entities": found[0] if isinstance(body, OneText) else found})

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

    return application


def check_limits(texts: list[str], limits: Limits) -> None:
    if len(texts) > limits.texts:
        raise HTTPException(422, f"texts: There are {len(texts)}, the limit is {limits.texts}; send several requests.")
    longest = max(map(len, texts), default=0)
    if longest > limits.text_characters:
        raise HTTPException(
            422, f"A text has {longest} characters, the limit is {limits.text_characters}; send it in parts."
        )


async def answer_while_connected(future: Future[Answers], request: Request) -> Answers:
    """Waits for the batcher's result, and cancels the job if the client disconnects before it runs.

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
    """Returns when the client has disconnected. The request's body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def json_answer(content: Any, status: int = 200) -> Response:
    """JSON in UTF-8. Lone surrogates, which JSON can contain and UTF-8 cannot, are written as JSON escapes."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", SURROGATES)
    return Response(body, status, media_type="application/json")


async def answer_invalid(_request: Request, error: Exception) -> Response:
    """422 with the errors in words, or 415; never repeats the input, which may be long or private."""
    assert isinstance(error, RequestValidationError)
    if isinstance(error.body, bytes):  # FastAPI parses only JSON
        return json_answer({"detail": "Send JSON, with the header Content-Type: application/json."}, 415)
    errors = error.errors()
    described = [describe_error(one) for one in errors[:MAX_ERRORS]]
    if len(errors) > MAX_ERRORS:
        described.append(f"and {len(errors) - MAX_ERRORS} more errors.")
    return json_answer({"detail": " ".join(described)}, 422)


def describe_error(error: dict[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return f"The body is not valid JSON: {error['ctx']['error']}, at character {error['loc'][1]}."
    # ("body", "text" or "texts" by the form of the request, field, …)
    where = ".".join(str(part)[:MAX_NAME_CHARACTERS] for part in error["loc"][2:]) or "body"
    return f"{where}: {error['msg']}."


class BodyLimit:
    """Refuses bodies of more than `max_bytes`, by their declared length or, if sent in chunks, as they arrive."""

    def __init__(self, app: ASGIApp, max_bytes: int):
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        declared = int(length) if length.isdecimal() else 0
        received = 0

        async def receive_within_limit() -> Message:
            nonlocal received
            self._check(declared)
            message = await receive()
            received += len(message.get("body", b""))
            self._check(received)
            return message

        await self.app(scope, receive_within_limit, send)

    def _check(self, size: int) -> None:
        if size > self.max_bytes:
            raise HTTPException(413, f"The body has more than {self.max_bytes} bytes; send it in several requests.")


class Stopping:
    """While the server stops, closes the connection after each response, and answers cancelled requests with 503."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def send_closing(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                if scope["app"].state.stopping:
                    MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        try:
            await self.app(scope, receive, send_closing)
        except asyncio.CancelledError:  # the time for shutdown is over
            if has_begun:
                raise
            answer = json_answer({"detail": "The server stopped before it could answer."}, 503)
            await answer(scope, receive, send_closing)
