"""Tags a corpus of many files, on one machine or on a Ray cluster.

    triaffine-ner tag corpus/ --model outputs/demo/model --output-dir tagged

Reads Parquet and JSON lines with one text in each row. For each file, NAME.parquet in the output folder has its columns
and "entities": [{"start", "end", "entity_group", "score", "word"}]. Rows that cannot be tagged are in rejected.jsonl,
with file, row (from 1), reason and record. After an interruption the same command goes on: files that have their output
are skipped.

Runs on the Ray cluster that RAY_ADDRESS names or that this machine is part of; without one, on this machine. The exit
code is 0 if every row is tagged, 3 if some were rejected, 2 for a mistake in the options.
"""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import exit_with_message
from .options import BatchSize, Model, Overlap, Threshold

REJECTED = 3


def command(
    inputs: Annotated[
        list[str], typer.Argument(help="Folders, files and patterns of .parquet, .jsonl, .ndjson and .json.")
    ],
    model: Model,
    output_dir: Annotated[Path, typer.Option(help="New folder, or that of the run to continue.")],
    text_column: Annotated[str, typer.Option(help="Column or field of the text.")] = "text",
    entities_column: Annotated[str, typer.Option(help="Column to add.")] = "entities",
    threshold: Threshold = None,
    overlap: Overlap = "all",
    batch_size: BatchSize = 16,
    max_characters: Annotated[int, typer.Option(min=1, help="A longer text is rejected.", metavar="N")] = 100_000,
    chunk_size: Annotated[int, typer.Option(min=1, help="Rows that an actor takes at a time.", metavar="N")] = 256,
    files_at_once: Annotated[
        int, typer.Option(min=1, help="Files read at the same time; more for many actors.", metavar="N")
    ] = 1,
    actors: Annotated[
        int | None, typer.Option(min=1, help="Processes with the model.  [default: as many as fit]", metavar="N")
    ] = None,
    cpus_per_actor: Annotated[float, typer.Option(help="Cores, and so threads, of each actor.", metavar="N")] = 1,
    gpus_per_actor: Annotated[
        float | None,
        typer.Option(help="GPUs of each actor; 0.5: two share one.  [default: 1 if Ray has GPUs]", metavar="N"),
    ] = None,
) -> int:
    from ..tagging import Actors, Reading, Tagging, find_files, tag_corpus

    try:
        totals = tag_corpus(
            find_files(inputs, output_dir),
            output_dir,
            Tagging(model, threshold=threshold, overlap=overlap, batch_size=batch_size),
            Reading(text_column, entities_column, max_characters, chunk_size, files_at_once),
            Actors(actors, cpus_per_actor, gpus_per_actor),
        )
    except RuntimeError as error:  # Ray's and the model's, which say what to do
        exit_with_message(error)
    print(f"{output_dir}: {totals.tagged:,} rows of {totals.files:,} files are tagged.")
    if totals.rejected or totals.unreadable:
        print(
            f"Rejected: {totals.rejected:,} rows, and {totals.unreadable:,} files that cannot be read; "
            f"{output_dir / 'rejected.jsonl'} gives the reasons."
        )
        return REJECTED
    return 0
