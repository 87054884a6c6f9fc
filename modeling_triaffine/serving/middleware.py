"""What every request meets: the check of API keys, the shutdown, and the metrics for Prometheus."""

import base64
import os
import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .schema import problem_answer

API_KEYS = "TRIAFFINE_API_KEYS"
"""Environment variable with the API keys, separated by commas; if unset, no key is required."""
OPEN_PATHS = ("/health",)  # without a key, for monitoring
OTHER = "other"  # the route of unknown paths: a label for each would let clients exhaust the memory
SECONDS = (*Histogram.DEFAULT_BUCKETS[:-1], 30, 60, 90, 120, 300)
"""Bounds of the times; Label Studio waits for minutes."""


def read_api_keys() -> list[str]:
    """The keys in the environment variable `API_KEYS`; empty if it is unset.

    Raises:
        ValueError: It is set without a key.
    """
    keys = [key.strip() for key in os.environ.get(API_KEYS, "").split(",") if key.strip()]
    if API_KEYS in os.environ and not keys:
        raise ValueError(f"{API_KEYS} must have keys, separated by commas; unset it for none.")
    return keys


class Metrics:
    """The metrics of one application; texts are counted, never stored."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        by_route = ["route", "status"]
        self.requests = Counter("triaffine_requests", "Answered requests.", by_route, registry=registry)
        self.seconds = Histogram(
            "triaffine_request_seconds", "Time to the response.", ["route"], buckets=SECONDS, registry=registry
        )
        self.texts = Counter("triaffine_texts", "Answered texts.", registry=registry)
        self.characters = Counter("triaffine_characters", "Characters of answered texts.", registry=registry)
        self.entities = Counter("triaffine_entities", "Entities found.", ["label"], registry=registry)
        self.waiting = Gauge("triaffine_waiting_requests", "Requests waiting for the model.", registry=registry)

    def count(self, outcomes: Iterable[tuple[str, Any]]) -> None:
        """Counts the texts that have entities, and these."""
        for text, entities in outcomes:
            if isinstance(entities, list):
                self.texts.inc()
                self.characters.inc(len(text))
                for entity in entities:
                    self.entities.labels(entity["entity_group"]).inc()


class Answering:
    """Rejects requests without an API key, counts and times responses, and closes connections during the shutdown.

    Args:
        keys: A request needs one of them, as a bearer token or as the password of basic authentication; none: no key.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, keys: Sequence[str]):
        self.app, self.metrics, self._keys = app, metrics, [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()

        def count(status: int) -> None:
            route = scope["path"] if "route" in scope else OTHER  # no route has parameters in its path
            self.metrics.requests.labels(route, status).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - start)

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                count(message["status"])
                if scope["app"].state.stopping:
                    MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        app = self.app
        if self._keys and scope["path"] not in OPEN_PATHS and not self._is_known(Headers(scope=scope)):
            challenge = {"WWW-Authenticate": "Bearer"}
            app = problem_answer(scope, 401, "Send an API key: Authorization: Bearer KEY.", challenge)
        try:
            await app(scope, receive, send_counted)
        except Exception:  # Starlette responds with 500 outside of this middleware
            count(500)
            raise

    def _is_known(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        key = given.strip().encode("utf-8", "surrogateescape")
        if scheme.lower() == "basic":
            try:
                key = base64.b64decode(key, validate=True).partition(b":")[2]
            except ValueError:
                return False
        # All keys are compared, each in constant time, so that timing reveals nothing.
        return scheme.lower() in ("basic", "bearer") and sum(secrets.compare_digest(key, own) for own in self._keys) > 0
