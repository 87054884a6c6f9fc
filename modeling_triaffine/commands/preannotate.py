"""Writes the predictions of a model for an annotation tool, optionally with the least certain ones first.

    triaffine-ner preannotate texts.txt --model outputs/demo/model --to label_studio --output tasks.json
    triaffine-ner preannotate texts.txt --model outputs/demo/model --to brat --output a --sort uncertain --budget 99

Reads a plain file with one text per line, JSON lines with the text under "text", or a folder of .txt files; texts
without words are left out. Scores are written if the tool supports them. `train`, `evaluate` and `convert` read the
exports of the tools; see docs/annotation_loop.md.
"""

import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..model.options_triaffine import PredictionOptions
from .choices import choice
from .options import (
    BatchSize,
    Device,
    Model,
    Overlap,
    Splitter,
    TextColumn,
    TextsFormat,
    Threshold,
    check_new,
    text_splitter,
)
from .texts import check_input, check_stays, decode, read_records

if TYPE_CHECKING:
    from ..evaluation.uncertainty import ReadText

TOOLS = dict.fromkeys(("label_studio", "brat", "doccano", "inception"), "")
ORDERS = {"input": "as in the input", "uncertain": "least certain first"}
MEASURES = {"margin": "the smallest margin between labels", "entropy": "the sum of entropies"}
FOLDERS = ("brat", "inception")
"""Tools that import a folder; the others import a file."""


def command(
    texts: Annotated[str, typer.Argument(help="File of texts, folder of .txt files, or - for standard input.")],
    model: Model,
    to: Annotated[str, choice("Annotation tool", TOOLS)],
    output: Annotated[Path, typer.Option(help="File to write; for brat and inception, a new folder.")],
    sort: Annotated[str, choice("Order of the texts", ORDERS)] = "input",
    measure: Annotated[str, choice("Measure of uncertainty", MEASURES)] = "margin",
    budget: Annotated[
        int | None, typer.Option(min=1, help="Number of texts to write.  [default: all]", metavar="N")
    ] = None,
    form: TextsFormat = None,
    text_column: TextColumn = "text",
    threshold: Threshold = None,
    overlap: Overlap = PredictionOptions.overlap,
    batch_size: BatchSize = PredictionOptions.batch_size,
    device: Device = None,
    splitter: Splitter = None,
) -> None:
    check_output(to, output)
    named = list(named_texts(texts, text_column, output, form))
    from ..data.formats.cas import make_cas
    from ..data.writing import check_file_name
    from ..data.writing_texts import PREDICTION_WRITERS, label_studio_config
    from ..evaluation.uncertainty import read_texts
    from ..files import atomic_path
    from ..model.pipeline_triaffine import NestedNERPipeline

    ranked = sort == "uncertain" and to in FOLDERS
    if to in FOLDERS:  # before the prediction, which can take hours
        for name, _ in named:
            check_file_name(name_of(name, 1, ranked), to)
    if to == "inception":
        make_cas("", (), ())  # raises without the extra `cas`
    pipeline = NestedNERPipeline(model=model, device=device, text_splitter=text_splitter(splitter))
    types = types_of(to, pipeline.model.config.entity_labels)
    with atomic_path(output) as unfinished:
        (unfinished.mkdir if to in FOLDERS else unfinished.touch)()  # if it cannot be written, this is known before
        read = read_texts(pipeline, [text for _, text in named], measure, batch_size, threshold, overlap)
        found = [(name, one) for (name, _), one in zip(named, read, strict=True) if any(one.sentences)]
        if not found:
            raise ValueError(f"{texts}: there is no text with words. Give a folder of .txt files, or a file of texts.")
        if sort == "uncertain":
            found.sort(key=lambda named_text: -named_text[1].uncertainty)
        kept = found[:budget]
        PREDICTION_WRITERS[to](documents(kept, ranked, types), unfinished)
    uncertainties = [one.uncertainty for _, one in kept]
    print(
        f"{len(named)} texts read, {len(named) - len(found)} of them without words; {len(kept)} written with "
        f"{sum(len(one.entities) for _, one in kept)} entities; {measure} {max(uncertainties):.3f} to "
        f"{min(uncertainties):.3f}.",
        file=sys.stderr,
    )
    if to == "label_studio":
        print(f"Labelling configuration: {label_studio_config(pipeline.model.config.entity_labels)}", file=sys.stderr)


def types_of(to: str, labels: Sequence[str]) -> dict[str, str]:
    """Label → its type in the tool; prints which are changed.

    Raises:
        ValueError: two labels would have the same type.
    """
    from ..data.writing_texts import brat_type

    if to != "brat":
        return {label: label for label in labels}
    types = {label: brat_type(label) for label in labels}
    label_of: dict[str, str] = {}
    for label, kind in types.items():
        if (other := label_of.setdefault(kind, label)) != label:
            raise ValueError(f"The labels {other!r} and {label!r} would both be {kind!r} in brat. Choose another tool.")
    if changed := ", ".join(f"{label!r} is {kind!r}" for label, kind in types.items() if label != kind):
        print(f"Types of brat have no spaces: {changed}.", file=sys.stderr)
    return types


def check_output(to: str, output: Path) -> None:
    """Raises ValueError if the output, a file or a new folder, cannot be written."""
    takes_folder = to in FOLDERS
    if str(output) == "-" or (output.is_dir() and not takes_folder):
        kind = "new folder" if takes_folder else "file"
        raise ValueError(f"--output {output} is not a {kind}, as {to} imports. Give the name of a {kind}.")
    if takes_folder:
        check_new(output)


def named_texts(source: str, text_column: str, output: Path, form: str | None = None) -> Iterator[tuple[str, str]]:
    """Yields texts with their names: the `id` of a JSON line, the path in the folder, or its number in the file.

    Raises:
        ValueError: two have the same name, one cannot be read, or `output` would overwrite them.
    """
    from ..data.reading import visible_paths

    path = Path(source)
    if path.is_dir():
        for file in visible_paths(path):
            if file.suffix != ".txt" or not file.is_file():
                continue
            check_stays(file, output)
            content = file.read_bytes().removeprefix(BOM_UTF8)
            yield file.relative_to(path).as_posix().removesuffix(".txt"), decode(content, str(file))
        return
    check_input(source, output, form)
    stem = "text" if source == "-" else path.stem
    names: set[str] = set()
    for number, record in enumerate(read_records(source, text_column, form=form), start=1):
        own = record.get("id")
        name = f"{stem}-{number:05}" if own is None else str(own)
        if name in names:
            raise ValueError(f"{source}: the id {name!r} occurs twice. Give every text its own id, or none.")
        names.add(name)
        yield name, record[text_column]


def name_of(name: str, place: int, ranked: bool) -> str:
    """The name of a document in the tool."""
    return f"{place:05}-{name.replace('/', '-')}" if ranked else name


def documents(
    found: Sequence[tuple[str, "ReadText"]], ranked: bool, types: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The texts to write; `ranked` puts their rank before their names, by which tools sort them.

    types: label → type in the tool.
    """
    from ..model.text_triaffine import clean_text

    for place, (name, read) in enumerate(found, start=1):
        entities = [
            {"start": one["start"], "end": one["end"], "type": types[one["entity_group"]], "score": one["score"]}
            for one in read.entities
        ]
        doc_id = name_of(name, place, ranked)
        fields = {"uncertainty": round(read.uncertainty, 6)}
        text = {"doc_id": doc_id, "text": clean_text(read.text), "entities": entities}
        yield {**text, "words": read.sentences, "fields": fields}
