"""The Hub's form of a request, at `POST /`: what `huggingface_hub.InferenceClient.token_classification` sends.

Protocol: https://huggingface.co/docs/inference-providers/tasks/token-classification
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Discriminator, Field, Tag
from starlette.responses import Response

from .batching import Item
from .finding import Find
from .schema import ONE, PROBLEMS, SEVERAL, Entity, HubProblem, Labels, OneError, Options, check_labels, json_answer


class HubParameters(Options):
    """The Hub's parameters, and those of `/predict`."""

    aggregation_strategy: Literal["simple", "first", "average", "max"] | None = Field(
        None,
        description="No effect: these strategies differ in how they join sub-words, and here entities are whole spans "
        'of words. "none", which asks for sub-words, is an error.',
    )
    ignore_labels: Labels | None = Field(None, description="Labels of the entities to leave out.")
    stride: int | None = Field(None, ge=0, description="No effect: long texts are processed sentence by sentence.")


class HubRequest(BaseModel):
    """A request in the Hub's form; other fields are ignored."""

    inputs: Annotated[
        Annotated[str, Tag(ONE)] | Annotated[list[str], OneError(), Tag(SEVERAL)],
        Discriminator(lambda value: SEVERAL if isinstance(value, list) else ONE),
    ] = Field(description="A raw text, or several independent ones.")
    parameters: HubParameters | None = None


def hub_routes(find: Find, labels: Sequence[str]) -> APIRouter:
    """The route for requests in the Hub's form to a model with these labels."""
    problems: dict[int | str, dict[str, Any]] = {
        status: {"model": HubProblem, "description": problem} for status, problem in PROBLEMS.items()
    }
    routes = APIRouter(tags=["Hugging Face Hub"], responses=problems)

    @routes.post("/", summary="Entities of one text or several", response_model=list[Entity] | list[list[Entity]])
    async def predict(body: HubRequest, request: Request) -> Response:
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        options = body.parameters or HubParameters.model_validate({})
        check_labels(options, labels)
        wanted = options.labels
        if options.ignore_labels:
            kept = labels if wanted is None else wanted
            wanted = [label for label in kept if label not in options.ignore_labels]
        found = await find([Item(text, options.threshold, options.overlap, wanted) for text in texts], request)
        return json_answer(found[0] if isinstance(body.inputs, str) else found)

    return routes
