"""Marks nested entities in texts: text or JSON lines in, JSON lines out.

    triaffine-ner predict --model outputs/demo/model texts.txt --output entities.jsonl
    echo "The mayor of Port Velmar resigned." | triaffine-ner predict --model outputs/demo/model

A plain file holds a text a line. A line of a .jsonl file is an object with the text under "text"; its other fields are
kept. What comes out is each object with "entities": [{"entity_group", "score", "word", "start", "end"}], offsets in
characters. The output file appears when it is whole, in place of an older one. In a pipe, results come in batches.
"""

import argparse
import contextlib
import json
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from ..data.reading import DataError, decode_object, decode_text
from ..files import open_output
from ..model.pipeline_triaffine import NestedNERPipeline
from . import arguments as shared
from .arguments import check_device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", nargs="?", default="-", help="file of texts, - for standard input (default)")
    shared.add_model(parser)
    parser.add_argument("--output", type=Path, help="file to write (default: standard output)")
    parser.add_argument("--format", choices=("text", "jsonl"), help="of the input (default: told from its name)")
    parser.add_argument("--text-column", default="text", help="field of a JSON line that holds the text")
    parser.add_argument("--entities-column", default="entities", help="field to be added (default: entities)")
    shared.add_decoding(parser)
    shared.add_batch_size(parser, default=16)
    shared.add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    check_device(arguments.device)
    check_input(arguments.input, arguments.output)
    find_entities = NestedNERPipeline(model=arguments.model, device=arguments.device)
    with open_output(arguments.output) as output:
        predict(find_entities, arguments, output)


def check_input(name: str, output: Path | None) -> None:
    """Raises ValueError where no texts can be read, or where they would be written over."""
    if name == "-":
        return
    path = Path(name)
    if path.is_dir():
        raise ValueError(f"{name} is a folder; give a file of texts, or - for standard input.")
    if not path.exists():
        raise ValueError(f"There is no file {name}; give a file of texts, or - for standard input.")
    if output is not None and output.exists() and path.samefile(output):
        raise ValueError(f"--output {output} is the input file, which would be lost; give another name.")


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
        output.write(json.dumps({**record, arguments.entities_column: entities}, ensure_ascii=False) + "\n")


def read_records(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The objects of the input, each with its text; blank lines of a plain file are texts without entities."""
    is_json = arguments.format == "jsonl" or (
        arguments.format is None and arguments.input.endswith((".jsonl", ".json"))
    )
    from_stdin = arguments.input == "-"
    with contextlib.nullcontext(sys.stdin.buffer) if from_stdin else open(arguments.input, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            where = f"{'standard input' if from_stdin else arguments.input}, line {number}"
            line = (line.removeprefix(BOM_UTF8) if number == 1 else line).rstrip(b"\r\n")
            if not is_json:
                yield check_record({arguments.text_column: read_line(line, where)}, where, arguments)
            elif line.strip():
                yield check_record(read_json_line(line, where), where, arguments)


def read_line(line: bytes, where: str) -> str:
    try:
        return decode_text(line)
    except DataError as error:
        raise ValueError(f"{where}: {error}") from None


def read_json_line(line: bytes, where: str) -> dict[str, Any]:
    try:
        return decode_object(line)
    except DataError as error:
        problem = f"{where}: {error.problem}"
        raise ValueError(f"{problem}. Every line must be one JSON object in UTF-8, with no list around them.") from None


def check_record(record: dict[str, Any], where: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The record, where it has a text and room for entities."""
    column, entities = arguments.text_column, arguments.entities_column
    if not isinstance(record.get(column), str):
        raise ValueError(f"{where}: there is no text under {column!r}. Name the field of the text with --text-column.")
    if entities in record:
        raise ValueError(
            f"{where}: there is a field {entities!r} already. Name that of the entities with --entities-column."
        )
    return record
