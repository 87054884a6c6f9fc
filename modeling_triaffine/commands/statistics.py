"""Counts sentences, words and entities of a corpus, in a column for each split and one for all.

    triaffine-ner statistics corpus/
    triaffine-ner statistics "gum/*.conllu"
    triaffine-ner statistics GENIAcorpus3.02.xml --split train --split validation --max-candidates 30
    triaffine-ner statistics train.json --json > statistics.json

Warns about long sentences, which models read in windows, and about sentences with more entities than candidates.
"""

import json
import sys
from typing import Annotated, Any

import typer

from ..model.options_triaffine import ModelOptions
from .options import Corpus, Format, MaxBadRecords, check_splits, split_name

COUNTS = {
    "sentences": "sentences",
    "tokens": "tokens",
    "entities": "entities",
    "nested_entities": "nested entities, inner and outer",
    "inner_entities": "inner entities",
    "most_entities": "most entities in a sentence",
    "nesting_depth": "nesting depth",
    "sentences_with_pos": "sentences with part-of-speech tags",
}
DISTRIBUTIONS = {
    "sentence_lengths": "words in a sentence",
    "entity_lengths": "words in an entity",
    "entities_per_sentence": "entities in a sentence",
}
BY_VALUE = {"entities_by_type": "type", "entity_depths": "entities at depth"}
QUANTILES = {"median": 0.5, "95 %": 0.95, "most": 1.0}
SHOWN_LABEL = 48  # characters, so that the table keeps within 100


def command(
    paths: Corpus,
    split: Annotated[
        list[str] | None, typer.Option(help="Split to count; give several.  [default: all]", metavar="SPLIT")
    ] = None,
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    max_candidates: Annotated[int, typer.Option(min=1, help="The model's number of candidates m.", metavar="M")] = (
        ModelOptions.max_candidates
    ),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all distributions as JSON instead of a table.")
    ] = False,
) -> None:
    from datasets import concatenate_datasets

    from ..data import corpus_statistics
    from ..data.loading import read_parts
    from ..data.statistics import repeated_sentences
    from ..data.windows import Windows

    corpus: dict[str, Any] = {}
    for part in read_parts(paths, corpus_format, max_bad_records=max_bad_records):
        corpus |= {part.name or name: records for name, records in part.sentences().items()}
    chosen = list(map(split_name, split)) if split else list(corpus)
    check_splits(chosen, [*corpus], paths)
    parts = {name: corpus[name] for name in chosen}
    repeated = repeated_sentences(parts)
    if len(parts) > 1:
        parts["total"] = concatenate_datasets(list(parts.values()))
    columns = {name: corpus_statistics(records, max_candidates) for name, records in parts.items()}
    print(json.dumps(columns, indent=2) if as_json else table(columns))
    if repeated:
        print(repeated, file=sys.stderr)
    for name, statistics in columns.items():
        for warning in (Windows(parts[name]).describe_long(), *warnings_of(statistics)):
            if warning:
                print(f"warning: {name}: {warning}", file=sys.stderr)


def table(columns: dict[str, dict[str, Any]]) -> str:
    from ..data.statistics import quantile
    from ..drawing.safe_text import shorten
    from ..drawing.tables import Table

    rows = {label: [f"{column[key]:,}" for column in columns.values()] for key, label in COUNTS.items()}
    for key, label in DISTRIBUTIONS.items():
        for name, share in QUANTILES.items():
            rows[f"{label}, {name}"] = [f"{quantile(column[key], share):,}" for column in columns.values()]
    for key, label in BY_VALUE.items():
        for value in sorted({value for column in columns.values() for value in column[key]}):
            rows[f"{label} {value}"] = [f"{column[key].get(value, 0):,}" for column in columns.values()]
    return Table(["", *columns], [[shorten(label, SHOWN_LABEL), *cells] for label, cells in rows.items()]).text()


def warnings_of(statistics: dict[str, Any]) -> list[str]:
    warnings = []
    if statistics["sentences"] and not statistics["entities"]:
        warnings.append("no entities; look at what was dropped, and whether --format names what the file is")
    if sentences := statistics["sentences_above_max_candidates"]:
        lost, entities = statistics["spans_above_max_candidates"], statistics["entities"]
        warnings.append(
            f"{sentences} sentences have more entities than max_candidates = {statistics['max_candidates']}; {lost} "
            f"entities cannot be found, so recall cannot exceed {1 - lost / entities:.2%}. With max_candidates = "
            f"{statistics['needed_candidates']} all can be found."
        )
    return warnings
