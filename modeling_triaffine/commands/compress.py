"""Compresses a trained model: its full triaffine tensors become low-rank ones, without training.

    python examples/compress.py --model outputs/genia-full --rank 64 --data genia/train.jsonl --output outputs/genia-64

With --data, sentences like those the model is meant for, the error is made small where it matters for such sentences,
and the scores' errors are told; labels are not read. The new folder, model and processor, appears when it is whole.
"""

import argparse
import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from modeling_triaffine import TriaffineForNestedNER, TriaffineProcessor, load_nested_ner
from modeling_triaffine.compression import compress_triaffine, format_report
from modeling_triaffine.data import add_context
from modeling_triaffine.scripts import check_device, exit_with_message


def main() -> None:
    arguments = parse_arguments()
    try:
        check_device(arguments.device)
        if arguments.output.exists():
            raise ValueError(f"--output {arguments.output} is there already; give the name of a new folder.")
        compress(arguments)
    except (ValueError, OSError) as error:
        exit_with_message(error)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder or Hub name of a trained model with full tensors")
    parser.add_argument("--rank", type=int, required=True, help="terms of each label's tensor, such as 64")
    parser.add_argument("--output", type=Path, required=True, help="new folder for the compressed model")
    parser.add_argument("--data", help="corpus: a JSON-lines file, a folder of splits, or GENIA's XML")
    parser.add_argument("--split", default="train", help="of the corpus: train (default), validation or test")
    parser.add_argument("--format", help="of the corpus (default: told from its name and content)")
    parser.add_argument("--sentences", type=int, default=300, help="read from the corpus, evenly spread over it")
    parser.add_argument("--batch_size", type=int, default=16, help="sentences that run together")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1 …")
    return parser.parse_args()


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
    splits = load_nested_ner(arguments.data, arguments.format)
    if arguments.split not in splits:
        raise ValueError(f"{arguments.data} has no split {arguments.split!r}; it has {', '.join(splits)}.")
    for name in ("sentences", "batch_size"):
        if getattr(arguments, name) < 1:
            raise ValueError(f"--{name} is {getattr(arguments, name)}; give at least 1.")
    corpus = add_context(splits[arguments.split], processor.context, processor.max_subwords)
    count = min(arguments.sentences, len(corpus))
    records = corpus.select([len(corpus) * number // count for number in range(count)])
    features = processor.encode(*(records[side] for side in ("tokens", "pos", "left_tokens", "right_tokens")))
    features.sort(key=lambda feature: feature["num_words"])
    size = arguments.batch_size
    return [processor.pad(features[first : first + size]) for first in range(0, count, size)]


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that gets its name when all is written and leaves nothing behind when it is not."""
    unfinished = path.with_name(f"{path.name}.incomplete")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


if __name__ == "__main__":
    main()
