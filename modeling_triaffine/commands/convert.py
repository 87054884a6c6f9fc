r"""Converts a corpus to another format, or a checkpoint of the published implementation to a model of this package.

    triaffine-ner convert annotated/ corpus/
    triaffine-ner convert germeval.tsv corpus/ --to brat --columns "tokens=1 entities=2,3"
    triaffine-ner convert best_epoch.pth outputs/published-genia --encoder dmis-lab/biobert-v1.1 --trained-on genia \
        --vocabularies data/genia91

Of a corpus in any supported format, it writes a file or folder for each split, and reports on standard error what was
dropped in reading and what the new format cannot represent. Texts stay as they are, with all offsets.

A published checkpoint (SpanAttModelV3, or SpanModel without its cross-span stage) is a pickled model; only its tensors
and settings are read. It does not contain the names of its labels and the context it was trained with (pass
--trained-on), or the words of its embeddings (pass --vocabularies).
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .options import Corpus, Format, MaxBadRecords, check_new


def command(
    corpus: Corpus,
    output: Annotated[Path, typer.Argument(help="Folder to write, new or empty.")],
    to: Annotated[
        Literal["json_lines", "brat"],
        typer.Option(help="Format to write: JSON lines, which all commands read, or brat."),
    ] = "json_lines",
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of IOB2, counted from 0: tokens=0 entities=1,2 pos=3; DocBin: entities=GROUP, or ents; "
            "layer of UIMA CAS: entities=LAYER:FEATURE; lines of spans: inclusive_end=true; fields of JSON: text=… "
            "entities=… start=… end=… type=… inclusive_end=true, or tokens=… entities=…,… names=O,B-….  [default: "
            "from the file]",
            metavar="NAME=VALUE",
        ),
    ] = None,
    offsets: Annotated[
        Literal["characters", "utf16", "bytes"] | None,
        typer.Option(help="What the offsets of entities in texts count.  [default: characters]"),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Folder or Hub name of the encoder of a published checkpoint.")
    ] = None,
    trained_on: Annotated[
        Literal["ace04", "ace05", "genia", "kbp17"] | None,
        typer.Option(help="Corpus of a published checkpoint, which determines labels and context."),
    ] = None,
    vocabularies: Annotated[
        Path | None, typer.Option(help="Folder with word2id.json, pos2id.json and char2id.json.")
    ] = None,
) -> None:
    if encoder is not None or trained_on is not None:
        if encoder is None or trained_on is None:
            raise ValueError("A published checkpoint needs both --trained-on and --encoder.")
        check_new(output)
        from ..conversion import CORPORA, convert_published
        from ..files import new_folder

        names, context = CORPORA[trained_on]
        model, processor = convert_published(corpus[0], encoder, names, vocabularies, context)
        with new_folder(output) as folder:
            model.save_pretrained(folder)
            processor.save_pretrained(folder)
        print(f"{output}: {model.num_parameters():,} parameters, labels {', '.join(names)}.")
        return
    named = parse_columns(columns) if columns else None
    from ..data import load_texts, write_nested_ner

    splits = load_texts(corpus, corpus_format, columns=named, offsets=offsets, max_bad_records=max_bad_records)
    not_held = write_nested_ner(splits, output, to)
    for split, texts in splits.items():
        entities = sum(len(text["entities"]) for text in texts)
        lost = "".join(f"; {what} not kept: {count}" for what, count in not_held[split].items())
        print(f"{split}: texts {len(texts):,}, entities {entities:,}{lost}.", file=sys.stderr)


def parse_columns(given: Sequence[str]) -> dict[str, Any]:
    """Reads columns by number, `entities=1,2` → {"entities": [1, 2]}, or by name, `entities=sc`."""
    columns: dict[str, Any] = {}
    for text in " ".join(given).split():
        name, _, value = text.partition("=")
        parts = value.split(",")
        if not name or not value:
            raise ValueError(f"--columns: {text!r} is not of the form tokens=0, entities=1,2 or text=NAME.")
        if all(map(str.isdecimal, parts)):
            columns[name] = [int(part) for part in parts] if name == "entities" else int(value)
        else:
            columns[name] = parts if name == "names" else {"true": True, "false": False}.get(value, value)
    return columns
