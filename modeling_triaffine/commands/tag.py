"""Tags a corpus of many files, on one machine or on a Ray cluster.

    triaffine-ner tag corpus/ --model outputs/demo/model --output-dir tagged

Reads Parquet and JSON lines with one text per row, and .txt files with one document each. For each file, it writes one
of the same name and form to the output folder, with "entities": [{"start", "end", "entity_group", "score", "word"}];
documents go to texts-00000.jsonl and so on. Rows that cannot be tagged are listed in rejected.jsonl, with file, row
(from 1) and reason. After an interruption, the same command continues with what has no output yet.

Runs on the Ray cluster that RAY_ADDRESS names or that this machine belongs to, otherwise on this machine alone. The
exit code is 0 if every row is tagged, 3 if some are rejected, and 2 if an option is invalid.
"""

from pathlib import Path
from typing import Annotated

import typer

from ..documents import REJECTED
from ..errors import ending_plainly
from ..model.options_triaffine import PredictionOptions
from .options import BatchSize, Bf16, EntitiesColumn, Model, Overlap, TextColumn, Threshold, count


def command(
    inputs: Annotated[list[str], typer.Argument(help="Folders, files and patterns of .parquet, .jsonl and .txt.")],
    output_dir: Annotated[Path, typer.Option(help="New folder, or that of a run to continue.")],
    model: Model = None,
    text_column: TextColumn = "text",
    entities_column: EntitiesColumn = "entities",
    threshold: Threshold = None,
    overlap: Overlap = PredictionOptions.overlap,  # type: ignore[assignment]
    batch_size: BatchSize = PredictionOptions.batch_size,
    bf16: Bf16 = False,
    actors: Annotated[int | None, count("Processes with the model, a CPU each.  [default: as many as fit]")] = None,
    gpus_per_actor: Annotated[
        float | None, typer.Option(min=0, metavar="NUMBER", help="GPUs of each actor; 0.5: two share one.")
    ] = None,
) -> int:
    from ..tagging import TagOptions, find_files, tag_corpus

    options = TagOptions(
        model,
        text_column=text_column,
        entities_column=entities_column,
        threshold=threshold,
        overlap=overlap,
        batch_size=batch_size,
        bf16=bf16,
        actors=actors,
        gpus_per_actor=gpus_per_actor,
    )
    with ending_plainly(RuntimeError):  # of Ray or the model
        output = tag_corpus(find_files(inputs, output_dir), output_dir, options)
    print(
        f"{output.describe()}\n{output_dir} has the outputs{', and rejected.jsonl' if output.counts.rejected else ''}."
    )
    return REJECTED if output.counts.rejected else 0
