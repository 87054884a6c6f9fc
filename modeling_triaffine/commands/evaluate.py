"""Scores a trained model on a corpus, and analyses its errors.

    triaffine-ner evaluate outputs/demo/corpus --model outputs/demo/model --split test
    triaffine-ner evaluate outputs/demo/corpus --model outputs/demo/model --report outputs/demo/report
    triaffine-ner evaluate GENIAcorpus3.02.xml --model outputs/genia --output scores.json

Prints precision, recall and F1 on the words of the corpus, for all entities, by label and for groups such as nested
entities, and the kinds of errors. If the corpus has its text, raw text is scored, too: the model splits sentences and
words itself, and an entity is correct if its characters and label are correct.

--report writes a new folder with report.html (a single file) and report.json: scores by label, length and depth of
nesting, errors by label, the sentences with the most errors, recall of the candidates and F1 by their number m, and
with --compare a paired bootstrap test against another model.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..installed_models import DEFAULT_MODEL
from ..model.options_triaffine import PredictionOptions
from .options import (
    BatchSize,
    Bf16,
    Corpus,
    Device,
    Format,
    Int8,
    MaxBadRecords,
    Model,
    Overlap,
    Split,
    Threshold,
    check_new,
    load_split,
    open_model,
)


def command(
    data: Corpus,
    model: Model = None,
    split: Split = None,
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    threshold: Threshold = None,
    overlap: Overlap = PredictionOptions.overlap,  # type: ignore[assignment]
    batch_size: BatchSize = PredictionOptions.batch_size,
    device: Device = None,
    raw_text: Annotated[
        bool | None,
        typer.Option("--raw-text/--no-raw-text", help="Also score raw text.  [default: if the corpus has its text]"),
    ] = None,
    int8: Int8 = False,
    bf16: Bf16 = False,
    output: Annotated[Path | None, typer.Option(help="File for all scores as JSON, with null for –.")] = None,
    report: Annotated[Path | None, typer.Option(help="New folder for the report.")] = None,
    candidates: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Number m of candidates to try in the report.  [default: 5 10 … 100]", metavar="M"),
    ] = None,
    compare: Annotated[str | None, typer.Option(help="Another model to compare with.", metavar="MODEL")] = None,
) -> None:
    if report is not None:
        check_new(report, "--report")
    from ..evaluation.analysis import NamedModel, analyse, summarize, write_report
    from ..evaluation.prediction import score_raw_text
    from ..evaluation.scores import RATIO_NAMES, percentages, with_nulls
    from ..files import new_folder, open_output

    pipeline = open_model(model, device, None, int8, bf16, batch_size=batch_size)
    corpus = load_split(data, corpus_format, split, pipeline.processor, max_bad_records)
    if output is not None and output.is_file() and any(map(output.samefile, corpus.files)):
        raise ValueError(f"--output {output} is a file of the corpus, which would be lost. Give another name.")
    other = open_model(compare, device) if compare else None
    decoding: dict[str, Any] = {"threshold": threshold, "overlap": overlap, "batch_size": batch_size}
    analysis = analyse(
        NamedModel(model or DEFAULT_MODEL, pipeline.model, pipeline.processor),
        corpus.records,
        data[0] if data[0].endswith(corpus.name) else f"{data[0]}, {corpus.name}",
        counts=candidates if report else [],
        other=NamedModel(str(compare), other.model, other.processor) if other else None,
        **decoding,
    )
    scores = {"given_words": analysis["scores"]}
    if raw_text or (raw_text is None and corpus.is_written):
        scores["raw_text"] = score_raw_text(pipeline, corpus.texts, **decoding)
    try:
        if report is not None:
            with new_folder(report) as folder:
                write_report(analysis, folder)
        if output is not None:
            with open_output(output) as written:
                json.dump(with_nulls(scores), written, indent=2)
    finally:  # a reader of the tables may close the pipe
        shown = sys.stderr if str(output) == "-" else sys.stdout  # where JSON goes to standard output
        print(summarize(analysis), file=shown)
        if "raw_text" in scores:
            ratios = zip(RATIO_NAMES, percentages(scores["raw_text"]), strict=True)
            print("Raw text:", ", ".join(f"{name} {ratio or '–'}" for name, ratio in ratios), file=shown)
    if report is not None:
        print(f"The report: {report / 'report.html'}", file=shown)
