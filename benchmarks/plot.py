"""Draws the recorded results of `triaffine.py`: time and extra memory of each form of the head.

python benchmarks/plot.py benchmarks/results/published.jsonl benchmarks/results/triaffine.svg
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

# Form → name and colour (Okabe and Ito's, which the colour-blind tell apart).
FORMS = {
    "published": ("published contraction", "#999999"),
    "full": ("full tensors", "#0072B2"),
    "low_rank": ("rank 64", "#D55E00"),
}
MEASURES = {"seconds": "seconds a step", "extra_megabytes": "extra memory of a step (MB)"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("figure", type=Path)
    arguments = parser.parse_args()
    machine, *rows = (json.loads(line) for line in arguments.results.read_text().splitlines())
    ours = FORMS.keys() - {"published"}
    draw(machine, [row for row in rows if row["what"] == "step" and ours <= row["seconds"].keys()], arguments.figure)


def draw(machine: dict[str, Any], rows: list[dict[str, Any]], path: Path) -> None:
    """A row of panels for each width d: time and memory over the sizes of batches."""
    dims = sorted({row["dim"] for row in rows})
    figure, panels = plt.subplots(len(dims), 2, figsize=(11, 3.6 * len(dims)), squeeze=False, layout="constrained")
    for dim, of_dim in zip(dims, panels, strict=True):
        chosen = [row for row in rows if row["dim"] == dim]
        for (measure, title), panel in zip(MEASURES.items(), of_dim, strict=True):
            draw_bars(panel, chosen, measure)
            panel.set_title(f"d = {dim}: {title}", loc="left", fontsize=10)
    handles, names = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(FORMS), frameon=False)
    threads = "one thread" if rows[0]["threads"] == 1 else f"{rows[0]['threads']} threads"
    where = f"{machine['processor']}, {threads}, {rows[0]['dtype']}, {machine['date']}"
    figure.suptitle(f"The triaffine head, {rows[0]['labels']} labels ({where})", fontsize=11)
    figure.savefig(path)


def draw_bars(panel: Any, rows: list[dict[str, Any]], measure: str) -> None:
    forms = [form for form in FORMS if any(form in row["seconds"] for row in rows)]
    width = 0.8 / len(forms)
    for number, form in enumerate(forms):
        name, colour = FORMS[form]
        places = [place + (number - (len(forms) - 1) / 2) * width for place in range(len(rows))]
        # What is below a megabyte or does not fit has no bar.
        heights = [max(row[measure].get(form) or 0, 0) for row in rows]
        panel.bar(places, heights, width, label=name, color=colour)
    panel.set_yscale("log")
    panel.set_xticks(range(len(rows)), [f"{row['batch']} × {row['words']}" for row in rows])
    panel.set_xlabel("sentences × words")
    panel.grid(axis="y", alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
