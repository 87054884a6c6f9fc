"""Writes what the documentation says of options and formats from their declarations. Run it after a change of one.

python docs/_site/write_pages.py
"""

import re
from collections.abc import Callable
from pathlib import Path

from modeling_triaffine.data.corpus_format import CorpusFormat
from modeling_triaffine.data.formats import BUILT_IN, FORMATS
from modeling_triaffine.files import write_text

DOCS = Path(__file__).resolve().parents[1]
FORMAT_TABLE = re.compile(r"(?<=<!-- formats -->\n).*?(?=<!-- end of formats -->)", re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def corpora() -> str:
    """The page on corpora, with the table of all formats between its marks, in the order of their paragraphs."""
    page = (DOCS / "corpora.md").read_text(encoding="utf-8")
    headings = {name: heading for heading in HEADING.findall(page) for name in re.findall(r"`(\w+)`", heading)}
    without = set(BUILT_IN) - set(headings)
    if without:
        raise ValueError(f"corpora.md has no paragraph on {', '.join(sorted(without))}: a heading with `its name`.")
    rows = [_format_row(FORMATS[name], heading) for name, heading in headings.items() if name in BUILT_IN]
    header = "| `--format` | Written by | Nested | Raw text | One line |\n|---|---|---|---|---|\n"
    return FORMAT_TABLE.sub(lambda _: header + "".join(rows), page)


def _format_row(known: CorpusFormat, heading: str) -> str:
    nested, text = ("yes" if value else "no" for value in (known.nested, known.keeps_text))
    return f"| [`{known.name}`](#{_anchor(heading)}) | {known.tools} | {nested} | {text} | {_code(known.example)} |\n"


def _anchor(heading: str) -> str:
    """As GitHub and MkDocs make it."""
    return re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")


def _code(text: str) -> str:
    """Code in the cell of a table, where a tab would be shown as a space and a bar would end the cell."""
    return f"`{text}`".replace("\t", " ").replace("|", "\\|")


PAGES: dict[str, Callable[[], str]] = {"corpora.md": corpora}
"""Page → its text as it should be."""


def main() -> None:
    for name, text in PAGES.items():
        write_text(DOCS / name, text())


if __name__ == "__main__":
    main()
