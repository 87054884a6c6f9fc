"""Finds nested entities in texts: text or JSON lines in, JSON lines out.

    triaffine-ner predict --model outputs/demo/model texts.txt --output entities.jsonl
    echo "The mayor of Port Velmar resigned." | triaffine-ner predict --model outputs/demo/model

A plain file has one text per line. In JSON lines (.jsonl, .ndjson, .json), each line is an object with the text under
"text"; its other fields are kept. The output is each of these objects with
"entities": [{"entity_group", "score", "word", "start", "end"}], offsets in characters. The output file appears when it
is complete and replaces an older one. In a pipe, results appear batch by batch; with --batch-size 1, as soon as a line
has been read. A long text has one result, which appears when the whole text is scored. The model may also be a folder
that `triaffine-ner export` wrote.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ..model.options_triaffine import PredictionOptions
from .options import (
    BatchSize,
    Bf16,
    Device,
    Int8,
    Model,
    Overlap,
    Splitter,
    TextColumn,
    TextsFormat,
    Threshold,
    precision,
    text_splitter,
)
from .texts import check_input, read_records


def command(
    model: Model,
    input: Annotated[str, typer.Argument(help="File of texts, or - for standard input.")] = "-",
    output: Annotated[Path | None, typer.Option(help="File to write.  [default: standard output]")] = None,
    form: TextsFormat = None,
    text_column: TextColumn = "text",
    entities_column: Annotated[str, typer.Option(help="Field to add.")] = "entities",
    threshold: Threshold = None,
    overlap: Overlap = PredictionOptions.overlap,
    batch_size: BatchSize = PredictionOptions.batch_size,
    device: Device = None,
    splitter: Splitter = None,
    int8: Int8 = False,
    bf16: Bf16 = False,
) -> None:
    check_input(input, output, form)
    from tqdm import tqdm

    from ..conversion.onnx_predictor import open_pipeline
    from ..files import open_output

    waiting: list[dict[str, Any]] = []

    def texts() -> Iterator[str]:
        for record in read_records(input, text_column, entities_column, form):
            waiting.append(record)
            yield record[text_column]

    find_entities = open_pipeline(model, device=device, text_splitter=text_splitter(splitter), **precision(int8, bf16))
    with open_output(output) as written:
        found = find_entities(texts(), threshold=threshold, overlap=overlap, batch_size=batch_size)
        for entities in tqdm(found, unit=" texts", disable=not sys.stderr.isatty()):
            record = waiting.pop(0)
            line = json.dumps({**record, entities_column: entities}, ensure_ascii=False)
            print(line, file=written, flush=written is sys.stdout)
