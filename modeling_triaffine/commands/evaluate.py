"""Scores a trained model on the words of a corpus; on GENIA's XML, which has the raw text, also by characters.

    triaffine-ner evaluate --model outputs/demo/model outputs/demo/corpus --split test
    triaffine-ner evaluate --model outputs/genia GENIAcorpus3.02.xml --output scores.json

Prints precision, recall and F1: of all entities, by label, and of flat and nested ones.
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
    output: Annotated[Path | None, typer.Option(help="File for all scores as JSON.")] = None,
) -> None:
    check_device(device)
    from ..evaluation.scoring import format_scores
    from ..files import open_output

    scores = evaluate(data, corpus_format, split, model, batch_size, device)
    for name, of_words in scores.items():
        print(f"{name.replace('_', ' ').capitalize()}:\n{format_scores(of_words)}\n")
    if output is not None:
        with open_output(output) as written:
            json.dump(scores, written, indent=2)


def evaluate(
    data: str, corpus_format: str | None, split: str | None, model_name: str, batch_size: int, device: str | None
) -> dict[str, dict[str, Any]]:
    """Scores by the kind of input: "given_words" and, for GENIA's XML, "raw_text"."""
    from ..data import add_context, detect_format, read_genia_documents
    from ..evaluation.prediction import predict_words, score_raw_text
    from ..evaluation.scoring import score_entities
    from ..model.modeling_triaffine import TriaffineForNestedNER
    from ..model.pipeline_triaffine import NestedNERPipeline
    from ..model.processing_triaffine import TriaffineProcessor

    model = TriaffineForNestedNER.from_pretrained(model_name)
    processor = TriaffineProcessor.from_pretrained(model_name)
    pipeline = NestedNERPipeline(model=model, processor=processor, device=device, batch_size=batch_size)
    split, corpus = load_split(data, corpus_format, split)
    records = list(add_context(corpus, processor.context, processor.max_subwords))
    unknown = {entity["type"] for record in records for entity in record["entities"]} - set(model.config.label2id or ())
    if unknown:
        print(f"The model has no label {', '.join(sorted(unknown))}: such entities are missing.", file=sys.stderr)
    found = predict_words(model, processor, records, batch_size)
    scores = {"given_words": score_entities(found, [record["entities"] for record in records])}
    path = Path(data)
    if path.is_file() and (corpus_format or detect_format(path).name) == "genia":
        documents = ({**one} for one in read_genia_documents(data) if one["split"] == split)
        scores["raw_text"] = score_raw_text(pipeline, documents)
    return scores
