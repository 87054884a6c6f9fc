"""Makes a corpus with flat annotation of one with nested entities: only the outermost ones stay.

    python benchmarks/keep_outermost.py genia.train.jsonl genia.outermost.jsonl

With it, `accuracy.py` shows what `--flat_annotation` finds of the entities that the corpus no longer has:

    python benchmarks/accuracy.py outputs/flat --encoder MINILM --variants start flat-annotation \\
        --corpus genia-outermost=genia.outermost.jsonl,genia.dev.jsonl
"""

import argparse
import json
from pathlib import Path
from typing import Any

from modeling_triaffine.data import load_nested_ner
from modeling_triaffine.nesting import nesting_depths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    lines = []
    for record in load_nested_ner({"train": arguments.corpus})["train"]:
        kept = keep_outermost(record["entities"])
        lines.append(json.dumps({"tokens": record["tokens"], "entities": kept}, ensure_ascii=False))
    arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def keep_outermost(entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entities that are inside no other."""
    depths = nesting_depths((entity["start"], entity["end"]) for entity in entities)
    return [entity for entity in entities if depths[entity["start"], entity["end"]] == 1]


if __name__ == "__main__":
    main()
