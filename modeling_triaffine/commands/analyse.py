"""Analyses the scores and errors of a model on a corpus.

    triaffine-ner analyse --model outputs/demo/model outputs/demo/corpus --output outputs/demo/report
    triaffine-ner analyse --model outputs/demo/model outputs/demo/corpus --candidates 5 30

Prints the scores and the kinds of errors. --output writes the report to a new folder: report.html (a single file with
figures) and report.json. It has scores by label, length and depth of nesting, and of parts such as nested entities;
errors by label, and the sentences with the most errors; recall of the candidates and F1 by their number m; with
--compare, a paired bootstrap test against another model.
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
    batch_size: BatchSize = PredictionOptions.batch_size,
    device: Device = None,
    output: Annotated[Path | None, typer.Option(help="New folder for the report.")] = None,
) -> None:
    if output is not None:
        check_new(output)
    from ..evaluation.analysis import analyse
    from ..evaluation.report import summarize, write_report
    from ..files import new_folder

    named = load_model(model, device)
    read = load_split(corpus, corpus_format, split, named.processor, max_bad_records)
    analysis = analyse(
        named,
        read.records,
        corpus if corpus.endswith(read.name) else f"{corpus}, {read.name}",
        counts=candidates,
        other=load_model(compare, device) if compare else None,
        batch_size=batch_size,
    )
    try:
        if output is not None:
            with new_folder(output) as folder:
                write_report(analysis, folder)
    finally:  # a reader of the tables may close the pipe
        print(summarize(analysis))
    if output is not None:
        print(f"The report: {output / 'report.html'}")


def load_model(name: str, device: str | None) -> "NamedModel":
    from ..evaluation.analysis import NamedModel
    from ..model.pipeline_triaffine import NestedNERPipeline

    pipeline = NestedNERPipeline(model=name, device=device)
    return NamedModel(name, pipeline.model, pipeline.processor)
