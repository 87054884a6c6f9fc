"""Memory of marking one text of growing length, and how much of it is there when the text has been read.

    python benchmarks/long_texts.py --model outputs/demo/model --words 10000 100000 1000000

Each length is measured in a process of its own, in which the model has marked a short text before. The text is that of
a file, or of the demo corpus's test sentences, again and again up to the length; with --one_sentence their words stand
without a full stop between them, so that all of it is scored in overlapping windows. `peak_mb` is the most memory that
the process ever held, what it found (`entities`) included; `words_per_second` are of processor time.
"""

import argparse
import itertools
import multiprocessing
import resource
from pathlib import Path
from time import process_time
from typing import Any

import torch
from measuring import Rows, read_corpus, texts_of
from transformers.utils import logging

from modeling_triaffine import NestedNERPipeline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="Folder or Hub name of a trained model.")
    parser.add_argument("--words", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--text", type=Path, help="Text file instead of the demo corpus, in UTF-8.")
    parser.add_argument("--one_sentence", action="store_true", help="All of the text is one sentence.")
    parser.add_argument("--output", type=Path, help="JSON lines to write, after one line on the machine.")
    arguments = parser.parse_args()
    rows = Rows("one long text")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for words in arguments.words:
            rows.add(**pool.apply(measure, (arguments.model, arguments.text, words, arguments.one_sentence)))
    rows.write(arguments.output)


def measure(model: str, file: Path | None, words: int, one_sentence: bool) -> dict[str, Any]:
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    find_entities = NestedNERPipeline(model=model, device="cpu")
    source = " ".join(texts_of(read_corpus(None, "test"))) if file is None else file.read_text(encoding="utf-8")
    text = make_text(source, words, one_sentence)
    find_entities(text[:10_000])
    started = process_time()
    entities = find_entities(text)
    seconds = process_time() - started
    return {
        "words": words,
        "one_sentence": one_sentence,
        "characters": len(text),
        "entities": len(entities),
        "words_per_second": round(words / seconds),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),  # Linux counts kilobytes
    }


def make_text(text: str, words: int, one_sentence: bool) -> str:
    """A text, again and again, up to a number of words."""
    parts = itertools.cycle(text.split())
    kept = (word.rstrip(".?!;:") or "and" if one_sentence else word for word in parts)
    return " ".join(itertools.islice(kept, words))


if __name__ == "__main__":
    main()
