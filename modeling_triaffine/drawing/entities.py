"""Entities as the drawings read them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def read_entities(
    entities: Iterable[Mapping[str, Any]], text_length: int
) -> Iterator[tuple[Mapping[str, Any], int, int, str]]:
    """Each entity with its `start`, `end` (characters, exclusive) and label.

    Raises:
        ValueError: one lacks a field or lies outside the text.
    """
    for index, entity in enumerate(entities):
        missing = [key for key in ("entity_group", "start", "end") if key not in entity]
        if missing:
            raise ValueError(f"Entity {index} has no {' and no '.join(missing)}: {dict(entity)!r}.")
        start, end = entity["start"], entity["end"]
        if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= text_length):
            raise ValueError(
                f"Entity {index} runs from {start!r} to {end!r} in a text of {text_length} characters; "
                "0 <= start < end <= length is needed, counted in characters, the end exclusive."
            )
        yield entity, start, end, str(entity["entity_group"])
