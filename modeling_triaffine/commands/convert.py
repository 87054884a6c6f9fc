"""Converts a corpus of any supported format to JSON lines, IOB2 columns, brat, PubTator or BioC.

    triaffine-ner convert annotated/ corpus/ --to json_lines
    triaffine-ner convert germeval.tsv corpus/ --to brat --columns tokens=1 entities=2,3
    triaffine-ner convert inception/ corpus/ --to bioc --columns entities=webanno.custom.Term:kind

Writes a file or folder for each split, and reports on standard error what was dropped in reading and what the new
format cannot represent.
"""

import sys
from typing import Annotated

import typer

from ..model.options_triaffine import PROCESSOR_OPTIONS
from .choices import choice
from .options import Corpus, Format

TARGETS = {
    "json_lines": "words",
    "iob2": "words in columns",
    "brat": "texts",
    "pubtator": "texts",
    "bioc": "texts in XML",
    "bioc_json": "the same in JSON",
}


def command(
    corpus: Corpus,
    output: Annotated[str, typer.Argument(help="Folder to write, new or empty.")],
    to: Annotated[str, choice("Format to write", TARGETS)] = "json_lines",
    corpus_format: Format = None,
    sentences: Annotated[
        str | None,
        choice(
            "Where sentences end in the texts of the corpus",
            PROCESSOR_OPTIONS["sentence_splitter"].meanings,
            unset="punctuation",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of IOB2, counted from 0: tokens=0 entities=1,2 pos=3; DocBin: entities=GROUP, or ents; "
            "layer of UIMA CAS: entities=LAYER:FEATURE.  [default: from the file]",
            metavar="NAME=NUMBER …",
        ),
    ] = None,
) -> None:
    named = dict(map(parse_column, columns)) if columns else None
    from ..data import load_nested_ner, write_nested_ner

    splits = load_nested_ner(corpus, corpus_format, sentence_splitter=sentences, columns=named)
    not_held = write_nested_ner(splits, output, to)
    for split, records in splits.items():
        entities = sum(len(found) for found in records["entities"])
        lost = "".join(f"; {what} not kept: {count}" for what, count in not_held[split].items())
        print(f"{split}: {len(records)} sentences with {entities} entities written{lost}.", file=sys.stderr)


def parse_column(text: str) -> tuple[str, int | list[int] | str]:
    """`entities=1,2` → ("entities", [1, 2]), `entities=sc` → ("entities", "sc"); ValueError for anything else."""
    name, _, value = text.partition("=")
    numbers = [int(number) for number in value.split(",") if number.isdecimal()]
    if name == "entities" and value and not numbers:
        return name, value
    if not name or len(numbers) != value.count(",") + 1 or (len(numbers) > 1 and name != "entities"):
        raise ValueError(f"--columns: {text!r} is not of the form entities=1,2 or tokens=0.")
    return name, numbers if name == "entities" else numbers[0]
