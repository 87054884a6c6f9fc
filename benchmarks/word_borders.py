"""Counts the entities that word splitters can express: those whose first and last character are a word's.

    python benchmarks/word_borders.py GENIAcorpus3.02.xml gum.train.conllu --encoder MINILM

The corpora need their text (`load_texts`). A model that scores spans of words cannot find other entities in raw text;
the number of words is what the time of a sentence grows with.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from measuring import describe_machine, source_revision
from tokenizers import Regex, pre_tokenizers
from transformers import AutoTokenizer

from modeling_triaffine.data import Text, align_entities, load_texts
from modeling_triaffine.model.text_triaffine import Offsets, word_splitter

Splitter = Callable[[str], list[Offsets]]
DEFAULT = "punctuation"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--encoder", required=True, help="Folder or Hub name of the encoder, for its sub-words.")
    parser.add_argument("--output", type=Path, help="JSON file of the results.")
    arguments = parser.parse_args()
    splitters = make_splitters(arguments.encoder)
    rows = []
    for path in arguments.corpora:
        texts = [text for split in load_texts(path).values() for text in split]
        for row in measure(texts, splitters):
            rows.append({"corpus": path.name, **row})
            print(json.dumps(rows[-1]), flush=True)
    if arguments.output:
        facts = {"machine": describe_machine(), **source_revision(Path(__file__)), "rows": rows}
        arguments.output.write_text(json.dumps(facts, indent=1) + "\n")


def make_splitters(encoder: str) -> dict[str, Splitter]:
    """Splitters of `--word_splitter`, and one that is not offered: also before capitals inside a word."""
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    finer = word_splitter("letters_and_digits")
    before_capitals = pre_tokenizers.Split(Regex(r"(?<=\p{Ll})(?=\p{Lu})"), "isolated")

    def at_capitals(text: str) -> list[Offsets]:
        return [
            (first + start, first + end)
            for first, last in finer(text)
            for _, (start, end) in before_capitals.pre_tokenize_str(text[first:last])
        ]

    def subwords(text: str) -> list[Offsets]:
        found: list[Offsets] = []
        for start, end in word_splitter(DEFAULT)(text):
            pieces = tokenizer(text[start:end], add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
            found += pairwise([start, *(start + first for first, _ in pieces[1:]), end])
        return found

    return {
        DEFAULT: word_splitter(DEFAULT),
        "whitespace": word_splitter("whitespace"),
        "and between letters and digits": finer,
        "and before capitals inside a word": at_capitals,
        "sub-words of the encoder": subwords,
    }


def measure(texts: list[Text], splitters: dict[str, Splitter]) -> Iterator[dict[str, Any]]:
    default_words = 0
    for name, split in splitters.items():
        start = time.perf_counter()
        words = entities = lost = 0
        for text in texts:
            offsets = split(text["text"])
            words += len(offsets)
            entities += len(text["entities"])
            lost += len(align_entities(text["text"], text["entities"], offsets)[1])
        default_words = default_words or words
        yield {
            "splitter": name,
            "words": words,
            "times_default": round(words / default_words, 3),
            "entities": entities,
            "lost": lost,
            "lost_percent": round(100 * lost / entities, 3),
            "seconds": round(time.perf_counter() - start, 1),
        }


if __name__ == "__main__":
    main()
