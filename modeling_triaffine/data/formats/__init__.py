"""The known formats by name: those of this package, those of installed packages, and those registered at run time.

A reader's module is imported when its format is first used, so that the command line can list the names at once. A
package adds a format of its own by an entry point,

    [project.entry-points."modeling_triaffine.formats"]
    our_format = "our_package.reader:OUR_FORMAT"

a script by `register_format`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from ...entry_points import owner_of

if TYPE_CHECKING:
    from ..corpus_format import CorpusFormat

logger = logging.getLogger(__name__)

GROUP = "modeling_triaffine.formats"
"""The group of entry points."""

BUILT_IN = {
    "ace": "ace:ACE",
    "bigbio_kb": "bigbio:BIGBIO",
    "bioc": "bioc:BIOC",
    "brat": "brat:BRAT",
    "cas": "cas:CAS",
    "conllu": "conllu:CONLLU",
    "docbin": "docbin:DOCBIN",
    "ere": "ere:ERE",
    "genia": "genia:GENIA",
    "genia_all_types": "genia:GENIA_ALL_TYPES",
    "genia_other_types": "genia:GENIA_OTHER_TYPES",
    "inclusive_spans": "word_spans:INCLUSIVE_SPANS",
    "iob2": "iob2:IOB2",
    "iob2_text": "iob2:IOB2_TEXT",
    "json_lines": "json_lines:JSON_LINES",
    "label_studio": "label_studio:LABEL_STUDIO",
    "mrc": "mrc:MRC",
    "published_json": "json_lines:PUBLISHED_JSON",
    "pubtator": "pubtator:PUBTATOR",
    "span_lines": "span_lines:SPAN_LINES",
    "text_spans": "text_spans:TEXT_SPANS",
    "word_tags": "word_tags:WORD_TAGS",
}
"""Name → module of this folder, and the format in it."""


class FormatError(ImportError):
    """A format of another package cannot be loaded; the message says whose it is."""


class Formats(Mapping[str, "CorpusFormat"]):
    """Name → format, those of this package first; each is loaded when it is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, CorpusFormat] = {}
        self._registered: dict[str, CorpusFormat] = {}
        self._installed: dict[str, EntryPoint] | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*BUILT_IN, *self.installed(), *self._registered]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return any(name == known for known in self)

    def __getitem__(self, name: str) -> CorpusFormat:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def installed(self) -> dict[str, EntryPoint]:
        """Name → the entry point of an installed package; a name of this package cannot be taken."""
        if self._installed is None:
            found = {point.name: point for point in entry_points(group=GROUP)}
            self._installed = {name: point for name, point in found.items() if name not in BUILT_IN}
            for name in found.keys() & BUILT_IN.keys():
                owner = owner_of(found[name])
                logger.warning("The format %r, %s, is left out: there is one of this name. Rename it.", name, owner)
        return self._installed

    def owner(self, name: str) -> str:
        """Whose format this is, to be said in errors; empty for those of this package."""
        if name in self._registered:
            return f"registered by {self._registered[name].module}"
        point = self.installed().get(name)
        return owner_of(point) if point else ""

    def register(self, known: CorpusFormat) -> None:
        earlier = self._registered.get(known.name, known)
        is_taken = known.name in BUILT_IN or known.name in self.installed()
        if is_taken or earlier.module != known.module:
            raise ValueError(f"There is a format {known.name!r} already. Register yours under another name.")
        self._registered[known.name] = self._loaded[known.name] = known

    def _load(self, name: str) -> CorpusFormat:
        if name in BUILT_IN:
            return EntryPoint(name, f"{__name__}.{BUILT_IN[name]}", GROUP).load()
        point = self.installed()[name]
        try:
            known: CorpusFormat = point.load()
            if getattr(known, "name", None) == name:
                return known
            problem = f"is {known!r}, not a CorpusFormat of this name"
        except Exception as error:
            problem = f"cannot be loaded ({type(error).__name__}: {error})"
        raise FormatError(f"The format {name!r} {owner_of(point)} {problem}. Correct or uninstall it.")


FORMATS = Formats()
"""All known formats, by name.

Examples:
    >>> from modeling_triaffine.data import FORMATS
    >>> FORMATS["text_spans"].keeps_text
    True
"""


def register_format(known: CorpusFormat) -> None:
    """Makes a format known in this process: to `load_nested_ner`, to the recognition of files and to the commands.

    A second registration from the same module replaces the first: cells of a notebook are run again.

    Raises:
        ValueError: there is a format of this name already, of this or another package or module.

    Examples:
        >>> from dataclasses import replace
        >>> from modeling_triaffine.data import FORMATS, register_format
        >>> register_format(replace(FORMATS["brat"], name="our_brat", description="brat by another name"))
        >>> "our_brat" in FORMATS
        True
    """
    FORMATS.register(known)
