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
from xml.etree.ElementTree import Element

from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel, Field
from starlette.responses import RedirectResponse, Response

from ..data.reading import parse_xml
from ..data.record_checker import RecordChecker
from ..data.schema import CorpusError
from ..data.writing_texts import FROM_NAME, TO_NAME, label_studio_prediction
from .batching import Item
from .finding import FindEach, Outcome
from .schema import LABEL_STUDIO, OneError, json_answer

logger = logging.getLogger(__name__)

MAX_REASON_CHARACTERS = 500
REASONS = 3
"""Reasons in a line of the log."""


class Task(BaseModel):
    """A task of Label Studio; other fields are ignored."""

    id: int | str | None = Field(None, description="For the log.")
    data: dict[str, Any] = Field(description="Fields of the task, the text among them.")


LabelConfig = Annotated[
    str | None, Field(description="Labelling configuration of the project, XML, with <Labels> for a <Text>.")
]


class TasksRequest(BaseModel):
    """A request of Label Studio for predictions; other fields are ignored."""

    tasks: Annotated[list[Task], OneError()]
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


def label_studio_routes(find_each: FindEach, model: str, labels: Sequence[str]) -> APIRouter:
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
        except (HTTPException, CorpusError) as error:
            # Of an error, Label Studio shows status and address alone, so the address has the reason.
            reason = re.sub(r"[<>`\"]", "", getattr(error, "detail", str(error)))
            return RedirectResponse(f"refused?reason={quote_plus(reason[:MAX_REASON_CHARACTERS], safe=',;:')}", 303)
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
        found = iter(await find_each(items, request))
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
        logger.warning("%s: %d of %d tasks got no prediction. %s", where, number, len(tasks), reasons)


def interface_of(label_config: str | None, labels: Sequence[str]) -> Interface:
    """The interface of a project, with the labels that it shares with the model.

    Raises:
        HTTPException, CorpusError: The model cannot predict anything for such a project.
    """
    if label_config is None:
        return Interface()
    interface = read_interface(label_config)
    if interface.labels is None:
        return interface
    shared = interface.labels & {*labels}
    if not shared:
        given = ", ".join(sorted(interface.labels - {""})) or "none"
        raise HTTPException(
            422, f"label_config: The model has none of the project's labels ({given}), but {', '.join(labels)}."
        )
    return interface._replace(labels=shared)


def read_interface(label_config: str) -> Interface:
    """The first `<Labels>` of a labelling configuration whose `toName` is a `<Text>`.

    Raises:
        CorpusError: It is not XML.
        HTTPException: It has no such tags, or its text is not in a field of the task.
    """
    root = parse_xml(label_config.encode("utf-8", "replace"), RecordChecker("label_config"), "")
    targets = {tag.get("name"): tag for tag in root.iter() if "toName" not in tag.attrib}
    others = []
    for tag in root.iter():
        to_name = tag.get("toName", "")
        target = targets.get(to_name)
        if tag.tag == "Labels" and target is not None and target.tag == "Text":
            return Interface(tag.get("name", FROM_NAME), to_name, text_field_of(target), labels_of(tag))
        if target is not None:
            others.append(f"{tag.tag} of {target.tag}")
    raise HTTPException(
        422,
        f"label_config: Missing <Labels> with a <Text> as `toName`; there is {' and '.join(others) or 'none other'}, "
        "which is not supported.",
    )


def labels_of(tag: Element) -> frozenset[str] | None:
    """The labels of a `<Labels>`; None if they are in a field of each task.

    Annotations have the alias of a label, if any; of predictions, Label Studio accepts both.
    """
    if tag.get("value"):
        return None
    return frozenset(label.get(name, "") for label in tag.iter("Label") for name in ("value", "alias"))


def text_field_of(tag: Element) -> str:
    """The field of a task with the text of a `<Text>`.

    Raises:
        HTTPException: It has the address or an encoding of the text instead, or is composed of several fields.
    """
    field = re.fullmatch(r"\$?([^$.{}\[\]]+)", tag.get("value", "").strip())
    if field is None or (tag.get("valueType", "text"), tag.get("encoding", "none")) != ("text", "none"):
        given = " ".join(f"{name}={value}" for name, value in tag.attrib.items() if name != "name")
        raise HTTPException(
            422,
            f"label_config: <Text> has {given or 'no value'}, but its value must be one field of the task, as $text, "
            "with the text itself.",
        )
    return field[1]
