"""Routes for Label Studio: an ML backend.

Protocol: https://labelstud.io/guide/ml_create. It sends tasks and the labelling configuration of their project, and
expects regions with scores. Requests to train are accepted and ignored, as are unknown fields, which later versions may
add.
"""

import logging
import re
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote_plus
from xml.etree import ElementTree

from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel, Field
from starlette.responses import RedirectResponse, Response

from ..data.writing_texts import FROM_NAME, TO_NAME, label_studio_prediction
from ..drawing.safe_text import clean
from .batching import Item
from .predictor import Outcome, Predictor
from .schema import LABEL_STUDIO, MAX_ITEMS, json_answer

logger = logging.getLogger(__name__)

MAX_REASON_CHARACTERS = 500
MAX_CONFIGURATION = 100_000  # characters; real configurations have hundreds or thousands
REASONS = 3  # in a line of the log


class Task(BaseModel):
    """A task of Label Studio; other fields are ignored."""

    id: int | str | None = Field(None, description="For the log.")
    data: dict[str, Any] = Field(description="Fields of the task, the text among them.")


LabelConfig = Annotated[
    str | None,
    Field(
        max_length=MAX_CONFIGURATION,
        description="Labelling configuration of the project, XML, with <Labels> for a <Text>.",
    ),
]


class TasksRequest(BaseModel):
    """A request of Label Studio for predictions; other fields are ignored."""

    tasks: Annotated[list[Task], Field(fail_fast=True, max_length=MAX_ITEMS)]
    label_config: LabelConfig = None


class SetupRequest(BaseModel):
    """A request of Label Studio to connect a project; other fields are ignored."""

    label_config: LabelConfig = Field(None, alias="schema")


class Interface(NamedTuple):
    """The tags of a project: their names, the field with the text, and the labels (None: any)."""

    from_name: str = FROM_NAME
    to_name: str = TO_NAME
    text_field: str = "text"
    labels: frozenset[str] | None = None


def label_studio_routes(find: Predictor, model: str, labels: Sequence[str]) -> APIRouter:
    """The routes of an ML backend; Label Studio shows `model` as the model version."""
    routes = APIRouter(tags=["Label Studio"])

    @routes.get("/health", summary="Health of the backend")
    async def health() -> dict[str, str]:
        return {"status": "UP", "model_version": model}

    @routes.get("/versions", summary="Versions of the model")
    async def versions() -> dict[str, list[str]]:
        return {"versions": [model]}

    @routes.post("/setup", summary="Connect a project", response_model=dict[str, str])
    async def setup(body: SetupRequest | None = None) -> Response:
        try:
            interface_of(body.label_config if body else None, labels)
        except HTTPException as error:
            # Of an error, Label Studio shows status and address alone, so the address has the reason.
            reason = re.sub(r"[<>`\"]", "", error.detail)[:MAX_REASON_CHARACTERS]
            return RedirectResponse(f"refused?reason={quote_plus(reason, safe=',;:')}", 303)
        return json_answer({"model_version": model})

    @routes.get("/refused", include_in_schema=False)
    async def refused(reason: str = "") -> None:
        raise HTTPException(422, reason[:MAX_REASON_CHARACTERS])

    @routes.post("/webhook", summary="Ignores changes of annotations")
    @routes.post("/train", summary="Ignores a request to train")
    async def ignore() -> dict[str, str]:
        return {}

    @routes.post("/predict", summary="Predictions for tasks")
    async def predict(body: TasksRequest, request: Request) -> Response:
        interface = interface_of(body.label_config, labels)
        texts = [task.data.get(interface.text_field) for task in body.tasks]
        items = [Item(text, labels=interface.labels) for text in texts if isinstance(text, str)]
        found = iter(await find.each(items, request))
        no_text = f"The task has no text in data.{interface.text_field}."
        outcomes = [next(found) if isinstance(text, str) else no_text for text in texts]
        log_refused(body.tasks, outcomes)
        results = [prediction(text, outcome, interface, model) for text, outcome in zip(texts, outcomes, strict=True)]
        return json_answer({"results": results, "model_version": model})

    return routes


def prediction(text: Any, outcome: Outcome, interface: Interface, model: str) -> dict[str, Any]:
    """The prediction for a task; an empty one, with the reason and a version of its own, if it was refused.

    Label Studio shows the version, can filter by it, and asks again for tasks without a prediction of `model`.
    """
    if isinstance(outcome, str):
        return {"result": [], "score": 0.0, "model_version": f"{model}: no prediction", "error": outcome}
    entities = [{**one, "type": one["entity_group"]} for one in outcome]
    made = label_studio_prediction(text, entities, interface.from_name, interface.to_name)
    return {**made, "model_version": model}


def log_refused(tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> None:
    """Logs one line if tasks got no prediction, with the first reasons and a task of each."""
    refused: dict[str, list[Any]] = {}
    for task, outcome in zip(tasks, outcomes, strict=True):
        if isinstance(outcome, str):
            refused.setdefault(outcome, []).append(task.id)
    if refused:
        number = sum(map(len, refused.values()))
        reasons = " ".join(f"{len(ids)} (task {ids[0]}): {reason}" for reason, ids in [*refused.items()][:REASONS])
        where = f"POST {LABEL_STUDIO}/predict"
        logger.warning("%s: %d of %d tasks got no prediction. %s", where, number, len(tasks), clean(reasons))


def interface_of(label_config: str | None, labels: Sequence[str]) -> Interface:
    """The interface of a project: the first `<Labels>` whose `toName` is a `<Text>`, with the labels of the model.

    Raises:
        HTTPException: The model cannot predict anything for such a project.
    """
    if label_config is None:
        return Interface()
    try:
        root = ElementTree.fromstring(label_config)  # expat limits the growth of declared entities
    except ElementTree.ParseError as error:
        raise HTTPException(422, f"label_config: It is not XML ({error}).") from None
    targets = {tag.get("name"): tag for tag in root.iter() if "toName" not in tag.attrib}
    tags = [(tag, targets[tag.get("toName")]) for tag in root.iter() if tag.get("toName", "") in targets]
    for tag, target in tags:
        if (tag.tag, target.tag) == ("Labels", "Text"):
            shared = labels_of(tag, labels)
            return Interface(tag.get("name", FROM_NAME), target.get("name", TO_NAME), text_field_of(target), shared)
    others = " and ".join(f"{tag.tag} of {target.tag}" for tag, target in tags) or "none other"
    raise HTTPException(422, f"label_config: Missing <Labels> with a <Text> as `toName`; there is {others}.")


def labels_of(tag: ElementTree.Element, labels: Sequence[str]) -> frozenset[str] | None:
    """The labels of a `<Labels>` that the model has; None if they are in a field of each task.

    Annotations have the alias of a label, if any; of predictions, Label Studio accepts both.
    """
    if tag.get("value"):
        return None
    named = {label.get(name, "") for label in tag.iter("Label") for name in ("value", "alias")}
    if not named & {*labels}:
        given = ", ".join(sorted(named - {""})) or "none"
        problem = f"The model has none of the project's labels ({given}), but {', '.join(labels)}."
        raise HTTPException(422, f"label_config: {problem}")
    return frozenset(named & {*labels})


def text_field_of(tag: ElementTree.Element) -> str:
    """The field of a task with the text of a `<Text>`, not its address, an encoding, or a part of it."""
    field = re.fullmatch(r"\$?([^$.{}\[\]]+)", tag.get("value", "").strip())
    if field is None or (tag.get("valueType", "text"), tag.get("encoding", "none")) != ("text", "none"):
        given = " ".join(f"{name}={value}" for name, value in tag.attrib.items() if name != "name")
        raise HTTPException(422, f"label_config: <Text> must have one field of the task as its value, not {given}.")
    return field[1]
