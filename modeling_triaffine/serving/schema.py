"""What is sent to the server and what it answers, as pydantic models: the schema at `/openapi.json`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="null takes the likeliest label of each span; a probability t keeps every span whose best entity "
        "label has at least t, even where no entity is likelier.",
    )
    overlap: Literal["all", "nested", "flat"] = Field(
        "all", description="Which entities may stand together: all, nested (none cross) or flat (none share a word)."
    )


class OneText(Options):
    """One text."""

    text: str = Field(description="The text as it is; the model cuts it into sentences and words.")


class ManyTexts(Options):
    """Several texts, none the context of another."""

    texts: list[str] = Field(description="The texts as they are; there may be none.")


def _which(body: Any) -> str:
    return "texts" if isinstance(body, dict) and "texts" in body else "text"


# Told apart before they are read, so that mistakes are told of the one that was meant.
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
    """Answer to one text."""

    entities: list[Entity] = Field(description="Sorted by start, then longest first.")


class EntitiesOfTexts(BaseModel):
    """Answer to several texts."""

    entities: list[list[Entity]] = Field(description="The entities of each text, in the order of the texts.")


class Queue(BaseModel):
    waiting: int = Field(description="Requests that wait; those that run are not counted.", ge=0)
    limit: int = Field(description="Requests that may wait; one more is answered 503.", ge=1)


class Limits(BaseModel):
    """What one request may bring; a larger body is answered 413, more or longer texts 422."""

    body_bytes: int = Field(ge=1)
    texts: int = Field(ge=1)
    text_characters: int = Field(ge=1)


class Health(BaseModel):
    """What is served, and in which state the server is."""

    status: Literal["ready", "stopping"] = Field(description="The model answers; or the server was told to stop.")
    model: str = Field(description="Hub id of the model, or what its folder is called.")
    labels: list[str] = Field(description="What `entity_group` can be.")
    version: str = Field(description="Version of modeling_triaffine.")
    queue: Queue
    limits: Limits


class Problem(BaseModel):
    """Why a request was not answered."""

    detail: str = Field(description="What is wrong, where, and what to do.")
