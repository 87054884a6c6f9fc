"""Trains the paper's ablations on one corpus under one recipe, with several seeds, and writes the table of scores.

    python examples/ablate.py --recipe genia-minilm --train_file my_corpus/ --seeds 1 2 --output_dir outputs/ablations

Every option that is not listed here goes to `examples/train.py` (`--num_train_epochs 3`, `--max_train_samples 2000`).
A variant is what lies in `hub_configs/ablations/NAME/config.json`. A run that is there is not done again, and one that
was interrupted goes on. After each, the table is written anew to the output folder: table.md, table.csv, table.json,
and table.svg with matplotlib; mean and standard deviation over seeds of F1 in all, of flat and of nested entities, in
percent. Scores are those of the test data with --do_predict, of the validation data without.
"""

import argparse
import csv
import io
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from modeling_triaffine.errors import ending_plainly, missing_extra
from modeling_triaffine.files import open_output
from modeling_triaffine.machine import describe_machine

EXAMPLES = Path(__file__).resolve().parent
ABLATIONS = EXAMPLES.parent / "hub_configs" / "ablations"
VARIANTS = sorted(path.parent.name for path in ABLATIONS.glob("*/config.json"))
PAPER = [name for name in VARIANTS if len(name) == 1]
# Name in all_results.json (behind "eval_" or "test_") → heading of its column.
SCORES = {"f1": "F1", "flat_f1": "flat F1", "nested_f1": "nested F1"}


class Row(NamedTuple):
    """A variant's scores: score → one number in percent for each of the seeds that are finished."""

    name: str
    description: str
    seeds: list[int]
    scores: dict[str, list[float]]


def main() -> None:
    arguments, training_options = parse_arguments()
    with ending_plainly():
        check_same_options(arguments.output_dir, training_options)
        for seed in arguments.seeds:
            for variant in arguments.variants:
                train(variant, seed, arguments.output_dir, training_options)
                write_tables(arguments.output_dir)
        print((arguments.output_dir / "table.md").read_text(encoding="utf-8"), end="")


def parse_arguments() -> tuple[argparse.Namespace, list[str]]:
    """Our own arguments, and those of `train.py`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=PAPER, help="default: (a) to (h)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], help="default: 1")
    parser.add_argument("--output_dir", type=Path, required=True, help="folder of the runs and tables")
    return parser.parse_known_args()


def check_same_options(folder: Path, training_options: list[str]) -> None:
    """Raises ValueError where the runs in the folder were trained with other options: their scores do not compare."""
    path = folder / "options.json"
    if any(folder.glob("*-seed-*")) and (before := json.loads(path.read_text(encoding="utf-8"))) != training_options:
        raise ValueError(
            f"The runs in {folder} were trained with {' '.join(before)}; now the options are "
            f"{' '.join(training_options)}. Give those again, or another --output_dir."
        )
    with open_output(path) as output:
        json.dump(training_options, output)


def train(variant: str, seed: int, folder: Path, training_options: list[str]) -> None:
    """Trains one variant with one seed; goes on where it was interrupted."""
    run = folder / f"{variant}-seed-{seed}"
    if (run / "all_results.json").exists():
        return
    changes = [f"--{name}={json.dumps(value)}" for name, value in read_changes(variant).items()]
    options = [*training_options, *changes, f"--seed={seed}", f"--output_dir={run}", "--resume_from_checkpoint"]
    print(f"--- ({variant}), seed {seed}: {describe(variant)}", file=sys.stderr, flush=True)
    finished = subprocess.run([sys.executable, str(EXAMPLES / "train.py"), *options], check=False)
    if finished.returncode:
        sys.exit(finished.returncode)  # the training has told why


def read_changes(variant: str) -> dict[str, Any]:
    changes = json.loads((ABLATIONS / variant / "config.json").read_text(encoding="utf-8"))
    return {name: value for name, value in changes.items() if name != "model_type"}


def describe(variant: str) -> str:
    changes = read_changes(variant)
    related = ", related spans" if changes["cross_span"] else ""
    return f"attention {changes['attention']}, scoring {changes['scoring']}{related}"


def write_tables(folder: Path) -> None:
    """All finished runs of the folder, as Markdown, CSV, JSON and a figure."""
    rows = read_rows(folder)
    texts = {"table.md": markdown_table(rows), "table.csv": csv_table(rows), "table.json": json_table(rows)}
    for name, text in texts.items():
        with open_output(folder / name) as output:
            output.write(text)
    try:
        draw(rows, folder / "table.svg")
    except ImportError:
        print(f"No figure. {missing_extra('It needs matplotlib', 'plot')}", file=sys.stderr)


def read_rows(folder: Path) -> list[Row]:
    rows = []
    for variant in VARIANTS:
        finished = finished_runs(folder, variant)
        if finished:
            scores = {name: [run[name] for run in finished.values()] for name in SCORES}
            rows.append(Row(variant, describe(variant), list(finished), scores))
    return rows


def finished_runs(folder: Path, variant: str) -> dict[int, dict[str, float]]:
    """Seed → scores in percent, by seed; what is no run with a seed and scores is told and left out."""
    runs = {}
    for path in folder.glob(f"{variant}-seed-*/all_results.json"):
        seed = path.parent.name.rpartition("-seed-")[2]
        results = json.loads(path.read_text(encoding="utf-8"))
        split = next((split for split in ("test", "eval") if f"{split}_f1" in results), None)
        if split is None or not re.fullmatch("-?[0-9]+", seed):
            print(f"{path.parent} is not in the table: it is no run with a seed and an F1.", file=sys.stderr)
        else:
            runs[int(seed)] = {name: 100 * results[f"{split}_{name}"] for name in SCORES}
    return dict(sorted(runs.items()))


def markdown_table(rows: list[Row]) -> str:
    lines = [f"| | | seeds | {' | '.join(SCORES.values())} |", "|---" * (len(SCORES) + 3) + "|"]
    for row in rows:
        cells = [mean_and_spread(row.scores[name]) for name in SCORES]
        lines.append(f"| ({row.name}) | {row.description} | {len(row.seeds)} | {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines)


def mean_and_spread(values: list[float]) -> str:
    """`72.31 ± 0.12`; one value has no spread."""
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"


def csv_table(rows: list[Row]) -> str:
    """A line for each finished run, so that others can compute what they like."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["variant", "seed", *SCORES])
    for row in rows:
        for seed, *values in zip(row.seeds, *row.scores.values(), strict=True):
            writer.writerow([row.name, seed, *(f"{value:.4f}" for value in values)])
    return text.getvalue()


def json_table(rows: list[Row]) -> str:
    return json.dumps({"machine": describe_machine(), "rows": [row._asdict() for row in rows]}, indent=1) + "\n"


def draw(rows: list[Row], path: Path) -> None:
    """F1 of each variant: a dot a run, a bar at the mean."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(1.6 + 0.9 * len(rows), 3.8), layout="constrained")
    # Okabe and Ito's colours, which the colour-blind tell apart; markers differ too.
    for number, (name, colour, marker) in enumerate(zip(SCORES, ("#000000", "#0072B2", "#D55E00"), "os^", strict=True)):
        for place, row in enumerate(rows):
            shifted = place + 0.2 * (number - 1)
            values = row.scores[name]
            axes.plot([shifted] * len(values), values, marker, color=colour, label=SCORES[name] if not place else None)
            axes.hlines(statistics.mean(values), shifted - 0.08, shifted + 0.08, color=colour)
    axes.set_xticks(range(len(rows)), [f"({row.name})" for row in rows])
    axes.set_ylabel("percent")
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(SCORES), frameon=False)
    figure.savefig(path)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
