"""Requests of Label Studio and INCEpTION as documented by them, and the responses."""

import asyncio
from urllib.parse import unquote_plus

import pytest
from fastapi import Request

from modeling_triaffine.serving import Item, QueueFullError, finding
from modeling_triaffine.serving.annotation_tools import PREDICTED
from modeling_triaffine.serving.finding import run_in_parts
from tests.helpers.served_model import client_of

TEXT = "Joe waited for the train . The train was late ."
FOUND = [
    {"entity_group": "Person", "score": 0.75, "word": "Joe", "start": 0, "end": 3},
    {"entity_group": "Vehicle", "score": 0.5, "word": "the train", "start": 15, "end": 24},
]


@pytest.fixture
def client():
    def find(texts, threshold):
        if "fail" in texts:
            raise RuntimeError("out of memory")
        return [FOUND if text == TEXT else [] for text in texts]

    client, batcher = client_of(find, model="owner/name", labels=["Person", "Vehicle"], body_bytes=100_000)
    with batcher:
        yield client


# ---- Label Studio

CONFIG = """<View>
  <Choices name="kind" toName="body"><Choice value="news"/></Choices>
  <Labels name="ner" toName="body"><Label value="Person" background="red"/><Label value="Place"/></Labels>
  <Text name="body" value="$article"/>
</View>"""
PREDICT = {
    "tasks": [
        {"id": 1, "data": {"article": TEXT}, "annotations": [], "predictions": [], "project": 3},
        {"id": 2, "data": {"article": "It rained."}, "meta": {}},
    ],
    "model_version": "owner/name",
    "project": "3.1700000000",
    "label_config": CONFIG,
    "params": {"login": None, "password": None, "context": None},
}
"""A request of Label Studio's connector to `predict`."""


def test_label_studio_connects(client):
    assert client.get("/label-studio/health").json()["status"] == "UP"
    setup = {"project": "3.1700000000", "schema": CONFIG, "hostname": "http://localhost:8080", "access_token": "abc"}
    assert client.post("/label-studio/setup", json=setup).json() == {"model_version": "owner/name"}
    for path in ("webhook", "train"):
        event = {"action": "ANNOTATION_CREATED", "project": {"id": 3}, "annotation": {}}
        assert client.post(f"/label-studio/{path}", json=event).status_code == 200
    assert client.get("/label-studio/versions").json() == {"versions": ["owner/name"]}


TEXT_TAG = '<Text name="body" value="$article"/>'
UNUSABLE = {
    "HyperText": (
        CONFIG.replace("<Text", "<HyperText").replace("Labels", "HyperTextLabels"),
        "HyperTextLabels of HyperText",
    ),
    "Labels of HyperText": (CONFIG.replace("<Text", "<HyperText"), "Labels of HyperText"),
    "Paragraphs": (
        CONFIG.replace("<Text", "<Paragraphs").replace("Labels", "ParagraphLabels"),
        "ParagraphLabels of Para",
    ),
    "no labels": ("<View></View>", "Missing Labels with a Text"),
    "classes alone": (f'<View><Choices name="a" toName="body"/>{TEXT_TAG}</View>', "Choices of Text"),
    "other labels": (
        CONFIG.replace("Person", "Animal"),
        "none of the project's labels (Animal, Place), but Person, Ve",
    ),
    "an address": (CONFIG.replace('value="$article"', 'value="$article" valueType="url"'), "valueType=url"),
    "encoded": (CONFIG.replace('value="$article"', 'value="$article" encoding="base64"'), "encoding=base64"),
    "several fields": (CONFIG.replace("$article", "$title: $article"), "one field of the task"),
    "a nested field": (CONFIG.replace("$article", "$article.body"), "one field of the task"),
    "no XML": ("nothing", "XML"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_projects_that_cannot_be_served_are_refused_with_a_reason_that_label_studio_shows(client, caplog, name):
    """Of an error, it shows the status line and the last address, as `requests` does."""
    config, reason = UNUSABLE[name]
    answer = client.post("/label-studio/setup", json={"project": "3.17", "schema": config})
    assert answer.status_code == 422
    assert answer.request.url.path == "/label-studio/refused"
    assert reason in unquote_plus(str(answer.request.url))
    assert " " not in str(answer.request.url)
    assert reason in answer.json()["detail"]
    [record] = caplog.records
    assert reason in record.getMessage()


def test_labels_of_each_task_are_those_of_the_model(client):
    config = CONFIG.replace('<Labels name="ner"', '<Labels value="$labels" name="ner"')
    assert client.post("/label-studio/setup", json={"schema": config}).status_code == 200
    (result, _) = client.post("/label-studio/predict", json={**PREDICT, "label_config": config}).json()["results"]
    assert [region["value"]["labels"] for region in result["result"]] == [["Person"], ["Vehicle"]]


@pytest.mark.parametrize("label", ['value="Person"', 'value="Who" alias="Person"'])
def test_label_studio_gets_predictions_of_its_labels(client, label):
    config = CONFIG.replace('value="Person"', label)
    answer = client.post("/label-studio/predict", json={**PREDICT, "label_config": config})
    assert answer.status_code == 200
    region = {
        "id": "T1",
        "from_name": "ner",
        "to_name": "body",
        "type": "labels",
        "value": {"start": 0, "end": 3, "text": "Joe", "labels": ["Person"]},
        "score": 0.75,
    }
    assert answer.json() == {
        "model_version": "owner/name",
        "results": [
            {"model_version": "owner/name", "score": 0.75, "result": [region]},
            {"model_version": "owner/name", "score": 1.0, "result": []},
        ],
    }


def test_without_a_configuration_label_studio_gets_all_labels(client):
    answer = client.post("/label-studio/predict", json={"tasks": [{"id": 1, "data": {"text": TEXT}}]}).json()
    (result,) = answer["results"]
    assert [region["value"]["labels"] for region in result["result"]] == [["Person"], ["Vehicle"]]
    assert {(region["from_name"], region["to_name"]) for region in result["result"]} == {("label", "text")}


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"tasks": [{"id": 1}]}, ["tasks.0.data"]),
        ({"tasks": {}}, ["tasks"]),
        ({"label_config": "<View><Image name='a' value='$b'/></View>"}, ["label_config", "<Labels>"]),
        ({"label_config": "<View><Labels name='a'/><Text value='$article'/></View>"}, ["label_config", "`toName`"]),
        ({"label_config": "<View>"}, ["label_config", "XML"]),
        ({"label_config": '<!DOCTYPE a [<!ENTITY e "x">]><View>&e;</View>'}, ["label_config", "'e'"]),
    ],
)
def test_label_studio_errors(client, changes, facts):
    answer = client.post("/label-studio/predict", json={**PREDICT, **changes})
    assert answer.status_code == 422
    assert [fact for fact in facts if fact not in answer.json()["detail"]] == []


def test_a_task_that_cannot_be_predicted_does_not_spoil_the_others(client, caplog):
    """More tasks than a request of `/predict` may have texts; Label Studio sends a whole selection at once."""
    texts = [TEXT] * 23
    texts[3:8] = ["x" * 101, None, 5, "fail", ""]
    tasks = [{"id": 100 + number, "data": {"article": text}} for number, text in enumerate(texts)]
    answer = client.post("/label-studio/predict", json={**PREDICT, "tasks": [*tasks, {"id": 123, "data": {}}]})
    assert answer.status_code == 200
    results = answer.json()["results"]
    refused = {3: "101 characters, the limit is 100", 6: "The model failed"}
    refused |= dict.fromkeys((4, 5, 23), "no text in data.article")
    for number, result in enumerate(results):
        if reason := refused.get(number):
            assert reason in result.pop("error")
            assert result == {"result": [], "score": 0.0, "model_version": "owner/name: no prediction"}
        else:
            assert (len(result["result"]), result["model_version"]) == (0 if number == 7 else 1, "owner/name")
    assert len(results) == 24
    *failures, line = caplog.records
    assert [failure.exc_info is None for failure in failures] == [False, False]  # with its part, and alone
    assert "5 of 24 tasks got no prediction. 1 (task 103): A text has 101 characters" in line.getMessage()
    assert "3 (task 104): The task has no text in data.article." in line.getMessage()


async def in_parts(find, texts, seconds=1000):
    request = Request({"type": "http"}, receive=asyncio.Future)
    return await run_in_parts(find, [Item(text) for text in texts], request, 2, 10, seconds)


def test_parts_have_at_most_so_many_texts_and_characters():
    parts = []

    async def find(items, request):
        parts.append([item.text for item in items])
        return [[item.text] for item in items]

    texts = ["a", "b", "c", "x" * 11, "d", "x" * 9, "e", "f"]
    assert asyncio.run(in_parts(find, texts)) == [[text] for text in texts]
    assert parts == [["a", "b"], ["c"], ["x" * 11], ["d", "x" * 9], ["e", "f"]]
    assert asyncio.run(in_parts(find, [])) == []


def test_parts_wait_for_a_place_in_the_queue_but_the_first_does_not(monkeypatch):
    monkeypatch.setattr(finding, "RETRY_SECONDS", 0)
    is_full = iter([False, True, True, False, True])

    async def find(items, request):
        if next(is_full):
            raise QueueFullError("The queue is full.")
        return [[] for _ in items]

    assert asyncio.run(in_parts(find, ["a", "b", "c"])) == [[], [], []]
    with pytest.raises(QueueFullError):
        asyncio.run(in_parts(find, ["a"]))


def test_tasks_for_which_there_is_no_time_get_a_reason(monkeypatch):
    """Label Studio stores nothing of an answer that comes too late."""
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr(finding.time, "monotonic", lambda: next(now))

    async def find(items, request):
        return [[] for _ in items]

    outcomes = asyncio.run(in_parts(find, "abcdefghi", seconds=25))
    assert outcomes[:4] == [[]] * 4  # the second part ends after 20 s, a third would after 30
    assert [("no time" in str(outcome), "25 s" in str(outcome)) for outcome in outcomes[4:]] == [(True, True)] * 5


@pytest.mark.parametrize("path", ["/label-studio/predict", "/label-studio/setup", "/inception/predict"])
def test_requests_of_annotation_tools_that_are_refused_are_logged_in_one_line(client, caplog, path):
    bodies = ["{", '{"tasks": 3, "schema": 3}', b'{"text": "\xff"}', '"' + "x" * 100_000 + '"']
    statuses = [
        client.post(path, content=body, headers={"Content-Type": "application/json"}).status_code for body in bodies
    ]
    statuses += [client.post(path, data={"text": "x"}).status_code, client.put(path).status_code]
    statuses += [client.get(f"{path}/some%0Awhere").status_code]
    assert statuses == [422, 422, 400, 413, 415, 405, 404]
    lines = [record.getMessage() for record in caplog.records]
    assert [f": {status}: " in line for line, status in zip(lines, statuses, strict=True)] == [True] * len(statuses)
    assert all(path in line and "\n" not in line for line in lines)
    caplog.clear()
    assert client.post("/predict", content="{", headers={"Content-Type": "application/json"}).status_code == 422
    assert caplog.records == []  # the client has the reason


# ---- INCEpTION

LAYER = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
XMI = (
    '<?xml version="1.0" encoding="UTF-8"?> <xmi:XMI xmlns:tcas="http:///uima/tcas.ecore" '
    'xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore" xmlns:cassis="http:///cassis.ecore" '
    'xmi:version="2.0"> <cas:NULL xmi:id="0"/> <tcas:DocumentAnnotation xmi:id="8" sofa="1" begin="0" end="47" '
    'language="x-unspecified"/> <cas:Sofa xmi:id="1" sofaNum="1" sofaID="mySofa" mimeType="text/plain" sofaString="'
    f'{TEXT}"/> <cas:View sofa="1" members="8"/> </xmi:XMI>'
)
"""The document in the examples of INCEpTION's developer guide."""


def type_system(*features, layer=LAYER):
    """A type system whose layer has these features, (name, type), as INCEpTION extends it for a recommender."""
    described = "".join(
        f"<featureDescription><name>{name}</name><description/><rangeTypeName>uima.cas.{kind}</rangeTypeName>"
        "</featureDescription>"
        for name, kind in features
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?> <typeSystemDescription xmlns="http://uima.apache.org/resourceSpecifier">'
        f"<types><typeDescription><name>{layer}</name><description/><supertypeName>uima.tcas.Annotation</supertypeName>"
        f"<features>{described}</features></typeDescription></types></typeSystemDescription>"
    )


VALUE, IS_PREDICTED, SCORE = ("value", "String"), (PREDICTED, "Boolean"), ("value_score", "Double")


def recommender_request(*features, xmi=XMI, **metadata):
    return {
        "metadata": {
            **{"layer": LAYER, "feature": "value", "projectId": 1337},
            **{"anchoringMode": "tokens", "crossSentence": False},
            **metadata,
        },
        "document": {"xmi": xmi, "documentId": 42, "userId": "testuser"},
        "typeSystem": type_system(*features),
    }


@pytest.mark.parametrize("features", [[VALUE, IS_PREDICTED, SCORE], [VALUE, IS_PREDICTED]])
def test_inception_gets_its_document_with_suggestions(client, features):
    cassis = pytest.importorskip("cassis")
    request = recommender_request(*features)
    answer = client.post("/inception/predict", json=request)
    assert answer.status_code == 200
    types = cassis.load_typesystem(request["typeSystem"])
    cas = cassis.load_cas_from_xmi(answer.json()["document"], types)
    suggestions = cas.get_view("mySofa").select(LAYER)
    assert [(one.begin, one.end, one.value, one[PREDICTED]) for one in suggestions] == [
        (0, 3, "Person", True),
        (15, 24, "Vehicle", True),
    ]
    if SCORE in features:
        assert [one["value_score"] for one in suggestions] == pytest.approx([0.75, 0.5])
    assert client.post("/inception/train", json={**request, "documents": [request.pop("document")]}).status_code == 204


@pytest.mark.parametrize("name", ["type", "self"])
def test_inception_may_call_its_feature_so(client, name):
    cassis = pytest.importorskip("cassis")
    request = recommender_request((name, "String"), IS_PREDICTED, feature=name)
    answer = client.post("/inception/predict", json=request)
    assert answer.status_code == 200, answer.text
    cas = cassis.load_cas_from_xmi(answer.json()["document"], cassis.load_typesystem(request["typeSystem"]))
    assert [one[f"{name}_"] for one in cas.get_view("mySofa").select(LAYER)] == ["Person", "Vehicle"]


BAD = {
    "layer": (recommender_request(VALUE, IS_PREDICTED, layer="custom.Layer"), ["'custom.Layer'", "DocumentAnnotation"]),
    "feature": (recommender_request(VALUE, IS_PREDICTED, feature="kind"), ["'kind'", "'value'"]),
    "offset as feature": (recommender_request(VALUE, IS_PREDICTED, feature="begin"), ["'begin'", "String"]),
    "number as feature": (recommender_request(("value", "Integer"), IS_PREDICTED), ["'value'", "String"]),
    "not for suggestions": (recommender_request(VALUE), [PREDICTED, "'value'"]),
    "no cas": (recommender_request(VALUE, IS_PREDICTED, xmi="<a/>"), ["document"]),
    "no xml": (recommender_request(VALUE, IS_PREDICTED, xmi="nothing"), ["document"]),
    "bomb": (recommender_request(VALUE, xmi='<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>'), ["'e'"]),
    "long": (recommender_request(VALUE, IS_PREDICTED, xmi=XMI.replace(TEXT, "x" * 101)), ["101 characters"]),
    "another version": ({"layer": LAYER}, ["metadata: Field required"]),
}


@pytest.mark.parametrize("name", BAD)
def test_inception_errors(client, name):
    pytest.importorskip("cassis")
    request, facts = BAD[name]
    answer = client.post("/inception/predict", json=request)
    assert answer.status_code == 422
    assert [fact for fact in facts if fact not in answer.json()["detail"]] == []
