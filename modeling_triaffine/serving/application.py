"""The HTTP application: its routes, its limits, and how mistakes are answered.

Every answer is JSON, that to a mistake {"detail": "one paragraph"}. The schema is at `/openapi.json`; there is no page
that shows it, as such pages load scripts from elsewhere.
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
    400: "The body cannot be read: it is no UTF-8, or its JSON is nested too deeply.",
    413: "The body is larger than the server takes.",
    415: "The body is not sent as JSON.",
    422: "The body is no JSON, or not as this schema says: a field is unknown, or a text too long.",
    500: "The model failed on this request; others are not concerned.",
    503: "As many requests wait as may, and Retry-After says when to try again; or the server stopped.",
}
CLIENT_GONE = 499  # as nginx has it; nobody reads the answer
RETRY_AFTER = "1"  # seconds
# Of one request, and of a field's name.
MAX_MISTAKES, MAX_NAME_CHARACTERS = 5, 60


def create_application(batcher: Batcher, model: str, labels: list[str], limits: Limits) -> FastAPI:
    """The application in front of a running batcher.

    `model` and `labels` are what `/health` tells: of the model, a folder or Hub id, only its [`public_names`].
    Whoever stops the server sets `application.state.stopping`: every answer closes its connection from then on.
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

    @application.get("/health", summary="What is served, and whether it is ready")
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
    """What the batcher finds; it need not look when the client is gone before it did.

    Raises:
        HTTPException: the model failed, or the client is gone.
    """
    answer = asyncio.wrap_future(future)
    disconnection = asyncio.ensure_future(wait_for_disconnection(request))
    try:
        await asyncio.wait((answer, disconnection), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise HTTPException(CLIENT_GONE)
        if answer.exception() is not None:  # the batcher has logged it
            raise HTTPException(500, "The model failed on this request; the server's log tells why.")
        return answer.result()
    finally:
        disconnection.cancel()
        answer.cancel()


async def wait_for_disconnection(request: Request) -> None:
    """Returns when the client is gone. The request's body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def json_answer(content: Any, status: int = 200) -> Response:
    """JSON in UTF-8. Lone surrogates, which a request can hold and UTF-8 cannot, are written as JSON escapes."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", SURROGATES)
    return Response(body, status, media_type="application/json")


async def answer_invalid(_request: Request, error: Exception) -> Response:
    """422 with the mistakes in words, or 415; never with what was sent, which may be long or private."""
    assert isinstance(error, RequestValidationError)
    if isinstance(error.body, bytes):  # FastAPI parses nothing but JSON
        return json_answer({"detail": "Send JSON, with the header Content-Type: application/json."}, 415)
    mistakes = error.errors()
    told = [describe_mistake(mistake) for mistake in mistakes[:MAX_MISTAKES]]
    if len(mistakes) > MAX_MISTAKES:
        told.append(f"and {len(mistakes) - MAX_MISTAKES} more mistakes.")
    return json_answer({"detail": " ".join(told)}, 422)


def describe_mistake(mistake: dict[str, Any]) -> str:
    if mistake["type"] == "json_invalid":
        return f"The body is no JSON: {mistake['ctx']['error']}, at character {mistake['loc'][1]}."
    # ("body", "text" or "texts" for which form it has, field, …)
    where = ".".join(str(part)[:MAX_NAME_CHARACTERS] for part in mistake["loc"][2:]) or "body"
    return f"{where}: {mistake['msg']}."


class BodyLimit:
    """Refuses bodies of more than `max_bytes`, told by their length or, of those sent in chunks, as they come."""

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
    """While the server stops, each answer closes its connection, so that none follows; what is given up is told so."""

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
        except asyncio.CancelledError:  # the time to stop is over
            if has_begun:
                raise
            answer = json_answer({"detail": "The server stopped before it could answer."}, 503)
            await answer(scope, receive, send_closing)
