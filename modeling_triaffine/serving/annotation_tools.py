"""Routes for annotation tools: Label Studio's ML backend and INCEpTION's external recommender.

Protocols: https://labelstud.io/guide/ml_create and the section "External recommender" of INCEpTION's developer guide.
Both tools send texts and the names of the tags or layer for labels, and expect labels with scores. Requests to train
are accepted and ignored, as are unknown fields, which later versions may add.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field
from starlette.responses import Response

from ..data.formats.cas import STRING, layer_type, parse_xmi
from ..data.reading import parse_xml
from ..data.schema import CorpusError, RecordChecker
from ..data.writing_texts import FROM_NAME, TO_NAME, label_studio_prediction
from .batching import Answers, Item
from .schema import json_answer

Find = Callable[[Sequence[Item], Request], Awaitable[Answers]]
"""Items of a request → entities of each."""

PREDICTED = "inception_internal_predicted"
SCORE_SUFFIX = "_score"
"""The feature that marks suggestions, and the suffix of the one for scores; INCEpTION adds both to the layer."""


# ---- Label Studio ----


class Task(BaseModel):
    """A task of Label Studio; other fields are ignored."""

    data: dict[str, Any] = Field(description="Fields of the task, the text among them.")


class TasksRequest(BaseModel):
    """A request of Label Studio for predictions; other fields are ignored."""

    tasks: list[Task]
    label_config: str | None = Field(None, description="Labelling configuration of the project, XML.")


class Interface(NamedTuple):
    """The tags of a project: their names, the field with the text, and the labels (None: any)."""

    from_name: str = FROM_NAME
    to_name: str = TO_NAME
    text_field: str = "text"
    labels: frozenset[str] | None = None


def label_studio_routes(find: Find, model: str, labels: Sequence[str]) -> APIRouter:
    """The routes of an ML backend; Label Studio shows `model` as the model version."""
    routes = APIRouter(tags=["Label Studio"])

    @routes.get("/health", summary="Health of the backend")
    async def health() -> dict[str, str]:
        return {"status": "UP", "model_version": model}

    @routes.post("/setup", summary="Connect a project")
    async def setup() -> dict[str, str]:
        return {"model_version": model}

    @routes.post("/webhook", summary="Ignores changes of annotations")
    @routes.post("/train", summary="Ignores a request to train")
    async def ignore() -> dict[str, str]:
        return {}

    @routes.post("/predict", summary="Predictions for tasks")
    async def predict(body: TasksRequest, request: Request) -> Response:
        interface = read_interface(body.label_config) if body.label_config else Interface()
        known = None if interface.labels is None else interface.labels & {*labels}
        texts = [task.data.get(interface.text_field) for task in body.tasks]
        if not all(isinstance(text, str) for text in texts):
            raise HTTPException(422, f"tasks: A task has no text in data.{interface.text_field}.")
        found = await find([Item(str(text), labels=known) for text in texts], request)
        results = [
            label_studio_prediction(
                str(text),
                [{**one, "type": one["entity_group"]} for one in entities],
                interface.from_name,
                interface.to_name,
            )
            for text, entities in zip(texts, found, strict=True)
        ]
        return json_answer({"results": [{**one, "model_version": model} for one in results], "model_version": model})

    return routes


def read_interface(label_config: str) -> Interface:
    """The first `<Labels>` of a labelling configuration whose `toName` is a `<Text>`.

    Raises:
        HTTPException: It is not XML, or has no such tags.
    """
    check = RecordChecker("label_config")
    try:
        root = parse_xml(label_config.encode("utf-8", "replace"), check, "")
    except CorpusError as error:
        raise HTTPException(422, str(error)) from None
    texts = {tag.get("name", ""): tag.get("value", "") for tag in root.iter("Text")}
    for tag in root.iter("Labels"):
        if (to_name := tag.get("toName")) and to_name in texts:
            # Annotations have the alias of a label, if any; of predictions, Label Studio accepts both.
            labels = frozenset(label.get(name, "") for label in tag.iter("Label") for name in ("value", "alias"))
            text_field = texts[to_name].lstrip("$")
            return Interface(tag.get("name", FROM_NAME), to_name, text_field, labels)
    raise HTTPException(422, "label_config: Missing <Labels> with a <Text> as `toName`; other tags are not supported.")


# ---- INCEpTION ----


class Metadata(BaseModel):
    """The layer and feature for predictions; other fields are ignored."""

    layer: str = Field(description="Type of the annotations.")
    feature: str = Field(description="Feature of the label.")


class CasDocument(BaseModel):
    """A document of INCEpTION; other fields are ignored."""

    xmi: str = Field(description="UIMA CAS as XMI.")


class RecommenderRequest(BaseModel):
    """A request of INCEpTION for predictions; other fields are ignored."""

    metadata: Metadata
    document: CasDocument
    type_system: str = Field(alias="typeSystem", description="Type system of the CAS, XML.")


def inception_routes(find: Find) -> APIRouter:
    """The routes of an external recommender."""
    routes = APIRouter(tags=["INCEpTION"])

    @routes.post("/train", status_code=204, summary="Ignores documents to train on")
    async def ignore() -> None:
        return

    @routes.post("/predict", summary="A document with suggestions")
    async def predict(body: RecommenderRequest, request: Request) -> Response:
        layer, feature = body.metadata.layer, body.metadata.feature
        cas = await run_in_threadpool(read_request, body)
        (entities,) = await find([Item(cas.sofa_string)], request)
        annotation = cas.typesystem.get_type(layer)
        has_score = annotation.get_feature(feature + SCORE_SUFFIX) is not None
        for entity in entities:
            values = {feature: entity["entity_group"], PREDICTED: True}
            if has_score:
                values[feature + SCORE_SUFFIX] = entity["score"]
            cas.add(annotation(begin=entity["start"], end=entity["end"], **values))
        return json_answer({"document": await run_in_threadpool(cas.to_xmi)})

    return routes


def read_request(body: RecommenderRequest) -> Any:
    """The CAS of a request, with a text and the layer and features for suggestions.

    Raises:
        HTTPException: It cannot be parsed or lacks one of these; the message names those that exist.
    """
    check = RecordChecker("request")
    metadata = body.metadata
    try:
        xmi, type_system = (part.encode("utf-8", "replace") for part in (body.document.xmi, body.type_system))
        cas = parse_xmi(xmi, type_system, "document", check)
        layer = layer_type(cas, metadata.layer, "document", check)
    except CorpusError as error:
        raise HTTPException(422, str(error)) from None
    except ImportError as error:  # of the extra `cas`
        raise HTTPException(501, str(error)) from None
    types = {feature.name: feature.rangeType.name for feature in layer.all_features}
    required = ((metadata.feature, STRING), (PREDICTED, "uima.cas.Boolean"), ("begin", "uima.cas.Integer"))
    for name, kind in required:
        if types.get(name) != kind:
            raise HTTPException(
                422, f"metadata: The layer has no feature {name!r} of {kind}; its features are {types}."
            )
    if not cas.sofa_string:
        raise HTTPException(422, "document: The CAS has no text.")
    return cas
