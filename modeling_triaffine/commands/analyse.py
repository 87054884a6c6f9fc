"""Breaks a model's scores on a corpus down: where it is right, what it gets wrong, and what that depends on.

    triaffine-ner analyse --model outputs/demo/model outputs/demo/corpus --output outputs/demo/report
    triaffine-ner analyse --model outputs/demo/model --data outputs/demo/corpus --candidates 5 30 --sentences test-000-1

Prints tables in Markdown: scores by label, by length, flat and nested, and by depth of nesting; errors by label, and
the sentences with most of them; recall of the candidates and F1 over their number m; with --compare a paired bootstrap
against another model; with --sentences what the model says of their spans. --output writes the same with figures (they
need matplotlib) into a new folder: report.html, which is one file with everything in it, report.md and report.json.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..evaluation.analysis import Analysis, NamedModel, analyse
from ..evaluation.report import markdown_report, write_report
from ..files import new_folder
from ..model.pipeline_triaffine import NestedNERPipeline
from . import arguments as shared
from .arguments import check_device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "data", nargs="?", default=argparse.SUPPRESS, help="corpus: a file, or a folder with train, dev and test"
    )
    which.add_argument("--data", help="the same, wherever it is clearer (after a list of sentences)")
    shared.add_model(parser)
    shared.add_split(parser, "validation")
    shared.add_corpus_format(parser)
    parser.add_argument(
        "--candidates",
        type=shared.positive_integer,
        nargs="+",
        metavar="M",
        help="numbers of candidates to try (default: 5 10 … 100)",
    )
    parser.add_argument("--compare", metavar="MODEL", help="folder or Hub name of a model to compare with")
    parser.add_argument("--sentences", nargs="+", default=[], metavar="ID", help="sentences to show span by span")
    shared.add_batch_size(parser, default=32)
    shared.add_device(parser)
    parser.add_argument("--output", type=Path, help="new folder for the report")
    parser.add_argument("--no-figures", action="store_true", help="a report of tables alone, without matplotlib")


def run(arguments: argparse.Namespace) -> None:
    check_device(arguments.device)
    if arguments.output and arguments.output.exists():
        raise ValueError(f"--output {arguments.output} is there already; give the name of a new folder.")
    draw = _figure_maker() if arguments.output and not arguments.no_figures else _no_figures
    analysis = make_analysis(arguments)
    print(markdown_report(analysis))
    if arguments.output:
        figures = draw(analysis)
        with new_folder(arguments.output) as folder:
            write_report(analysis, folder, figures)


def make_analysis(arguments: argparse.Namespace) -> Analysis:
    split, corpus = shared.load_split(arguments)
    return analyse(
        load_model(arguments.model, arguments.device),
        corpus,
        f"{arguments.data}, {split}",
        counts=arguments.candidates,
        other=load_model(arguments.compare, arguments.device) if arguments.compare else None,
        sentences=arguments.sentences,
        batch_size=arguments.batch_size,
    )


def load_model(name: str, device: str | None) -> NamedModel:
    pipeline = NestedNERPipeline(model=name, device=device)
    model: Any = pipeline.model
    return NamedModel(name, model, pipeline.processor)


def _figure_maker() -> Callable[[Analysis], dict[str, bytes]]:
    """Asked for before the model runs: where matplotlib is missing, this is when it is told."""
    from ..evaluation.figures import draw_figures

    return draw_figures


def _no_figures(analysis: Analysis) -> dict[str, bytes]:
    return {}
