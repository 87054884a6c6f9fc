"""Reads and checks the entities of a drawing."""

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def read_entities(
    entities: Iterable[Mapping[str, Any]], text_length: int
) -> Iterator[tuple[Mapping[str, Any], int, int, str]]:
    """Yields each entity with its `start`, `end` (characters, exclusive) and label.

    Raises:
        ValueError: an entity lacks a field or lies outside the text.
    """
    for index, entity in enumerate(entities):
        missing = [key for key in ("entity_group", "start", "end") if key not in entity]
        if missing:
            raise ValueError(f"Entity {index} has no {' and no '.join(missing)}: {dict(entity)!r}.")
        try:
            start, end = map(operator.index, (entity["start"], entity["end"]))  # accepts NumPy integers
        except TypeError:
            start = end = -1
        if not 0 <= start < end <= text_length:
            raise ValueError(
                f"Entity {index} has start {entity['start']!r} and end {entity['end']!r}; integers with "
                f"0 <= start < end <= {text_length}, the number of characters of the text, are required."
            )
        yield entity, start, end, str(entity["entity_group"])
