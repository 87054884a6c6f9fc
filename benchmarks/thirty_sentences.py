"""Prints what a model finds, misses and gets wrong in thirty sentences that were written for the purpose.

    python benchmarks/thirty_sentences.py [--model names-en] [--markdown]

The sentences and their names are in `tests/data/names_en_sentences.jsonl`: news, encyclopedia, e-mail and law.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.installed_models import find_model

SENTENCES = Path(__file__).resolve().parents[1] / "tests" / "data" / "names_en_sentences.jsonl"


def compare(model: str) -> list[dict[str, Any]]:
    """Each sentence with the names that were `found`, `missed` and found `wrong`, as (text, label)."""
    sentences = [json.loads(line) for line in SENTENCES.read_text(encoding="utf-8").splitlines()]
    predictions = NestedNERPipeline(find_model(model))([sentence["text"] for sentence in sentences])
    rows = []
    for sentence, entities in zip(sentences, predictions, strict=True):
        gold = Counter(map(tuple, sentence["names"]))
        found = Counter((entity["word"], entity["entity_group"]) for entity in entities)
        compared = {"found": gold & found, "missed": gold - found, "wrong": found - gold}
        rows.append({**sentence, **{name: [*counter.elements()] for name, counter in compared.items()}})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="names-en")
    parser.add_argument("--markdown", action="store_true", help="a table by kind of text, for the model card")
    given = parser.parse_args()
    rows = compare(given.model)
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    if given.markdown:
        print("| text | sentences | found | missed | wrong |\n|---|---|---|---|---|")
        for kind in [*kinds, None]:
            chosen = [row for row in rows if kind in (None, row["kind"])]
            counts = [str(sum(len(row[name]) for row in chosen)) for name in ("found", "missed", "wrong")]
            print(f"| {kind or 'all'} | {len(chosen)} | {' | '.join(counts)} |")
        return
    for row in rows:
        print(row["text"])
        for name in ("missed", "wrong"):
            for word, label in row[name]:
                print(f"    {name}: {word} ({label})")


if __name__ == "__main__":
    main()
