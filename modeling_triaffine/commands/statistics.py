"""Counts sentences, words and entities of a corpus, in a column for each split and one for all.

    triaffine-ner statistics corpus/
    triaffine-ner statistics "gum/*.conllu"
    triaffine-ner statistics GENIAcorpus3.02.xml --splits train validation --max-candidates 30
    triaffine-ner statistics train.json --json > statistics.json

Warns about long sentences, which models read in windows, and about sentences with more entities than candidates.
"""

import json
import sys
from typing import Annotated, Any

import typer

from ..model.options_triaffine import ModelOptions
from .corpus_split import check_splits, split_name
from .options import Corpus, Format, MaxBadRecords

Statistics = dict[str, Any]

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
SHOWN_LABEL = 48
"""Characters of the name of a row, so that the table keeps within 100."""
QUANTILES = {"median": 0.5, "95 %": 0.95, "most": 1.0}
NO_ENTITIES = "there are no entities; look at what was dropped, and whether --format names what the file is"


def command(
    paths: Corpus,
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    splits: Annotated[
        list[str] | None, typer.Option(help="Splits to count.  [default: all]", metavar="SPLIT …")
    ] = None,
    max_candidates: Annotated[int, typer.Option(min=1, help="The model's number of candidates m.", metavar="M")] = (
        ModelOptions.max_candidates
    ),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all distributions as JSON instead of a table.")
    ] = False,
) -> None:
    from datasets import concatenate_datasets

    from ..data import corpus_statistics
    from ..data.loading import CorpusFiles
    from ..data.statistics import repeated_sentences
    from ..data.windows import Windows

    files = CorpusFiles(paths, corpus_format, max_bad_records=max_bad_records)
    corpus = {files.name_of_only_split or name: records for name, records in files.sentences(keep=False).items()}
    chosen = list(map(split_name, splits)) if splits else list(corpus)
    check_splits("--splits", chosen, [*corpus], paths)
    parts = {split: corpus[split] for split in chosen}
    repeated = repeated_sentences(parts)
    if len(parts) > 1:
        parts["total"] = concatenate_datasets(list(parts.values()))
    columns = {
        name: {**corpus_statistics(records, max_candidates), "long_sentences": Windows(records).describe_long()}
        for name, records in parts.items()
    }
    print(json.dumps(columns, indent=2) if as_json else table(columns))
    if repeated:
        print(repeated, file=sys.stderr)
    for name, statistics in columns.items():
        if statistics["long_sentences"] and (name != "total" or len(columns) == 1):
            print(f"warning: {name}: {statistics['long_sentences']}", file=sys.stderr)
        if not statistics["entities"] and statistics["sentences"]:
            print(f"warning: {name}: {NO_ENTITIES}", file=sys.stderr)
        if statistics["sentences_above_max_candidates"]:
            print(f"warning: {candidate_warning(name, statistics)}", file=sys.stderr)


def table(columns: dict[str, Statistics]) -> str:
    from ..data.statistics import quantile
    from ..drawing.safe_text import shorten
    from ..drawing.tables import Table

    rows = {label: [f"{column[key]:,}" for column in columns.values()] for key, label in COUNTS.items()}
    for key, label in DISTRIBUTIONS.items():
        for name, share in QUANTILES.items():
            rows[f"{label}, {name}"] = [f"{quantile(column[key], share):,}" for column in columns.values()]
    for key, label in {"entities_by_type": "type", "entity_depths": "entities at depth"}.items():
        for value in sorted({value for column in columns.values() for value in column[key]}):
            rows[f"{label} {value}"] = [f"{column[key].get(value, 0):,}" for column in columns.values()]
    return Table(["", *columns], [[shorten(label, SHOWN_LABEL), *cells] for label, cells in rows.items()]).text()


def candidate_warning(name: str, statistics: Statistics) -> str:
    spans, most = statistics["spans_above_max_candidates"], statistics["needed_candidates"]
    reachable = 1 - spans / statistics["entities"]
    return (
        f"{name}: {statistics['sentences_above_max_candidates']} sentences have more entities than max_candidates = "
        f"{statistics['max_candidates']}; {spans} entities cannot be found, so recall cannot exceed {reachable:.2%}. "
        f"With max_candidates = {most} all can be found."
    )
