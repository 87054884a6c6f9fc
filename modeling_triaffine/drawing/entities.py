"""Entities that are given as dicts, of a record or of a pipeline's output: read, checked, and laid out in lanes."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..nesting import nesting_heights

TYPE_KEYS = ("type", "entity_group")  # of records, and of the pipeline's output


class DrawnEntity(NamedTuple):
    """An entity of a drawing: its characters (`end` exclusive), its label as shown, and its score, if any."""

    start: int
    end: int
    label: str
    score: float | None


def read_entity(entity: Mapping[str, Any], where: str, longest: int | None = None) -> tuple[int, int, str]:
    """`start`, `end` (exclusive) and the label of an entity in a text of length `longest`.

    Raises:
        ValueError: they are not a span of the text, or not one label; `where` names the entity.
    """
    try:
        start, end = operator.index(entity["start"]), operator.index(entity["end"])  # accepts NumPy integers, no float
        (label,) = (entity[key] for key in TYPE_KEYS if key in entity)
        if 0 <= start < end and (longest is None or end <= longest) and isinstance(label, str) and label:
            return start, end, label
    except (KeyError, TypeError, ValueError):
        pass
    limit = "" if longest is None else f" <= {longest}, the length of the text"
    raise ValueError(
        f"{where}: a dict with integers start and end (exclusive), 0 <= start < end{limit}, and exactly one of type "
        f"and entity_group, a non-empty string, is required; got {entity!r}."
    )


def read_entities(entities: Iterable[Mapping[str, Any]], text: str, show: Callable[[str], str]) -> list[DrawnEntity]:
    """The distinct entities of a text, by start, then longest first, then by label; `show` gives the label as shown."""
    found: dict[tuple[int, int, str], DrawnEntity] = {}
    for index, entity in enumerate(entities):
        start, end, label = read_entity(entity, f"Entity {index}", len(text))
        score = entity.get("score")
        shown = DrawnEntity(start, end, show(label), None if score is None else float(score))
        found.setdefault(shown[:3], shown)
    return sorted(found.values(), key=lambda entity: (entity.start, -entity.end, entity.label))


def from_inside(entities: Iterable[DrawnEntity]) -> list[DrawnEntity]:
    """The entities in the order of their brackets: each after those that it contains, and then by start."""
    entities = list(entities)
    heights = nesting_heights(entity[:2] for entity in entities)
    return sorted(entities, key=lambda entity: (heights[entity[:2]], entity.start))


def choose_lanes(brackets: Sequence[tuple[int, int, int]]) -> list[int]:
    """The lane of each bracket under a text: 0 is that directly under it.

    A bracket is below all those before it that it overlaps, and as high as the room for its label allows.

    Args:
        brackets: columns of start, end, and end of the label; a bracket comes after those that it contains.
    """
    columns = max((room for *_, room in brackets), default=0)
    free = [0] * columns  # the first lane below the brackets in each column
    taken: list[bytearray] = []  # in each lane, the columns with a bracket or a label
    lanes = []
    for start, end, room in brackets:
        lane = max(free[start:end])
        while lane < len(taken) and any(taken[lane][start:room]):
            lane += 1
        if lane == len(taken):
            taken.append(bytearray(columns))
        taken[lane][start:room] = b"\1" * (room - start)
        free[start:end] = [lane + 1] * (end - start)
        lanes.append(lane)
    return lanes
