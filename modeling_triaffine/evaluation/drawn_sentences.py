"""A sentence of a report: its gold entities drawn in it, those predicted drawn in it, and its mistakes as a table."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ..drawing import draw_entities, draw_entities_html
from ..drawing.safe_text import REPLACEMENT, clean
from .mistakes import FlawedSentence, Mention
from .tables import Table, html_text, markdown_text


class DrawnSentence(NamedTuple):
    """`labels` in their order give the colours; the page around it needs `drawing_style` of their number."""

    sentence: FlawedSentence
    labels: Sequence[str]

    def markdown(self) -> str:
        """Drawings as code blocks by indentation, which no text can end."""
        blocks = [f"### {markdown_text(self.sentence.id)}"]
        for name, mentions in self._sides():
            drawn = draw_entities(*self._place(mentions))
            blocks += [f"{name}:", "\n".join(f"    {line}".rstrip() for line in drawn.splitlines())]
        return "\n\n".join([*blocks, self._table().markdown()])

    def html(self) -> str:
        drawings = [
            f"<h4>{name}</h4>\n{draw_entities_html(*self._place(mentions), self.labels, embedded=True)}"
            for name, mentions in self._sides()
        ]
        blocks = [f"<h3>{html_text(self.sentence.id)}</h3>", *drawings, self._table().html()]
        return '<article class="sentence">\n' + "\n".join(blocks) + "\n</article>"

    def _sides(self) -> tuple[tuple[str, list[Mention]], ...]:
        return ("Gold", self.sentence.gold), ("Predicted", self.sentence.predicted)

    def _words(self) -> list[str]:
        """The words as they are shown, none of them empty."""
        return [clean(token) or REPLACEMENT for token in self.sentence.tokens]

    def _place(self, mentions: Iterable[Mention]) -> tuple[str, list[dict[str, Any]]]:
        """The text, and the entities in it by characters."""
        words = self._words()
        starts = list(accumulate((len(word) + 1 for word in words), initial=0))
        entities = [
            {"entity_group": mention.type, "start": starts[mention.start], "end": starts[mention.end] - 1}
            for mention in mentions
        ]
        return " ".join(words), entities

    def _table(self) -> Table:
        words = self._words()

        def name(mention: Mention | None) -> str:
            return "–" if mention is None else f"{' '.join(words[mention.start : mention.end])} ({mention.type})"

        rows = [
            [mistake.kind.replace("_", " "), name(mistake.gold), name(mistake.predicted)]
            for mistake in self.sentence.mistakes
        ]
        caption = "1 mistake" if len(rows) == 1 else f"{len(rows)} mistakes"
        return Table(caption, ["mistake", "gold", "predicted"], rows, "lll")
