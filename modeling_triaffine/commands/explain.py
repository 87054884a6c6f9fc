r"""Explains the scores of a span from the model's own attention: which words and candidates made them, label by label.

    triaffine-ner explain --model outputs/demo/model --text "The mayor of Port Velmar resigned." \
        --span "Port Velmar" --output explanation.svg

Prints tables in which a column is an addition: the contributions of the inside words and the label's bias make the
logit before the cross-span stage, those of the candidates and the bias the logit after it. Beside each contribution
stands the attention it was weighed with. --format json prints everything as JSON; --output draws it (.svg, .png, .pdf;
needs matplotlib).
"""

import argparse
import json
import re
import shutil
from pathlib import Path

from ..explanation import Explanation, explain, format_explanation, plot_explanation
from ..model.pipeline_triaffine import NestedNERPipeline
from . import arguments as shared
from .arguments import check_device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_model(parser)
    parser.add_argument("--text", required=True, help="the text; sentences around the span's are its context")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--span", help="the span as it is written, where it occurs once in the text")
    which.add_argument(
        "--offsets", type=int, nargs=2, metavar=("START", "END"), help="the span in characters, the end exclusive"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="what is printed")
    parser.add_argument("--output", type=Path, help="file to draw the explanation in: .svg, .png or .pdf")
    shared.add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    check_device(arguments.device)
    span = tuple(arguments.offsets) if arguments.offsets else find_span(arguments.text, arguments.span)
    pipeline = NestedNERPipeline(model=arguments.model, device=arguments.device)
    explanation = explain(pipeline, arguments.text, span)
    if arguments.output is not None:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        plot_explanation(explanation, arguments.output)
    print(write_out(explanation, arguments.format))


def find_span(text: str, span: str) -> tuple[int, int]:
    """Where the span is written in the text."""
    places = [match.start() for match in re.finditer(f"(?={re.escape(span)})", text)] if span else []
    if not places:
        raise ValueError(f"--span: {span!r} does not occur in the text; write it as it stands there.")
    if len(places) > 1:
        offsets = ", ".join(f"{start} {start + len(span)}" for start in places)
        raise ValueError(f"--span: {span!r} occurs {len(places)} times in the text; give one as --offsets: {offsets}.")
    return places[0], places[0] + len(span)


def write_out(explanation: Explanation, form: str) -> str:
    if form == "json":
        return json.dumps(explanation.to_dict(), ensure_ascii=False, indent=2)
    return format_explanation(explanation, shutil.get_terminal_size().columns)
