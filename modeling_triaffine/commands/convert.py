"""Converts a corpus of any supported format to JSON lines, IOB2 columns, brat, PubTator or BioC.

    triaffine-ner convert annotated/ corpus/
    triaffine-ner convert annotated/ corpus/ --to bioc
    triaffine-ner convert germeval.tsv corpus/ --to brat --columns tokens=1 entities=2,3
    triaffine-ner convert inception/ corpus/ --to bioc --columns entities=webanno.custom.Term:kind

Writes a file or folder for each split, and reports on standard error what was dropped in reading and what the new
format cannot represent. Texts stay as they are, with all offsets; to columns, they are split into words.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from ..data.offsets import OFFSET_UNITS
from ..model.options_triaffine import PROCESSOR_OPTIONS
from ..training.options import BOOLEANS
from .choices import choice
from .options import Corpus, Format, MaxBadRecords

TARGETS = {
    "json_lines": "texts as they are, or sentences of words, which all commands read",
    "iob2": "words in columns",
    "brat": "texts",
    "pubtator": "texts",
    "bioc": "texts in XML",
}

FROM_WORDS = (
    "Where the corpus has words without their text, a text is its words joined by spaces, one sentence per line. To "
    "read the same words and sentences back: --word_splitter whitespace --sentence_splitter lines in training, "
    'load_nested_ner(…, word_splitter=word_splitter("whitespace"), sentence_splitter="lines") in Python.'
)


def command(
    corpus: Corpus,
    output: Annotated[str, typer.Argument(help="Folder to write, new or empty.")],
    to: Annotated[str, choice("Format to write", TARGETS)] = "json_lines",
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    sentences: Annotated[
        str | None,
        choice(
            "Where sentences end in the texts of the corpus",
            PROCESSOR_OPTIONS["sentence_splitter"].meanings,
            unset=PROCESSOR_OPTIONS["sentence_splitter"].default,
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of IOB2, counted from 0: tokens=0 entities=1,2 pos=3; DocBin: entities=GROUP, or ents; "
            "layer of UIMA CAS: entities=LAYER:FEATURE; lines of spans: inclusive_end=true; fields of JSON: text=… "
            "entities=… start=… end=… type=… inclusive_end=true, or tokens=… entities=…,… names=O,B-….  [default: from "
            "the file]",
            metavar="NAME=VALUE …",
        ),
    ] = None,
    offsets: Annotated[
        str | None,
        choice("What the offsets of entities in texts count", OFFSET_UNITS, unset="characters"),
    ] = None,
) -> None:
    if output == "-":
        raise ValueError("The output is a folder, with a file for each split, not standard output. Give its name.")
    named = parse_columns(columns) if columns else None
    from ..data import WRITERS, write_nested_ner
    from ..data.loading import CorpusFiles

    files = CorpusFiles(corpus, corpus_format, columns=named, offsets=offsets, max_bad_records=max_bad_records)
    takes_texts = WRITERS[to].rows != "sentences"
    splits: dict[str, Any] = {}
    units: dict[str, str] = {}
    for of_split in files.by_split():
        found: Mapping[str, Any]
        if takes_texts and of_split.keeps_text:
            if sentences is not None:
                raise ValueError(f"--sentences {sentences}: {to} has whole texts, no sentences. Leave --sentences out.")
            found, unit = of_split.texts(), "texts"
        else:
            found, unit = of_split.sentences(sentence_splitter=sentences), "sentences"
        splits |= found
        units |= dict.fromkeys(found, unit)
    not_held = write_nested_ner(splits, output, to)
    for split, records in splits.items():
        entities = sum(len(record["entities"]) for record in records)
        lost = "".join(f"; {what} not kept: {count}" for what, count in not_held[split].items())
        print(f"{split}: {len(records)} {units[split]} with {entities} entities written{lost}.", file=sys.stderr)
    if WRITERS[to].rows == "texts" and not files.keeps_text:
        print(FROM_WORDS, file=sys.stderr)


def parse_columns(given: Sequence[str]) -> dict[str, Any]:
    """Columns by their numbers, `entities=1,2` → {"entities": [1, 2]}, or by name, `entities=sc` → {"entities": "sc"}.

    Raises:
        ValueError: one is neither, or given twice.
    """
    columns: dict[str, Any] = {}
    for text in given:
        name, value = _parse_column(text)
        if name in columns:
            raise ValueError(f"--columns: {name} is given more than once.")
        columns[name] = value
    return columns


def _parse_column(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    parts = value.split(",")
    if name and value:
        if name == "names":
            return name, parts
        if name == "inclusive_end":
            if (inclusive := BOOLEANS.get(value.lower())) is None:
                raise ValueError(f"--columns: inclusive_end is {value!r}. Give true or false.")
            return name, inclusive
        if not any(map(str.isdecimal, parts)):
            return name, value
        if name == "entities" and all(map(str.isdecimal, parts)):
            return name, [int(part) for part in parts]
        if value.isdecimal():
            return name, int(value)
    raise ValueError(f"--columns: {text!r} is not of the form tokens=0, entities=1,2 or text=NAME.")
