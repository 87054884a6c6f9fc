"""Trains the paper's ablations on a corpus with several seeds, and tabulates their scores.

    triaffine-ner ablate --recipe genia-minilm --train_file my_corpus/ --seeds 1 2 --output_dir outputs/ablations

All other options are those of `triaffine-ner train` (--num_train_epochs 3, --max_train_samples 2000). Finished runs are
not repeated, and an interrupted one is resumed. After each run, the tables in the output folder are updated: table.md,
table.csv, table.json and, with matplotlib, table.svg. They list the options that differ between variants, and
F1 in percent (mean and standard deviation over seeds) for all entities and for each part, such as nested ones, on the
test data with --do_predict, otherwise on the validation data.
"""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

SETTINGS = {"context_settings": {"allow_extra_args": True, "ignore_unknown_options": True}}


def command(
    context: typer.Context,
    output_dir: Annotated[Path, typer.Option(help="Folder for runs and tables.")],
    variants: Annotated[
        list[str] | None,
        typer.Option(help="Names of folders in hub_configs/ablations.  [default: a b … h]", metavar="NAME …"),
    ] = None,
    seeds: Annotated[list[int] | None, typer.Option(help="Seeds of the runs.  [default: 1]", metavar="SEED …")] = None,
) -> int:
    from ..training.ablations import check_own_options, check_same_options, choose_variants, train_variant, write_tables
    from ..training.run import start_logging

    start_logging()
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))  # which ends the training, too
    chosen = choose_variants(variants)
    check_own_options(chosen, context.args)
    check_same_options(output_dir, context.args)
    for seed in seeds or [1]:
        for variant, options in chosen.items():
            code = train_variant(variant, options, seed, output_dir, context.args)
            if code:
                return code  # the run has printed the reason
            write_tables(output_dir)
    print((output_dir / "table.md").read_text(encoding="utf-8"), end="")
    return 0
