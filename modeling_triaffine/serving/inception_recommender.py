"""Routes for INCEpTION: an external recommender.

Protocol: the section "External recommender" of INCEpTION's developer guide. It sends a document, a UIMA CAS with its
type system, and the layer and feature for labels, and expects the document with suggestions. Requests to train are
accepted and ignored, as are unknown fields, which later versions may add.
"""

import io
from collections import Counter
from typing import Any
from xml.etree import ElementTree

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from .batching import Item
from .predictor import Predictor
from .schema import json_answer

PREDICTED = "inception_internal_predicted"
SCORE_SUFFIX = "_score"
"""The feature that marks suggestions, and the suffix of the one for scores; INCEpTION adds both to the layer."""

# cassis takes time for the square of the features that a type has and inherits; real type systems stay far below.
MAX_TYPES, MAX_DEPTH, MAX_SQUARES = 2000, 50, 100_000


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


def inception_routes(find: Predictor) -> APIRouter:
    """The routes of an external recommender."""
    routes = APIRouter(tags=["INCEpTION"])

    @routes.post("/train", status_code=204, summary="Ignores documents to train on")
    async def ignore() -> None:
        return

    @routes.post("/predict", summary="A document with suggestions")
    async def predict(body: RecommenderRequest, request: Request) -> Response:
        feature = body.metadata.feature
        cas, annotation = await to_thread.run_sync(read_request, body, abandon_on_cancel=True)
        (entities,) = await find([Item(cas.sofa_string)], request)
        has_score = annotation.get_feature(feature + SCORE_SUFFIX) is not None
        for entity in entities:
            values = {in_cassis(feature): entity["entity_group"], PREDICTED: True}
            if has_score:
                values[feature + SCORE_SUFFIX] = entity["score"]
            cas.add(annotation(begin=entity["start"], end=entity["end"], **values))
        return json_answer({"document": await to_thread.run_sync(cas.to_xmi, abandon_on_cancel=True)})

    return routes


def read_request(body: RecommenderRequest) -> tuple[Any, Any]:
    """The CAS of a request, with a text, and the type of its layer, with the features for suggestions.

    Raises:
        HTTPException: It cannot be read, or lacks one of these (422), or the extra `cas` is not installed (501).
    """
    try:
        import cassis
    except ImportError:
        raise HTTPException(501, "The server lacks the extra `cas`: pip install 'modeling_triaffine[cas]'.") from None
    xmi, type_system = body.document.xmi, body.type_system
    try:
        check_size(type_system)
        types = cassis.load_typesystem(io.BytesIO(type_system.encode("utf-8", "replace")))
        cas = cassis.load_cas_from_xmi(io.BytesIO(xmi.encode("utf-8", "replace")), typesystem=types)
        cas = next((cas.get_view(sofa.sofaID) for sofa in cas.sofas if sofa.sofaString), cas)
        layer = types.get_type(body.metadata.layer)
    except Exception as error:  # of XML, and whichever cassis raises
        raise HTTPException(422, f"document: It cannot be read ({type(error).__name__}: {error}).") from None
    if not cas.sofa_string:
        raise HTTPException(422, "document: The CAS has no text.")
    features = {feature.name: feature.rangeType.name for feature in layer.all_features}
    needed = {in_cassis(body.metadata.feature): "uima.cas.String", PREDICTED: "uima.cas.Boolean"}
    if not needed.items() <= features.items():
        raise HTTPException(422, f"metadata: The layer must have features {needed}; it has {features}.")
    return cas, layer


def in_cassis(feature: str) -> str:
    """The name by which cassis has a feature."""
    return f"{feature}_" if feature in ("self", "type") else feature


def check_size(type_system: str) -> None:
    """Raises ValueError if a type system would occupy a thread for more than about a second."""
    own: Counter[str] = Counter()
    parents: dict[str, str] = {}
    for described in ElementTree.fromstring(type_system).iterfind(".//{*}typeDescription"):
        name = described.findtext("{*}name", "")
        own[name] += len(described.findall("{*}features/{*}featureDescription"))
        parents[name] = described.findtext("{*}supertypeName", "")
    squares = 0
    for name in parents if len(parents) <= MAX_TYPES else ():
        inherited, depth = 0, 0
        while name in parents and depth <= MAX_DEPTH:
            inherited, name, depth = inherited + own[name], parents[name], depth + 1
        squares += MAX_SQUARES if depth > MAX_DEPTH else inherited**2
    if squares >= MAX_SQUARES or len(parents) > MAX_TYPES:
        raise ValueError("the type system has too many types and features")
