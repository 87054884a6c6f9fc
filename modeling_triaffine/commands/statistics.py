"""Counts sentences, words and entities of a corpus, in a column for each split and one for all.

    triaffine-ner statistics corpus/
    triaffine-ner statistics "gum/*.conllu"
    triaffine-ner statistics GENIAcorpus3.02.xml --split train --split validation
    triaffine-ner statistics train.json --json > statistics.json

Names equal sentences. Sentences of more than 256 words are read in windows.
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
    "spans_above_max_candidates": f"entities beyond {ModelOptions.max_candidates} candidates",
    "needed_candidates": "candidates that hold all entities",
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
    as_json: Annotated[bool, typer.Option("--json", help="Print all distributions as JSON.")] = False,
) -> None:
    from ..data import corpus_statistics
    from ..data.loading import read_parts
    from ..data.statistics import repeated_sentences

    corpus: dict[str, Any] = {}
    for part in read_parts(paths, corpus_format, max_bad_records=max_bad_records):
        corpus |= {part.name or name: records for name, records in part.sentences().items()}
    chosen = list(map(split_name, split)) if split else list(corpus)
    check_splits(chosen, corpus, paths)
    parts = {name: corpus[name] for name in chosen}
    repeated = repeated_sentences(parts)
    columns = {name: corpus_statistics(records) for name, records in parts.items()}
    columns |= {"total": corpus_statistics(parts)} if len(parts) > 1 else {}
    print(json.dumps(columns, indent=2) if as_json else table(columns))
    if repeated:
        print(repeated, file=sys.stderr)


def table(columns: dict[str, dict[str, Any]]) -> str:
    from ..data.statistics import quantile
    from ..drawing.safe_text import shorten
    from ..drawing.tables import Table

    splits = columns.values()
    rows = [[label, *(counts[key] for counts in splits)] for key, label in COUNTS.items()]
    for key, label in DISTRIBUTIONS.items():
        for name, share in QUANTILES.items():
            rows.append([f"{label}, {name}", *(quantile(counts[key], share) for counts in splits)])
    for key, label in BY_VALUE.items():
        for value in sorted({value for counts in splits for value in counts[key]}):
            rows.append([shorten(f"{label} {value}", SHOWN_LABEL), *(counts[key].get(value, 0) for counts in splits)])
    return Table(["", *columns], rows).text()
