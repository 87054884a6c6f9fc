"""Answers every request: checks its key, waits for its entities within the limits, counts requests and texts."""

import asyncio
import base64
import contextlib
import json
import logging
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import HTTPException, Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..drawing.safe_text import clean, shorten, visible_json
from ..files import SURROGATES
from ..model.kinds_triaffine import TextEntity
from .batching import Batcher, Item

logger = logging.getLogger(__name__)

API_KEYS = "TRIAFFINE_API_KEYS"
"""Environment variable with the API keys, separated by commas; if unset, no key is required."""
OPEN_PATHS = ("/health",)  # without a key, for monitoring
HUB_PATH = "/"
LABEL_STUDIO, INCEPTION = ANNOTATION_TOOLS = "/label-studio", "/inception"  # of their routes
OTHER = "other"  # the route of unknown paths: a label for each would let clients exhaust the memory
SECONDS = (*Histogram.DEFAULT_BUCKETS[:-1], 30, 60, 90, 120, 300)
"""Bounds of the times; Label Studio waits for minutes."""
CLIENT_GONE = 499  # as in nginx; nobody reads the response
LONGEST_PROBLEM = 300  # characters
MAX_ITEMS = 10_000  # texts, tasks and labels; a list ends at its first error, each of which takes a kilobyte

Outcome = list[TextEntity] | HTTPException  # the entities of an item, or why it has none


class Limits(BaseModel):
    """Limits of the server: a larger body is answered with 413, more or longer texts with 422."""

    body_bytes: int
    texts: int
    text_characters: int
    waiting: int  # requests that wait for their answer; further ones get 503


def read_api_keys() -> list[str]:
    """The keys in the environment variable `API_KEYS`, none if it is unset; ValueError if it is set without a key."""
    keys = [key.strip() for key in os.environ.get(API_KEYS, "").split(",") if key.strip()]
    if API_KEYS in os.environ and not keys:
        raise ValueError(f"{API_KEYS} must have keys, separated by commas; unset it for none.")
    return keys


class Answering:
    """Rejects requests without an API key, counts and times responses, and closes connections during the shutdown.

    If there are keys, a request needs one of them, as a bearer token or as the password of basic authentication.
    """

    def __init__(self, app: ASGIApp, registry: CollectorRegistry, keys: Sequence[str]):
        self.app, self._keys = app, [key.encode() for key in keys]
        self._requests = Counter("triaffine_requests", "Answered requests.", ["route", "status"], registry=registry)
        self._seconds = Histogram(
            "triaffine_request_seconds", "Time to the response.", ["route"], buckets=SECONDS, registry=registry
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # such as the lifespan events of a test client
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500  # the answer to an exception, outside of this middleware

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if scope["app"].state.stopping:
                    MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        app = self.app
        if self._keys and scope["path"] not in OPEN_PATHS and not self._is_known(Headers(scope=scope)):
            challenge = {"WWW-Authenticate": "Bearer"}
            app = problem_answer(scope, 401, "Send an API key: Authorization: Bearer KEY.", challenge)
        try:
            await app(scope, receive, send_counted)
        except asyncio.CancelledError:  # the time limit of the shutdown is reached
            late = problem_answer(scope, 503, "The server stopped before it could answer.")
            with contextlib.suppress(RuntimeError):  # the response has begun
                await late(scope, receive, send_counted)
        finally:
            route = scope["path"] if "route" in scope else OTHER  # no route has parameters in its path
            self._requests.labels(route, status).inc()
            self._seconds.labels(route).observe(time.perf_counter() - start)

    def _is_known(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        key = given.strip().encode("latin-1")  # as Starlette reads headers
        if scheme.lower() == "basic":
            try:
                key = base64.b64decode(key, validate=True).partition(b":")[2]
            except ValueError:
                return False
        # All keys are compared, each in constant time, so that timing reveals nothing.
        return scheme.lower() in ("basic", "bearer") and sum(secrets.compare_digest(key, own) for own in self._keys) > 0


class Predictor:
    """Runs items through the batcher, within the limits, and counts texts, characters and entities."""

    def __init__(self, batcher: Batcher, limits: Limits, registry: CollectorRegistry):
        self.batcher, self.limits = batcher, limits
        self.waiting = 0  # requests
        waiting = Gauge("triaffine_waiting_requests", "Requests waiting for the model.", registry=registry)
        waiting.set_function(lambda: self.waiting)
        self._texts = Counter("triaffine_texts", "Answered texts.", registry=registry)
        self._characters = Counter("triaffine_characters", "Characters of answered texts.", registry=registry)
        self._entities = Counter("triaffine_entities", "Entities found.", ["label"], registry=registry)

    async def __call__(self, items: Sequence[Item], request: Request) -> list[list[TextEntity]]:
        """The entities of each item; HTTPException if a limit is exceeded, the model failed, or the client is gone."""
        if len(items) > self.limits.texts:
            raise HTTPException(422, f"There are {len(items)} texts, the limit is {self.limits.texts}.")
        refused = [item for item in map(self._check, items) if isinstance(item, HTTPException)]
        outcomes: list[Any] = refused or await self.each(items, request)
        for outcome in outcomes:
            if isinstance(outcome, HTTPException):
                raise outcome
        return outcomes

    async def each(
        self, items: Sequence[Item | HTTPException], request: Request, seconds: float | None = None
    ) -> list[Outcome]:
        """The outcome of each item, of any number. One that fails, is late or an exception does not affect others."""
        if self.waiting >= self.limits.waiting:
            problem = f"The queue is full (limit: {self.limits.waiting}). Try again later."
            raise HTTPException(503, problem, {"Retry-After": "1"})
        checked = [self._check(item) for item in items]
        fitting = [item for item in checked if isinstance(item, Item)]
        answers = [asyncio.wrap_future(answer) for answer in self.batcher.submit(fitting)]
        everything = asyncio.gather(*answers, return_exceptions=True)
        disconnection = asyncio.ensure_future(wait_for_disconnection(request))
        self.waiting += 1
        try:
            await asyncio.wait((everything, disconnection), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if disconnection.done() and not everything.done():
                raise HTTPException(CLIENT_GONE, "The client did not wait for the answer.")
            found = iter([self._outcome(*pair, seconds) for pair in zip(fitting, answers, strict=True)])
        finally:
            self.waiting -= 1
            disconnection.cancel()
            for answer in answers:
                answer.cancel()
            asyncio.get_running_loop().call_soon(self.batcher.forget_cancelled)  # when its futures are cancelled, too
        return [next(found) if isinstance(item, Item) else item for item in checked]

    def _check(self, item: Item | HTTPException) -> Item | HTTPException:
        """The item, or the problem of a text that is too long."""
        most = self.limits.text_characters
        if isinstance(item, Item) and len(item.text) > most:
            return HTTPException(422, f"A text has {len(item.text)} characters, the limit is {most}.")
        return item

    def _outcome(self, item: Item, answer: asyncio.Future[list[TextEntity]], seconds: float | None) -> Outcome:
        if not answer.done():
            return HTTPException(503, f"There was no time for it within {seconds} seconds; ask again.")
        if answer.exception() is not None:  # the batcher has logged the traceback
            return HTTPException(500, "The model failed on this request; see the server's log.")
        self._texts.inc()
        self._characters.inc(len(item.text))
        for entity in answer.result():
            self._entities.labels(entity["entity_group"]).inc()
        return answer.result()


async def wait_for_disconnection(request: Request) -> None:
    """Returns when the client has disconnected. The body of the request must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def problem_answer(scope: Scope, status: int, problem: str, headers: Mapping[str, str] | None = None) -> Response:
    """The response to an error. Those to annotation tools, which show a person little of it, are logged."""
    path, problem = scope["path"], shorten(problem, LONGEST_PROBLEM)
    if path.startswith(ANNOTATION_TOOLS):
        logger.warning("%s %s: %d: %s", scope["method"], clean(path), status, problem)
    return json_answer({"error" if path == HUB_PATH else "detail": problem}, status, headers)


def json_answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response in UTF-8; controls, and lone surrogates, which UTF-8 cannot encode, become JSON escapes."""
    body = visible_json(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
    return Response(body.encode("utf-8", SURROGATES), status, headers, media_type="application/json")
