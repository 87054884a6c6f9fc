"""API keys: how clients send them, and who is rejected."""

import base64

import pytest

from modeling_triaffine.serving import read_api_keys
from modeling_triaffine.serving.middleware import API_KEYS
from tests.helpers.served_model import client_of

KEYS = ["first-key", "second"]


def basic(user, password):
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.fixture
def client():
    client, batcher = client_of(lambda texts, threshold: [[] for _ in texts], keys=KEYS)
    with batcher:
        yield client


@pytest.mark.parametrize(
    "given", ["Bearer first-key", "bearer second", "Bearer  second ", basic("me", "second"), basic("", "first-key")]
)
def test_valid_keys(client, given):
    assert client.post("/predict", json={"text": "a"}, headers={"Authorization": given}).json() == {"entities": []}


WRONG = [None, "", "Bearer", "Bearer ", "Bearer first", "Bearer first-key,second", "second", "Token second"]
WRONG += ["Basic second", basic("second", ""), basic("me", "wrong"), "Basic /w==", b"Bearer \xff", b"Basic \xc3\xa9"]


@pytest.mark.parametrize("given", WRONG)
def test_invalid_keys_are_rejected_before_the_body_is_read(client, given):
    headers = {} if given is None else {"Authorization": given}
    answer = client.post("/predict", content="{", headers=headers)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert list(answer.json()) == ["detail"]
    for path in ("/openapi.json", "/label-studio/health", "/metrics", "/nothing"):
        assert client.get(path, headers=headers).status_code == 401
    assert client.get("/health", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("value", "keys"),
    [(None, []), (" one,two ,", ["one", "two"]), *((value, None) for value in ("", " , "))],
)
def test_keys_come_from_the_environment(monkeypatch, value, keys):
    monkeypatch.delenv(API_KEYS, raising=False)
    if value is not None:
        monkeypatch.setenv(API_KEYS, value)
    if keys is not None:
        assert read_api_keys() == keys
        return
    with pytest.raises(ValueError, match=API_KEYS):
        read_api_keys()
