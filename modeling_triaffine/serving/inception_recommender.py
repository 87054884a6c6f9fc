"""Routes for INCEpTION: an external recommender.

Protocol: the section "External recommender" of INCEpTION's developer guide. It sends a document, a UIMA CAS with its
type system, and the layer and feature for labels, and expects the document with suggestions. Requests to train are
accepted and ignored, as are unknown fields, which later versions may add.
"""

from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field
from starlette.responses import Response

from ..data.formats.cas import STRING, in_cassis, layer_type, parse_xmi
from ..data.record_checker import RecordChecker
from .batching import Item
from .finding import Find
from .schema import Problem, json_answer

PREDICTED = "inception_internal_predicted"
SCORE_SUFFIX = "_score"
"""The feature that marks suggestions, and the suffix of the one for scores; INCEpTION adds both to the layer."""


class Metadata(BaseModel):
    """The layer and feature for predictions; other fields are ignored."""

    layer: str = Field(min_length=1, description="Type of the annotations.")
    feature: str = Field(min_length=1, description="Feature of the label.")


class CasDocument(BaseModel):
    """A document of INCEpTION; other fields are ignored."""

    xmi: str = Field(description="UIMA CAS as XMI, with a text.")


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

    lacking = {"model": Problem, "description": "The extra `cas` is not installed."}

    @routes.post("/predict", summary="A document with suggestions", responses={501: lacking})
    async def predict(body: RecommenderRequest, request: Request) -> Response:
        layer, feature = body.metadata.layer, body.metadata.feature
        cas = await run_in_threadpool(read_request, body)
        (entities,) = await find([Item(cas.sofa_string)], request)
        annotation = cas.typesystem.get_type(layer)
        has_score = annotation.get_feature(feature + SCORE_SUFFIX) is not None
        for entity in entities:
            values = {in_cassis(feature): entity["entity_group"], PREDICTED: True}
            if has_score:
                values[feature + SCORE_SUFFIX] = entity["score"]
            cas.add(annotation(begin=entity["start"], end=entity["end"], **values))
        return json_answer({"document": await run_in_threadpool(cas.to_xmi)})

    return routes


def read_request(body: RecommenderRequest) -> Any:
    """The CAS of a request, with a text and the layer and features for suggestions.

    Raises:
        CorpusError: It cannot be parsed, or has no such layer.
        HTTPException: It has no text, or the layer lacks a feature.
        ImportError: The extra `cas` is not installed.
    """
    check = RecordChecker("request")
    metadata = body.metadata
    xmi, type_system = (part.encode("utf-8", "replace") for part in (body.document.xmi, body.type_system))
    cas = parse_xmi(xmi, type_system, "document", check)
    layer = layer_type(cas, metadata.layer, "document", check)
    types = {feature.name: feature.rangeType.name for feature in layer.all_features}
    required = ((in_cassis(metadata.feature), STRING), (PREDICTED, "uima.cas.Boolean"), ("begin", "uima.cas.Integer"))
    lacking = [f"{name!r} of {kind}" for name, kind in required if types.get(name) != kind]
    if lacking:
        raise HTTPException(422, f"metadata: The layer has no feature {', '.join(lacking)}; its features are {types}.")
    if not cas.sofa_string:
        raise HTTPException(422, "document: The CAS has no text.")
    return cas
