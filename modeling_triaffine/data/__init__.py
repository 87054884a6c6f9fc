"""Corpora of nested entities: readers and writers, context, statistics, and the collator for training.

`load_nested_ner` reads every format (`formats/`) into the one schema of `FEATURES`, `write_nested_ner` writes it. A
public name is imported when it is first used, so that the names of the formats cost no import.
"""

from typing import TYPE_CHECKING

from ..lazy import on_first_use

if TYPE_CHECKING:
    from .formats import FORMATS as FORMATS
    from .formats import CorpusFormat as CorpusFormat
    from .formats import register_format as register_format
    from .loading import load_nested_ner as load_nested_ner
    from .loading import load_texts as load_texts
    from .reading import document_name as document_name
    from .reading import numbered_lines as numbered_lines
    from .records import ENTITY_FEATURES as ENTITY_FEATURES
    from .records import FEATURES as FEATURES
    from .records import adapt_dataset as adapt_dataset
    from .records import add_context as add_context
    from .records import corpus_statistics as corpus_statistics
    from .schema import CorpusError as CorpusError
    from .schema import Entity as Entity
    from .schema import RecordChecker as RecordChecker
    from .schema import Text as Text
    from .texts import align_entities as align_entities
    from .writing import write_nested_ner as write_nested_ner

__getattr__, __dir__, __all__ = on_first_use(__name__)
