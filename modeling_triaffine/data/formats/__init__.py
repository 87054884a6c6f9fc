"""The known formats by name: those of this package, and those registered at run time by `register_format`.

A reader's module is imported when its format is first used, so that the command line can list the names at once.
"""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..corpus_format import CorpusFormat

_MODULES = {
    "bioc": ("bigbio_kb", "bioc"),
    "brat": ("brat",),
    "cas": ("cas",),
    "columns": ("iob2",),
    "conllu": ("conllu",),
    "docbin": ("docbin",),
    "genia": ("genia", "genia_all_types", "genia_other_types"),
    "label_studio": ("label_studio",),
    "ldc": ("ace", "ere"),
    "pubtator": ("pubtator",),
    "text_spans": ("text_spans",),
    "word_spans": ("inclusive_spans", "json_lines", "mrc", "published_json", "span_lines"),
    "word_tags": ("word_tags",),
}
BUILT_IN = dict(sorted((name, module) for module, names in _MODULES.items() for name in names))
"""Name → module of this folder, in which the format is called alike, in capitals."""


class Formats(UserDict[str, Any]):
    """Name → format, those of this package first; each is loaded when it is asked for."""

    def __getitem__(self, name: str) -> CorpusFormat:
        found = super().__getitem__(name)
        if isinstance(found, str):
            found = self.data[name] = getattr(import_module(f".{found}", __name__), name.upper())
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
