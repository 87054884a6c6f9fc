"""Label Studio and INCEpTION, which ask the server for suggestions: their requests, the texts in these, the answers.

Label Studio sends tasks and the labeling configuration of their project, and expects regions with scores. INCEpTION
sends a document (UIMA CAS in XMI), its type system, and the layer and feature for labels, and expects the document with
suggestions. Fields without a name here, which later versions may add, are ignored.
"""

import logging
import re
from collections.abc import Sequence
from typing import Annotated, Any
from xml.etree import ElementTree

from fastapi import APIRouter, HTTPException, Request
from pydantic import AliasChoices, BaseModel, Field
from starlette.responses import Response

from ..data.schema import positions
from ..data.writing import FROM_NAME, TO_NAME, label_studio_prediction
from ..drawing.safe_text import clean
from ..model.kinds_triaffine import TextEntity
from .answering import INCEPTION, LABEL_STUDIO, MAX_ITEMS, Outcome, Predictor, json_answer
from .batching import Item

logger = logging.getLogger(__name__)

MAX_CONFIGURATION = 100_000  # characters; real configurations have hundreds or thousands
ANSWER_SECONDS = 90  # of Label Studio's tasks, for which it waits for 100; later ones get no prediction

PREDICTED = "inception_internal_predicted"
SCORE_SUFFIX = "_score"
"""The feature that marks suggestions, and the suffix of the one for scores; INCEpTION adds both to the layer."""

XMI, CAS = "http://www.omg.org/XMI", "http:///uima/cas.ecore"
ID = f"{{{XMI}}}id"
ElementTree.register_namespace("xmi", XMI)  # UIMA compares the prefix, too
ElementTree.register_namespace("cas", CAS)


def parse_xml(field: str, content: str) -> ElementTree.Element:
    """Parses the XML in a field of a request; expat itself limits how far declared entities expand."""
    try:
        return ElementTree.fromstring(content)
    except (ElementTree.ParseError, UnicodeError) as error:
        raise refusal(field, f"It is not XML ({error}).") from None


def refusal(field: str, reason: str) -> HTTPException:
    return HTTPException(422, f"{field}: {reason}")


# ---- Label Studio ----


class Task(BaseModel):
    """A task of Label Studio."""

    id: int | str | None = Field(None, description="For the log.")
    data: dict[str, Any] = Field(description="Fields of the task, the text among them.")


class LabelStudioRequest(BaseModel):
    """A request of Label Studio, to connect a project or for predictions for its tasks."""

    label_config: str = Field(
        validation_alias=AliasChoices("label_config", "schema"),  # the second when it connects
        max_length=MAX_CONFIGURATION,
        description="Labeling configuration of the project, XML, with <Labels> for a <Text>.",
    )
    tasks: Annotated[list[Task], Field(fail_fast=True, max_length=MAX_ITEMS)] = []


class Project:
    """The tags of a project: the first `<Labels>` whose `toName` is a `<Text>`, and the labels of the model in it.

    `labels` is None if the labels are in a field of each task. A project that the model cannot serve is refused.
    """

    def __init__(self, label_config: str, labels: Sequence[str]):
        root = parse_xml("label_config", label_config)
        texts = {text.get("name"): text for text in root.iter("Text")}
        tag = next((tag for tag in root.iter("Labels") if tag.get("toName", "") in texts), None)
        if tag is None:
            raise refusal("label_config", "Missing <Labels> with a <Text> as `toName`.")
        text = texts[tag.get("toName", "")]
        # The whole text: no address of it, no encoded one, and no part of it.
        field = re.fullmatch(r"\$?([^$.{}\[\]]+)", text.get("value", "").strip())
        if field is None or (text.get("valueType", "text"), text.get("encoding", "none")) != ("text", "none"):
            raise refusal("label_config", f"<Text> must have one field of the task as its value, not {text.attrib}.")
        self.from_name, self.to_name, self.text_field = tag.get("name", FROM_NAME), text.get("name", TO_NAME), field[1]
        # Annotations have the alias of a label, if any; of predictions, Label Studio accepts both.
        named = {label.get(name, "") for label in tag.iter("Label") for name in ("value", "alias")} - {""}
        self.labels = None if tag.get("value") else named & {*labels}
        if self.labels == set():
            given = ", ".join(sorted(named)) or "none"
            problem = f"The model has none of the project's labels ({given}), but {', '.join(labels)}."
            raise refusal("label_config", problem)

    def prediction(self, text: Any, outcome: Outcome, model: str) -> dict[str, Any]:
        """The prediction for a task; an empty one, with the reason and a version of its own, if it was refused.

        Label Studio shows the version, can filter by it, and asks again for tasks without a prediction of `model`.
        """
        if isinstance(outcome, HTTPException):
            return {"result": [], "score": 0.0, "model_version": f"{model}: no prediction", "error": outcome.detail}
        entities = [{**entity, "type": entity["entity_group"]} for entity in outcome]
        made = label_studio_prediction(text, entities, self.from_name, self.to_name)
        return {**made, "model_version": model}


def label_studio_routes(find: Predictor, model: str, labels: Sequence[str]) -> APIRouter:
    """The routes of an ML backend, https://labelstud.io/guide/ml_create, which shows `model` as the model version."""
    routes = APIRouter(prefix=LABEL_STUDIO, tags=["Label Studio"])

    @routes.get("/health", summary="Health of the backend")
    async def health() -> dict[str, str]:
        return {"status": "UP", "model_version": model}

    @routes.get("/versions", summary="Versions of the model")
    async def versions() -> dict[str, list[str]]:
        return {"versions": [model]}

    @routes.post("/setup", summary="Connect a project", response_model=dict[str, str])
    async def setup(body: LabelStudioRequest) -> Response:
        Project(body.label_config, labels)
        return json_answer({"model_version": model})

    @routes.post("/webhook", summary="Ignores changes of annotations")
    @routes.post("/train", summary="Ignores a request to train")
    async def ignore() -> dict[str, str]:
        return {}

    @routes.post("/predict", summary="Predictions for tasks")
    async def predict(body: LabelStudioRequest, request: Request) -> Response:
        project = Project(body.label_config, labels)
        texts = [task.data.get(project.text_field) for task in body.tasks]
        no_text = HTTPException(422, f"The task has no text in data.{project.text_field}.")
        items = [Item(text, labels=project.labels) if isinstance(text, str) else no_text for text in texts]
        outcomes = await find.each(items, request, ANSWER_SECONDS)
        results = [project.prediction(text, outcome, model) for text, outcome in zip(texts, outcomes, strict=True)]
        pairs = zip(body.tasks, results, strict=True)
        if refused := [f"{task.id}: {result['error']}" for task, result in pairs if "error" in result]:
            problem = f"tasks without a prediction: {len(refused)}, the first of them {refused[0]}"
            logger.warning("POST %s/predict: %s", LABEL_STUDIO, clean(problem))
        return json_answer({"results": results, "model_version": model})

    return routes


# ---- INCEpTION ----


class Metadata(BaseModel):
    """The layer for predictions, and the feature of the label, which become names in XML."""

    layer: str = Field(pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")
    feature: str = Field(pattern=r"^[^\W\d]\w*$")


class Document(BaseModel):
    """A document of INCEpTION: a UIMA CAS with a text."""

    xmi: str


class RecommenderRequest(BaseModel):
    """A request of INCEpTION for predictions."""

    metadata: Metadata
    document: Document
    type_system: str = Field(alias="typeSystem", description="Type system of the CAS, XML.")


class Cas:
    """The document of a request, with its text; one whose layer lacks the features for suggestions is refused."""

    def __init__(self, request: RecommenderRequest):
        self.layer, self.feature = request.metadata.layer, request.metadata.feature
        self.root = parse_xml("document", request.document.xmi)
        try:
            sofa = next(sofa for sofa in self.root.iterfind(f"{{{CAS}}}Sofa") if sofa.get("sofaString"))
            self.text, self.sofa = sofa.attrib["sofaString"], sofa.attrib[ID]
            self.view = next(view for view in self.root.iterfind(f"{{{CAS}}}View") if view.get("sofa") == self.sofa)
            self.last_id = max(int(element.get(ID, 0)) for element in self.root)
        except (ValueError, KeyError, StopIteration):
            raise refusal("document", "It is no CAS in XMI with a text, its view and numbers as ids.") from None
        types = parse_xml("typeSystem", request.type_system)
        path = f".//{{*}}typeDescription[{{*}}name='{self.layer}']/{{*}}features/{{*}}featureDescription"
        self.features = {
            feature.findtext("{*}name", ""): feature.findtext("{*}rangeTypeName", "")
            for feature in types.iterfind(path)
        }
        needed = {self.feature: "uima.cas.String", PREDICTED: "uima.cas.Boolean"}
        if not needed.items() <= self.features.items():
            raise refusal("metadata", f"The layer {self.layer} must have features {needed}; it has {self.features}.")

    def with_suggestions(self, entities: Sequence[TextEntity]) -> str:
        """The document in XMI with the entities as suggestions."""
        package, _, name = self.layer.rpartition(".")
        tag = f"{{http:///{package.replace('.', '/') or 'uima/noNamespace'}.ecore}}{name}"
        units = positions(self.text, "utf16")  # as UIMA counts
        place, members = [*self.root].index(self.view), [self.view.get("members", "")]
        for number, entity in enumerate(entities, self.last_id + 1):
            begin, end = units[entity["start"]], units[entity["end"]]
            values = {ID: str(number), "sofa": self.sofa, "begin": str(begin), "end": str(end)}
            values |= {self.feature: entity["entity_group"], PREDICTED: "true"}
            if self.feature + SCORE_SUFFIX in self.features:
                values[self.feature + SCORE_SUFFIX] = str(entity["score"])
            self.root.insert(place, ElementTree.Element(tag, values))
            members.append(str(number))
        self.view.set("members", " ".join(members).strip())
        return ElementTree.tostring(self.root, "unicode")


def inception_routes(find: Predictor) -> APIRouter:
    """The routes of an external recommender, as INCEpTION's developer guide describes it."""
    routes = APIRouter(prefix=INCEPTION, tags=["INCEpTION"])

    @routes.post("/train", status_code=204, summary="Ignores documents to train on")
    async def ignore() -> None:
        return

    @routes.post("/predict", summary="A document with suggestions")
    async def predict(body: RecommenderRequest, request: Request) -> Response:
        document = Cas(body)
        (entities,) = await find([Item(document.text)], request)
        return json_answer({"document": document.with_suggestions(entities)})

    return routes
