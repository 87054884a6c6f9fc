"""Full against low-rank triaffine tensors on a corpus: F1, time and size. One recipe, several ranks and seeds.

    python benchmarks/low_rank.py --train_file genia.train.jsonl --validation_file genia.dev.jsonl \\
        --model_name_or_path MINILM --output_dir outputs/low_rank

Trains each variant with `examples/train.py` on the first 3,000 sentences for 3 epochs and scores it on the whole
validation data. Finished runs are skipped and interrupted ones resumed; the table is rewritten after each run.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from modeling_triaffine.machine import describe_machine

TRAIN = Path(__file__).resolve().parents[1] / "examples" / "train.py"
# Name → (rank, seed). Full tensors and the recommended rank are drawn twice.
VARIANTS = {
    "rank-64-seed-1": (64, 1),
    "rank-64-seed-2": (64, 2),
    "rank-16-seed-1": (16, 1),
    "rank-32-seed-1": (32, 1),
    "rank-128-seed-1": (128, 1),
    "full-seed-1": (None, 1),
    "full-seed-2": (None, 2),
}


def main() -> None:
    arguments = parse_arguments()
    for name in arguments.only or VARIANTS:
        train(name, arguments)
        print(write_table(arguments.output_dir), flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train_file", required=True)
    parser.add_argument("--validation_file", required=True)
    parser.add_argument("--model_name_or_path", required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--recipe", default="genia-minilm")
    parser.add_argument("--max_train_samples", type=int, default=3000)
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(VARIANTS), help="These variants only.")
    return parser.parse_args()


def train(name: str, arguments: argparse.Namespace) -> None:
    folder = arguments.output_dir / name
    if (folder / "all_results.json").exists():
        return
    rank, seed = VARIANTS[name]
    options = {
        "recipe": arguments.recipe,
        "train_file": arguments.train_file,
        "validation_file": arguments.validation_file,
        "model_name_or_path": arguments.model_name_or_path,
        "max_train_samples": arguments.max_train_samples,
        "num_train_epochs": arguments.num_train_epochs,
        "triaffine_rank": "none" if rank is None else rank,
        "seed": seed,
        "eval_strategy": "no",
        "load_best_model_at_end": "false",
        "card_examples": 0,
        "words": "corpus",
        "output_dir": folder,
    }
    flags = [f"--{option}={value}" for option, value in options.items()]
    subprocess.run([sys.executable, str(TRAIN), *flags, "--resume_from_checkpoint"], check=True)


def write_table(folder: Path) -> str:
    """Writes the figures of all finished runs to `results.json` and returns them as a Markdown table."""
    rows = [row for name in VARIANTS if (row := read_trained(folder / name))]
    (folder / "results.json").write_text(json.dumps({"machine": describe_machine(), "rows": rows}, indent=1) + "\n")
    lines = ["| variant | F1 | seconds of training | checkpoint (MB) |", "|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['name']} | {100 * row['f1']:.1f} | {row['seconds']:.0f} | {row['megabytes']:.0f} |")
    return "\n".join(lines)


def read_trained(folder: Path) -> dict[str, Any] | None:
    """F1 on the validation data, time and size of a finished run; None if it is not finished."""
    results = folder / "all_results.json"
    if not results.exists():
        return None
    metrics = json.loads(results.read_text())
    rank, seed = VARIANTS[folder.name]
    figures = {name: metrics[f"eval_{name}"] for name in ("f1", "precision", "recall")}
    row = {"name": folder.name, "rank": rank, "seed": seed, **figures, "seconds": metrics["train_runtime"]}
    return row | {"megabytes": (folder / "model.safetensors").stat().st_size / 1e6}


if __name__ == "__main__":
    main()
