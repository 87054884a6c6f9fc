"""`Drawing`: what `NestedNERPipeline.draw` returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .html_drawing import draw_entities_html
from .text_drawing import draw_entities


@dataclass(frozen=True, repr=False)
class Drawing:
    """A text with its entities: drawn in characters where it is printed, in HTML where a notebook shows it.

    Attributes:
        text: the text.
        entities: as [`NestedNERPipeline`] returns them.
        labels: the model's, in whose order HTML assigns colours.
    """

    text: str
    entities: list[dict[str, Any]]
    labels: Sequence[str] = ()

    def __repr__(self) -> str:
        return draw_entities(self.text, self.entities)

    def _repr_html_(self) -> str:
        return draw_entities_html(self.text, self.entities, self.labels)
