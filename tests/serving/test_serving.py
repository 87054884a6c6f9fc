"""The service within one process: batches, and the response to every kind of request."""

import asyncio
import gzip
import json
import random
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from modeling_triaffine.model.kinds_triaffine import OVERLAPS
from modeling_triaffine.serving import Batcher, Item, Limits, QueueFullError, Server
from modeling_triaffine.serving.batching import GivenUpError
from modeling_triaffine.serving.schema import EntitiesOfText, EntitiesOfTexts, Health, PredictionRequest
from modeling_triaffine.version import __version__
from tests.helpers.portable import near
from tests.helpers.served_model import TEXTS, WAIT, as_pipeline, by_words, client_of
from tests.helpers.tiny import LABELS

JSON_BODY = {"Content-Type": "application/json"}


class Finder:
    """A fake pipeline that records its calls, blocks if asked to, and fails on the text "fail"."""

    def __init__(self, is_blocked: bool = False):
        self.calls: list[tuple[list[str], object]] = []
        self.is_called, self.may_go_on = threading.Event(), threading.Event()
        if not is_blocked:
            self.may_go_on.set()

    def __call__(self, texts, threshold):
        self.calls.append((list(texts), threshold))
        self.is_called.set()
        assert self.may_go_on.wait(WAIT)
        if "fail" in texts:
            raise RuntimeError("out of memory")
        return [[found_in(text)] for text in texts]


def found_in(text, label="DNA", score=0.5):
    """An entity that is the whole text."""
    return {"entity_group": label, "score": score, "word": text, "start": 0, "end": len(text)}


def items(*texts, **options):
    return [Item(text, **options) for text in texts]


def batcher_of(finder, texts=64, characters=1000, waiting=100):
    return Batcher(as_pipeline(finder), texts, characters, waiting)


def words(future):
    return [[entity["word"] for entity in entities] for entities in future.result(WAIT)]


# ---- batching


def test_requests_that_arrive_during_a_batch_form_the_next_one():
    finder = Finder(is_blocked=True)
    with batcher_of(finder) as batcher:
        first = batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        others = [batcher.submit(items(*texts)) for texts in (["b", "c"], [], ["d"])]
        assert batcher.num_waiting == 3
        finder.may_go_on.set()
        assert [words(future) for future in (first, *others)] == [[["a"]], [["b"], ["c"]], [], [["d"]]]
    assert [texts for texts, _ in finder.calls] == [["a"], ["b", "c", "d"]]


def test_jobs_whose_clients_have_gone_do_not_wait():
    finder = Finder(is_blocked=True)
    with batcher_of(finder) as batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        batcher.leave(batcher.submit(items("b")))
        assert batcher.num_waiting == 0
        finder.may_go_on.set()


def test_items_with_equal_thresholds_run_together():
    finder = Finder(is_blocked=True)
    with batcher_of(finder) as batcher:
        futures = [batcher.submit(items("a"))]
        assert finder.is_called.wait(WAIT)
        futures.append(batcher.submit([Item("b", 0.5), Item("c"), Item("d", {"DNA": 0.5})]))
        futures.append(batcher.submit([Item("e", {"DNA": 0.5}, "flat"), Item("f", 0.5, "nested")]))
        finder.may_go_on.set()
        assert [words(future) for future in futures] == [[["a"]], [["b"], ["c"], ["d"]], [["e"], ["f"]]]
    assert finder.calls == [(["a"], None), (["b", "f"], 0.5), (["c"], None), (["d", "e"], {"DNA": 0.5})]


def test_labels_are_chosen_before_overlaps_are_resolved():
    entities = [
        {"entity_group": "DNA", "score": 0.9, "word": "ab", "start": 0, "end": 2},
        {"entity_group": "protein", "score": 0.5, "word": "b", "start": 1, "end": 2},
    ]
    with batcher_of(lambda texts, threshold: [entities for _ in texts]) as batcher:
        given = [Item("ab"), Item("ab", None, "flat"), Item("ab", None, "flat", ["protein"]), Item("ab", labels=[])]
        answers = batcher.submit(given).result(WAIT)
    assert answers == [entities, entities[:1], entities[1:], []]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"texts": 2}, [["a"], ["bb", "c"], ["dd"], ["e", "f", "g"], ["h"]]),
        ({"texts": 1}, [["a"], ["bb"], ["c"], ["dd"], ["e", "f", "g"], ["h"]]),
        ({"characters": 3}, [["a"], ["bb", "c"], ["dd"], ["e", "f", "g"], ["h"]]),
        ({"characters": 5}, [["a"], ["bb", "c", "dd"], ["e", "f", "g", "h"]]),
    ],
)
def test_batches_respect_the_limits_and_never_split_requests(bounds, expected):
    finder = Finder(is_blocked=True)
    with batcher_of(finder, **bounds) as batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        for texts in (["bb"], ["c"], ["dd"], ["e", "f", "g"], ["h"]):
            batcher.submit(items(*texts))
        finder.may_go_on.set()
    assert [texts for texts, _ in finder.calls] == expected


def test_a_failure_affects_only_its_request(caplog):
    finder = Finder(is_blocked=True)
    with batcher_of(finder) as batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        good, bad, fine = (batcher.submit(items(*texts)) for texts in (["b"], ["x", "fail"], ["c"]))
        finder.may_go_on.set()
        assert (words(good), words(fine)) == ([["b"]], [["c"]])
        with pytest.raises(RuntimeError, match="out of memory"):
            bad.result(WAIT)
        assert words(batcher.submit(items("d"))) == [["d"]]
    [record] = caplog.records
    assert "failed" in record.message
    assert record.exc_info is not None


def test_aborted_jobs_end_at_the_next_forward_pass():
    is_called = threading.Event()

    def find_entities(texts, threshold):
        is_called.set()
        while True:  # a slow model
            batcher.check()

    batcher = batcher_of(find_entities)
    with batcher:
        running = batcher.submit(items("a", "b"))
        assert is_called.wait(WAIT)
        waiting = batcher.submit(items("c"))
        batcher.give_up()
    for future in (running, waiting):
        with pytest.raises(GivenUpError):
            future.result(0)


@pytest.mark.parametrize("leaving", [1, 2])
def test_a_batch_ends_when_all_its_clients_have_gone(leaving):
    finder, submitted = Finder(is_blocked=True), []

    def find_entities(texts, threshold):
        found = finder(texts, threshold)
        if [*texts] == ["b", "c"]:
            for answer in submitted[:leaving]:
                batcher.leave(answer)
            batcher.check()  # a forward pass
        return found

    batcher = batcher_of(find_entities)
    with batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        submitted += [batcher.submit(items("b")), batcher.submit(items("c"))]
        finder.may_go_on.set()
        assert [isinstance(answer.exception(WAIT), GivenUpError) for answer in submitted] == [leaving == 2] * 2
        assert words(batcher.submit(items("d"))) == [["d"]]
    batcher.check()


def test_the_queue_is_bounded_and_cancelled_requests_do_not_run():
    finder = Finder(is_blocked=True)
    with batcher_of(finder, waiting=2) as batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        cancelled, kept = batcher.submit(items("b")), batcher.submit(items("c"))
        with pytest.raises(QueueFullError, match="limit: 2"):
            batcher.submit(items("d"))
        assert cancelled.cancel()
        accepted = batcher.submit(items("e"))
        finder.may_go_on.set()
        assert (words(kept), words(accepted)) == ([["c"]], [["e"]])
        with pytest.raises(CancelledError):
            cancelled.result(WAIT)
    assert [texts for texts, _ in finder.calls] == [["a"], ["c", "e"]]


def test_exit_finishes_submitted_jobs():
    with batcher_of(Finder(), texts=1) as batcher:
        futures = [batcher.submit(items(str(number))) for number in range(20)]
    assert [future.done() and words(future) for future in futures] == [[[str(number)]] for number in range(20)]


# ---- the application


@pytest.fixture
def client(find_entities):
    client, batcher = client_of(find_entities)
    with batcher:
        yield client


def test_results_are_those_of_the_pipeline(client, find_entities):
    options = {"threshold": 0.2, "overlap": "flat"}
    answer = client.post("/predict", json={"texts": TEXTS, **options})
    assert answer.status_code == 200
    found = EntitiesOfTexts.model_validate(answer.json(), strict=True, extra="forbid").model_dump()["entities"]
    expected = find_entities(TEXTS, **options)
    assert found == near(expected)
    assert any(expected)
    assert expected != find_entities(TEXTS)
    for text in TEXTS:
        answer = client.post("/predict", json={"text": text})
        found = EntitiesOfText.model_validate(answer.json(), strict=True, extra="forbid").model_dump()["entities"]
        assert found == near(find_entities(text))
    assert client.post("/predict", json={"texts": []}).json() == {"entities": []}


def mixed_requests(number):
    """Bodies of all three forms with random texts and options."""
    chance = random.Random(0)

    def text():
        return f"{chance.choice(['gene', 'DNA binds', 'IL-2'])} {chance.randrange(9)}"

    def options():
        given = {
            "threshold": chance.choice([None, 0.1, 0.6, {"DNA": 0.3}, {"DNA": 0.8, "protein": 0.2}, {}]),
            "overlap": chance.choice([*OVERLAPS]),
            "labels": chance.choice([None, [], ["DNA"], ["protein", "DNA"]]),
        }
        return {name: value for name, value in given.items() if chance.random() < 0.5}

    for _ in range(number):
        forms = [
            lambda: {"text": text(), **options()},
            lambda: {"texts": [text() for _ in range(chance.randrange(6))], **options()},
            lambda: {"items": [{"text": text(), **options()} for _ in range(chance.randrange(6))]},
        ]
        yield chance.choice(forms)()


class DeterministicFinder:
    """A fake pipeline whose results depend on text and threshold only."""

    def __call__(self, texts, threshold):
        return [self.found(text, threshold) for text in texts]

    @staticmethod
    def found(text, threshold):
        found = []
        for label in LABELS[:-1]:
            least = threshold.get(label, 0.5) if isinstance(threshold, dict) else threshold or 0.5
            for end in range(1, len(text) + 1):
                score = (len(label) * 7 + end * 13 + ord(text[end - 1])) % 100 / 100
                if score >= least:
                    found.append({"entity_group": label, "score": score, "word": text[:end], "start": 0, "end": end})
        return found


def test_a_thousand_concurrent_requests_get_their_own_results():
    """With many concurrent clients and options, no item gets the result of another."""
    alone = DeterministicFinder()
    client, batcher = client_of(alone, texts=7, waiting=1000)
    bodies = list(mixed_requests(1000))

    def expected(body):
        if "items" in body:
            return [expected(item) for item in body["items"]]
        if "texts" in body:
            options = {name: value for name, value in body.items() if name != "texts"}
            return [expected({"text": text, **options}) for text in body["texts"]]
        item = Item(**body)
        return item.kept(by_words(item.text, alone.found(item.text, item.threshold)))

    async def ask_all():
        messages = [[{"type": "http.request", "body": json.dumps(body).encode()}] for body in bodies]
        return await asyncio.gather(*(asgi_request(client.app, one) for one in messages))

    with batcher:
        answers = asyncio.run(ask_all())
    assert {start["status"] for start, _ in answers} == {200}
    found = [json.loads(body["body"])["entities"] for _, body in answers]
    assert found == [expected(body) for body in bodies]
    assert sum(len(str(one)) for one in found) > 10_000


def test_requests_in_the_hubs_form(client, find_entities):
    answer = client.post(
        "/", json={"inputs": TEXTS, "parameters": {"threshold": 0.2, "overlap": "flat"}, "options": {}}
    )
    assert answer.status_code == 200
    assert answer.json() == near(find_entities(TEXTS, threshold=0.2, overlap="flat"))
    assert client.post("/", json={"inputs": "", "parameters": None}).json() == []


def test_ignored_labels_of_the_hubs_form():
    client, batcher = client_of(lambda texts, threshold: [[found_in("a", "DNA"), found_in("a", "protein")]])
    with batcher:
        for labels in (None, ["DNA", "protein"]):
            for ignored, kept in (["O"], ["DNA", "protein"]), (["DNA", "O"], ["protein"]):
                body = {"inputs": "a", "parameters": {"labels": labels, "ignore_labels": ignored}}
                assert [one["entity_group"] for one in client.post("/", json=body).json()] == kept
        mistyped = client.post("/", json={"inputs": "a", "parameters": {"ignore_labels": ["O", "dna"]}})
        assert (mistyped.status_code, "ignore_labels" in mistyped.text) == (422, True)


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({"text": "x"}, 422, "inputs: Field required."),
        ({"inputs": 3}, 422, "inputs: Input should be a valid string."),
        ({"inputs": ["x", 3]}, 422, "inputs.1: Input should be a valid string."),
        ({"inputs": "x" * 101}, 422, "A text has 101 characters, the limit is 100;"),
        ({"inputs": "x", "parameters": {"top_k": 3}}, 422, "parameters.top_k: Extra inputs"),
        ({"inputs": "x", "parameters": {"stride": -1}}, 422, "parameters.stride: Input should be greater"),
        ({"inputs": "x", "parameters": {"labels": ["RNA"]}}, 422, "labels: The model does not have"),
        ({"inputs": "x" * 2000}, 413, "The body has more than 2000 bytes;"),
    ],
)
def test_errors_in_the_hubs_form(client, body, status, error):
    answer = client.post("/", json=body)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert error in answer.json()["error"]


def test_lone_surrogates_are_text(client):
    body = '{"text": "The \\ud800 gene", "threshold": 0}'
    answer = client.post("/predict", content=body, headers=JSON_BODY)
    assert answer.status_code == 200
    assert any("\ud800" in entity["word"] for entity in json.loads(answer.content.decode("utf-8"))["entities"])


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ('{"texts": ["x", 3]}', 422, "texts.1: Input should be a valid string."),
        ("{}", 422, "text: Field required."),
        ("[]", 422, "body: Input should be a valid dictionary"),
        ("", 422, "body: Field required."),
        ("{", 422, "The body is not valid JSON: Expecting property name"),
        ('{"text": "x", "texts": []}', 422, "text: Extra inputs are not permitted."),
        ('{"text": "x", "treshold": 1}', 422, "treshold: Extra inputs are not permitted."),
        ('{"text": "x", "threshold": NaN}', 422, "threshold: "),
        ('{"text": "x", "threshold": "0.5"}', 422, "threshold: Input should be a valid number."),
        ('{"text": "x", "threshold": {"number": 2}}', 422, "threshold.number: Input should be less than or equal to"),
        ('{"text": "x", "threshold": {"RNA": 0.5}}', 422, "threshold: The model does not have"),
        ('{"text": "x", "threshold": [0.5]}', 422, "threshold: Input should be a valid number."),
        ('{"text": "x", "labels": ["RNA"]}', 422, "labels: The model does not have"),
        ('{"text": "x", "labels": "DNA"}', 422, "labels: Input should be a valid list."),
        ('{"items": [{"text": "x"}, {"texts": ["x"]}]}', 422, "items.1.text: Field required."),
        ('{"items": [], "threshold": 0.5}', 422, "threshold: Extra inputs are not permitted."),
        (json.dumps({"items": [{"text": "x"}] * 6}), 422, "texts: There are 6, the limit is 5;"),
        ('{"text": "x", "overlap": "nonesuch"}', 422, f"overlap: Input should be {', '.join(OVERLAPS)}."),
        ('{"text": "x", "\\ud800": 1}', 422, "body: Input should be a valid string"),
        ('{"text": "x", "\\udc00\\ud800": 1, "threshold": "\\ud800"}', 422, ""),
        (json.dumps({"text": "x", "y" * 500: 1}), 422, f"{'y' * 60}: Extra"),
        (json.dumps({"text": "x", **{str(number): 1 for number in range(8)}}), 422, "and 3 more errors."),
        (json.dumps({"texts": [1] * 90}), 422, "texts.0: Input should be a valid string."),
        (json.dumps({"items": [{}] * 90}), 422, "items.0.text: Field required."),
        (json.dumps({"text": "x", **{str(number): 1 for number in range(90)}}), 422, "there are 91 fields; known are"),
        (json.dumps({"text": "x" * 101}), 422, "A text has 101 characters, the limit is 100;"),
        (json.dumps({"texts": ["x"] * 6}), 422, "texts: There are 6, the limit is 5;"),
        (json.dumps({"text": "x" * 2000}), 413, "The body has more than 2000 bytes;"),
        (b'{"text": "\xff"}', 400, "it is compressed, not Unicode"),
        (gzip.compress(b'{"text": "x"}', mtime=0), 400, "it is compressed, not Unicode"),
    ],
)
def test_errors_are_described_in_json(client, body, status, detail):
    answer = client.post("/predict", content=body, headers=JSON_BODY)
    assert answer.status_code == status
    assert list(answer.json()) == ["detail"]
    assert detail in answer.json()["detail"]
    assert len(answer.json()["detail"]) < 500


@pytest.mark.parametrize("body", [{"texts": [1] * 90}, {"items": [{}] * 90}, {"text": "x", "labels": [1] * 90}])
def test_a_list_of_errors_is_one_error(client, body):
    """Each takes a kilobyte: those of a long list would take all memory."""
    detail = client.post("/predict", json=body).json()["detail"]
    assert "more errors" not in detail


def test_a_deeply_nested_body_is_a_client_error(client):
    answer = client.post("/predict", content="[" * 1999, headers=JSON_BODY)
    # Not JSON or, where Python's limit is lower, beyond its depth.
    assert answer.status_code in (400, 422)
    assert list(answer.json()) == ["detail"]


def test_texts_at_the_limits_are_accepted(client):
    assert client.post("/predict", json={"texts": ["gene " * 20] * 5}).status_code == 200


def test_other_content_types_are_rejected(client):
    answer = client.post("/predict", data={"text": "x"})
    assert (answer.status_code, "Content-Type: application/json" in answer.json()["detail"]) == (415, True)


def test_other_methods_and_paths_are_rejected(client):
    answer = client.get("/predict")
    assert (answer.status_code, answer.headers["Allow"], answer.json()) == (
        405,
        "POST",
        {"detail": "Method Not Allowed"},
    )
    assert client.post("/health").status_code == 405
    assert client.get("/").status_code == 405
    # FastAPI's own pages load scripts from elsewhere.
    assert [client.get(page).status_code for page in ("/docs", "/redoc")] == [404] * 2


def test_the_schema_describes_requests_and_responses(client):
    schema = client.get("/openapi.json").json()
    predict = schema["paths"]["/predict"]["post"]
    assert set(predict["responses"]) == {"200", "400", "401", "413", "415", "422", "500", "503"}
    [body] = predict["requestBody"]["content"].values()
    forms = [schema["components"]["schemas"][form["$ref"].rpartition("/")[2]] for form in body["schema"]["oneOf"]]
    assert [(form["required"], form["additionalProperties"]) for form in forms] == [
        (["text"], False),
        (["texts"], False),
        (["items"], False),
    ]
    for example in body["examples"].values():
        TypeAdapter(PredictionRequest).validate_python(example["value"])
    for answer in schema["components"]["schemas"]["EntitiesOfText"]["examples"]:
        EntitiesOfText.model_validate(answer, strict=True)
    assert all("description" in field for form in forms for field in form["properties"].values())
    properties = [form["properties"] for form in forms]
    assert [one["overlap"]["enum"] for one in properties if "overlap" in one] == [[*OVERLAPS]] * 2


def test_health_names_the_model_and_its_limits(client):
    assert client.head("/health").status_code == 200  # as load balancers ask
    health = Health.model_validate(client.get("/health").json(), strict=True, extra="forbid")
    assert (health.status, health.model, health.labels) == ("ready", "tiny", ["DNA", "protein"])
    assert (health.version, health.queue.waiting, health.queue.limit) == (__version__, 0, 100)
    assert health.limits == Limits(body_bytes=2000, texts=5, text_characters=100, label_studio_seconds=90)


def test_a_failing_request_gets_500_and_the_next_one_200():
    client, batcher = client_of(Finder())
    with batcher:
        answer = client.post("/predict", json={"text": "fail"})
        assert answer.status_code == 500
        assert "failed" in answer.json()["detail"]
        assert "memory" not in answer.text
        assert client.post("/predict", json={"text": "go"}).json() == {"entities": [found_in("go")]}


def test_unexpected_errors_are_json_without_details(monkeypatch):
    def fail(*_):
        raise KeyError("secret")

    client, _ = client_of(Finder())
    monkeypatch.setattr("modeling_triaffine.serving.application.check_items", fail)
    answer = TestClient(client.app, raise_server_exceptions=False).post("/predict", json={"text": "x"})
    assert (answer.status_code, list(answer.json())) == (500, ["detail"])
    assert "secret" not in answer.text
    assert 'triaffine_requests_total{route="/predict",status="500"} 1.0' in client.get("/metrics").text


def test_a_full_queue_gets_503():
    finder = Finder(is_blocked=True)
    client, batcher = client_of(finder, waiting=1)
    with batcher, ThreadPoolExecutor() as threads:
        running = threads.submit(client.post, "/predict", json={"text": "a"})
        assert finder.is_called.wait(WAIT)
        waiting = threads.submit(client.post, "/predict", json={"text": "b"})
        wait_until(lambda: client.get("/health").json()["queue"]["waiting"] == 1)
        refused = client.post("/predict", json={"text": "c"})
        assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (503, True)
        assert "limit: 1" in refused.json()["detail"]
        finder.may_go_on.set()
        assert [answer.result(WAIT).status_code for answer in (running, waiting)] == [200, 200]


def test_responses_close_connections_during_shutdown(client):
    assert "connection" not in client.get("/health").headers
    client.app.state.stopping = True
    for answer in (client.get("/health"), client.post("/predict", json={"text": "gene"}), client.get("/nothing")):
        assert answer.headers["connection"] == "close"
    assert client.get("/health").json()["status"] == "stopping"


def test_idle_connections_outlast_those_of_proxies():
    assert Server(FastAPI(), print, stop_seconds=1).config.timeout_keep_alive > 60


def test_requests_of_disconnected_clients_do_not_run():
    finder = Finder(is_blocked=True)
    client, batcher = client_of(finder)

    with batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        messages = [{"type": "http.request", "body": b'{"text": "gone"}'}, {"type": "http.disconnect"}]
        asyncio.run(asgi_request(client.app, messages))
        finder.may_go_on.set()
    assert [texts for texts, _ in finder.calls] == [["a"]]


def test_requests_aborted_by_the_shutdown_get_503():
    finder = Finder(is_blocked=True)
    client, batcher = client_of(finder)
    client.app.state.stopping = True

    async def request_without_response():
        asked = asyncio.ensure_future(asgi_request(client.app, [{"type": "http.request", "body": b'{"text": "a"}'}]))
        while not finder.is_called.is_set():
            await asyncio.sleep(0.01)
        asked.cancel()
        return await asked

    with batcher:
        start, body = asyncio.run(request_without_response())
        finder.may_go_on.set()
    assert (start["status"], (b"connection", b"close") in start["headers"]) == (503, True)
    assert "stopped" in json.loads(body["body"])["detail"]


async def asgi_request(application, messages):
    """The messages that the application sends to a client that sends these, and then nothing."""
    sent = []

    async def receive():
        return messages.pop(0) if messages else await asyncio.Future()

    async def send(message):
        sent.append(message)

    headers = [(name.lower().encode(), value.encode()) for name, value in JSON_BODY.items()]
    scope = {"type": "http", "method": "POST", "path": "/predict", "query_string": b"", "headers": headers}
    await application(scope, receive, send)
    return sent


def wait_until(is_true):
    end = time.monotonic() + WAIT
    while not is_true():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.01)
