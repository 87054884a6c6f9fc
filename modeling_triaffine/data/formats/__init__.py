"""The known formats by name: those of this package, and those registered at run time by `register_format`.

A reader's module is imported when its format is first used, so that the command line can list the names at once.
"""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..corpus_format import CorpusFormat

BUILT_IN = {
    "ace": "ldc:ACE",
    "bigbio_kb": "bioc:BIGBIO",
    "bioc": "bioc:BIOC",
    "brat": "brat:BRAT",
    "cas": "cas:CAS",
    "conllu": "conllu:CONLLU",
    "docbin": "docbin:DOCBIN",
    "ere": "ldc:ERE",
    "genia": "genia:GENIA",
    "genia_all_types": "genia:GENIA_ALL_TYPES",
    "genia_other_types": "genia:GENIA_OTHER_TYPES",
    "inclusive_spans": "word_spans:INCLUSIVE_SPANS",
    "iob2": "columns:IOB2",
    "json_lines": "word_spans:JSON_LINES",
    "label_studio": "label_studio:LABEL_STUDIO",
    "mrc": "word_spans:MRC",
    "published_json": "word_spans:PUBLISHED_JSON",
    "pubtator": "pubtator:PUBTATOR",
    "span_lines": "word_spans:SPAN_LINES",
    "text_spans": "text_spans:TEXT_SPANS",
    "word_tags": "word_tags:WORD_TAGS",
}
"""Name → module of this folder, and the format in it."""


class Formats(UserDict[str, Any]):
    """Name → format, those of this package first; each is loaded when it is asked for."""

    def __getitem__(self, name: str) -> CorpusFormat:
        found = super().__getitem__(name)
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = self.data[name] = getattr(import_module(f".{module}", __name__), attribute)
        known: CorpusFormat = found
        return known


FORMATS = Formats(BUILT_IN)
"""All known formats, by name.

Examples:
    >>> from modeling_triaffine.data import FORMATS
    >>> FORMATS["docbin"].suffixes
    ('.spacy',)
"""


def register_format(known: CorpusFormat) -> None:
    """Makes a format known in this process: to `load_nested_ner`, to the recognition of files and to the commands.

    A second registration of a name replaces the first: cells of a notebook are run again.

    Raises:
        ValueError: this package has a format of this name.

    Examples:
        >>> from dataclasses import replace
        >>> from modeling_triaffine.data import FORMATS, register_format
        >>> register_format(replace(FORMATS["brat"], name="our_brat", description="brat by another name"))
        >>> "our_brat" in FORMATS
        True
    """
    if known.name in BUILT_IN:
        raise ValueError(f"There is a format {known.name!r} already. Register yours under another name.")
    FORMATS[known.name] = known
