"""Requests of Label Studio, which uses the server as an ML backend, and the predictions in their answers.

It sends tasks and the labelling configuration of their project, and expects regions with scores. Unknown fields, which
later versions may add, are ignored.
"""

import logging
import re
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple
from xml.etree import ElementTree

from fastapi import HTTPException
from pydantic import BaseModel, Field

from ..data.writing_texts import FROM_NAME, TO_NAME, label_studio_prediction
from ..drawing.safe_text import clean
from .predictor import Outcome
from .schema import LABEL_STUDIO, MAX_ITEMS

logger = logging.getLogger(__name__)

MAX_CONFIGURATION = 100_000  # characters; real configurations have hundreds or thousands


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
        raise refusal(f"It is not XML ({error}).") from None
    texts = {text.get("name"): text for text in root.iter("Text")}
    for tag in root.iter("Labels"):
        text = texts.get(tag.get("toName", ""))
        if text is not None:
            # A text, not its address, an encoding, or a part of it.
            field = re.fullmatch(r"\$?([^$.{}\[\]]+)", text.get("value", "").strip())
            if field is None or (text.get("valueType", "text"), text.get("encoding", "none")) != ("text", "none"):
                raise refusal(f"<Text> must have one field of the task as its value, not {text.attrib}.")
            return Interface(tag.get("name", FROM_NAME), text.get("name", TO_NAME), field[1], labels_of(tag, labels))
    raise refusal("Missing <Labels> with a <Text> as `toName`.")


def labels_of(tag: ElementTree.Element, labels: Sequence[str]) -> frozenset[str] | None:
    """The labels of a `<Labels>` that the model has; None if they are in a field of each task.

    Annotations have the alias of a label, if any; of predictions, Label Studio accepts both.
    """
    if tag.get("value"):
        return None
    named = {label.get(name, "") for label in tag.iter("Label") for name in ("value", "alias")} - {""}
    if not named & {*labels}:
        given = ", ".join(sorted(named)) or "none"
        raise refusal(f"The model has none of the project's labels ({given}), but {', '.join(labels)}.")
    return frozenset(named & {*labels})


def refusal(reason: str) -> HTTPException:
    return HTTPException(422, f"label_config: {reason}")


def prediction(text: Any, outcome: Outcome, interface: Interface, model: str) -> dict[str, Any]:
    """The prediction for a task; an empty one, with the reason and a version of its own, if it was refused.

    Label Studio shows the version, can filter by it, and asks again for tasks without a prediction of `model`.
    """
    if isinstance(outcome, HTTPException):
        return {"result": [], "score": 0.0, "model_version": f"{model}: no prediction", "error": outcome.detail}
    entities = [{**entity, "type": entity["entity_group"]} for entity in outcome]
    made = label_studio_prediction(text, entities, interface.from_name, interface.to_name)
    return {**made, "model_version": model}


def log_refused(tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> None:
    """Logs one line if tasks got no prediction, with their number and the reason of the first."""
    pairs = zip(tasks, outcomes, strict=True)
    refused = [(task.id, outcome.detail) for task, outcome in pairs if isinstance(outcome, HTTPException)]
    if refused:
        number, reason = refused[0]
        problem = clean(f"{len(refused)} tasks got no prediction; of task {number}: {reason}")
        logger.warning("POST %s/predict: %s", LABEL_STUDIO, problem)
