"""Corpora of nested entities: readers into one schema, context, statistics, alignment with other words.

`load_nested_ner` is the way in. What it gives is `datasets` in the form of `FEATURES`, whatever the corpus looked like.
The collator, which makes batches of it, is in `collator.py`.
"""

from .alignment import RetokenizationReport, WordSplitter, align_entities, retokenize
from .context import add_context
from .genia import read_genia_documents
from .loading import FORMATS, detect_format, load_nested_ner
from .reading import CorpusFormat
from .schema import FEATURES, CorpusError, Entity, Record, RecordChecker
from .statistics import corpus_statistics

__all__ = [
    "FEATURES",
    "FORMATS",
    "CorpusError",
    "CorpusFormat",
    "Entity",
    "Record",
    "RecordChecker",
    "RetokenizationReport",
    "WordSplitter",
    "add_context",
    "align_entities",
    "corpus_statistics",
    "detect_format",
    "load_nested_ner",
    "read_genia_documents",
    "retokenize",
]
