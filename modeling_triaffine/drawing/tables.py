"""A table as aligned text or Markdown, with its cells escaped; `tables.html` writes one in pages.

>>> table = Table(["label", "F1", "gold"], [["PERSON", "81.25", 1024], ["a|b", None, 0]])
>>> print(table.text())
label      F1   gold
PERSON  81.25  1,024
a|b         –      0
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .safe_text import clean, inline_code, markdown_text, text_width

MISSING = "–"
GAP = "  "  # between the columns of a text table
_NUMBER = re.compile(r"[+−-]?\d[\d,]*(\.\d+)?( ?%)?( ± \d+(\.\d+)?)?( \([\d.]+\))?")


class Code(str):
    """A cell formatted as code in Markdown, such as the name of a label, option or file."""


class Strong(str):
    """A cell in bold in Markdown."""


Cell = str | int | None


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns; the first column names the rows. Numeric columns are right-aligned.

    A cell is text (plain, [`Code`] or [`Strong`]), an integer (printed with thousands separators), or None (–).
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def text(self) -> str:
        """Plain text with aligned columns; leading spaces indent a cell."""
        caption = [clean(self.caption), ""] if self.caption else []
        return "\n".join([*caption, *(GAP.join(line).rstrip() for line in self._padded(_text_cell))])

    def markdown(self) -> str:
        """A Markdown table (GFM) with aligned source."""
        header, *rows = self._padded(_markdown_cell, least=3)
        rule = [
            "-" * (text_width(cell) - 1) + (":" if is_right else "-")
            for cell, is_right in zip(header, self.right_aligned(), strict=True)
        ]
        caption = [f"**{markdown_text(self.caption)}**", ""] if self.caption else []
        return "\n".join([*caption, *(f"| {' | '.join(line)} |" for line in (header, rule, *rows))])

    def right_aligned(self) -> list[bool]:
        """For each column, whether it has numbers and nothing else."""
        written = ([_written(row[place]) for row in self.rows] for place in range(len(self.columns)))
        filled = ([cell for cell in cells if cell not in ("", MISSING)] for cells in written)
        return [bool(cells) and all(map(_NUMBER.fullmatch, cells)) for cells in filled]

    def _padded(self, write: Callable[[Cell], str], least: int = 0) -> list[tuple[str, ...]]:
        """The cells of each line as `write` gives them, padded to the width of their columns, at least `least`."""
        padded = []
        for column, is_right in zip(zip(self.columns, *self.rows, strict=True), self.right_aligned(), strict=True):
            cells = [write(cell) for cell in column]
            widths = [text_width(cell) for cell in cells]
            rooms = [" " * (max(least, *widths) - width) for width in widths]
            padded.append([room + cell if is_right else cell + room for cell, room in zip(cells, rooms, strict=True)])
        return [*zip(*padded, strict=True)]


def _written(cell: Cell) -> str:
    if cell is None:
        return MISSING
    return f"{cell:,}" if isinstance(cell, int) else cell


def _text_cell(cell: Cell) -> str:
    text = _written(cell)
    return " " * (len(text) - len(text.lstrip(" "))) + clean(text)


def _markdown_cell(cell: Cell) -> str:
    if isinstance(cell, Code):
        return inline_code(cell)
    text = markdown_text(_written(cell))
    return f"**{text}**" if isinstance(cell, Strong) else text
