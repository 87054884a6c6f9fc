"""Analyses the scores and errors of a model on a corpus.

    triaffine-ner analyse --model outputs/demo/model outputs/demo/corpus --output outputs/demo/report
    triaffine-ner analyse --model outputs/demo/model outputs/demo/corpus --candidates 5 30 --sentences test-000-1

Prints tables in Markdown: scores by label, length and depth of nesting, and of parts such as nested entities; errors by
label, and the sentences with the most errors; recall of the candidates and F1 by their number m; with --compare, a
paired bootstrap test against another model; with --sentences, the scores of their spans. --output writes the tables
to a new folder: report.html (a single file), report.md and report.json, with figures, which need the extra plot
(--no-figures leaves them out).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..model.options_triaffine import PredictionOptions
from .corpus_split import load_split
from .options import BatchSize, Device, Format, MaxBadRecords, Model, Split, check_new

if TYPE_CHECKING:
    from ..evaluation.analysis import NamedModel


def command(
    model: Model,
    corpus: Annotated[str, typer.Argument(help="Corpus: a file, or a folder with train, dev and test.")],
    split: Split = None,
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    candidates: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Numbers of candidates to compare.  [default: 5 10 … 100]", metavar="M …"),
    ] = None,
    compare: Annotated[str | None, typer.Option(help="Another model to compare with.", metavar="MODEL")] = None,
    sentences: Annotated[list[str] | None, typer.Option(help="Sentences to show span by span.", metavar="ID …")] = None,
    batch_size: BatchSize = PredictionOptions.batch_size,
    device: Device = None,
    output: Annotated[Path | None, typer.Option(help="New folder for the report.")] = None,
    no_figures: Annotated[
        bool, typer.Option("--no-figures", help="Write the report without figures, and so without matplotlib.")
    ] = False,
) -> None:
    if output is not None:
        check_new(output)
    from ..evaluation.analysis import analyse
    from ..evaluation.report import markdown_report, write_report
    from ..files import new_folder

    has_figures = output is not None and not no_figures
    if has_figures:
        from ..evaluation.figures import draw_figures  # a missing matplotlib is an error before the model runs
    named = load_model(model, device)
    read = load_split(corpus, corpus_format, split, named.processor, max_bad_records)
    analysis = analyse(
        named,
        read.records,
        corpus if corpus.endswith(read.name) else f"{corpus}, {read.name}",
        counts=candidates,
        other=load_model(compare, device) if compare else None,
        sentences=sentences or [],
        batch_size=batch_size,
    )
    try:
        if output is not None:
            figures = draw_figures(analysis) if has_figures else {}
            with new_folder(output) as folder:
                write_report(analysis, folder, figures)
    finally:  # a reader of the tables may close the pipe
        print(markdown_report(analysis))


def load_model(name: str, device: str | None) -> "NamedModel":
    from ..evaluation.analysis import NamedModel
    from ..model.pipeline_triaffine import NestedNERPipeline

    pipeline = NestedNERPipeline(model=name, device=device)
    return NamedModel(name, pipeline.model, pipeline.processor)
