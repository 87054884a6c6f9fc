"""Reads an entity that is given as a dict: of a record, or of a pipeline's output."""

import operator
from collections.abc import Mapping
from typing import Any

TYPE_KEYS = ("type", "entity_group")  # of records, and of the pipeline's output


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
