"""The demo corpus: English sentences about fictitious towns, companies and people, with nested entities.

It is for first steps, tests and timing; scores on it show that training works and say nothing about real text. The
1,500 sentences in `demo_corpus.jsonl` were written once by a grammar:

- An entity is a name of one of five types, or a definite phrase of such a type that contains a name ("the mayor of
  Orsk", but not "a nurse from Orsk"), up to three levels deep: [the rector of [the University of [Orsk]]].
- The same name is a person in one document, and a town, a company or part of a longer name in others. Its sentence
  always determines the type.
- The names of one split never occur in another one; any similarity to real names is coincidental.
"""

import json
import os
from pathlib import Path

from ..files import open_output
from .schema import Record

CORPUS = Path(__file__).with_name("demo_corpus.jsonl")  # one sentence a line, in the schema of this package


def demo_corpus(sentences: int = 1500) -> dict[str, list[Record]]:
    """The first records of each split, in all as many as `sentences` (at least 10); `train` has four fifths of them."""
    others = sentences // 10
    sizes = {"train": sentences - 2 * others, "validation": others, "test": others}
    records: list[Record] = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    return {
        split: [record for record in records if record["doc_id"].startswith(split)][:size]
        for split, size in sizes.items()
    }


def write_demo_corpus(folder: str | os.PathLike[str], sentences: int = 1500) -> None:
    """Writes `train.jsonl`, `validation.jsonl` and `test.jsonl`, or replaces them; see [`demo_corpus`]."""
    for split, records in demo_corpus(sentences).items():
        with open_output(Path(folder, f"{split}.jsonl")) as output:
            output.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
