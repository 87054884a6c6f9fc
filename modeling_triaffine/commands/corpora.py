"""`statistics` and `convert`: what a corpus has, and the same in another format."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from .options import Corpus, Format, MaxBadRecords, check_new

BY_VALUE = ("entities_by_type", "entity_depths")  # have a row for each value; other distributions, for each quantile
QUANTILES = {"median": 0.5, "95 %": 0.95, "most": 1.0}
SHOWN_LABEL = 48  # characters, so that the table keeps within 100


def statistics(
    corpus: Corpus,
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    as_json: Annotated[bool, Option("--json", help="Print all distributions as JSON.")] = False,
) -> None:
    """Counts sentences, words and entities of a corpus, in a column for each split and one for all.

        triaffine-ner statistics corpus/
        triaffine-ner statistics "gum/*.conllu"
        triaffine-ner statistics train.json --json > statistics.json

    Reports equal sentences, too. Sentences of more than 256 words are read in windows.
    """
    from ..data import corpus_statistics
    from ..data.loading import read_parts
    from ..data.records import repeated_sentences

    splits: dict[str, Any] = {}
    for part in read_parts(corpus, corpus_format, max_bad_records=max_bad_records):
        splits |= {part.name or name: records for name, records in part.sentences().items()}
    columns = {name: corpus_statistics(records) for name, records in splits.items()}
    if len(splits) > 1:
        columns["total"] = corpus_statistics(splits)
    print(json.dumps(columns, indent=2) if as_json else table(columns))
    if repeated := repeated_sentences(splits):
        print(repeated, file=sys.stderr)


def table(columns: dict[str, dict[str, Any]]) -> str:
    """The counts of each split, under the names that they have as JSON."""
    from ..data.records import quantile
    from ..drawing.safe_text import shorten
    from ..drawing.tables import Table

    rows = []
    for key, first in next(iter(columns.values())).items():
        name, of_splits = key.replace("_", " "), [counts[key] for counts in columns.values()]
        if not isinstance(first, dict):
            rows.append([name, *of_splits])
        elif key in BY_VALUE:
            for value in sorted({value for counts in of_splits for value in counts}):
                rows.append([shorten(f"{name}: {value}", SHOWN_LABEL), *(counts.get(value, 0) for counts in of_splits)])
        else:
            for quantile_name, share in QUANTILES.items():
                rows.append([f"{name}, {quantile_name}", *(quantile(counts, share) for counts in of_splits)])
    return Table(["", *columns], rows).text()


def convert(
    corpus: Corpus,
    output: Annotated[Path, Argument(help="New folder to write.")],
    to: Annotated[
        Literal["json_lines", "brat"], Option(help="Format to write: JSON lines, which all commands read, or brat.")
    ] = "json_lines",
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    columns: Annotated[
        list[str] | None,
        Option(
            help="Columns of IOB2, counted from 0: tokens=0 entities=1,2 pos=3; DocBin: entities=GROUP, or ents; "
            "layer of UIMA CAS: entities=LAYER:FEATURE; lines of spans: inclusive_end=true; fields of JSON: text=… "
            "entities=… start=… end=… type=… quote=… inclusive_end=true, or tokens=… entities=…,… names=O,B-….  "
            "[default: from the file]",
            metavar="NAME=VALUE",
        ),
    ] = None,
    offsets: Annotated[
        Literal["characters", "utf16", "bytes"] | None,
        Option(help="What the offsets of entities in texts count.  [default: characters]"),
    ] = None,
    encoder: Annotated[str | None, Option(help="Folder or Hub name of the encoder of a published checkpoint.")] = None,
    trained_on: Annotated[
        Literal["ace04", "ace05", "genia", "kbp17"] | None,
        Option(help="Corpus of a published checkpoint, which determines labels and context."),
    ] = None,
    vocabularies: Annotated[Path | None, Option(help="Folder with word2id.json, pos2id.json and char2id.json.")] = None,
) -> None:
    r"""Converts a corpus to another format, or a checkpoint of the published implementation to a model of this package.

        triaffine-ner convert annotated/ corpus/
        triaffine-ner convert germeval.tsv corpus/ --to brat --columns "tokens=1 entities=2,3"
        triaffine-ner convert best_epoch.pth outputs/published-genia --encoder dmis-lab/biobert-v1.1 \
            --trained-on genia --vocabularies data/genia91

    Of a corpus in any supported format, it writes a file or folder for each split, and reports on standard error what
    was dropped in reading and what the new format cannot represent. Texts stay as they are, with all offsets.

    A published checkpoint (SpanAttModelV3, or SpanModel without its cross-span stage) is a pickled model; only its
    tensors and settings are read. It contains neither the names of its labels and the context in training (pass
    --trained-on) nor the words of its embeddings (pass --vocabularies).
    """
    if encoder or trained_on or vocabularies or corpus[0].endswith(".pth"):
        convert_checkpoint(corpus[0], output, encoder, trained_on, vocabularies)
        return
    named = parse_columns(columns) if columns else None
    from ..data import load_texts, write_nested_ner

    splits = load_texts(corpus, corpus_format, columns=named, offsets=offsets, max_bad_records=max_bad_records)
    not_held = write_nested_ner(splits, output, to)
    for split, texts in splits.items():
        entities = sum(len(text["entities"]) for text in texts)
        lost = "".join(f"; {what} not kept: {count}" for what, count in not_held[split].items())
        print(f"{split}: texts {len(texts):,}, entities {entities:,}{lost}.", file=sys.stderr)


def convert_checkpoint(
    checkpoint: str, output: Path, encoder: str | None, trained_on: str | None, vocabularies: Path | None
) -> None:
    """Converts a checkpoint of the published implementation to the folder of a model."""
    if not (encoder and trained_on):
        raise ValueError("A published checkpoint needs both --trained-on and --encoder.")
    check_new(output)
    from ..conversion import CORPORA, convert_published
    from ..files import new_folder

    names, context = CORPORA[trained_on]
    model, processor = convert_published(checkpoint, encoder, names, vocabularies, context)
    with new_folder(output) as folder:
        model.save_pretrained(folder)
        processor.save_pretrained(folder)
    print(f"{output}: {model.num_parameters():,} parameters, labels {', '.join(names)}.")


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
