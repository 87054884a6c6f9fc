"""Reads the span and the type of an entity that is given as a dict: of a record, or of a pipeline's output."""

import operator
from collections.abc import Mapping
from typing import Any

TYPE_KEYS = ("type", "entity_group")  # of records, and of the pipeline's output


def read_span(entity: Mapping[str, Any], where: str, longest: int | None = None) -> tuple[int, int]:
    """`start` and `end` (exclusive) of an entity, which `where` names in the error, in a text of length `longest`.

    Raises:
        ValueError: they are not a span of the text.
    """
    try:
        start, end = operator.index(entity["start"]), operator.index(entity["end"])  # accepts NumPy integers, no float
        is_span = 0 <= start < end and (longest is None or end <= longest)
    except (KeyError, TypeError):
        is_span = False
    if not is_span:
        limit = "" if longest is None else f" <= {longest}, the length of the text"
        raise ValueError(
            f"{where}: a dict with integers start and end (exclusive), 0 <= start < end{limit}, is required; got "
            f"{entity!r}."
        )
    return start, end


def read_type(entity: Mapping[str, Any], where: str) -> str:
    """The label of an entity: its `type`, or the `entity_group` of a pipeline's output; `where` names it in the error.

    Raises:
        ValueError: it has not exactly one of both, a string that is not empty.
    """
    types = [entity[key] for key in TYPE_KEYS if key in entity]
    if len(types) != 1 or not isinstance(types[0], str) or not types[0]:
        raise ValueError(
            f"{where}: exactly one of type and entity_group is required, a non-empty string; got {dict(entity)!r}."
        )
    return types[0]
