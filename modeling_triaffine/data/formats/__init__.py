"""The known formats: how a reader describes its own, those of this package by name, and `register_format`.

A reader's module is imported when its format is first used, so that the command line can list the names at once.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...files import JSON_SUFFIXES

if TYPE_CHECKING:
    from ..schema import Text

IN_LIST = "[]"  # stands among the keys of JSON for the brackets of a list of records, which JSON lines do not have


@dataclass(frozen=True)
class CorpusFormat:
    """A corpus format, as its reader declares it; `register_format` makes it known.

    Args:
        name: value of `load_nested_ner(format=…)`.
        description: a few words for error messages.
        read: `read(path, check) → texts`, a generator of [`Text`] which reports to `check` (a `RecordChecker`) what it
            drops (`check.drop`) or ignores (`check.note`). What it cannot read is a `check.error`, which names the
            place. What reads one record stands in `with check.record():`, so that `max_bad_records` can drop it.
        suffixes: of file names, without `.gz`; they decide where the content of a file does not. With `keys`, those of
            JSON by default.
        keys: for JSON, the keys of its records, in one or several forms. The form "text entities -tokens" requires two
            keys and excludes one. Of several formats that fit, the one that requires most keys is taken.
        recognizes: for other files, a function from their first characters to whether they look like this format.
        columns: what `read(columns=…)` names, as in "{'entities': 'layer:feature'}"; empty if it takes none.
        documents: for a format of several files a document, `documents(path) → files`: the one to `read` of each
            document in a folder, or of one document; empty if there are none.
    """

    name: str
    description: str
    read: Callable[..., Iterator[Text]]
    suffixes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    recognizes: Callable[[str], bool] | None = None
    columns: str = ""
    documents: Callable[[Path], list[Path]] | None = None

    def __post_init__(self) -> None:
        if self.keys and not self.suffixes:
            object.__setattr__(self, "suffixes", JSON_SUFFIXES)

    def fit(self, head: str, keys: Set[str]) -> int:
        """Returns the rank of the format for a file: the most `keys` of one form that its JSON has; else 1 or 0."""
        fit = 0
        for form in map(str.split, self.keys):
            required = {key for key in form if not key.startswith("-")}
            excluded = {key[1:] for key in form if key.startswith("-")}
            if required <= keys and excluded.isdisjoint(keys):
                fit = max(fit, len(required))
        return fit or int(self.recognizes is not None and self.recognizes(head))


def check_columns(columns: Mapping[str, object], required: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Raises ValueError unless `columns` names all that are required, and perhaps optional ones."""
    if not {*required} <= columns.keys() <= {*required, *optional}:
        further = f", optionally {', '.join(sorted(optional))}" if optional else ""
        raise ValueError(f"`columns` names {sorted(columns)}. Name {' and '.join(required)}{further}.")


# ---- The formats by name ----

_MODULES = {
    "columns": ("conllu", "iob2"),
    "extras": ("cas", "docbin"),
    "genia": ("genia", "genia_all_types", "genia_other_types"),
    "standoff": ("ace", "brat", "ere", "pubtator"),
    "text_spans": ("bigbio_kb", "bioc", "label_studio", "text_spans"),
    "words": ("inclusive_spans", "json_lines", "mrc", "published_json", "span_lines", "word_tags"),
}
BUILT_IN = dict(sorted((name, module) for module, names in _MODULES.items() for name in names))
"""Name → module of this folder, in which the format is called alike, in capitals."""


class Formats(UserDict[str, Any]):
    """Name → format, those of this package first; each is loaded when it is asked for."""

    def __getitem__(self, name: str) -> CorpusFormat:
        found = super().__getitem__(name)
        if isinstance(found, str):
            found = self.data[name] = getattr(import_module(f".{found}", __name__), name.upper())
        return cast(CorpusFormat, found)


FORMATS = Formats(BUILT_IN)
"""All known formats, by name."""


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
