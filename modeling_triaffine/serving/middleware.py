"""Middleware of all routes: limit of the body, API keys, and shutdown."""

import asyncio
import base64
import hashlib
import hmac
import os
from collections.abc import Sequence

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .schema import problem_answer

API_KEYS = "TRIAFFINE_API_KEYS"
"""Environment variable with the API keys, separated by commas; if unset, no key is required."""
OPEN_PATHS = ("/health",)
"""Paths without a key, for monitoring."""


def read_api_keys() -> list[str]:
    """The keys in the environment variable `API_KEYS`; empty if it is unset.

    Raises:
        ValueError: It is set without a key, or with one that a header cannot contain.
    """
    if API_KEYS not in os.environ:
        return []
    keys = [key.strip() for key in os.environ[API_KEYS].split(",") if key.strip()]
    if not keys or not all(key.isascii() and key.isprintable() and " " not in key for key in keys):
        raise ValueError(
            f"{API_KEYS} is set, but {'has a key that is not printable ASCII' if keys else 'has no key'}. Separate "
            "keys by commas, or unset it to require none."
        )
    return keys


class BodyLimit:
    """Rejects bodies of more than `max_bytes`, by their declared length or, if sent in chunks, as they arrive.

    FastAPI's own limit answers in plain text, outside of what counts and logs requests.
    """

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
    """During shutdown, closes the connection after each response and answers cancelled requests with 503."""

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
        except asyncio.CancelledError:  # the time limit of the shutdown is reached
            if has_begun:
                raise
            answer = problem_answer(scope, 503, "The server stopped before it could answer.")
            await answer(scope, receive, send_closing)


class ApiKeys:
    """Rejects requests without one of the keys, as a bearer token or as the password of basic authentication."""

    def __init__(self, app: ASGIApp, keys: Sequence[str]):
        self.app = app
        self._digests = [_digest(key) for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._is_known(Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        answer = problem_answer(
            scope, 401, "Send an API key: Authorization: Bearer KEY.", {"WWW-Authenticate": "Bearer"}
        )
        await answer(scope, receive, send)

    def _is_known(self, headers: Headers) -> bool:
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        key = credentials.strip()
        if scheme.lower() == "basic":
            try:
                key = base64.b64decode(key, validate=True).decode("utf-8").partition(":")[2]
            except ValueError:  # no base64, no ASCII, or no UTF-8
                return False
        elif scheme.lower() != "bearer":
            return False
        given = _digest(key)
        # All keys are compared, each in constant time, so that timing reveals nothing.
        return sum(hmac.compare_digest(given, known) for known in self._digests) > 0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
