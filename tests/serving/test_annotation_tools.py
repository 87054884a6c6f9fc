"""Requests of Label Studio and INCEpTION as documented by them, and the responses."""

import pytest

from modeling_triaffine.serving.annotation_tools import PREDICTED
from tests.helpers.served_model import client_of

TEXT = "Joe waited for the train . The train was late ."
FOUND = [
    {"entity_group": "Person", "score": 0.75, "word": "Joe", "start": 0, "end": 3},
    {"entity_group": "Vehicle", "score": 0.5, "word": "the train", "start": 15, "end": 24},
]


@pytest.fixture
def client():
    options = {"model": "owner/name", "labels": ["Person", "Vehicle"], "body_bytes": 100_000}
    client, batcher = client_of(lambda texts, threshold: [FOUND if text == TEXT else [] for text in texts], **options)
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
        ({"tasks": [{"id": 1, "data": {"text": TEXT}}]}, ["data.article"]),
        ({"tasks": [{"id": 1, "data": {"article": None}}]}, ["data.article"]),
        ({"tasks": [{"id": 1}]}, ["tasks.0.data"]),
        ({"tasks": {}}, ["tasks"]),
        ({"tasks": PREDICT["tasks"] * 3}, ["6", "limit is 5"]),
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
