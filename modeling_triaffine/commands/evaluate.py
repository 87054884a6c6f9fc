"""Scores a trained model on a corpus, and analyses its errors.

    triaffine-ner evaluate outputs/demo/corpus --model outputs/demo/model --split test
    triaffine-ner evaluate outputs/demo/corpus --model outputs/demo/model --report outputs/demo/report
    triaffine-ner evaluate GENIAcorpus3.02.xml --model outputs/genia --output scores.json

Prints precision, recall and F1 on the words of the corpus, for all entities, by label and for groups such as nested
entities, and the kinds of errors. If the corpus has its text, raw text is scored, too: the model splits sentences and
words itself, and an entity is correct if its characters and label are correct.

--report writes a new folder with report.html (a single file) and report.json: scores by label, length and depth of
nesting, errors by label, the sentences with the most errors, and with --compare a paired bootstrap test against
another model.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..installed_models import DEFAULT_MODEL
from ..model.options_triaffine import PredictionOptions
from . import options as shared


def command(
    corpus: shared.Corpus,
    model: shared.Model = None,
    split: shared.Split = None,
    corpus_format: shared.Format = None,
    max_bad_records: shared.MaxBadRecords = 0,
    threshold: shared.Threshold = None,
    overlap: shared.Overlap = PredictionOptions.overlap,  # type: ignore[assignment]
    batch_size: shared.BatchSize = PredictionOptions.batch_size,
    device: shared.Device = None,
    bf16: shared.Bf16 = False,
    output: Annotated[Path | None, typer.Option(help="File for all scores as JSON, with null for –.")] = None,
    report: Annotated[Path | None, typer.Option(help="New folder for the report.")] = None,
    compare: Annotated[str | None, typer.Option(help="Another model to compare with.", metavar="MODEL")] = None,
) -> None:
    if report is not None:
        shared.check_new(report, "--report")
    from ..evaluation.analysis import analyse, summarize, write_report
    from ..evaluation.prediction import score_raw_text
    from ..evaluation.scores import RATIOS, percentages, with_nulls
    from ..files import new_folder, open_output

    pipeline = shared.open_model(model, device, bf16, batch_size=batch_size)
    name, records, texts = shared.load_split(corpus, corpus_format, split, pipeline.processor, max_bad_records)
    others = [(compare, shared.open_model(compare, device))] if compare else []
    decoding: dict[str, Any] = {"threshold": threshold, "overlap": overlap, "batch_size": batch_size}
    analysis = analyse(
        [(model or DEFAULT_MODEL, pipeline), *others],
        records,
        corpus[0] if corpus[0].endswith(name) else f"{corpus[0]}, {name}",
        **decoding,
    )
    scores = {"given_words": analysis["scores"]}
    if texts:
        scores["raw_text"] = score_raw_text(pipeline, texts, **decoding)
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
            ratios = zip(RATIOS.values(), percentages(scores["raw_text"]), strict=True)
            print("Raw text:", ", ".join(f"{name} {ratio or '–'}" for name, ratio in ratios), file=shown)
    if report is not None:
        print(f"The report: {report / 'report.html'}", file=shown)
