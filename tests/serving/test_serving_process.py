"""The service as a real process: under load, with clients that misbehave, at its end; and errors before it serves."""

import http.client
import importlib
import json
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from huggingface_hub import InferenceClient, constants
from huggingface_hub.errors import HfHubHTTPError

from tests.helpers.processes import PATIENCE
from tests.helpers.served_model import TEXTS, WAIT
from tests.helpers.tiny import LABELS

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def serving():
    """The benchmark, which runs servers and asks them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("serving")


@pytest.fixture(scope="module")
def server(serving, model):
    with serving.run_server(model, "--max-body-bytes", "300000") as server:
        yield server


@pytest.fixture
def connection(server):
    """A socket, for what no client would send."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=WAIT) as connection:
        yield connection


def test_many_clients_at_once_get_the_answers_of_lone_requests(serving, server, find_entities):
    texts = [f"{text} {number}" for text in TEXTS for number in range(20)]
    expected = dict(zip(texts, find_entities(texts), strict=True))
    assert any(expected.values())
    start = time.perf_counter()
    measured = serving.load_for(0.5, server, clients=32, expected=expected)
    assert len(measured.asked) >= 32
    assert all(start < one.start < one.end for one in measured.asked)
    summary = serving.summarize([measured])
    assert summary["errors"] == []
    assert summary["requests"] == len(measured.asked)
    assert 0 < summary["requests_a_second"] < len(measured.asked) / 0.5
    assert summary["cpu_milliseconds"] > 0


def test_other_answers_are_errors(serving):
    entity = {"entity_group": "DNA", "score": 0.5, "word": "gene", "start": 0, "end": 4}
    assert serving.largest_difference([entity], [{**entity, "score": 0.500001}]) == pytest.approx(1e-6)
    for other in ([], [{**entity, "end": 5}], [{**entity, "score": 0.51}]):
        with pytest.raises(ValueError, match=r"instead of|differ"):
            serving.largest_difference([entity], other)


def test_a_body_sent_in_chunks_is_refused_before_it_ends(connection):
    connection.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
    connection.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(4):
        connection.sendall(b"13880\r\n" + b"x" * 80_000 + b"\r\n")
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    assert (answer.status, "300000 bytes" in json.load(answer)["detail"]) == (413, True)


def test_a_body_that_says_it_is_large_is_refused_before_it_comes(connection):
    connection.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
    connection.sendall(b"Content-Length: 300001\r\nExpect: 100-continue\r\n\r\n")
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    assert answer.status == 413


@pytest.mark.parametrize("part", [0.5, 1.0])
def test_clients_that_go_away_do_not_hurt_others(serving, server, find_entities, part):
    body = json.dumps({"text": "gene binds. " * 500}).encode()
    address = urlsplit(server.url)
    for _ in range(5):
        with socket.create_connection((address.hostname, address.port), timeout=WAIT) as connection:
            connection.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
            connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body[: int(part * len(body))])
    expected = find_entities("gene binds")
    serving.largest_difference(serving.ask_once(server.url, "gene binds"), expected)


def test_the_hubs_client_works_as_it_is(server, find_entities, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    client = InferenceClient(model=server.url)
    found = client.token_classification(TEXTS[0])
    entities = find_entities(TEXTS[0])
    assert [(one.entity_group, one.word, one.start, one.end) for one in found] == [
        (one["entity_group"], one["word"], one["start"], one["end"]) for one in entities
    ]
    assert [one.score for one in found] == pytest.approx([one["score"] for one in entities], abs=1e-5)
    assert found
    for strategy in ("simple", "first", "average", "max"):
        options = {"aggregation_strategy": strategy, "stride": 16, "ignore_labels": ["O"]}
        assert len(client.token_classification(TEXTS[0], **options)) == len(found)
    assert client.token_classification(TEXTS[0], ignore_labels=LABELS[:-1]) == []
    with pytest.raises(HfHubHTTPError, match=r"parameters\.aggregation_strategy: Input should be 'simple'"):
        client.token_classification(TEXTS[0], aggregation_strategy="none")


def test_sigterm_ends_it_when_all_is_answered(serving, model, find_entities, monkeypatch):
    monkeypatch.setattr(serving, "SECONDS_BEFORE_STOP", 0.3)
    monkeypatch.setattr(serving, "TIMEOUT", PATIENCE)
    texts = [f"{number}. " + "The gene binds protein. " * 50 for number in range(12)]
    expected = dict(zip(texts, find_entities(texts), strict=True))
    with serving.run_server(model, "--stop-seconds", str(PATIENCE)) as server:
        serving.ask_once(server.url, "gene binds")
        stopped = serving.stop_under_load(server, 12, expected)
    assert stopped["in_flight"] > 0
    assert (stopped["errors"], stopped["exit_code"]) == ([], 0)


# ---- errors before it serves


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "no/where/model"], "no/where/model"),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
        (["--port", "70000"], "--port"),
        (["--max-texts", "0"], "--max-texts"),
        (["--device", "abacus"], "--device abacus"),
    ],
)
def test_errors_before_it_serves_are_one_paragraph(command, model, options, message):
    result = command("serve", "--model", model, "--port", "0", *options)
    assert result.code == 2
    assert result.out == ""
    assert message in result.err.splitlines()[-1]
    assert "Traceback" not in result.err
