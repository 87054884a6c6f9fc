"""What the OpenAPI schema says of requests is what the server does: valid ones are answered, others refused."""

import json

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.served_model import client_of
from tests.helpers.tiny import LABELS
from tests.serving.test_inception_recommender import IS_PREDICTED, VALUE, recommender_request
from tests.serving.test_label_studio_backend import CONFIG

FUZZED = settings(suppress_health_check=list(HealthCheck), database=None, derandomize=True, deadline=None)
CHARACTERS, TEXTS = 100, 5  # the limits of `client_of`


@pytest.fixture(scope="module")
def client():
    client, batcher = client_of(lambda texts, threshold: [[] for _ in texts], body_bytes=100_000)
    with batcher:
        yield client


@pytest.fixture(scope="module")
def schema(client):
    return client.get("/openapi.json").json()


def answers_as_described(client, schema, path, body) -> bool:
    """Whether the body is valid by the schema; fails unless the answer agrees."""
    [content] = schema["paths"][path]["post"]["requestBody"]["content"].values()
    validator = jsonschema.Draft202012Validator({**content["schema"], "components": schema["components"]})
    is_valid = validator.is_valid(body)
    answer = client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert (answer.status_code, is_valid) in ((200, True), (422, False)), answer.text
    return is_valid


text = st.sampled_from(["", "gene", "\ud800", "🧬" * CHARACTERS, "🧬" * (CHARACTERS + 1), None, 3])
labels = st.sampled_from([None, [], [LABELS[0]], [LABELS[0]] * 2, ["RNA"], ["O"], [""], [None], LABELS[0]])
probability = st.sampled_from([None, 0, 1, 0.5, -0.1, 1.5, "0.5", True])
threshold = probability | st.dictionaries(st.sampled_from([LABELS[0], "RNA", ""]), probability, max_size=2)
options = {"threshold": threshold, "labels": labels, "overlap": st.sampled_from(["all", "flat", "some", None])}
one = st.fixed_dictionaries({"text": text}, optional=options)
several = st.fixed_dictionaries({"texts": st.lists(text, max_size=TEXTS + 1)}, optional=options)
items = st.fixed_dictionaries({"items": st.lists(one, max_size=TEXTS + 1)}, optional={"other": labels})
hub_options = {
    "aggregation_strategy": st.sampled_from([None, "simple", "first", "average", "max", "none", ""]),
    "ignore_labels": st.sampled_from([None, [], ["O"], LABELS[:1], "O"]),
    "stride": st.sampled_from([None, 0, 16, -1, 0.5, True]),
}
hub = st.fixed_dictionaries(
    {"inputs": text | st.lists(text, max_size=TEXTS + 1)},
    optional={
        "parameters": st.none() | st.fixed_dictionaries({}, optional={**options, **hub_options}),
        "options": text,
    },
)
tasks = st.lists(st.fixed_dictionaries({"data": st.dictionaries(st.sampled_from(["text", "a"]), text)}), max_size=9)
label_studio = st.fixed_dictionaries(
    {"tasks": tasks},
    optional={"label_config": st.sampled_from([None, CONFIG.replace("Person", LABELS[0]), 3])},
)


@pytest.mark.parametrize(
    ("path", "bodies"),
    [("/predict", one | several | items), ("/", hub), ("/label-studio/predict", label_studio)],
    ids=["own form", "the Hub's", "Label Studio's"],
)
def test_requests_are_answered_if_and_only_if_the_schema_allows_them(client, schema, path, bodies):
    valid = []

    @given(body=bodies)
    @settings(parent=FUZZED, max_examples=100)
    def check(body):
        valid.append(answers_as_described(client, schema, path, body))

    check()
    assert {*valid} == {True, False}


def test_documents_of_inception(client, schema):
    pytest.importorskip("cassis")
    good = recommender_request(VALUE, IS_PREDICTED, xmi=recommender_request()["document"]["xmi"])
    assert answers_as_described(client, schema, "/inception/predict", good)
    for change in ({"metadata": {"layer": "", "feature": ""}}, {"document": {}}, {"typeSystem": None}):
        assert not answers_as_described(client, schema, "/inception/predict", {**good, **change})
