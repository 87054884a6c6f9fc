"""Counts sentences, words and entities of a corpus, in a column for each split and one for all.

    triaffine-ner statistics corpus/
    triaffine-ner statistics "gum/*.conllu"
    triaffine-ner statistics train.json --json > statistics.json

Reports equal sentences, too. Sentences of more than 256 words are read in windows.
"""

import json
import sys
from typing import Annotated, Any

import typer

from .options import Corpus, Format, MaxBadRecords

BY_VALUE = ("entities_by_type", "entity_depths")  # have a row for each value; other distributions, for each quantile
QUANTILES = {"median": 0.5, "95 %": 0.95, "most": 1.0}
SHOWN_LABEL = 48  # characters, so that the table keeps within 100


def command(
    corpus: Corpus,
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print all distributions as JSON.")] = False,
) -> None:
    from ..data import corpus_statistics
    from ..data.loading import read_parts
    from ..data.statistics import repeated_sentences

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
    from ..data.statistics import quantile
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
