"""Requests and responses as pydantic models: the schema at `/openapi.json`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="null: the likeliest label of each span; a probability t: every span whose best entity label has "
        "at least t, even where no entity is likelier.",
    )
    overlap: Literal["all", "nested", "flat"] = Field(
        "all", description="Which overlapping entities are kept: all, nested (none cross) or flat (none share a word)."
    )


class OneText(Options):
    """One text."""

    text: str = Field(description="Raw text; the model splits it into sentences and words.")


class ManyTexts(Options):
    """Several independent texts."""

    texts: list[str] = Field(description="Raw texts; may be empty.")


def _which(body: Any) -> str:
    return "texts" if isinstance(body, dict) and "texts" in body else "text"


# The form is chosen before validation, so that errors refer to the intended one.
PredictionRequest = Annotated[
    Annotated[OneText, Tag("text")] | Annotated[ManyTexts, Tag("texts")], Discriminator(_which)
]


class Entity(BaseModel):
    """One entity; others may lie inside it or around it."""

    entity_group: str = Field(description="Label.")
    score: float = Field(description="Probability of the label.", ge=0, le=1)
    word: str = Field(description="The entity as written in the text: text[start:end].")
    start: int = Field(description="First character, counted from 0 in Unicode code points.", ge=0)
    end: int = Field(description="Character after the last.", ge=1)


class EntitiesOfText(BaseModel):
    """Response to one text."""

    entities: list[Entity] = Field(description="Sorted by start, then longest first.")


class EntitiesOfTexts(BaseModel):
    """Response to several texts."""

    entities: list[list[Entity]] = Field(description="The entities of each text, in the order of the texts.")


class Queue(BaseModel):
    waiting: int = Field(description="Waiting requests, without the running ones.", ge=0)
    limit: int = Field(description="Length of the queue; further requests get 503.", ge=1)


class Limits(BaseModel):
    """Limits of a request; a larger body gets 413, more or longer texts 422."""

    body_bytes: int = Field(ge=1)
    texts: int = Field(ge=1)
    text_characters: int = Field(ge=1)


class Health(BaseModel):
    """The served model and the state of the server."""

    status: Literal["ready", "stopping"] = Field(
        description="Whether the model answers or the server is shutting down."
    )
    model: str = Field(description="Hub id of the model, or the name of its folder.")
    labels: list[str] = Field(description="The possible values of `entity_group`.")
    version: str = Field(description="Version of modeling_triaffine.")
    queue: Queue
    limits: Limits


class Problem(BaseModel):
    """An error."""

    detail: str = Field(description="What is wrong, where, and what to do.")
