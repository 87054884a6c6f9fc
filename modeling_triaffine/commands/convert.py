r"""Converts a corpus to another format, or a checkpoint of the published implementation to a model of this package.

    triaffine-ner convert annotated/ corpus/
    triaffine-ner convert germeval.tsv corpus/ --to brat --columns "tokens=1 entities=2,3"
    triaffine-ner convert best_epoch.pth outputs/published-genia --encoder dmis-lab/biobert-v1.1 --trained-on genia \
        --vocabularies data/genia91

Of a corpus in any supported format, it writes a file or folder for each split, and reports on standard error what was
dropped in reading and what the new format cannot represent. Texts stay as they are, with all offsets; to columns, they
are split into words.

A published checkpoint (SpanAttModelV3, or SpanModel of the ablations) is a pickled model; only its tensors and settings
are read. It does not contain the names of its labels and the context it was trained with (pass --trained-on, or
--labels and --context), or the words of its embeddings (pass --vocabularies).
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..data.offsets import OFFSET_UNITS
from ..model.options_triaffine import MODEL_OPTIONS, PROCESSOR_OPTIONS, ProcessorOptions
from ..training.options import BOOLEANS
from .options import Corpus, Format, MaxBadRecords, check_new, described


def command(
    corpus: Corpus,
    output: Annotated[Path, typer.Argument(help="Folder to write, new or empty.")],
    to: Annotated[
        Literal["json_lines", "iob2", "brat"],
        typer.Option(help="Format to write: JSON lines, which all commands read, words in columns, or texts."),
    ] = "json_lines",
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    sentences: Annotated[
        Literal["punctuation", "lines", "none"] | None,
        typer.Option(help=f"Of texts for iob2: {described(PROCESSOR_OPTIONS['sentence_splitter'])}"),
    ] = None,
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
        str | None,
        typer.Option(
            help=f"What the offsets of entities in texts count: {', '.join(OFFSET_UNITS)}.  [default: characters]",
            metavar="UNIT",
        ),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Folder or Hub name of the encoder of a published checkpoint.")
    ] = None,
    trained_on: Annotated[
        Literal["ace04", "ace05", "genia", "kbp17"] | None,
        typer.Option(help="Corpus of a published checkpoint, which determines labels and context."),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(help="Instead of --trained-on: an entity label; give all, in their order.", metavar="LABEL"),
    ] = None,
    context: Annotated[
        Literal["none", "previous_sentence", "document"] | None, typer.Option(help=described(MODEL_OPTIONS["context"]))
    ] = None,
    vocabularies: Annotated[
        Path | None, typer.Option(help="Folder with word2id.json, pos2id.json and char2id.json.")
    ] = None,
) -> None:
    if encoder is not None:
        if (trained_on is None) == (labels is None):
            raise ValueError("Give either --trained-on or --labels with --encoder.")
        check_new(output)
        from ..conversion import CORPORA, convert_published
        from ..files import new_folder

        published = CORPORA.get(trained_on or "")
        names = list(published.labels) if published else labels or []
        read = context or (published.context if published else "none")
        converted = convert_published(corpus[0], encoder, names, vocabularies=vocabularies, context=read)
        with new_folder(output) as folder:
            converted.model.save_pretrained(folder)
            converted.processor.save_pretrained(folder)
        print(f"{output}: {converted.model.num_parameters():,} parameters, labels {', '.join(names)}.")
        if converted.left_out:
            print(f"Left out, because prediction does not need them: {', '.join(converted.left_out)}.")
        return
    named = parse_columns(columns) if columns else None
    if sentences is not None and to != "iob2":
        raise ValueError(f"--sentences {sentences}: {to} has whole texts, no sentences. Leave --sentences out.")
    from ..data import load_texts, write_nested_ner

    splits = load_texts(corpus, corpus_format, columns=named, offsets=offsets, max_bad_records=max_bad_records)
    not_held = write_nested_ner(splits, output, to, sentences or ProcessorOptions.sentence_splitter)
    for split, texts in splits.items():
        entities = sum(len(text["entities"]) for text in texts)
        lost = "".join(f"; {what} not kept: {count}" for what, count in not_held[split].items())
        print(f"{split}: {len(texts)} texts with {entities} entities{lost}.", file=sys.stderr)


def parse_columns(given: Sequence[str]) -> dict[str, Any]:
    """Columns by number, `entities=1,2` → {"entities": [1, 2]}, or by name, `entities=sc` → {"entities": "sc"}."""
    columns: dict[str, Any] = {}
    for text in " ".join(given).split():
        name, _, value = text.partition("=")
        parts = value.split(",")
        if not name or not value or name in columns:
            raise ValueError(
                f"--columns: {text!r} is not of the form tokens=0, entities=1,2 or text=NAME, or is repeated."
            )
        if name == "names":
            columns[name] = parts
        elif name == "inclusive_end":
            columns[name] = BOOLEANS.get(value.lower(), value)
        elif all(map(str.isdecimal, parts)):
            columns[name] = [int(part) for part in parts] if name == "entities" else int(value)
        else:
            columns[name] = value
    return columns
