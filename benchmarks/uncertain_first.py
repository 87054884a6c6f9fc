"""Active learning: F1 after 500, 1,000 and 2,000 sentences, chosen at random or the least sure first.

    python benchmarks/uncertain_first.py outputs/uncertain --encoder MINILM --train train.jsonl --dev dev.jsonl

Both orders begin with the same random sentences; then a model trained on what is annotated so far orders the rest of
the pool, and the first of them are annotated: their gold entities are added. Every model is trained from
the encoder on. A training that is finished is skipped, so the same command goes on after any stop; `results.json` in
the folder is written anew after each. The dev sentences are only scored, nothing is chosen on them.
"""

import argparse
import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuracy import SCORED_ONCE, TRAIN
from measuring import describe_machine, source_revision
from torch import Tensor

from modeling_triaffine import TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.data import load_nested_ner
from modeling_triaffine.evaluation.prediction import read_records, uncertainty

ORDERS = ("random", "uncertain")
Record = dict[str, Any]


def main() -> None:
    arguments = parse_arguments()
    train = list(load_nested_ner(arguments.train)["train"])
    found: list[dict[str, Any]] = []
    for seed in arguments.seeds:
        pool = random.Random(seed).sample(train, min(arguments.pool, len(train)))
        for order in ORDERS:
            chosen: list[Record] = []
            rest, folder = pool, None
            for size in arguments.sizes:
                if order == "uncertain" and folder is not None:
                    rest = least_sure_first(rest, folder)
                number = size - len(chosen)
                chosen, rest = [*chosen, *rest[:number]], rest[number:]
                shared = order == "random" or size == arguments.sizes[0]
                folder = arguments.folder / f"{'random' if shared else 'margin'}-{size}-{seed}"
                f1 = train_and_score(chosen, folder, seed, arguments)
                entities = sum(len(record["entities"]) for record in chosen)
                words = sum(len(record["tokens"]) for record in chosen)
                row = {"order": order, "sentences": size, "words": words, "entities": entities, "seed": seed, "f1": f1}
                print(row, flush=True)
                found.append(row)
                write_results(found, arguments)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder of the trainings and of results.json.")
    parser.add_argument("--train", required=True, help="Sentences that can be annotated.")
    parser.add_argument("--dev", required=True, help="Sentences that are scored.")
    parser.add_argument("--encoder", required=True, help="Folder or Hub name of the encoder.")
    parser.add_argument("--recipe", default="genia-minilm")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000], help="Sentences annotated.")
    parser.add_argument("--pool", type=int, default=6000, help="Sentences to choose from.")
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    return parser.parse_args()


def least_sure_first(records: Sequence[Record], folder: Path) -> list[Record]:
    """The records in the order in which the model in a folder is unsure of them."""
    model, processor = TriaffineForNestedNER.from_pretrained(folder), TriaffineProcessor.from_pretrained(folder)

    def read(inputs: dict[str, Tensor]) -> list[float]:
        values: list[float] = uncertainty(model(**inputs), model.config).tolist()
        return values

    unsure = read_records(model, processor, records, read, doing="Choosing")
    return [records[row] for row in sorted(range(len(records)), key=unsure.__getitem__, reverse=True)]


def train_and_score(records: Sequence[Record], folder: Path, seed: int, arguments: argparse.Namespace) -> float:
    """F1 on the dev sentences of a model trained on these records; read from the folder if it is finished."""
    results = folder / "all_results.json"
    if not results.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        chosen = folder.with_suffix(".jsonl")
        chosen.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
        options = {
            "recipe": arguments.recipe,
            "model_name_or_path": arguments.encoder,
            "train_file": chosen,
            "test_file": arguments.dev,
            "num_train_epochs": arguments.num_train_epochs,
            **SCORED_ONCE,
            "save_strategy": "no",
            "words": "corpus",
            "seed": seed,
            "output_dir": folder,
        }
        subprocess.run([*TRAIN, *(f"--{name}={value}" for name, value in options.items())], check=True)
    metrics: dict[str, float] = json.loads(results.read_text())
    return metrics["test_f1"]


def write_results(found: Sequence[dict[str, Any]], arguments: argparse.Namespace) -> None:
    said = {
        name: str(value) for name, value in vars(arguments).items() if name not in ("folder", "train", "dev", "encoder")
    }
    header = {**said, **describe_machine(), **source_revision(Path(__file__))}
    (arguments.folder / "results.json").write_text(json.dumps({**header, "results": list(found)}, indent=1))


if __name__ == "__main__":
    main()
