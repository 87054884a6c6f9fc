"""Requests of Label Studio as documented by it, and the responses."""

import threading

import pytest

from tests.helpers.served_model import ANNOTATED, WAIT, client_of

CONFIG = """<View>
  <Choices name="kind" toName="body"><Choice value="news"/></Choices>
  <Labels name="ner" toName="body"><Label value="Person" background="red"/><Label value="Place"/></Labels>
  <Text name="body" value="$article"/>
</View>"""
PREDICT = {
    "tasks": [
        {"id": 1, "data": {"article": ANNOTATED}, "annotations": [], "predictions": [], "project": 3},
        {"id": 2, "data": {"article": "It rained."}, "meta": {}},
    ],
    "model_version": "owner/name",
    "project": "3.1700000000",
    "label_config": CONFIG,
    "params": {"login": None, "password": None, "context": None},
}
"""A request of Label Studio's connector to `predict`."""


def test_label_studio_connects(annotator):
    assert annotator.get("/label-studio/health").json()["status"] == "UP"
    setup = {"project": "3.1700000000", "schema": CONFIG, "hostname": "http://localhost:8080", "access_token": "abc"}
    assert annotator.post("/label-studio/setup", json=setup).json() == {"model_version": "owner/name"}
    for path in ("webhook", "train"):
        event = {"action": "ANNOTATION_CREATED", "project": {"id": 3}, "annotation": {}}
        assert annotator.post(f"/label-studio/{path}", json=event).status_code == 200
    assert annotator.get("/label-studio/versions").json() == {"versions": ["owner/name"]}


UNUSABLE = {
    "Labels of HyperText": (CONFIG.replace("<Text", "<HyperText"), "Missing <Labels> with a <Text>"),
    "no labels": (CONFIG.replace("Labels", "Choices"), "Missing <Labels> with a <Text>"),
    "other labels": (
        CONFIG.replace("Person", "Animal"),
        "the project's labels (Animal, Place), but Person, Ve",
    ),
    "an address": (CONFIG.replace('value="$article"', 'value="$article" valueType="url"'), "'valueType': 'url'"),
    "encoded": (CONFIG.replace('value="$article"', 'value="$article" encoding="base64"'), "'encoding': 'base64'"),
    "several fields": (CONFIG.replace("$article", "$title: $article"), "one field of the task"),
    "a nested field": (CONFIG.replace("$article", "$article.body"), "one field of the task"),
    "no XML": ("nothing", "XML"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_projects_that_cannot_be_served_are_refused_with_a_reason_that_is_logged(annotator, caplog, name):
    config, reason = UNUSABLE[name]
    answer = annotator.post("/label-studio/setup", json={"project": "3.17", "schema": config})
    assert (answer.status_code, reason in answer.json()["detail"]) == (422, True)
    [record] = caplog.records
    assert reason in record.getMessage()


@pytest.mark.parametrize("has_configuration", [True, False])
def test_without_labels_in_the_configuration_label_studio_gets_all(annotator, has_configuration):
    config = CONFIG.replace('<Labels name="ner"', '<Labels value="$labels" name="ner"')
    request = {**PREDICT, "label_config": config} if has_configuration else {"tasks": [{"data": {"text": ANNOTATED}}]}
    assert annotator.post("/label-studio/setup", json={"schema": request.get("label_config")}).status_code == 200
    result = annotator.post("/label-studio/predict", json=request).json()["results"][0]["result"]
    assert [region["value"]["labels"] for region in result] == [["Person"], ["Vehicle"]]
    names = ("ner", "body") if has_configuration else ("label", "text")
    assert {(region["from_name"], region["to_name"]) for region in result} == {names}


@pytest.mark.parametrize("label", ['value="Person"', 'value="Who" alias="Person"'])
def test_label_studio_gets_predictions_of_its_labels(annotator, label):
    config = CONFIG.replace('value="Person"', label)
    answer = annotator.post("/label-studio/predict", json={**PREDICT, "label_config": config})
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


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tasks": [{"id": 1}]}, "tasks.0.data"),
        ({"tasks": {}}, "tasks"),
        ({"label_config": "<View><Labels name='a'/><Text value='$article'/></View>"}, "label_config"),
        ({"label_config": "<View>"}, "label_config"),
    ],
)
def test_label_studio_errors(annotator, changes, field):
    answer = annotator.post("/label-studio/predict", json={**PREDICT, **changes})
    assert (answer.status_code, answer.json()["detail"].startswith(f"{field}:")) == (422, True)


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
    assert "5 tasks got no prediction; of task 103: A text has 101 characters" in line.getMessage()


def test_tasks_for_which_there_is_no_time_get_a_reason():
    """Label Studio stores nothing of an answer that comes too late."""
    may_go_on = threading.Event()

    def find_entities(texts, threshold):
        assert "c" not in texts or may_go_on.wait(WAIT)
        return [[] for _ in texts]

    client, batcher = client_of(find_entities, texts=2, seconds=1)
    with batcher:
        tasks = [{"data": {"text": text}} for text in "abcde"]
        results = client.post("/label-studio/predict", json={"tasks": tasks}).json()["results"]
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
