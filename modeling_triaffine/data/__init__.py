"""Corpora of nested entities: readers and writers, context, statistics, retokenization, and the collator for training.

`load_nested_ner` reads every format into the one schema of `FEATURES`, `write_nested_ner` writes it; the formats
themselves are in `formats/`. Not here: how the processor encodes text (`model/`) and how batches are drawn in training
(`training/`). A public name is imported when it is first used, so that the names of the formats cost no import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapting import adapt_dataset
    from .alignment import WordSplitter, align_entities, retokenize
    from .context import add_context
    from .corpus_format import CorpusFormat, Keys
    from .detection import detect_format
    from .documents import Annotation, Document, Sentence
    from .features import ENTITY_FEATURES, FEATURES
    from .formats import FORMATS, register_format
    from .loading import load_nested_ner, load_texts
    from .reading import document_name, numbered_lines
    from .record_checker import RecordChecker
    from .schema import CorpusError, Entity, Record, Text
    from .splitting import spacy_splitter
    from .statistics import corpus_statistics
    from .writing import WRITERS, write_nested_ner

_NAMES = {
    "adapting": ("adapt_dataset",),
    "alignment": ("WordSplitter", "align_entities", "retokenize"),
    "context": ("add_context",),
    "corpus_format": ("CorpusFormat", "Keys"),
    "detection": ("detect_format",),
    "documents": ("Annotation", "Document", "Sentence"),
    "features": ("ENTITY_FEATURES", "FEATURES"),
    "formats": ("FORMATS", "register_format"),
    "loading": ("load_nested_ner", "load_texts"),
    "reading": ("document_name", "numbered_lines"),
    "record_checker": ("RecordChecker",),
    "schema": ("CorpusError", "Entity", "Record", "Text"),
    "splitting": ("spacy_splitter",),
    "statistics": ("corpus_statistics",),
    "writing": ("WRITERS", "write_nested_ner"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "ENTITY_FEATURES",
    "FEATURES",
    "FORMATS",
    "WRITERS",
    "Annotation",
    "CorpusError",
    "CorpusFormat",
    "Document",
    "Entity",
    "Keys",
    "Record",
    "RecordChecker",
    "Sentence",
    "Text",
    "WordSplitter",
    "adapt_dataset",
    "add_context",
    "align_entities",
    "corpus_statistics",
    "detect_format",
    "document_name",
    "load_nested_ner",
    "load_texts",
    "numbered_lines",
    "register_format",
    "retokenize",
    "spacy_splitter",
    "write_nested_ner",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
