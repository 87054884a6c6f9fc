"""Corpora of nested entities: readers and writers, context, statistics, retokenization, and the collator for training.

`load_nested_ner` reads every format into the one schema of `FEATURES`, `write_nested_ner` writes it. Not here: how the
processor encodes text (`model/`) and how batches are drawn in training (`training/`).
"""

from .adapting import adapt_dataset
from .alignment import RetokenizationReport, WordSplitter, align_entities, retokenize
from .context import add_context
from .corpus_format import CorpusFormat
from .formats import FORMATS, detect_format
from .loading import load_nested_ner, load_texts
from .schema import ENTITY_FEATURES, FEATURES, CorpusError, Document, Entity, Record, RecordChecker
from .splitting import spacy_splitter
from .statistics import corpus_statistics
from .writing import WRITERS, write_nested_ner

__all__ = [
    "ENTITY_FEATURES",
    "FEATURES",
    "FORMATS",
    "WRITERS",
    "CorpusError",
    "CorpusFormat",
    "Document",
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
    "load_texts",
    "retokenize",
    "spacy_splitter",
    "write_nested_ner",
]
