r"""Explains the scores of a span by the model's attention: which words and candidates contribute to them, by label.

    triaffine-ner explain --model outputs/demo/model --text "The mayor of Port Velmar resigned." \
        --span "Port Velmar" --output explanation.html

Prints tables whose columns add up: the contributions of the inside words and the label's bias to the logit before the
cross-span stage, those of the candidates and the bias to the logit after it (in a model with `cross_span_residual`,
together with the logit before it). Each contribution has its attention weight. --format json prints everything as JSON;
--output writes the tables as a page of HTML.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Annotated, Literal

import typer

from .options import Device, Model, open_model


def command(
    text: Annotated[str, typer.Option(help="The text, with the sentences around the span as its context.")],
    span: Annotated[str | None, typer.Option(help="The span as written, which must occur once in the text.")] = None,
    offsets: Annotated[
        tuple[int, int] | None,
        typer.Option(help="Instead of --span: its character offsets, end exclusive.", metavar="START END"),
    ] = None,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="What to print.")] = "table",
    output: Annotated[Path | None, typer.Option(help="File for an HTML page.")] = None,
    model: Model = None,
    device: Device = None,
) -> None:
    if (span is None) == (offsets is None):
        raise ValueError("Give the span either as --span, as it is written, or as --offsets START END.")
    start_and_end = offsets or find_span(text, span or "")
    from ..drawing.safe_text import visible_json
    from ..explanation import explain, explanation_page, format_explanation
    from ..files import write_text

    explanation = explain(open_model(model, device), text, start_and_end)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_text(output, explanation_page(explanation))
    if form == "json":
        print(visible_json(json.dumps(explanation.to_dict(), ensure_ascii=False, indent=2)))
    else:
        print(format_explanation(explanation, shutil.get_terminal_size().columns))


def find_span(text: str, span: str) -> tuple[int, int]:
    """The characters of the span in the text; raises ValueError unless it occurs once."""
    places = [match.start() for match in re.finditer(f"(?={re.escape(span)})", text)] if span else []
    if len(places) != 1:
        offsets = " or ".join(f"{start} {start + len(span)}" for start in places)
        remedy = f"Give its --offsets: {offsets}." if places else "Write it as in the text."
        raise ValueError(f"--span: {span!r} occurs {len(places)} times in the text. {remedy}")
    return places[0], places[0] + len(span)
