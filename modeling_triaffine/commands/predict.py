"""Marks nested entities in texts: text or JSON lines in, JSON lines out.

    python examples/predict.py --model outputs/demo/model texts.txt --output entities.jsonl
    echo "The mayor of Port Velmar resigned." | python examples/predict.py --model outputs/demo/model

A plain file holds a text a line. A line of a .jsonl file is an object with the text under "text"; its other fields are
kept. What comes out is each object with "entities": [{"entity_group", "score", "word", "start", "end"}], offsets in
characters. The output file appears when it is whole.
"""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.decoding_triaffine import OVERLAPS
from modeling_triaffine.scripts import check_device, exit_with_message, open_output


def main() -> None:
    arguments = parse_arguments()
    try:
        check_device(arguments.device)
        if arguments.input != "-" and not Path(arguments.input).is_file():
            raise ValueError(f"There is no file {arguments.input}; give a file of texts, or - for standard input.")
        find_entities = NestedNERPipeline(model=arguments.model, device=arguments.device)
        with open_output(arguments.output) as output:
            predict(find_entities, arguments, output)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the output has seen enough
    except (ValueError, OSError) as error:
        exit_with_message(error)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", nargs="?", default="-", help="file of texts, - for standard input (default)")
    parser.add_argument("--model", required=True, help="folder or Hub name of a trained model")
    parser.add_argument("--output", type=Path, help="file to write (default: standard output)")
    parser.add_argument("--format", choices=("text", "jsonl"), help="of the input (default: told from its name)")
    parser.add_argument("--text_column", default="text", help="field of a JSON line that holds the text")
    parser.add_argument("--threshold", type=float, help="least probability of an entity (default: likeliest label)")
    parser.add_argument("--overlap", choices=OVERLAPS, default="all", help="which entities may stand together")
    parser.add_argument("--batch_size", type=int, default=16, help="sentences that run together")
    parser.add_argument("--device", help="cpu, cuda, cuda:1 … (default: a GPU where there is one)")
    return parser.parse_args()


def predict(find_entities: NestedNERPipeline, arguments: argparse.Namespace, output: TextIO) -> None:
    waiting: list[dict[str, Any]] = []

    def texts() -> Iterator[str]:
        for record in read_records(arguments):
            waiting.append(record)
            yield record[arguments.text_column]

    found = find_entities(
        texts(), threshold=arguments.threshold, overlap=arguments.overlap, batch_size=arguments.batch_size
    )
    for entities in tqdm(found, unit=" texts", disable=not sys.stderr.isatty()):
        record = waiting.pop(0)
        output.write(json.dumps({**record, "entities": entities}, ensure_ascii=False) + "\n")


def read_records(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The objects of the input, each with its text; blank lines of a plain file are texts without entities."""
    is_json = arguments.format == "jsonl" or (
        arguments.format is None and arguments.input.endswith((".jsonl", ".json"))
    )
    with (
        contextlib.nullcontext(sys.stdin)
        if arguments.input == "-"
        else open(arguments.input, encoding="utf-8") as lines
    ):
        number = 0
        try:
            for number, line in enumerate(lines, start=1):
                if not is_json:
                    yield {arguments.text_column: line.rstrip("\r\n")}
                elif line.strip():
                    yield read_json_line(line, f"{arguments.input}, line {number}", arguments.text_column)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{arguments.input}, after line {number}: this is no UTF-8 ({error}); convert it."
            ) from None


def read_json_line(line: str, where: str, column: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: this is no JSON ({error}). Every line must be one JSON object.") from None
    if not isinstance(record, dict) or not isinstance(record.get(column), str):
        raise ValueError(f"{where}: there is no text under {column!r}. Name the field of the text with --text_column.")
    return record


if __name__ == "__main__":
    main()
