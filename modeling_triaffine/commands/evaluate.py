"""Scores a trained model on the words of a corpus and, if the corpus has its text, on raw text.

    triaffine-ner evaluate --model outputs/demo/model outputs/demo/corpus --split test
    triaffine-ner evaluate --model outputs/genia GENIAcorpus3.02.xml --output scores.json

Prints precision, recall and F1 for all entities, by label, and for groups such as nested entities. On raw text, the
model splits sentences and words itself, and an entity is correct if its characters and label are correct.
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..model.options_triaffine import PredictionOptions
from .corpus_split import load_split
from .options import BatchSize, Bf16, Corpus, Device, Format, Int8, MaxBadRecords, Model, Split, precision


def command(
    data: Corpus,
    model: Model,
    split: Split = None,
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    batch_size: BatchSize = PredictionOptions.batch_size,
    device: Device = None,
    raw_text: Annotated[
        bool | None,
        typer.Option("--raw-text/--no-raw-text", help="Also score raw text.  [default: if the corpus has its text]"),
    ] = None,
    int8: Int8 = False,
    bf16: Bf16 = False,
    output: Annotated[Path | None, typer.Option(help="File for all scores as JSON, with null for –.")] = None,
) -> None:
    if output is not None and output.is_dir():
        raise ValueError(f"--output {output} is a folder. Give the name of a file.")
    from ..evaluation.prediction import predict_words, score_raw_text, unknown_labels, with_context
    from ..evaluation.scores import format_all_scores
    from ..evaluation.scoring import score_entities
    from ..files import open_output
    from ..model.pipeline_triaffine import NestedNERPipeline

    pipeline = NestedNERPipeline(model=model, device=device, batch_size=batch_size, **precision(int8, bf16))
    corpus = load_split(data, corpus_format, split, pipeline.processor, max_bad_records)
    read = [file for part in corpus.files.files.values() for file in part.files]
    if output is not None and output.exists() and any(map(output.samefile, read)):
        raise ValueError(f"--output {output} is a file of the corpus, which would be lost. Give another name.")
    records = with_context(corpus.records, pipeline.processor, pipeline.model.config.auxiliary_labels)
    if unknown := unknown_labels(records, pipeline.model.config):
        print(f"The model has no label {', '.join(unknown)}; such entities count as missing.", file=sys.stderr)
    found = predict_words(pipeline.model, pipeline.processor, records, batch_size)
    scores = {"given_words": score_entities(found, [record["entities"] for record in records])}
    if raw_text or (raw_text is None and corpus.files.keeps_text):
        scores["raw_text"] = score_raw_text(pipeline, corpus.texts())
    tables = sys.stderr if str(output) == "-" else sys.stdout  # where JSON goes to standard output
    try:
        if output is not None:
            with open_output(output) as written:
                json.dump({kind: of_words.with_nulls() for kind, of_words in scores.items()}, written, indent=2)
    finally:  # a reader of the tables may close the pipe
        print(format_all_scores(scores), file=tables)
