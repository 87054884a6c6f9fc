"""Tags a corpus of many files, on one machine or on a Ray cluster.

    python examples/tag_corpus.py corpus/ --model outputs/demo/model --output_dir tagged

Reads Parquet and JSON lines with a text a row. For each file, NAME.parquet in the output folder has its columns and
"entities": [{"start", "end", "entity_group", "score", "word"}]. Rows that cannot be tagged are in rejected.jsonl, with
file, row (from 1), reason and record. The same command goes on where a run was interrupted: what has its output is not
done again.

Runs on the Ray cluster that RAY_ADDRESS names or that this machine is part of; without one, on this machine.
The exit code is 0 when every row is tagged, 3 when some were rejected, 2 for a mistake in the options.
"""

import argparse
import sys
from pathlib import Path

from modeling_triaffine.commands.arguments import add_decoding, add_model, positive_integer
from modeling_triaffine.errors import ending_plainly
from modeling_triaffine.model.decoding_triaffine import check_threshold

REJECTED = 3


def main() -> None:
    arguments = parse_arguments()
    with ending_plainly(RuntimeError):
        sys.exit(run(arguments))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("inputs", nargs="+", help="folders, files and patterns of .parquet, .jsonl, .ndjson and .json")
    add_model(parser)
    parser.add_argument("--output_dir", type=Path, required=True, help="new folder, or that of the run to go on with")
    parser.add_argument("--text_column", default="text", help="column or field of the text (default: text)")
    parser.add_argument("--entities_column", default="entities", help="column to be added (default: entities)")
    add_decoding(parser)
    parser.add_argument("--batch_size", type=positive_integer, default=16, help="sentences that run together (16)")
    parser.add_argument(
        "--max_characters", type=positive_integer, default=100_000, help="a longer text is rejected (100000)"
    )
    parser.add_argument(
        "--chunk_size", type=positive_integer, default=256, help="rows that an actor takes at a time (256)"
    )
    parser.add_argument(
        "--files_at_once", type=positive_integer, default=1, help="files read at the same time, for many actors (1)"
    )
    parser.add_argument(
        "--actors", type=positive_integer, help="processes with the model (default: all there is room for)"
    )
    parser.add_argument("--cpus_per_actor", type=float, default=1, help="and so threads of each (default: 1)")
    parser.add_argument("--gpus_per_actor", type=float, help="0.5: two share one (default: 1 if Ray has GPUs, or 0)")
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> int:
    """Tags what is not tagged yet and tells what the output folder holds; the exit code."""
    from modeling_triaffine.tagging import Actors, Reading, Tagging, find_files, tag_corpus

    check_threshold(arguments.threshold)
    totals = tag_corpus(
        find_files(arguments.inputs, arguments.output_dir),
        arguments.output_dir,
        Tagging(
            arguments.model,
            threshold=arguments.threshold,
            overlap=arguments.overlap,
            batch_size=arguments.batch_size,
        ),
        Reading(
            arguments.text_column,
            arguments.entities_column,
            arguments.max_characters,
            arguments.chunk_size,
            arguments.files_at_once,
        ),
        Actors(arguments.actors, arguments.cpus_per_actor, arguments.gpus_per_actor),
    )
    print(f"{arguments.output_dir}: {totals.tagged:,} rows of {totals.files:,} files are tagged.")
    if totals.rejected or totals.unreadable:
        print(
            f"Rejected: {totals.rejected:,} rows, and {totals.unreadable:,} files that cannot be read; "
            f"{arguments.output_dir / 'rejected.jsonl'} tells why."
        )
        return REJECTED
    return 0


if __name__ == "__main__":
    main()
