"""`/metrics`, as parsed by Prometheus' client."""

import asyncio
from types import SimpleNamespace

import pytest
from prometheus_client import parser

from modeling_triaffine.serving.metrics import Measuring, Metrics
from tests.helpers.served_model import client_of

ENTITY = {"entity_group": "DNA", "score": 0.5, "word": "a", "start": 0, "end": 1}


def values(client):
    """Sample → value of counters, gauges and the counts of histograms."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    samples = [sample for family in parser.text_string_to_metric_families(answer.text) for sample in family.samples]
    wanted = ("_total", "_count", "_waiting_requests")
    return {(one.name, *one.labels.values()): one.value for one in samples if one.name.endswith(wanted)}


def test_requests_texts_and_entities_are_counted():
    client, batcher = client_of(lambda texts, threshold: [[ENTITY, ENTITY] for _ in texts])
    with batcher:
        client.post("/predict", json={"texts": ["ab", "abc"]})
        client.post("/predict", json={"text": "a", "overlap": "flat"})
        client.post("/predict", json={"texts": ["a"] * 6})
        client.post("/label-studio/predict", json={"tasks": [{"data": {"text": "abcd"}}]})
        for path in ("/secret-1", "/secret-2"):
            client.get(path)
        found = values(client)
    assert found == {
        ("triaffine_requests_total", "/predict", "200"): 2,
        ("triaffine_requests_total", "/predict", "422"): 1,
        ("triaffine_requests_total", "/label-studio/predict", "200"): 1,
        ("triaffine_requests_total", "other", "404"): 2,
        ("triaffine_request_seconds_count", "/predict"): 3,
        ("triaffine_request_seconds_count", "/label-studio/predict"): 1,
        ("triaffine_request_seconds_count", "other"): 2,
        ("triaffine_texts_total",): 4,
        ("triaffine_characters_total",): 10,
        ("triaffine_entities_total", "DNA"): 8,
        ("triaffine_waiting_requests",): 0,
    }


def test_a_request_on_which_the_server_fails_is_counted():
    async def fail(*_):
        raise RuntimeError("a mistake of the program")

    metrics = Metrics(SimpleNamespace(num_waiting=0))
    with pytest.raises(RuntimeError):
        asyncio.run(Measuring(fail, metrics)({"type": "http", "path": "/secret"}, None, None))
    assert b'triaffine_requests_total{route="other",status="500"} 1.0' in metrics.response().body
