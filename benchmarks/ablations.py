"""Trains the paper's ablations on a corpus with several seeds, and tabulates their scores.

python benchmarks/ablations.py outputs/ablations --variants a g h --seeds 1 2 --recipe demo --train_file corpus/

All other options are those of `triaffine-ner train`, the same for all runs. Finished runs are not repeated, and an
interrupted one is resumed. After each run, table.md and table.json in the folder have F1 in percent, mean and standard
deviation over seeds, for all entities and for each part, such as nested ones: of the test data with --do_predict,
otherwise of the validation data.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from measuring import describe_machine

from modeling_triaffine.drawing.tables import Table
from modeling_triaffine.evaluation.scores import summary_metrics

VARIANTS = Path(__file__).resolve().parents[1] / "hub_configs" / "ablations"
# Name in all_results.json (behind "eval_" or "test_") → heading of its column.
SCORES = {name: title for name, title in summary_metrics().items() if name.endswith("f1")}
TRAIN = [sys.executable, "-m", "modeling_triaffine.commands.train"]


def main() -> None:
    known = read_variants()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--variants", nargs="+", choices=known, default=[name for name in known if len(name) == 1])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    given, training_options = parser.parse_known_args()
    for seed in given.seeds:
        for variant in given.variants:
            train(known[variant], seed, given.folder / f"{variant}-seed-{seed}", training_options)
            write_tables(given.folder, known)
    print((given.folder / "table.md").read_text(encoding="utf-8"), end="")


def read_variants() -> dict[str, dict[str, Any]]:
    """Variant → its options."""
    variants = {}
    for path in sorted(VARIANTS.glob("*/config.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        variants[path.parent.name] = {option: value for option, value in config.items() if option != "model_type"}
    return variants


def train(options: dict[str, Any], seed: int, run: Path, training_options: list[str]) -> None:
    """Trains or resumes a variant with a seed, unless it is finished; ends this process if that fails."""
    if (run / "all_results.json").exists():
        return
    changes = [f"--{name}={as_option(value)}" for name, value in options.items()]
    changes += [f"--seed={seed}", f"--output_dir={run}", "--resume_from_checkpoint"]
    if code := subprocess.run([*TRAIN, *training_options, *changes], check=False).returncode:
        sys.exit(code)


def as_option(value: Any) -> str:
    """A value as an option of `train`: true, none, triaffine."""
    return value if isinstance(value, str) else json.dumps(value).replace("null", "none")


def write_tables(folder: Path, variants: dict[str, dict[str, Any]]) -> None:
    """Writes the scores of all finished runs as Markdown and JSON."""
    finished = {name: read_scores(folder, name) for name in variants}
    rows = [{"name": name, "options": variants[name], **scores} for name, scores in finished.items() if scores["seeds"]]
    options = list(dict.fromkeys(option for row in rows for option in row["options"]))
    cells = [
        [
            f"({row['name']})",
            *(as_option(row["options"].get(option)) for option in options),
            len(row["seeds"]),
            *(mean_and_spread(row["scores"][score]) for score in SCORES),
        ]
        for row in rows
    ]
    table = Table(["", *options, "seeds", *SCORES.values()], cells)
    (folder / "table.md").write_text(f"{table.markdown()}\n", encoding="utf-8")
    facts = {"machine": describe_machine(), "rows": rows}
    (folder / "table.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def read_scores(folder: Path, variant: str) -> dict[str, Any]:
    """The seeds of a variant's finished runs, and their scores in percent, None for those that a run does not have."""
    seeds, scores = [], {score: [] for score in SCORES}
    for path in sorted(folder.glob(f"{variant}-seed-*/all_results.json")):
        results = json.loads(path.read_text(encoding="utf-8"))
        split = "test" if "test_f1" in results else "eval"
        seeds.append(int(path.parent.name.rpartition("-")[2]))
        for score, values in scores.items():
            value = results.get(f"{split}_{score}")
            values.append(None if value is None else 100 * value)
    return {"seeds": seeds, "scores": scores}


def mean_and_spread(values: list[float | None]) -> str | None:
    """`72.31 ± 0.12` of the values that there are; a single one has no spread."""
    defined = [value for value in values if value is not None]
    spread = f" ± {statistics.stdev(defined):.2f}" if len(defined) > 1 else ""
    return f"{statistics.mean(defined):.2f}{spread}" if defined else None


if __name__ == "__main__":
    main()
