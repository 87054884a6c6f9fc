"""Metrics for Prometheus at `/metrics`: requests, texts, entities by label, and the queue."""

from collections.abc import Sequence

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.responses import Response

from .batching import Answers, Batcher, Item

SECONDS = (*Histogram.DEFAULT_BUCKETS[:-1], 30, 60, 90, 120, 300)
"""Bounds of the times; Label Studio waits for minutes."""


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

    def answered(self, route: str, status: int, seconds: float) -> None:
        self.requests.labels(route, status).inc()
        self.seconds.labels(route).observe(seconds)

    def count(self, items: Sequence[Item], answers: Answers) -> None:
        """Counts the items of a request and their entities."""
        self.texts.inc(len(items))
        self.characters.inc(sum(len(item.text) for item in items))
        for entities in answers:
            for entity in entities:
                self.entities.labels(entity["entity_group"]).inc()

    def response(self) -> Response:
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)
