"""Middleware of all routes: API keys, counts, and shutdown."""

import asyncio
import base64
import hashlib
import hmac
import os
import time
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .metrics import Metrics
from .schema import problem_answer

API_KEYS = "TRIAFFINE_API_KEYS"
"""Environment variable with the API keys, separated by commas; if unset, no key is required."""
OPEN_PATHS = ("/health",)  # without a key, for monitoring
OTHER = "other"  # the route of unknown paths: a label for each would let clients exhaust the memory


def read_api_keys() -> list[str]:
    """The keys in the environment variable `API_KEYS`; empty if it is unset.

    Raises:
        ValueError: It is set without a key, or with one that a header cannot contain.
    """
    if API_KEYS not in os.environ:
        return []
    keys = [key.strip() for key in os.environ[API_KEYS].split(",") if key.strip()]
    if not keys or not all(key.isascii() and key.isprintable() and " " not in key for key in keys):
        raise ValueError(f"{API_KEYS} must have keys of printable ASCII, separated by commas; unset it for none.")
    return keys


class Answering:
    """Counts and times responses; during shutdown, closes connections and answers cancelled requests with 503."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, has_begun = time.perf_counter(), False

        def count(status: int) -> None:
            nonlocal has_begun
            has_begun = True
            route = scope["path"] if "route" in scope else OTHER  # no route has parameters in its path
            self.metrics.answered(route, status, time.perf_counter() - start)

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                count(message["status"])
                if scope["app"].state.stopping:
                    MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        except asyncio.CancelledError:  # the time limit of the shutdown is reached
            if has_begun:
                raise
            answer = problem_answer(scope, 503, "The server stopped before it could answer.")
            await answer(scope, receive, send_counted)
        except Exception:  # Starlette responds with 500 outside of this middleware
            count(500)
            raise


class ApiKeys:
    """Rejects requests without one of the keys, as a bearer token or as the password of basic authentication."""

    def __init__(self, app: ASGIApp, keys: Sequence[str]):
        self.app = app
        self._digests = [_digest(key) for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._is_known(Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        challenge = {"WWW-Authenticate": "Bearer"}
        answer = problem_answer(scope, 401, "Send an API key: Authorization: Bearer KEY.", challenge)
        await answer(scope, receive, send)

    def _is_known(self, headers: Headers) -> bool:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            try:
                key = base64.b64decode(key, validate=True).decode("utf-8").partition(":")[2]
            except ValueError:  # no base64, no ASCII, or no UTF-8
                return False
        elif scheme.lower() != "bearer":
            return False
        given = _digest(key.strip())
        # All keys are compared, each in constant time, so that timing reveals nothing.
        return sum(hmac.compare_digest(given, known) for known in self._digests) > 0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
