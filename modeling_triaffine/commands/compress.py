"""Compresses a trained model: its full triaffine tensors become low-rank ones, without training.

    triaffine-ner compress --model outputs/genia-full --rank 64 --data genia/train.jsonl --output outputs/genia-64

With --data, sentences like those the model is meant for, the error is made small where it matters for such sentences,
and the scores' errors are told; labels are not read. The new folder, model and processor, appears when it is whole.
"""

import argparse
from pathlib import Path

from torch import Tensor

from ..compression import compress_triaffine, format_report
from ..data import add_context
from ..modeling_triaffine import TriaffineForNestedNER
from ..processing_triaffine import TriaffineProcessor
from ..scripts import check_device, new_folder
from . import arguments as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help="folder or Hub name of a trained model with full tensors")
    parser.add_argument(
        "--rank", type=shared.positive_integer, required=True, help="terms of each label's tensor, such as 64"
    )
    parser.add_argument("--output", type=Path, required=True, help="new folder for the compressed model")
    parser.add_argument("--data", help="corpus: a file, or a folder with train, dev and test")
    shared.add_split(parser, "train")
    shared.add_corpus_format(parser)
    parser.add_argument(
        "--sentences", type=shared.positive_integer, default=300, help="read from the corpus, evenly spread over it"
    )
    shared.add_batch_size(parser, default=16)
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1 …")


def run(arguments: argparse.Namespace) -> None:
    check_device(arguments.device)
    if arguments.output.exists():
        raise ValueError(f"--output {arguments.output} is there already; give the name of a new folder.")
    compress(arguments)


def compress(arguments: argparse.Namespace) -> None:
    model = TriaffineForNestedNER.from_pretrained(arguments.model).to(arguments.device)
    processor = TriaffineProcessor.from_pretrained(arguments.model)
    processor.check_fits(model.config)
    sample = None if arguments.data is None else read_sample(arguments, processor)
    compressed, report = compress_triaffine(model, arguments.rank, sample)
    with new_folder(arguments.output) as folder:
        compressed.save_pretrained(folder)
        processor.save_pretrained(folder)
    print(format_report(report))


def read_sample(arguments: argparse.Namespace, processor: TriaffineProcessor) -> list[dict[str, Tensor]]:
    """Batches of sentences of like length."""
    _, corpus = shared.load_split(arguments)
    corpus = add_context(corpus, processor.context, processor.max_subwords)
    count = min(arguments.sentences, len(corpus))
    records = corpus.select([len(corpus) * number // count for number in range(count)])
    features = processor.encode(*(records[side] for side in ("tokens", "pos", "left_tokens", "right_tokens")))
    features.sort(key=lambda feature: feature["num_words"])
    size = arguments.batch_size
    return [processor.pad(features[first : first + size]) for first in range(0, count, size)]
