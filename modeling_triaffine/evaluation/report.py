"""Writes an analysis as Markdown, JSON and a self-contained HTML page (template `report.html`).

`sections.py` has the contents, `figures.py` draws the figures and alone needs matplotlib.
"""

import base64
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ..drawing import draw_entities, draw_entities_html, drawing_style
from ..drawing.safe_text import markdown_text
from ..drawing.templates import render_html
from ..files import SURROGATES
from .analysis import Analysis
from .scoring import RATIO_NAMES, percentages
from .sections import DrawnSentence, introduction, make_sections, title


def write_report(analysis: Analysis, folder: Path, figures: Mapping[str, bytes]) -> None:
    """Writes `report.html`, `report.md`, `report.json` and the figures into an existing folder.

    Args:
        figures: File name → content, from [`draw_figures`]; empty: a report without figures.
    """
    for name, content in figures.items():
        (folder / name).write_bytes(content)
    texts = {
        "report.html": html_report(analysis, figures),
        "report.md": markdown_report(analysis, figures),
        "report.json": json.dumps(analysis.to_dict(), ensure_ascii=False, indent=2),
    }
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8", errors=SURROGATES)


def html_report(analysis: Analysis, figures: Mapping[str, bytes]) -> str:
    """The report as one page with embedded styles and figures, which loads nothing."""
    labels = list(analysis.scores["by_label"])
    return render_html(
        "evaluation/report.html",
        title=title(analysis),
        introduction=introduction(analysis),
        totals=list(zip(RATIO_NAMES, percentages(analysis.scores), strict=True)),
        sections=make_sections(analysis),
        figures={Path(name).stem: base64.b64encode(svg).decode() for name, svg in figures.items() if ".svg" in name},
        draw=partial(draw_entities_html, labels=labels, embedded=True),
        drawing_style=drawing_style(len(labels)) if analysis.sentences_with_errors else "",
    )


def markdown_report(analysis: Analysis, figures: Mapping[str, bytes] | None = None) -> str:
    """The report in Markdown, with links to the figures beside it."""
    blocks = [f"# {markdown_text(title(analysis))}", *map(markdown_text, introduction(analysis))]
    for section in make_sections(analysis):
        blocks += [f"## {section.title}", markdown_text(section.text)]
        if f"{section.figure}.png" in (figures or {}):
            blocks.append(f"![{section.title}]({section.figure}.png)")
        blocks += [table.markdown() for table in section.tables]
        for sentence in section.sentences:
            blocks += _sentence_in_markdown(sentence)
    return "\n\n".join(blocks)


def _sentence_in_markdown(sentence: DrawnSentence) -> list[str]:
    """Drawings are indented code blocks, which no text can end."""
    blocks = [f"### {markdown_text(sentence.id)}"]
    for side, text, entities in sentence.drawings:
        drawn = draw_entities(text, entities)
        blocks += [f"{side}:", "\n".join(f"    {line}".rstrip() for line in drawn.splitlines())]
    return [*blocks, sentence.errors.markdown()]
