"""A table of a report, in Markdown and in HTML. Whatever text it holds shows as text in both."""

import html
import re
from collections.abc import Sequence
from typing import NamedTuple

from ..drawing.safe_text import clean

# What Markdown takes for markup within a line; of underscores those at the border of a word.
_MARKUP = re.compile(r"[\\`*|<>\[\]&~$]|\b_|_\b")


class Table(NamedTuple):
    """Rows of text under a header; `alignment` has a letter a column, l or r. The first column names the rows."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    alignment: str

    def markdown(self) -> str:
        """The caption and the table, its columns padded so that it reads well as plain text, too."""
        header, *rows = ([markdown_text(cell) for cell in line] for line in (self.header, *self.rows))
        widths = [max(3, *map(len, column)) for column in zip(header, *rows, strict=True)]
        rule = [
            "-" * (width - 1) + (":" if side == "r" else "-")
            for width, side in zip(widths, self.alignment, strict=True)
        ]
        padded = (
            (
                cell.rjust(width) if side == "r" else cell.ljust(width)
                for cell, width, side in zip(line, widths, self.alignment, strict=True)
            )
            for line in (header, rule, *rows)
        )
        lines = [f"| {' | '.join(line)} |" for line in padded]
        return "\n".join([f"**{markdown_text(self.caption)}**", "", *lines])

    def html(self) -> str:
        header = "".join(self._html_cells(self.header, first="th", others="th"))
        rows = "\n".join(f"<tr>{self._html_cells(row, first='th', others='td')}</tr>" for row in self.rows)
        return (
            f'<figure><figcaption>{html_text(self.caption)}</figcaption>\n<div class="wide"><table>\n'
            f"<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div></figure>"
        )

    def _html_cells(self, cells: Sequence[str], first: str, others: str) -> str:
        tags = [first] + [others] * (len(cells) - 1)
        return "".join(
            f'<{tag} class="{side}">{html_text(cell)}</{tag}>'
            for tag, side, cell in zip(tags, self.alignment, cells, strict=True)
        )


def markdown_text(text: str) -> str:
    """Text of one line that no character of it turns into markup."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", clean(text))


def html_text(text: str) -> str:
    """Text that no character of it turns into markup, in an element or in an attribute."""
    return html.escape(clean(text))
