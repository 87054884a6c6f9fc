"""An analysis written out: Markdown, JSON, and one HTML page that needs nothing beside itself.

Figures come in as files by name, from `figures.py`, which alone needs matplotlib; a report without them is whole.
What is said is in `sections.py`.
"""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from ..drawing import drawing_style
from .analysis import Analysis
from .sections import Section, introduction, make_sections, percent, title
from .tables import html_text, markdown_text

STYLE = """
:root { color-scheme: light; --ink: #1d2733; --quiet: #5b6875; --line: #dde3e9; --accent: #0072b2; }
* { box-sizing: border-box; }
body {
  margin: 0; padding: 2.5rem 1.25rem 4rem; color: var(--ink); background: #f5f7f9;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif;
}
main { max-width: 52rem; margin: 0 auto; }
h1 { margin: 0 0 .75rem; font-size: 1.75rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 0 0 .5rem; font-size: 1.25rem; }
p { margin: 0 0 1rem; max-width: 46rem; color: var(--quiet); overflow-wrap: anywhere; }
section, dl div { background: white; border: 1px solid var(--line); border-radius: .6rem; }
section { margin-top: 1.5rem; padding: 1.5rem; }
dl { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0; }
dl div { flex: 1 1 5rem; padding: .8rem 1.1rem; }
dt { color: var(--quiet); font-size: .85rem; }
dd { margin: 0; font-size: 1.8rem; font-weight: 600; line-height: 1.2; font-variant-numeric: tabular-nums; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; }
a { color: var(--accent); }
figure { margin: 1.25rem 0 0; }
figcaption { padding-bottom: .35rem; font-weight: 600; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
/* A shadow at each side on which something is out of sight. */
.wide {
  background:
    linear-gradient(to right, white 1.5rem, transparent) left / 3rem 100%,
    linear-gradient(to left, white 1.5rem, transparent) right / 3rem 100%,
    linear-gradient(to right, #5b687580, transparent) left / .9rem calc(100% - 2px),
    linear-gradient(to left, #5b687580, transparent) right / .9rem calc(100% - 2px);
  background-attachment: local, local, scroll, scroll; background-repeat: no-repeat;
}
img { display: block; width: 100%; min-width: 30rem; height: auto; mix-blend-mode: multiply; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid var(--line); vertical-align: baseline; }
thead th { color: var(--quiet); font-weight: 500; border-bottom-color: #9aa7b3; }
tbody th { font-weight: 500; }
tbody tr:hover { background: #f0f6fa; }
.l { text-align: left; }
.r { text-align: right; }
td { white-space: nowrap; }
.sentence { margin-top: 1.5rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
.sentence h3 { margin: 0; font-size: 1rem; }
.sentence h4 { margin: .6rem 0 0; color: var(--quiet); font-size: .85rem; font-weight: 500; }
.sentence td { white-space: normal; overflow-wrap: break-word; }
.sentence .nested-entities { color-scheme: light; }
.sentence .entity { cursor: default; }
@media (max-width: 40rem) {
  body { padding: 1.25rem .6rem 2rem; }
  section { padding: 1rem .8rem; }
  dl div { padding: .6rem .8rem; }
  dd { font-size: 1.4rem; }
  th, td { padding: .3rem .5rem; }
  th:first-child { position: sticky; left: 0; background: white; }
}
@media print { body { background: white; padding: 0; } section { break-inside: avoid; } nav { display: none; } }
"""
# Whatever slipped in, a browser would load nothing and run nothing.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def write_report(analysis: Analysis, folder: Path, figures: Mapping[str, bytes]) -> None:
    """Writes `report.html`, `report.md`, `report.json` and the figures into a folder that is there.

    Args:
        figures: file name → content, as `draw_figures` gives them; an empty mapping for a report without.
    """
    for name, content in figures.items():
        (folder / name).write_bytes(content)
    texts = {
        "report.html": html_report(analysis, figures),
        "report.md": markdown_report(analysis, figures),
        "report.json": json.dumps(analysis.to_dict(), ensure_ascii=False, indent=2),
    }
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8")


def markdown_report(analysis: Analysis, figures: Mapping[str, bytes] | None = None) -> str:
    """The report in Markdown; figures are named as files beside it."""
    blocks = [f"# {markdown_text(title(analysis))}", *map(markdown_text, introduction(analysis))]
    for section in make_sections(analysis):
        blocks += [f"## {section.title}", markdown_text(section.text)]
        if section.figure and f"{section.figure}.png" in (figures or {}):
            blocks.append(f"![{section.title}]({section.figure}.png)")
        blocks += [block.markdown() for block in section.blocks]
    return "\n\n".join(blocks)


def html_report(analysis: Analysis, figures: Mapping[str, bytes]) -> str:
    """The report as one page: styles and figures are inside, and it may load nothing."""
    sections = {f"part{number}": section for number, section in enumerate(make_sections(analysis), start=1)}
    links = [f'<a href="#{name}">{html_text(section.title)}</a>' for name, section in sections.items()]
    totals = [
        f"<div><dt>{name}</dt><dd>{percent(analysis.scores[ratio])}</dd></div>"
        for name, ratio in (("F1", "f1"), ("Precision", "precision"), ("Recall", "recall"))
    ]
    heading = html_text(title(analysis))
    lines = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{heading}</title>\n<style>{_style(analysis)}</style>\n</head>\n<body>\n<main>\n<h1>{heading}</h1>",
        *(f"<p>{html_text(paragraph)}</p>" for paragraph in introduction(analysis)),
        *("<dl>", *totals, "</dl>", "<nav>", *links, "</nav>"),
        *(_html_section(name, section, figures) for name, section in sections.items()),
        "</main>\n</body>\n</html>",
    ]
    return "\n".join(lines)


def _style(analysis: Analysis) -> str:
    """Also of drawings, in the colours that all labels have, where there are any."""
    return STYLE + (drawing_style(len(analysis.scores["by_label"])) if analysis.sentences_with_errors else "")


def _html_section(name: str, section: Section, figures: Mapping[str, bytes]) -> str:
    blocks = [f'<h2 id="{name}">{html_text(section.title)}</h2>', f"<p>{html_text(section.text)}</p>"]
    if section.figure and f"{section.figure}.svg" in figures:
        # As an image of its own: ids in one figure are those of another, too.
        content = base64.b64encode(figures[f"{section.figure}.svg"]).decode()
        image = f'<img src="data:image/svg+xml;base64,{content}" alt="The numbers of the tables below as a figure">'
        blocks.append(f'<figure class="wide">{image}</figure>')
    blocks += [block.html() for block in section.blocks]
    return "<section>\n" + "\n".join(blocks) + "\n</section>"
