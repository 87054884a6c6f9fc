"""Finds nested entities in texts, and writes them as JSON lines, as a page, or for an annotation tool.

    triaffine-ner predict texts.txt --model outputs/demo/model --output entities.jsonl
    triaffine-ner predict documents/ --model outputs/demo/model --html report.html
    triaffine-ner predict --model outputs/demo/model --text "The mayor of Port Velmar resigned."
    triaffine-ner predict texts.txt --model outputs/demo/model --to label_studio --output tasks.json

A plain file has one text per line, a folder one in each .txt file. In JSON lines (.jsonl, .ndjson, .json), each line is
an object with the text under "text"; its other fields are kept. The output is each of these objects with
"entities": [{"entity_group", "score", "word", "start", "end"}], offsets in characters; on a terminal, texts are drawn.
Without input in a terminal, each line that you type is answered. An output file appears when it is complete. In a pipe,
results appear batch by batch; with --batch-size 1, as soon as a line has been read.

Texts that cannot be read are named, counted and left out; the exit code is then 3. --to writes predictions for an
annotation tool; `train`, `evaluate` and `convert` read the exports of these tools (docs/annotation_loop.md). The model
may also be a folder that `triaffine-ner export` wrote.
"""

import json
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..model.options_triaffine import PredictionOptions
from . import options as shared
from .annotation_tools import FOLDERS, write_for_tool
from .texts import TextSource

REJECTED = 3


def command(
    input: Annotated[str, typer.Argument(help="File of texts, folder of .txt files, or - for standard input.")] = "-",
    model: shared.Model = None,
    text: Annotated[str | None, typer.Option(help="A text to read in place of a file.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write; for brat and inception, a new folder.  [default: standard output]"),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Page to write, with the drawn texts and their entities.")] = None,
    to: Annotated[
        Literal["json_lines", "label_studio", "brat", "doccano", "inception"],
        typer.Option(help="JSON lines, or what an annotation tool imports."),
    ] = "json_lines",
    uncertain: Annotated[int | None, shared.count("With --to: write the N least certain texts, these first.")] = None,
    text_column: shared.TextColumn = "text",
    entities_column: shared.EntitiesColumn = "entities",
    threshold: shared.Threshold = None,
    overlap: shared.Overlap = PredictionOptions.overlap,  # type: ignore[assignment]
    batch_size: shared.BatchSize = PredictionOptions.batch_size,
    device: shared.Device = None,
    int8: shared.Int8 = False,
    bf16: shared.Bf16 = False,
) -> int:
    from ..drawing.safe_text import clean

    source = TextSource(input, text, text_column, entities_column)
    if output is not None and output.is_file() and not source.is_standard and source.path.samefile(output):
        raise ValueError(f"--output {output} is the input, which would be lost. Give another name.")
    if to in FOLDERS and output is not None:
        shared.check_new(output)
    if to != "json_lines" and (output is None or str(output) == "-" or output.is_dir()):
        raise ValueError(f"{to} imports a {'new folder' if to in FOLDERS else 'file'}. Give its name as --output.")
    pipeline = shared.open_model(model, device, int8, bf16)
    decoding: dict[str, Any] = {"threshold": threshold, "overlap": overlap, "batch_size": batch_size}
    if output is None or to == "json_lines":
        entities = write_lines(source, pipeline, output, html, decoding)
    else:
        entities = write_for_tool(to, output, source, pipeline, uncertain, decoding)
    labels = ", ".join(f"{clean(label)} {count:,}" for label, count in entities.most_common())
    documents = f"{source.accepted:,} documents, {entities.total():,} entities{f' ({labels})' if labels else ''}"
    print(f"{documents}, {len(source.rejected):,} rejected.", file=sys.stderr)
    return REJECTED if source.rejected else 0


def write_lines(
    source: TextSource, pipeline: Any, output: Path | None, html: Path | None, decoding: dict[str, Any]
) -> Counter[str]:
    """Writes records with their entities; returns the number of entities by label."""
    from ..drawing import draw_entities
    from ..drawing.predictions_page import predictions_page
    from ..drawing.safe_text import visible_json
    from ..files import open_output, write_text
    from ..progress import with_progress

    is_drawn = output is None and html is None and sys.stdout.isatty()
    waiting: deque[tuple[str, dict[str, Any]]] = deque()
    counts: Counter[str] = Counter()
    drawn: list[tuple[str, str, Any]] = []

    def texts() -> Iterator[str]:
        for name, record in source:
            waiting.append((name, record))
            yield record[source.text_column]

    if source.is_typed:
        decoding |= {"batch_size": 1}  # answers each line before it reads the next
    found: Iterable[Any] = pipeline(texts(), **decoding)
    with open_output(output) as written:
        for entities in found if is_drawn else with_progress(found, "documents", source.total):
            name, record = waiting.popleft()
            text = record[source.text_column]
            counts.update(entity["entity_group"] for entity in entities)
            if html is not None:
                drawn.append((name, text, entities))
            if is_drawn:
                print(draw_entities(text, entities), end="\n\n", flush=True)
            elif output is not None or html is None:
                line = visible_json(json.dumps({**record, source.entities_column: entities}, ensure_ascii=False))
                print(line, file=written, flush=written is sys.stdout)
    if html is not None:
        pairs, names = [(text, of_text) for _, text, of_text in drawn], [name for name, *_ in drawn]
        write_text(html, predictions_page(pairs, f"Entities in {source.name}", source.rejected, names))
    return counts
