"""Words a second from raw text on the CPU: PyTorch and ONNX Runtime, by precision, single texts and batches.

    triaffine-ner export --model outputs/mine --output outputs/mine-onnx
    triaffine-ner export --model outputs/mine --output outputs/mine-int8 --int8
    OMP_NUM_THREADS=1 python benchmarks/runtimes.py outputs/mine{,-onnx,-int8} --data genia.dev.jsonl

The forms take turns on the same texts. `times_torch` compares with PyTorch in float32 at the same batch size;
`same_entities` is the part of PyTorch's entities that the form finds too, and no others.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measuring import CLOCKS, Rows, products_by_mkl, read_corpus, texts_of, time_interleaved

from modeling_triaffine import NestedNERPipeline, OnnxNestedNER


def main() -> None:
    arguments = parse_arguments()
    rows = Rows("words a second from raw text")
    texts = texts_of(read_corpus(arguments.data), arguments.max_samples)
    words = sum(len(text.split()) for text in texts)
    pipeline = NestedNERPipeline(arguments.model)
    forms = {
        "torch": pipeline,
        "torch by MKL": by_mkl(pipeline),
        "torch bfloat16": NestedNERPipeline(arguments.model, dtype="bfloat16"),
        "onnx": OnnxNestedNER(arguments.graphs),
        "onnx int8": OnnxNestedNER(arguments.int8),
    }
    found = {name: entities_of(form(texts, batch_size=32)) for name, form in forms.items()}
    for batch_size in arguments.batch_sizes:
        calls = {name: partial(form, texts, batch_size=batch_size) for name, form in forms.items()}
        seconds = time_interleaved(calls, arguments.repeats, clock=CLOCKS[arguments.clock])
        for name, taken in seconds.items():
            rows.add(
                runtime=name,
                batch_size=batch_size,
                clock=arguments.clock,
                threads=torch.get_num_threads(),
                words=words,
                words_a_second=round(words / taken),
                times_torch=round(seconds["torch"] / taken, 2),
                same_entities=round(len(found[name] & found["torch"]) / len(found[name] | found["torch"]), 4),
            )
    rows.write(arguments.output)


def by_mkl(pipeline: NestedNERPipeline) -> Callable[..., Any]:
    def call(texts: list[str], batch_size: int) -> Any:
        with products_by_mkl():
            return pipeline(texts, batch_size=batch_size)

    return call


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="Folder of a model.")
    parser.add_argument("graphs", help="Folder that `triaffine-ner export` wrote.")
    parser.add_argument("int8", help="Folder that `triaffine-ner export --int8` wrote.")
    parser.add_argument("--data", help="Corpus file or folder, the first split of it; default: the demo corpus.")
    parser.add_argument("--max_samples", type=int, default=256, help="Sentences that are read.")
    parser.add_argument("--batch_sizes", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="Processor time is of all threads.")
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def entities_of(found: list[list[dict[str, Any]]]) -> set[tuple[Any, ...]]:
    return {
        (text, one["start"], one["end"], one["entity_group"]) for text, entities in enumerate(found) for one in entities
    }


if __name__ == "__main__":
    main()
