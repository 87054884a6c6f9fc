"""The application within one process: the response to every kind of request."""

import asyncio
import base64
import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import HTTPException, Request
from prometheus_client import CollectorRegistry, parser

from modeling_triaffine.serving import read_api_keys
from modeling_triaffine.serving.answering import API_KEYS, MAX_ITEMS, Limits, Predictor
from modeling_triaffine.version import __version__
from tests.helpers.portable import near
from tests.helpers.served_model import TEXTS, WAIT, Finder, batcher_of, client_of, found_in, items, wait_until

JSON_BODY = {"Content-Type": "application/json"}
CONFIG = '<View><Labels name="a" toName="b"><Label value="DNA"/></Labels><Text name="b" value="$text"/></View>'


@pytest.fixture
def client(find_entities):
    with client_of(find_entities) as client:
        yield client


def test_results_are_those_of_the_pipeline(client, find_entities):
    options = {"threshold": 0.2, "overlap": "flat"}
    expected = find_entities(TEXTS, **options)
    assert any(expected)
    assert expected != find_entities(TEXTS)
    answer = client.post("/predict", json={"texts": TEXTS, **options})
    assert (answer.status_code, answer.json()) == (200, {"entities": near(expected)})
    for text in TEXTS:
        assert client.post("/predict", json={"text": text}).json() == {"entities": near(find_entities(text))}
    assert client.post("/predict", json={"texts": []}).json() == {"entities": []}
    assert client.post("/", json={"inputs": TEXTS, "parameters": options, "options": {}}).json() == near(expected)
    assert client.post("/", json={"inputs": "", "parameters": None}).json() == []


def test_labels_are_chosen():
    with client_of(lambda texts, threshold: [[found_in(one), found_in(one, "protein")] for one in texts]) as client:
        for labels, kept in (["DNA"], [found_in("a")]), ([], []), (None, [found_in("a"), found_in("a", "protein")]):
            assert client.post("/predict", json={"text": "a", "labels": labels}).json() == {"entities": kept}
        for labels in (None, ["DNA", "protein"]):
            for ignored, kept in (["O", "MISC"], ["DNA", "protein"]), (["DNA", "O"], ["protein"]):
                body = {"inputs": "a", "parameters": {"labels": labels, "ignore_labels": ignored}}
                assert [one["entity_group"] for one in client.post("/", json=body).json()] == kept


def test_lone_surrogates_are_text(client):
    body = '{"text": "The \\ud800 \x9b gene", "threshold": 0}'
    answer = client.post("/predict", content=body.encode(), headers=JSON_BODY)
    assert answer.status_code == 200
    assert "\x9b" not in answer.text  # which would control a terminal
    assert any("\ud800 \x9b" in entity["word"] for entity in json.loads(answer.content.decode("utf-8"))["entities"])


LIMIT = "A text has 101 characters, the limit is 100."


@pytest.mark.parametrize(
    ("path", "body", "status", "detail"),
    [
        ("/predict", '{"texts": ["x", 3]}', 422, "texts.1: "),
        ("/predict", "{}", 422, "body: give one of text and texts"),
        ("/predict", '{"text": "x", "texts": []}', 422, "body: give one of text and texts"),
        ("/predict", "[]", 422, "body: "),
        ("/predict", "", 422, "body: "),
        ("/predict", "{", 422, "JSON decode error (Expecting property name"),
        ("/predict", '{"text": "x", "treshold": 1}', 422, "treshold: Extra"),
        ("/predict", '{"text": "x", "threshold": "0.5"}', 422, "threshold: Input"),
        ("/predict", '{"text": "x", "threshold": {"number": 2}}', 422, "number: Input should be less than"),
        ("/predict", '{"text": "x", "threshold": {"RNA": 0.5}}', 422, "The model does not have"),
        ("/predict", '{"text": "x", "labels": ["RNA"]}', 422, "The model does not have"),
        ("/predict", json.dumps({"texts": ["x"] * 6}), 422, "There are 6 texts, the limit is 5."),
        ("/predict", '{"text": "x", "overlap": "nonesuch"}', 422, "overlap: "),
        ("/predict", '{"text": "x", "\\ud800": 1}', 422, ""),
        ("/predict", json.dumps({"text": "x", "y" * 500: 1}), 422, f"{'y' * 60}: Extra"),
        ("/predict", json.dumps({"text": "x" * 101}), 422, LIMIT),
        ("/predict", json.dumps({"text": "x" * 2000}), 413, ""),
        ("/predict", b'{"text": "\xff"}', 400, ""),
        ("/predict", gzip.compress(b'{"text": "x"}', mtime=0), 400, ""),
        ("/", '{"text": "x"}', 422, "inputs: "),
        ("/", json.dumps({"inputs": "x" * 101}), 422, LIMIT),
        ("/", '{"inputs": ["x", 3]}', 422, "1: Input should be a valid string"),
        ("/", '{"inputs": "x", "parameters": {"top_k": 3}}', 422, "parameters.top_k: Extra"),
        ("/", '{"inputs": "x", "parameters": {"labels": ["RNA"]}}', 422, "The model does not have"),
        ("/label-studio/predict", '{"label_config": "<View>"}', 422, "label_config: It is not XML"),
        ("/label-studio/predict", '{"label_config": "", "tasks": {}}', 422, "tasks: "),
        ("/label-studio/predict", '{"label_config": "", "tasks": [{"id": 1}]}', 422, "tasks.0.data: "),
        ("/inception/predict", '{"layer": "x"}', 422, "metadata: Field required."),  # of another version
    ],
)
def test_errors_are_described_in_json(client, path, body, status, detail):
    answer = client.post(path, content=body, headers=JSON_BODY)
    assert answer.status_code == status
    if status != 413:  # before routes
        ((name, text),) = answer.json().items()
        assert name == ("error" if path == "/" else "detail")
        assert detail in text
        assert len(text) < 800


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/predict", {"texts": [1] * 100_000}),
        ("/predict", {"texts": [""] * (MAX_ITEMS + 1)}),
        ("/label-studio/setup", {"schema": CONFIG.replace("DNA", "x" * 90_000)}),
        ("/label-studio/predict", {"label_config": "", "tasks": [{"data": {}}] * (MAX_ITEMS + 1)}),
        ("/label-studio/setup", {"schema": "<a>" + "<b/>" * 30_000 + "</a>"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_too_much_is_one_error_before_it_is_built(path, body):
    with client_of(Finder(), body_bytes=10**7) as client:
        answer = client.post(path, json=body)
    assert answer.status_code == 422
    assert len(answer.json()["detail"]) < 500
    assert "errors" not in answer.json()["detail"]


def test_routes_and_what_they_say(client):
    answer = client.post("/predict", data={"text": "x"})
    assert (answer.status_code, "Content-Type: application/json" in answer.json()["detail"]) == (415, True)
    assert client.get("/predict").status_code == 405
    assert [client.get(page).status_code for page in ("/docs", "/redoc")] == [404] * 2  # load scripts from elsewhere
    schema, page = client.get("/openapi.json").json(), client.get("/")  # as a browser gets it
    assert page.headers["content-type"].startswith("text/html")
    for fact in ("<h1>tiny</h1>", "DNA, protein", "curl http://testserver/predict", 'href="http://testserver/health"'):
        assert fact in page.text
    assert [path for path in schema["paths"] if path not in page.text] == []
    body = schema["components"]["schemas"]["PredictionRequest"]
    assert {*body["properties"]} == {"text", "texts", "threshold", "labels", "overlap"}
    assert not body["additionalProperties"]
    assert {*schema["components"]["schemas"]["Entity"]["properties"]} == {*found_in("x")}


def test_health_names_the_model_and_its_limits():
    limits = {"body_bytes": 2000, "texts": 5, "text_characters": 100, "waiting": 100}
    facts = {"model": "tiny", "labels": ["DNA", "protein"], "version": __version__, "queue": {"waiting": 0}}
    with client_of(Finder()) as client:
        assert {client.head(path).status_code for path in ("/health", "/")} == {200}  # as load balancers ask
        assert client.get("/health").json() == {"status": "ready", **facts, "limits": limits}
    answer = client.get("/health")  # without its thread
    assert (answer.status_code, answer.json()["status"]) == (503, "failed")


def test_a_full_queue_gets_503():
    finder = Finder(is_blocked=True)
    with client_of(finder, waiting=1) as client, ThreadPoolExecutor() as threads:
        waiting = threads.submit(client.post, "/predict", json={"text": "b"})
        wait_until(lambda: client.get("/health").json()["queue"]["waiting"] == 1)
        refused = client.post("/predict", json={"text": "c"})
        assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (503, True)
        assert "limit: 1" in refused.json()["detail"]
        finder.may_go_on.set()
        assert waiting.result(WAIT).status_code == 200


def test_responses_close_connections_during_shutdown(client):
    assert "connection" not in client.get("/health").headers
    client.app.state.stopping = True
    for answer in (client.get("/health"), client.post("/predict", json={"text": "gene"}), client.get("/nothing")):
        assert answer.headers["connection"] == "close"
    assert client.get("/health").json()["status"] == "stopping"


def test_texts_of_clients_that_have_gone_do_not_run_and_exit_finishes_the_others():
    async def gone():
        return {"type": "http.disconnect"}

    finder = Finder(is_blocked=True)
    limits = Limits(body_bytes=1, texts=2, text_characters=9, waiting=1)
    with batcher_of(finder) as batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        find = Predictor(batcher, limits, CollectorRegistry())
        with pytest.raises(HTTPException, match="did not wait"):
            asyncio.run(find(items("b", "c"), Request({"type": "http"}, gone)))
        assert not batcher._waiting
        kept = batcher.submit(items("d"))
        finder.may_go_on.set()
    assert all(answer.done() for answer in kept)
    assert [texts for texts, _ in finder.calls] == [["a"], ["d"]]


def test_requests_texts_and_entities_are_counted():
    with client_of(lambda texts, threshold: [[found_in(text), found_in(text)] for text in texts]) as client:
        client.post("/predict", json={"texts": ["ab", "abc"]})
        client.post("/predict", json={"text": "a", "overlap": "flat"})
        client.post("/predict", json={"texts": ["a"] * 6})
        client.post("/predict", json={"text": "x" * 2000})
        client.post("/label-studio/predict", json={"tasks": [{"data": {"text": "abcd"}}], "label_config": CONFIG})
        for path in ("/secret-1", "/secret-2"):
            client.get(path)
        answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    samples = [sample for family in parser.text_string_to_metric_families(answer.text) for sample in family.samples]
    wanted = ("_total", "_count", "_waiting_requests")
    assert {(one.name, *one.labels.values()): one.value for one in samples if one.name.endswith(wanted)} == {
        ("triaffine_requests_total", "/predict", "200"): 2,
        ("triaffine_requests_total", "/predict", "422"): 1,
        ("triaffine_requests_total", "/predict", "413"): 1,
        ("triaffine_requests_total", "/label-studio/predict", "200"): 1,
        ("triaffine_requests_total", "other", "404"): 2,
        ("triaffine_request_seconds_count", "/predict"): 4,
        ("triaffine_request_seconds_count", "/label-studio/predict"): 1,
        ("triaffine_request_seconds_count", "other"): 2,
        ("triaffine_texts_total",): 4,
        ("triaffine_characters_total",): 10,
        ("triaffine_entities_total", "DNA"): 8,
        ("triaffine_waiting_requests",): 0,
    }


def test_an_unexpected_error_is_counted_and_says_nothing(client, monkeypatch):
    def fail(*_):
        raise KeyError("secret")

    monkeypatch.setattr("modeling_triaffine.serving.application.Item", fail)
    answer = client.post("/predict", json={"text": "x"})
    assert (answer.status_code, "secret" in answer.text) == (500, False)
    assert 'triaffine_requests_total{route="/predict",status="500"} 1.0' in client.get("/metrics").text


# ---- API keys

KEYS = ["first-key", "second", "schlüssel"]


@pytest.fixture(scope="module")
def guarded():
    with client_of(lambda texts, threshold: [[] for _ in texts], keys=KEYS) as client, client:
        yield client


def basic(user, password):
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


VALID = ["Bearer first-key", "bearer second", "Bearer  second ", "Bearer schlüssel", basic("me", "schlüssel")]


@pytest.mark.parametrize("given", [*VALID, basic("", "first-key")])
def test_valid_keys(guarded, given):
    answer = guarded.post("/predict", json={"text": "a"}, headers={"Authorization": given.encode()})
    assert answer.json() == {"entities": []}


WRONG = [None, "", "Bearer", "Bearer ", "Bearer first", "Bearer first-key,second", "second", "Token second"]
WRONG += ["Basic second", basic("second", ""), basic("me", "wrong"), "Basic /w==", b"Bearer \xff", b"Basic \xc3\xa9"]


@pytest.mark.parametrize("given", WRONG)
def test_invalid_keys_are_rejected_before_the_body_is_read(guarded, given):
    headers = {} if given is None else {"Authorization": given}
    answer = guarded.post("/predict", content="{", headers=headers)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert list(answer.json()) == ["detail"]
    for path in ("/openapi.json", "/label-studio/health", "/metrics", "/nothing"):
        assert guarded.get(path, headers=headers).status_code == 401
    assert guarded.get("/health", headers=headers).status_code == 200


@pytest.mark.parametrize(("value", "keys"), [(None, []), (" one,two ,", ["one", "two"]), ("", None), (" , ", None)])
def test_keys_come_from_the_environment(monkeypatch, value, keys):
    monkeypatch.delenv(API_KEYS, raising=False)
    if value is not None:
        monkeypatch.setenv(API_KEYS, value)
    if keys is not None:
        assert read_api_keys() == keys
        return
    with pytest.raises(ValueError, match=API_KEYS):
        read_api_keys()
