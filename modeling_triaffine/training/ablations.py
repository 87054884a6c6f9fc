"""The paper's ablations: their options, a run of one with a seed, and tables and a figure of their scores."""

import csv
import itertools
import json
import logging
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..drawing.figure_style import BLACK, BLUE, GREEN, PURPLE, VERMILION, figure_style, save
from ..drawing.tables import Table
from ..environment import describe_machine
from ..evaluation.scores import defined_ratios, summary_metrics
from ..files import open_output, write_text
from ..publishing.run_summary import RunSummary
from .checkpoints import RESULTS_FILE
from .plan import parse_given, recipe_library, suggestion

logger = logging.getLogger(__name__)

RESUMING = "resume_from_checkpoint"
"""The option of `train` with which a run goes on, or begins."""

# Name in all_results.json (behind "eval_" or "test_") → heading of its column.
SCORES = {name: title for name, title in summary_metrics().items() if name.endswith("f1")}
DOTS = ((BLACK, "o"), (BLUE, "s"), (VERMILION, "^"), (GREEN, "D"), (PURPLE, "v"))


def read_variants() -> dict[str, dict[str, Any]]:
    """Variant → its options."""
    variants = {}
    for path in sorted(recipe_library().glob("ablations/*/config.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        variants[path.parent.name] = {option: value for option, value in config.items() if option != "model_type"}
    return variants


def choose_variants(names: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Variant → its options, by default of those in the paper; raises ValueError if there is no such variant."""
    known = read_variants()
    for name in names or ():
        if name not in known:
            meant = suggestion(name, known)
            raise ValueError(f"--variants: there is no variant {name!r}.{meant} There are {', '.join(known)}.")
    return {name: known[name] for name in names or (name for name in known if len(name) == 1)}


def check_same_options(folder: Path, training_options: list[str]) -> None:
    """Raises ValueError if the runs in the folder have other options, so that scores are not comparable."""
    path = folder / "options.json"
    if any(folder.glob("*-seed-*")):
        if not path.is_file():
            raise ValueError(
                f"{folder} has runs, but no {path.name} with the options that they were trained with. Restore it, or "
                "give another --output_dir."
            )
        before = json.loads(path.read_text(encoding="utf-8"))
        resuming = {RESUMING: None}  # given or not, every run has it
        if {**parse_given(before), **resuming} != {**parse_given(training_options), **resuming}:
            raise ValueError(
                f"The runs in {folder} were trained with {' '.join(before)}; now the options are "
                f"{' '.join(training_options)}. Give the same options, or another --output_dir."
            )
    write_text(path, json.dumps(training_options))


def check_own_options(variants: dict[str, dict[str, Any]], training_options: list[str]) -> None:
    """Raises ValueError for options that the variants set themselves, and for those of one run on the Hub."""
    own = {"seed", "hub_token", "hub_model_id", "push_to_hub"}.union(*variants.values())
    if given := own & parse_given(training_options).keys():
        raise ValueError(
            f"--{', --'.join(sorted(given))}: the variants and --seeds say this of each run, all runs would be in one "
            "repository on the Hub (publish one by triaffine-ner publish), and a token would be saved with the options "
            "(set HF_TOKEN instead). Leave it out."
        )


def train_variant(variant: str, options: dict[str, Any], seed: int, folder: Path, training_options: list[str]) -> int:
    """Trains or resumes a variant with a seed; returns the exit code."""
    run = folder / f"{variant}-seed-{seed}"
    if (run / RESULTS_FILE).exists():
        return 0
    changes = [f"--{name}={as_option(value)}" for name, value in options.items()]
    changes += [f"--seed={seed}", f"--output_dir={run}", f"--{RESUMING}"]
    logger.info("--- (%s), seed %d: %s", variant, seed, options)
    program = [sys.executable, "-m", "modeling_triaffine.commands.train"]
    return subprocess.run([*program, *training_options, *changes], check=False).returncode


def as_option(value: Any) -> str:
    """A value as an option of `train`: true, none, triaffine."""
    return value if isinstance(value, str) else json.dumps(value).replace("null", "none")


# ---- Scores ----


class Row(NamedTuple):
    """The scores of a variant: name → a number in percent for each finished seed, None if it is undefined."""

    name: str
    options: dict[str, Any]
    seeds: list[int]
    scores: dict[str, list[float | None]]


def write_tables(folder: Path) -> None:
    """Writes the scores of all finished runs as Markdown, CSV (one line per run), JSON and a figure."""
    rows = read_rows(folder)
    columns = list(rows[0].options) if rows else []  # which differ between variants
    shown = {name: SCORES[name] for name in (rows[0].scores if rows else SCORES)}
    of_variants: list[list[str | int | None]] = []
    of_runs: list[list[Any]] = []
    for row in rows:
        options = [as_option(value) for value in row.options.values()]
        of_variants.append([f"({row.name})", *options, len(row.seeds), *map(mean_and_spread, row.scores.values())])
        for seed, *values in zip(row.seeds, *row.scores.values(), strict=True):
            of_runs.append([row.name, *options, seed, *(None if value is None else f"{value:.4f}" for value in values)])
    table = Table(["", *columns, "seeds", *shown.values()], of_variants)
    write_text(folder / "table.md", f"{table.markdown()}\n")
    with open_output(folder / "table.csv") as file:
        csv.writer(file, lineterminator="\n").writerows([["variant", *columns, "seed", *shown], *of_runs])
    facts = {"machine": describe_machine(), "rows": [row._asdict() for row in rows]}
    write_text(folder / "table.json", json.dumps(facts, indent=1) + "\n")
    try:
        draw(rows, folder / "table.svg")
    except ImportError as error:
        logger.warning("No figure: %s", error)


def mean_and_spread(values: list[float | None]) -> str | None:
    """`72.31 ± 0.12` of the defined values; a single one has no spread, none is None."""
    defined = [value for value in values if value is not None]
    spread = f" ± {statistics.stdev(defined):.2f}" if len(defined) > 1 else ""
    return f"{statistics.mean(defined):.2f}{spread}" if defined else None


def read_rows(folder: Path) -> list[Row]:
    """The variants with finished runs, and their options that differ between them."""
    variants = read_variants()
    found = {name: finished_runs(folder, name) for name in variants}
    options = differing({name: variants[name] for name, runs in found.items() if runs})
    # Not those that were unknown when a run was made.
    shown = [score for score in SCORES if all(score in run for runs in found.values() for run in runs.values())]
    return [
        Row(name, options[name], list(runs), {score: [run[score] for run in runs.values()] for score in shown})
        for name, runs in found.items()
        if runs
    ]


def differing(variants: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options whose values differ between variants; all options of a single variant."""
    names = dict.fromkeys(option for options in variants.values() for option in options)
    values = {name: [options.get(name) for options in variants.values()] for name in names}
    kept = [name for name in names if len(variants) == 1 or any(value != values[name][0] for value in values[name])]
    return {variant: {name: options.get(name) for name in kept} for variant, options in variants.items()}


def finished_runs(folder: Path, variant: str) -> dict[int, dict[str, float | None]]:
    """Seed → scores in percent, sorted; other folders of the variant are reported."""
    runs = {}
    for path in folder.glob(f"{variant}-seed-*/{RESULTS_FILE}"):
        seed = path.parent.name.rpartition("-seed-")[2]
        results = json.loads(path.read_text(encoding="utf-8"))
        split = next((split for split in ("test", "eval") if f"{split}_f1" in results), None)
        if split is None or not re.fullmatch("-?[0-9]+", seed):
            logger.warning("%s is not in the table: it is not a run with a seed and an F1.", path.parent)
        else:
            known = {name: results.get(f"{split}_{name}") for name in SCORES}
            scores: dict[str, float | None] = {name: 100 * value for name, value in known.items() if value is not None}
            runs[int(seed)] = scores | dict.fromkeys(undefined_scores(path.parent))
    return dict(sorted(runs.items()))


def undefined_scores(run: Path) -> list[str]:
    """The F1 of parts that tables show as –: 0 in a run's metrics."""
    summary = RunSummary.load(run)
    parts = summary.evaluation.scores.by_part() if summary and summary.evaluation else {}
    return [part.metric("f1") for part, row in parts.items() if defined_ratios(row)[-1] is None]


def draw(rows: list[Row], path: Path) -> None:
    """F1 of each variant: a dot for each run, a bar at the mean."""
    with figure_style("ablations", {}):
        save(_dots(rows), path, path.suffix[1:])


def _dots(rows: list[Row]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.6 + 0.9 * len(rows), 3.8), layout="constrained")
    axes = figure.subplots()
    shown = rows[0].scores if rows else {}
    for number, (name, (colour, marker)) in enumerate(zip(shown, itertools.cycle(DOTS), strict=False)):
        for place, row in enumerate(rows):
            shifted = place + 0.6 * ((number + 0.5) / len(shown) - 0.5)
            values = [value for value in row.scores[name] if value is not None]
            axes.plot([shifted] * len(values), values, marker, color=colour, label=SCORES[name] if not place else None)
            if values:
                axes.hlines(statistics.mean(values), shifted - 0.08, shifted + 0.08, color=colour)
    axes.set_xticks(range(len(rows)), [f"({row.name})" for row in rows])
    axes.set_ylabel("percent")
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=len(shown))
    return figure
