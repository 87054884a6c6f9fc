"""Corpora of nested entities: readers into one schema, writers, context, statistics, alignment with other words.

`load_nested_ner` is the way in: what it gives is `datasets` in the form of `FEATURES`, whatever the corpus looked like.
`write_nested_ner` is the way out.
The collator, which makes batches of it, is in `collator.py`.
"""

from .adapting import adapt_dataset
from .alignment import RetokenizationReport, WordSplitter, align_entities, retokenize
from .context import add_context
from .formats import FORMATS, detect_format
from .genia import read_genia_documents
from .loading import load_nested_ner
from .reading import CorpusFormat
from .schema import FEATURES, CorpusError, Entity, Record, RecordChecker
from .statistics import corpus_statistics
from .writing import WRITERS, write_nested_ner

__all__ = [
    "FEATURES",
    "FORMATS",
    "WRITERS",
    "CorpusError",
    "CorpusFormat",
    "Entity",
    "Record",
    "RecordChecker",
    "RetokenizationReport",
    "WordSplitter",
    "adapt_dataset",
    "add_context",
    "align_entities",
    "corpus_statistics",
    "detect_format",
    "load_nested_ner",
    "read_genia_documents",
    "retokenize",
    "write_nested_ner",
]
