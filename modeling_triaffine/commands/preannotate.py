"""Writes a model's predictions for an annotation tool, the texts that it is least sure of first if you like.

    triaffine-ner preannotate texts.txt --model outputs/demo/model --to label_studio --output tasks.json
    triaffine-ner preannotate texts.txt --model outputs/demo/model --to brat --output a --sort uncertain --budget 99

Reads a plain file, one text a line, JSON lines with the text under "text", or a folder of .txt files, one text each;
texts without words are left out. Scores are written where the tool has room for them. What comes back from the tool is
read by `train`, `evaluate` and `convert`: docs/annotation_loop.md.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .options import (
    BatchSize,
    Device,
    Model,
    Overlap,
    Splitter,
    TextColumn,
    Threshold,
    check_device,
    check_new,
    text_splitter,
)
from .texts import Records, check_input, decode

if TYPE_CHECKING:
    from ..data.writing_texts import TextDocument
    from ..evaluation.uncertainty import ReadText

Tools = Literal["label_studio", "brat", "doccano", "inception"]
Orders = Literal["input", "uncertain"]
Measures = Literal["margin", "entropy"]
FOLDERS = ("brat", "inception")
"""Tools that import a folder of documents, others a file."""


def command(
    texts: Annotated[str, typer.Argument(help="File of texts, folder of .txt files, or - for standard input.")],
    model: Model,
    to: Annotated[Tools, typer.Option(help="Annotation tool.")],
    output: Annotated[Path, typer.Option(help="File to write; for brat and inception a new folder.")],
    sort: Annotated[Orders, typer.Option(help="Order of the texts: as given, or the least sure first.")] = "input",
    measure: Annotated[
        Measures,
        typer.Option(help="How unsure: the smallest margin of a text's labels, or the sum of their entropies."),
    ] = "margin",
    budget: Annotated[
        int | None, typer.Option(min=1, help="Texts to write, the first of the order.  [default: all]", metavar="N")
    ] = None,
    text_column: TextColumn = "text",
    threshold: Threshold = None,
    overlap: Overlap = "all",
    batch_size: BatchSize = 16,
    device: Device = None,
    splitter: Splitter = None,
) -> None:
    check_device(device)
    check_output(to, output)
    named = list(named_texts(texts, text_column))
    from ..data.writing_texts import PREDICTION_WRITERS, label_studio_config
    from ..evaluation.uncertainty import read_texts
    from ..files import atomic_path
    from ..model.pipeline_triaffine import NestedNERPipeline

    pipeline = NestedNERPipeline(model=model, device=device, text_splitter=text_splitter(splitter))
    read = read_texts(pipeline, [text for _, text in named], measure, batch_size, threshold, overlap)
    found = [(name, one) for (name, _), one in zip(named, read, strict=True) if any(one.sentences)]
    if not found:
        raise ValueError(f"{texts}: there is no text with a word. Give texts to annotate.")
    if sort == "uncertain":
        found.sort(key=lambda named_text: -named_text[1].uncertainty)
    kept = found[:budget]
    with atomic_path(output) as unfinished:
        PREDICTION_WRITERS[to](documents(kept, ranked=sort == "uncertain" and to in FOLDERS), unfinished)
    uncertainties = [one.uncertainty for _, one in kept]
    print(
        f"{len(named)} texts read, {len(named) - len(found)} of them without words; {len(kept)} written with "
        f"{sum(len(one.entities) for _, one in kept)} entities; {measure} {max(uncertainties):.3f} to "
        f"{min(uncertainties):.3f}.",
        file=sys.stderr,
    )
    if to == "label_studio":
        print(f"Labelling configuration: {label_studio_config(pipeline.model.config.entity_labels)}", file=sys.stderr)


def check_output(to: str, output: Path) -> None:
    """Raises ValueError if the output is a folder where a file is written, or something where a folder is."""
    if str(output) == "-":
        raise ValueError("--output is -, but annotation tools import files; give a name.")
    if to in FOLDERS:
        check_new("--output", output)
    elif output.is_dir():
        raise ValueError(f"--output {output} is a folder; give the name of a file.")


def named_texts(source: str, text_column: str) -> Iterator[tuple[str, str]]:
    """The texts with their names: `id` of a JSON line, a file's name in its folder, or the number of the line.

    Raises:
        ValueError: there are no texts, two have one name, or one cannot be read.
    """
    path = Path(source)
    if path.is_dir():
        files = sorted(path.rglob("*.txt"))
        if not files:
            raise ValueError(f"{source} has no .txt files. Give a folder of texts, or a file with one text a line.")
        for file in files:
            yield file.relative_to(path).as_posix().removesuffix(".txt"), decode(file.read_bytes(), str(file))
        return
    check_input(source, None)
    stem = "text" if source == "-" else path.stem
    names: set[str] = set()
    for number, record in enumerate(Records(source, text_column), start=1):
        own = record.get("id")
        name = f"{stem}-{number:05}" if own is None else str(own)
        if name in names:
            raise ValueError(f"{source}: the id {name!r} comes twice. Give every text its own, or none.")
        names.add(name)
        yield name, record[text_column]


def documents(found: Sequence[tuple[str, "ReadText"]], ranked: bool) -> Iterator["TextDocument"]:
    """The texts as they are written; `ranked` puts their place before their names, by which tools order them."""
    from ..data.writing_texts import TextDocument

    for place, (name, read) in enumerate(found, start=1):
        entities = [
            {"start": one["start"], "end": one["end"], "type": one["entity_group"], "score": one["score"]}
            for one in read.entities
        ]
        doc_id = f"{place:05}-{name}" if ranked else name
        yield TextDocument(doc_id, read.text, entities, read.sentences, {"uncertainty": round(read.uncertainty, 6)})
