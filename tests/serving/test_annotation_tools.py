"""Requests of Label Studio and INCEpTION as these tools document them, and the responses."""

import threading

import pytest

from modeling_triaffine.serving import annotation_tools
from modeling_triaffine.serving.annotation_tools import PREDICTED
from tests.helpers.served_model import ANNOTATED, WAIT, client_of, found_in

FOUND = [
    {"entity_group": "Person", "score": 0.75, "word": "Joe", "start": 0, "end": 3},
    {"entity_group": "Vehicle", "score": 0.5, "word": "the train", "start": 15, "end": 24},
]


@pytest.fixture
def annotator():
    """A client for the requests of annotation tools, to a model that finds two entities in one text."""

    def find(texts, threshold):
        if "fail" in texts:
            raise RuntimeError("out of memory")
        return [FOUND if text == ANNOTATED else [] for text in texts]

    with client_of(find, model="owner/name", labels=["Person", "Vehicle"], body_bytes=100_000) as client:
        yield client


# ---- Label Studio

CONFIG = """<View>
  <Choices name="kind" toName="body"><Choice value="news"/></Choices>
  <Labels name="ner" toName="body"><Label value="Person" background="red"/><Label value="Place"/></Labels>
  <Text name="body" value="$article"/>
</View>"""
PREDICT = {  # a request of Label Studio's connector to `predict`
    "tasks": [
        {"id": 1, "data": {"article": ANNOTATED}, "annotations": [], "predictions": [], "project": 3},
        {"id": 2, "data": {"article": "It rained."}, "meta": {}},
    ],
    "model_version": "owner/name",
    "project": "3.1700000000",
    "label_config": CONFIG,
    "params": {"login": None, "password": None, "context": None},
}


def test_label_studio_connects(annotator):
    assert annotator.get("/label-studio/health").json()["status"] == "UP"
    setup = {"project": "3.1700000000", "schema": CONFIG, "hostname": "http://localhost:8080", "access_token": "abc"}
    assert annotator.post("/label-studio/setup", json=setup).json() == {"model_version": "owner/name"}
    for path in ("webhook", "train"):
        event = {"action": "ANNOTATION_CREATED", "project": {"id": 3}, "annotation": {}}
        assert annotator.post(f"/label-studio/{path}", json=event).status_code == 200
    assert annotator.get("/label-studio/versions").json() == {"versions": ["owner/name"]}


@pytest.mark.parametrize(
    ("was", "now", "reason"),
    [
        ("<Text", "<HyperText", "Missing <Labels> with a <Text>"),
        ("Labels", "Choices", "Missing <Labels> with a <Text>"),
        ("Person", "Animal", "the project's labels (Animal, Place), but Person, Ve"),
        ('value="$article"', 'value="$article" valueType="url"', "'valueType': 'url'"),
        ('value="$article"', 'value="$article" encoding="base64"', "'encoding': 'base64'"),
        ("$article", "$title: $article", "one field of the task"),
        ("$article", "$article.body", "one field of the task"),
        (CONFIG, "nothing", "XML"),
    ],
)
def test_projects_that_cannot_be_served_are_refused_with_a_reason_that_is_logged(annotator, caplog, was, now, reason):
    setup = {"project": "3.17", "schema": CONFIG.replace(was, now)}
    answer = annotator.post("/label-studio/setup", json=setup)
    assert (answer.status_code, reason in answer.json()["detail"]) == (422, True)
    [record] = caplog.records
    assert reason in record.getMessage()


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        CONFIG.replace("$article", "article"),
        CONFIG.replace('value="Person"', 'value="People" alias="Person"'),
        CONFIG.replace('toName="body">', 'toName="body" value="$labels">'),  # labels that are in the tasks
    ],
)
def test_tasks_of_label_studio_get_predictions(annotator, config):
    answer = annotator.post("/label-studio/predict", json={**PREDICT, "label_config": config})
    assert answer.status_code == 200
    regions = [
        {
            "id": f"T{number}",
            "from_name": "ner",
            "to_name": "body",
            "type": "labels",
            "value": {"start": one["start"], "end": one["end"], "text": one["word"], "labels": [one["entity_group"]]},
            "score": one["score"],
        }
        for number, one in enumerate(FOUND if "$labels" in config else FOUND[:1], 1)
    ]
    first = {"model_version": "owner/name", "score": regions[-1]["score"], "result": regions}
    other = {"model_version": "owner/name", "score": 1.0, "result": []}
    assert answer.json() == {"model_version": "owner/name", "results": [first, other]}


def test_a_task_that_cannot_be_predicted_does_not_spoil_the_others(annotator, caplog):
    """More tasks than a request of `/predict` may have texts; Label Studio sends a whole selection at once."""
    texts = [ANNOTATED] * 23
    texts[3:8] = ["x" * 101, None, 5, "fail", ""]
    tasks = [{"id": 100 + number, "data": {"article": text}} for number, text in enumerate(texts)]
    answer = annotator.post("/label-studio/predict", json={**PREDICT, "tasks": [*tasks, {"id": 123, "data": {}}]})
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
    failure, line = caplog.records
    assert failure.exc_info
    assert "tasks without a prediction: 5, the first of them 103: A text has 101 characters" in line.getMessage()


def test_tasks_for_which_there_is_no_time_get_a_reason(monkeypatch):
    """Label Studio stores nothing of an answer that comes too late."""
    monkeypatch.setattr(annotation_tools, "ANSWER_SECONDS", 1)
    may_go_on = threading.Event()

    def find_entities(texts, threshold):
        assert "c" not in texts or may_go_on.wait(WAIT)
        return [[] for _ in texts]

    with client_of(find_entities, labels=["Person"], texts=2) as client:
        request = {"tasks": [{"data": {"article": text}} for text in "abcde"], "label_config": CONFIG}
        results = client.post("/label-studio/predict", json=request).json()["results"]
        may_go_on.set()
    assert ["no time for it within 1 s" in result.get("error", "") for result in results] == [False] * 2 + [True] * 3


@pytest.mark.parametrize("path", ["/label-studio/predict", "/label-studio/setup", "/inception/predict"])
def test_refused_requests_of_annotation_tools_are_logged_in_one_line(annotator, caplog, path):
    bodies = {"{": 422, '{"tasks": 3, "schema": 3}': 422, b'{"text": "\xff"}': 400, '"' + "x" * 100_000 + '"': 413}
    for body, status in bodies.items():
        assert annotator.post(path, content=body, headers={"Content-Type": "application/json"}).status_code == status
    statuses = [annotator.post(path, data={"text": "x"}).status_code, annotator.put(path).status_code]
    statuses += [annotator.get(f"{path}/some%0Awhere%1b]0;x%07").status_code]
    assert statuses == [415, 405, 404]
    for line, status in zip(caplog.messages, [*bodies.values(), *statuses], strict=True):
        assert f": {status}: " in line
        assert path in line
        assert line.isprintable()
    caplog.clear()
    annotator.post("/predict", content="{", headers={"Content-Type": "application/json"})
    assert caplog.records == []  # the client has the reason


# ---- INCEpTION

LAYER = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
XMI = (  # the document in the examples of INCEpTION's developer guide
    '<?xml version="1.0" encoding="UTF-8"?> <xmi:XMI xmlns:tcas="http:///uima/tcas.ecore" '
    'xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore" xmlns:cassis="http:///cassis.ecore" '
    'xmi:version="2.0"> <cas:NULL xmi:id="0"/> <tcas:DocumentAnnotation xmi:id="8" sofa="1" begin="0" end="47" '
    'language="x-unspecified"/> <cas:Sofa xmi:id="1" sofaNum="1" sofaID="mySofa" mimeType="text/plain" sofaString="'
    f'{ANNOTATED}"/> <cas:View sofa="1" members="8"/> </xmi:XMI>'
)
FEATURES = {"value": "String", PREDICTED: "Boolean"}


def recommender_request(features=FEATURES, layer=LAYER, feature="value", was="", now=""):
    """A request whose type system has a layer with these features, {name: type}, and with a change of the document."""
    described = "".join(
        f"<featureDescription><name>{name}</name><description/><rangeTypeName>uima.cas.{kind}</rangeTypeName>"
        "</featureDescription>"
        for name, kind in features.items()
    )
    types = (
        '<?xml version="1.0" encoding="UTF-8"?> <typeSystemDescription xmlns="http://uima.apache.org/resourceSpecifier">'
        f"<types><typeDescription><name>{layer}</name><description/><supertypeName>uima.tcas.Annotation</supertypeName>"
        f"<features>{described}</features></typeDescription></types></typeSystemDescription>"
    )
    return {
        "metadata": {"layer": layer, "feature": feature, "projectId": 1337, "anchoringMode": "tokens"},
        "document": {"xmi": XMI.replace(was, now) if was else XMI, "documentId": 42, "userId": "testuser"},
        "typeSystem": types,
    }


def suggestions_of(answer, request):
    """The annotations of the layer and the text, as dkpro-cassis reads them."""
    cassis = pytest.importorskip("cassis")
    types = cassis.load_typesystem(request["typeSystem"])
    view = cassis.load_cas_from_xmi(answer.json()["document"], types).get_view("mySofa")
    return view.select(request["metadata"]["layer"]), view


@pytest.mark.parametrize(
    "options",
    [
        {"features": {**FEATURES, "value_score": "Double"}},
        {"layer": "Plain"},
        {"features": {"type": "String", PREDICTED: "Boolean"}, "feature": "type", "layer": "custom.Span"},
    ],
)
def test_inception_gets_its_document_with_suggestions(annotator, options):
    request = recommender_request(**options)
    answer = annotator.post("/inception/predict", json=request)
    assert answer.status_code == 200
    suggestions, view = suggestions_of(answer, request)
    feature = "type_" if "feature" in options else "value"  # cassis renames it
    found = [(one.begin, one.end, one[feature], one[PREDICTED]) for one in suggestions]
    assert found == [(0, 3, "Person", True), (15, 24, "Vehicle", True)]
    assert len(view.select("uima.tcas.DocumentAnnotation")) == 1
    if "layer" not in options:
        assert [one["value_score"] for one in suggestions] == pytest.approx([0.75, 0.5])
    documents = {**request, "documents": [request.pop("document")]}
    assert annotator.post("/inception/train", json=documents).status_code == 204


def test_offsets_are_those_of_utf_16():
    found = [{**found_in("𝛽 ä"), "start": 6, "end": 9}]
    request = recommender_request(was=ANNOTATED, now="𝛼 &amp; &lt;&#10;𝛽 ä")
    with client_of(lambda texts, threshold: [found]) as client:
        answer = client.post("/inception/predict", json=request)
    assert 'begin="7" end="11"' in answer.json()["document"]
    suggestions, view = suggestions_of(answer, request)
    assert view.sofa_string == "𝛼 & <\n𝛽 ä"
    assert [one.get_covered_text() for one in suggestions] == ["𝛽 ä"]


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"features": {"value": "String"}}, [PREDICTED, "'value'"]),
        ({"features": {}}, [LAYER, "it has {}"]),
        ({"features": {f"feature{number}": "String" for number in range(500)}}, ["The layer", "…"]),
        ({"feature": "kind"}, ["'kind'", "'value'"]),
        ({"features": {**FEATURES, "value": "Integer"}}, ["'value'", "String"]),
        ({"was": XMI, "now": "<a/>"}, ["document: "]),
        ({"was": XMI, "now": "nothing"}, ["document: It is not XML"]),
        ({"was": ANNOTATED, "now": ""}, ["document: "]),
        ({"was": 'View sofa="1"', "now": "View"}, ["document: "]),
        ({"was": 'id="8"', "now": 'id="x"'}, ["document: "]),
        ({"was": '<cas:View sofa="1" members="8"/>', "now": '<a><cas:View sofa="1"/></a>'}, ["document: "]),
        ({"layer": "custom.a b"}, ["metadata.layer"]),
        ({"feature": "a b", "features": {"a b": "String", PREDICTED: "Boolean"}}, ["metadata.feature"]),
        ({"was": ANNOTATED, "now": "x" * 101}, ["101 characters"]),
    ],
)
def test_inception_errors(annotator, changes, facts):
    answer = annotator.post("/inception/predict", json=recommender_request(**changes))
    assert answer.status_code == 422
    assert [fact for fact in facts if fact not in answer.json()["detail"]] == []
