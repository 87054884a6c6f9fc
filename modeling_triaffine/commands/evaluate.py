"""Scores a trained model on a corpus' words; for GENIA's XML, which holds its raw text, also on that by characters.

    triaffine-ner evaluate --model outputs/demo/model outputs/demo/corpus --split test
    triaffine-ner evaluate --model outputs/genia GENIAcorpus3.02.xml --output scores.json

Prints precision, recall and F1: all entities first, then by label, flat and nested ones.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ..data import add_context, detect_format, read_genia_documents
from ..evaluation.prediction import predict_words, score_raw_text
from ..evaluation.scoring import format_scores, score_entities
from ..files import open_output
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.processing_triaffine import TriaffineProcessor
from . import arguments as shared
from .arguments import check_device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="corpus: a file, or a folder with train, dev and test")
    shared.add_model(parser)
    shared.add_split(parser, "validation")
    shared.add_corpus_format(parser)
    shared.add_batch_size(parser, default=32)
    shared.add_device(parser)
    parser.add_argument("--output", type=Path, help="file for all scores as JSON")


def run(arguments: argparse.Namespace) -> None:
    check_device(arguments.device)
    scores = evaluate(arguments)
    for name, of_words in scores.items():
        print(f"{name.replace('_', ' ').capitalize()}:\n{format_scores(of_words)}\n")
    if arguments.output:
        with open_output(arguments.output) as output:
            json.dump(scores, output, indent=2)


def evaluate(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Scores by the kind of input: "given_words" and, for GENIA's XML, "raw_text"."""
    model = TriaffineForNestedNER.from_pretrained(arguments.model)
    processor = TriaffineProcessor.from_pretrained(arguments.model)
    pipeline = NestedNERPipeline(
        model=model, processor=processor, device=arguments.device, batch_size=arguments.batch_size
    )
    split, corpus = shared.load_split(arguments)
    records = list(add_context(corpus, processor.context, processor.max_subwords))
    labels = set(model.config.label2id or ())
    unknown = {entity["type"] for record in records for entity in record["entities"]} - labels
    if unknown:
        print(f"The model has no label {', '.join(sorted(unknown))}: such entities are missed.", file=sys.stderr)
    found = predict_words(model, processor, records, arguments.batch_size)
    scores = {"given_words": score_entities(found, [record["entities"] for record in records])}
    path = Path(arguments.data)
    if path.is_file() and (arguments.format or detect_format(path).name) == "genia":
        documents = ({**one} for one in read_genia_documents(arguments.data) if one["split"] == split)
        scores["raw_text"] = score_raw_text(pipeline, documents)
    return scores
