"""Puts a second label on about half of a corpus' entities, to train and score models with several labels a span.

    python benchmarks/second_labels.py outputs/demo/corpus outputs/second --seed 0
    triaffine-ner train --recipe demo --multi_label true --train_file outputs/second --output_dir outputs/second/model

Entities fall into classes by type and number of words (1, 2, 3 and more). Classes are drawn by the seed until they have
half of the training entities; every entity of a drawn class gets SECOND_1 or SECOND_2, drawn for the class. So what a
model has to know for the second label is in the sentence. Writes a folder of JSON lines, one file for each split.
"""

import argparse
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from modeling_triaffine.data import load_nested_ner

SECOND = ("SECOND_1", "SECOND_2")


def class_of(entity: dict[str, Any]) -> tuple[str, int]:
    return entity["type"], min(entity["end"] - entity["start"], 3)


def draw_classes(records: Any, share: float, seed: int) -> dict[tuple[str, int], str]:
    """The second label of each drawn class; together the classes have at least this share of the entities."""
    sizes = Counter(class_of(entity) for record in records for entity in record["entities"])
    draw = random.Random(seed)
    drawn: dict[tuple[str, int], str] = {}
    for one in draw.sample(sorted(sizes), len(sizes)):
        if sum(sizes[name] for name in drawn) >= share * sizes.total():
            break
        drawn[one] = draw.choice(SECOND)
    return drawn


def add_second_labels(record: dict[str, Any], drawn: dict[tuple[str, int], str]) -> dict[str, Any]:
    second = [{**entity, "type": drawn[class_of(entity)]} for entity in record["entities"] if class_of(entity) in drawn]
    unique = {tuple(entity.items()): entity for entity in [*record["entities"], *second]}
    return {**record, "entities": list(unique.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("output", type=Path)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    splits = load_nested_ner(options.corpus)
    drawn = draw_classes(splits["train"], options.share, options.seed)
    options.output.mkdir(parents=True, exist_ok=True)
    for split, records in splits.items():
        labelled = [add_second_labels(record, drawn) for record in records]
        with open(options.output / f"{split}.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in labelled)
        entities = [entity["type"] in SECOND for record in labelled for entity in record["entities"]]
        print(
            f"{split}: {len(labelled):,} sentences, {len(entities):,} entities, {sum(entities):,} of them second labels"
        )


if __name__ == "__main__":
    main()
