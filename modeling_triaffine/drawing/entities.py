"""Reads and checks the entities of a drawing, given as dicts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..entity_dicts import read_entity


@dataclass(frozen=True)
class DrawnEntity:
    """An entity of a drawing: its characters (`end` exclusive), its label as shown, and its score, if any."""

    start: int
    end: int
    label: str
    score: float | None = field(compare=False)

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end


def read_entities(entities: Iterable[Mapping[str, Any]], text: str, show: Callable[[str], str]) -> list[DrawnEntity]:
    """The distinct entities of a text, by start, then longest first, then by label; `show` gives the label as shown.

    Raises:
        ValueError: an entity lacks a field or lies outside the text.
    """
    found: set[DrawnEntity] = set()
    for index, entity in enumerate(entities):
        start, end, label = read_entity(entity, f"Entity {index}", len(text))
        found.add(DrawnEntity(start, end, show(label), entity.get("score")))
    return sorted(found, key=lambda entity: (entity.start, -entity.end, entity.label))
