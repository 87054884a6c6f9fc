"""The service as a real process: under load, with clients that misbehave, at its end; and errors before it serves."""

import http.client
import importlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from huggingface_hub import InferenceClient, constants
from huggingface_hub.errors import HfHubHTTPError

from tests.helpers.processes import PATIENCE
from tests.helpers.served_model import TEXTS, WAIT
from tests.helpers.tiny import LABELS


@pytest.fixture(scope="module")
def serving():
    """The benchmark, which runs servers and asks them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
        yield importlib.import_module("serving")


LIMITS = {"body_bytes": 300_000, "texts": 70, "text_characters": 9000, "waiting": 200}


@pytest.fixture(scope="module")
def server(serving, model):
    options = [part for name, limit in LIMITS.items() for part in (f"--max-{name.replace('_', '-')}", str(limit))]
    with serving.run_server(model, *options) as server:
        yield server


def test_options_are_limits(server):
    assert json.loads(asked(f"{server.url}/health")[1])["limits"] == LIMITS


def test_many_clients_at_once_get_the_answers_of_lone_requests(serving, server, find_entities):
    texts = [f"{text} {number}" for text in TEXTS for number in range(20)]
    expected = dict(zip(texts, find_entities(texts), strict=True))
    assert any(expected.values())
    measured = serving.load_for(0.5, server, clients=32, expected=expected)
    assert len(measured.asked) >= 32
    assert serving.summarize([measured])["errors"] == []


def send(server, sent: bytes) -> socket.socket:
    """A connection on which the rest of a request to predict is sent."""
    address = urlsplit(server.url)
    connection = socket.create_connection((address.hostname, address.port), timeout=WAIT)
    connection.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + sent)
    return connection


@pytest.mark.parametrize(
    "sent",
    [
        b"Transfer-Encoding: chunked\r\n\r\n" + (b"13880\r\n" + b"x" * 80_000 + b"\r\n") * 4,
        b"Content-Length: 300001\r\nExpect: 100-continue\r\n\r\n",
    ],
    ids=["in chunks", "by its header"],
)
def test_a_large_body_is_refused_before_it_ends(server, sent):
    with send(server, sent) as connection:
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == 413


@pytest.mark.parametrize("part", [0.5, 1.0])
def test_clients_that_go_away_do_not_hurt_others(serving, server, find_entities, part):
    body = json.dumps({"text": "gene binds. " * 500}).encode()
    for _ in range(5):
        send(server, b"Content-Length: %d\r\n\r\n" % len(body) + body[: int(part * len(body))]).close()
    serving.largest_difference(serving.ask_once(server.url, "gene binds"), find_entities("gene binds"))


def test_the_hubs_client_works_as_it_is(server, find_entities, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    client = InferenceClient(model=server.url)
    found, entities = client.token_classification(TEXTS[0]), find_entities(TEXTS[0])
    assert found
    fields = ("entity_group", "word", "start", "end")
    assert [[one[name] for name in fields] for one in found] == [[one[name] for name in fields] for one in entities]
    assert [one.score for one in found] == pytest.approx([one["score"] for one in entities], abs=1e-5)
    options = {"aggregation_strategy": "average", "stride": 16, "ignore_labels": ["O"]}
    assert len(client.token_classification(TEXTS[0], **options)) == len(found)
    assert client.token_classification(TEXTS[0], ignore_labels=LABELS[:-1]) == []
    with pytest.raises(HfHubHTTPError, match=r"parameters\.aggregation_strategy: Input should be"):
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


# ---- attacks

PROGRAM = """
import resource, time
class Late:  # the interpreter's own end, during which no other thread runs, takes long
    def __del__(self, sleep=time.sleep):
        sleep(60)
late = Late()
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
from modeling_triaffine.serving import batching, server
server.RECEIVE_SECONDS = 4
find = batching.Batcher._find
batching.Batcher._find = lambda self, items: time.sleep(1000) if items[0].text == "endless" else find(self, items)
from modeling_triaffine.commands import main
main()
"""


@pytest.fixture
def attacked(model, tmp_path):
    """A server with few descriptors, little patience and a thread without end; its tokenizer makes Rust panic."""
    folder = shutil.copytree(model, tmp_path / "model")
    pattern = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    # A class of its own would make its own pre-tokenizer.
    changes = {"tokenizer": {"pre_tokenizer": pattern}, "tokenizer_config": {"tokenizer_class": "TokenizersBackend"}}
    for name, change in changes.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    options = ["serve", "--model", str(folder), "--port", "0", "--stop-seconds", "3", "--device", "cpu"]
    command = [sys.executable, "-c", PROGRAM, *options]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    with process:
        url = process.stdout.readline().split()[-1]
        yield SimpleNamespace(process=process, url=url, address=urlsplit(url), folder=folder, log=tmp_path / "log")
        process.kill()


def asked(url, body=None, **headers):
    """Status and body of the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=WAIT) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_attacks_leave_a_server_that_answers_as_before_and_ends_in_time(attacked):
    predict, text = f"{attacked.url}/predict", {"text": TEXTS[0]}
    before = asked(predict, text)
    assert before[0] == 200
    assert json.loads(before[1])["entities"]
    # A website whose name leads here sends its own.
    hosts = {"localhost:80": 200, "127.0.0.1": 200, "[::1]:80": 200, "evil.example:80": 400, "127.0.0.1.evil": 400}
    assert {host: asked(f"{attacked.url}/health", Host=host)[0] for host in hosts} == hosts
    # A panic of the tokenizer, which is no Exception.
    failed = (500, b'{"detail":"The model failed on this request; see the server\'s log."}')
    assert [asked(predict, {"text": "a" * 30 + "c"}) for _ in range(2)] == [failed] * 2
    assert asked(f"{attacked.url}/health")[0] == 200
    (attacked.folder / "model.safetensors").write_bytes(b"")  # another file in the place of the weights
    assert asked(predict, text) == before
    log = attacked.log.stat().st_size
    idle = [socket.create_connection((attacked.address.hostname, attacked.address.port)) for _ in range(200)]
    for connection in idle[::2]:  # more connections than descriptors, none with a request
        connection.sendall(b"GET / HTTP/1.1\r\nA:")
    assert asked(predict, text) == before  # when they are closed
    assert attacked.log.stat().st_size - log < 2000
    for connection in idle:
        connection.close()
    unfinished = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
    with (  # a thread that does not end, and a body that does not
        ThreadPoolExecutor() as threads,
        socket.create_connection((attacked.address.hostname, attacked.address.port)) as connection,
    ):
        connection.sendall(unfinished)
        asking = threads.submit(asked, predict, {"text": "endless"})
        time.sleep(1)
        attacked.process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        assert attacked.process.wait(WAIT) == 0
        assert time.monotonic() - begin < 30  # on a busy machine; what still runs would take a minute and more
        assert asking.result()[0] == 503
        assert connection.recv(100).startswith(b"HTTP/1.1 503 ")
    assert "CancelledError" not in attacked.log.read_text()
