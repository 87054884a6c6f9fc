"""Finds nested entities in texts: text or JSON lines in, JSON lines out.

    triaffine-ner predict --model outputs/demo/model texts.txt --output entities.jsonl
    echo "The mayor of Port Velmar resigned." | triaffine-ner predict --model outputs/demo/model

A plain file has one text on each line. A line of a .jsonl file is an object with the text under "text"; its other
fields are kept. The output is each object with "entities": [{"entity_group", "score", "word", "start", "end"}], offsets
in characters. The output file appears once it is complete and replaces an older one. In a pipe, results come in
batches.
"""

import contextlib
import json
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .options import (
    BatchSize,
    Device,
    Int8,
    Model,
    Overlap,
    Splitter,
    TextColumn,
    Threshold,
    check_device,
    text_splitter,
)


@dataclass(frozen=True)
class Records:
    """Where records come from, and their fields.

    Attributes:
        source: a file's name, or - for standard input.
        form: "text" or "jsonl".
        text_column: field of the text.
        entities_column: field to be added, which must not be there; None: none is.
    """

    source: str
    form: str
    text_column: str
    entities_column: str | None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The records, each with its text; a blank line of a plain file is a text without entities."""
        standard = self.source == "-"
        with contextlib.nullcontext(sys.stdin.buffer) if standard else open(self.source, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                where = f"{'standard input' if standard else self.source}, line {number}"
                line = (line.removeprefix(BOM_UTF8) if number == 1 else line).rstrip(b"\r\n")
                if self.form == "text":
                    yield self._check({self.text_column: _decode_line(line, where)}, where)
                elif line.strip():
                    yield self._check(_decode_json(line, where), where)

    def _check(self, record: dict[str, Any], where: str) -> dict[str, Any]:
        if not isinstance(record.get(self.text_column), str):
            raise ValueError(
                f"{where}: there is no text under {self.text_column!r}. Name the field of the text with --text-column."
            )
        if self.entities_column in record:
            raise ValueError(
                f"{where}: there is a field {self.entities_column!r} already. Name that of the entities with "
                "--entities-column."
            )
        return record


def command(
    model: Model,
    input: Annotated[str, typer.Argument(help="File of texts, or - for standard input.")] = "-",
    output: Annotated[Path | None, typer.Option(help="File to write.  [default: standard output]")] = None,
    form: Annotated[
        Literal["text", "jsonl"] | None,
        typer.Option("--format", help="Format of the input.  [default: from its name]"),
    ] = None,
    text_column: TextColumn = "text",
    entities_column: Annotated[str, typer.Option(help="Field to add.")] = "entities",
    threshold: Threshold = None,
    overlap: Overlap = "all",
    batch_size: BatchSize = 16,
    device: Device = None,
    splitter: Splitter = None,
    int8: Int8 = False,
) -> None:
    check_input(input, output)
    check_device(device)
    from tqdm import tqdm

    from ..files import open_output
    from ..model.pipeline_triaffine import NestedNERPipeline

    form = form or ("jsonl" if input.endswith((".jsonl", ".json")) else "text")
    waiting: list[dict[str, Any]] = []

    def texts() -> Iterator[str]:
        for record in Records(input, form, text_column, entities_column):
            waiting.append(record)
            yield record[text_column]

    quantize = "int8" if int8 else None
    find_entities = NestedNERPipeline(
        model=model, device=device, text_splitter=text_splitter(splitter), quantize=quantize
    )
    with open_output(output) as written:
        found = find_entities(texts(), threshold=threshold, overlap=overlap, batch_size=batch_size)
        for entities in tqdm(found, unit=" texts", disable=not sys.stderr.isatty()):
            record = waiting.pop(0)
            written.write(json.dumps({**record, entities_column: entities}, ensure_ascii=False) + "\n")


def check_input(name: str, output: Path | None) -> None:
    """Raises ValueError if there are no texts to read, or if the output would overwrite them."""
    if name == "-":
        return
    path = Path(name)
    if path.is_dir():
        raise ValueError(f"{name} is a folder; give a file of texts, or - for standard input.")
    if not path.exists():
        raise ValueError(f"There is no file {name}; give a file of texts, or - for standard input.")
    if output is not None and output.exists() and path.samefile(output):
        raise ValueError(f"--output {output} is the input file, which would be lost; give another name.")


def _decode_line(line: bytes, where: str) -> str:
    from ..data.reading import DataError, decode_text

    try:
        return decode_text(line)
    except DataError as error:
        raise ValueError(f"{where}: {error}") from None


def _decode_json(line: bytes, where: str) -> dict[str, Any]:
    from ..data.reading import DataError, decode_object

    try:
        return decode_object(line)
    except DataError as error:
        problem = f"{where}: {error.problem}"
        raise ValueError(f"{problem}. Every line must be one JSON object in UTF-8, with no list around them.") from None
