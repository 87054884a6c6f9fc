"""Scores a trained model on the words of a corpus; where the corpus has its text, also on raw text, by characters.

    triaffine-ner evaluate --model outputs/demo/model outputs/demo/corpus --split test
    triaffine-ner evaluate --model outputs/genia GENIAcorpus3.02.xml --output scores.json

Prints precision, recall and F1: of all entities, by label, and of flat and nested ones. On raw text, an entity is right
if its characters and label are; sentences and words are those that the model cuts.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import BatchSize, Corpus, Device, Format, Model, Split, check_device, load_split


def command(
    data: Corpus,
    model: Model,
    split: Split = None,
    corpus_format: Format = None,
    batch_size: BatchSize = 32,
    device: Device = None,
    raw_text: Annotated[
        bool | None,
        typer.Option("--raw-text/--no-raw-text", help="Score raw text, too.  [default: where the corpus has its text]"),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="File for all scores as JSON.")] = None,
) -> None:
    check_device(device)
    from ..evaluation.scoring import format_scores
    from ..files import open_output

    scores = evaluate(data, corpus_format, split, model, batch_size, device, raw_text)
    for name, of_words in scores.items():
        print(f"{name.replace('_', ' ').capitalize()}:\n{format_scores(of_words)}\n")
    if output is not None:
        with open_output(output) as written:
            json.dump(scores, written, indent=2)


def evaluate(
    data: str,
    corpus_format: str | None,
    split: str | None,
    model_name: str,
    batch_size: int,
    device: str | None,
    raw_text: bool | None = None,
) -> dict[str, dict[str, Any]]:
    """Scores by the kind of input: "given_words" and, if `raw_text`, "raw_text"; None: where the corpus has its text.

    Raises:
        CorpusError: raw text is asked for, but the corpus has words only.
    """
    from ..data import load_texts
    from ..data.loading import formats_of
    from ..evaluation.prediction import predict_words, score_raw_text, unknown_labels, with_context
    from ..evaluation.scoring import score_entities
    from ..model.pipeline_triaffine import NestedNERPipeline

    pipeline = NestedNERPipeline(model=model_name, device=device, batch_size=batch_size)
    model: Any = pipeline.model
    split, corpus = load_split(data, corpus_format, split)
    records = with_context(corpus, pipeline.processor)
    if unknown := unknown_labels(records, model.config):
        print(f"The model has no label {', '.join(unknown)}: such entities are missing.", file=sys.stderr)
    found = predict_words(model, pipeline.processor, records, batch_size)
    scores = {"given_words": score_entities(found, [record["entities"] for record in records])}
    has_text = all(known.read_texts is not None for known in formats_of(data, corpus_format))
    if raw_text or (raw_text is None and has_text):
        scores["raw_text"] = score_raw_text(pipeline, load_texts(data, corpus_format).get(split, []))
    return scores
