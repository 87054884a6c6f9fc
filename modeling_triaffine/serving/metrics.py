"""Metrics for Prometheus at `/metrics`: requests, texts, entities by label, and the queue."""

import time
from collections.abc import Sequence

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .batching import Answers, Batcher, Item

SECONDS = (*Histogram.DEFAULT_BUCKETS[:-1], 30, 60, 90, 120, 300)
"""Bounds of the times; Label Studio waits for minutes."""
OTHER = "other"
"""Route of requests to unknown paths: a label for each path would let clients exhaust the memory."""


class Metrics:
    """The metrics of one application; texts are counted, never stored."""

    def __init__(self, batcher: Batcher):
        self._registry = registry = CollectorRegistry()
        by_route = ["route", "status"]
        self.requests = Counter("triaffine_requests", "Answered requests.", by_route, registry=registry)
        self.seconds = Histogram(
            "triaffine_request_seconds", "Time to the response.", ["route"], buckets=SECONDS, registry=registry
        )
        self.texts = Counter("triaffine_texts", "Answered texts.", registry=registry)
        self.characters = Counter("triaffine_characters", "Characters of answered texts.", registry=registry)
        self.entities = Counter("triaffine_entities", "Entities found.", ["label"], registry=registry)
        waiting = Gauge("triaffine_waiting_requests", "Requests waiting for the model.", registry=registry)
        waiting.set_function(lambda: batcher.num_waiting)

    def count(self, items: Sequence[Item], answers: Answers) -> None:
        """Counts the items of a request and their entities."""
        self.texts.inc(len(items))
        self.characters.inc(sum(len(item.text) for item in items))
        for entities in answers:
            for entity in entities:
                self.entities.labels(entity["entity_group"]).inc()

    def response(self) -> Response:
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


class Measuring:
    """Counts and times every request."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()

        def count(status: int) -> None:
            route = scope["path"] if "route" in scope else OTHER  # no route has parameters in its path
            self.metrics.requests.labels(route, status).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - start)

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                count(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        except Exception:  # Starlette responds with 500 outside of this middleware
            count(500)
            raise
