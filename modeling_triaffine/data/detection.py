"""Which format a file or folder has: by its documents, by the keys of its JSON, by its first lines, or by its name."""

import logging
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .corpus_format import IN_LIST, CorpusFormat
from .formats import FORMATS, FormatError
from .json_records import record_keys
from .reading import plain_name, read_head, visible_paths
from .schema import OF_TABLES, CorpusError

logger = logging.getLogger(__name__)

TABLES = (".parquet", ".arrow", ".xlsx")
SHOWN_KEYS = 12
NAME_FIELDS = (
    "Convert it with its fields named: triaffine-ner convert --columns text=… entities=… start=… end=… type=… "
    "inclusive_end=true for texts with spans by characters, --columns tokens=… entities=… for words with tags "
    "(columns={…} in Python); a field inside another one is a path, as data.text"
)
PAIR = re.compile(r'\[\s*"(?:[^"\\]|\\.)*"\s*,\s*\{')
"""A text and its annotations, as for spaCy 2."""
OF_PAIRS = 'Write each text with its annotations as an object, {"text": text, **annotations} (docs/corpora.md)'


def format_of_columns(columns: Mapping[str, Any]) -> str | None:
    """The format of JSON whose fields are named; None if they are other columns."""
    if "text" in columns:
        return "text_spans"
    return "word_tags" if isinstance(columns.get("tokens"), str) or "names" in columns else None


def detect_format(path: Path) -> CorpusFormat:
    """Detects the format of a folder from its documents, of a file from its content, or else from its suffix.

    Of several formats that recognize a file of JSON, the one that requires most of its keys is taken. If several are
    left, which can be if one is from outside of this package, the first is taken with a warning.

    Raises:
        CorpusError: the file is empty, or of no known format.

    Examples:
        >>> from pathlib import Path
        >>> from modeling_triaffine.data import detect_format
        >>> detect_format(Path("outputs/demo/corpus/train.jsonl")).name
        'json_lines'
    """
    known = _format_of_folder(path) if path.is_dir() else _format_of_file(path)
    if known is None:
        raise _not_detected(path)
    return known


def _format_of_file(path: Path) -> CorpusFormat | None:
    if known := format_of_content(path):
        return known
    lists = (known for known in known_formats() if plain_name(path).endswith(known.lists))
    return next((known for known in lists if documents_in(path, known)), None)


def format_of_content(path: Path) -> CorpusFormat | None:
    """The format of a file by its content or suffix; None if it has none of its own, as a list of documents."""
    name = plain_name(path)
    if name.endswith(TABLES):
        return None
    if recognized := formats_recognizing(read_head(path)):
        return first_of(recognized, path.parent)
    named = [known for known in known_formats() if name.endswith(known.suffixes) and not known.keys]
    return named[0] if len(named) == 1 else None


def formats_recognizing(head: str) -> list[CorpusFormat]:
    """The formats that recognize a file by its first characters most specifically.

    A test sees to it that one format of this package does; those from outside come after it.
    """
    keys = frozenset(record_keys(head))
    keys |= {IN_LIST} if keys and head.startswith("[") else frozenset()
    fits = {known.name: _fit(known, head, keys) for known in known_formats()}
    best = max(fits.values())
    return [FORMATS[name] for name, fit in fits.items() if fit == best] if best else []


def read_as(path: Path, known: CorpusFormat, given: str | None) -> str:
    """Which form a file or folder was taken for, and why, and how to name another; without a full stop."""
    form = f"Read as {known.name!r} ({known.description})"
    if given is not None:
        return f"{form}, as named"
    if known.documents is not None or path.is_dir():
        why = "the names of its files"
    elif known.keys and (keys := record_keys(read_head(path))):
        fitting = max((form.required & keys for form in known.keys), key=len)
        why = f"the keys {', '.join(map(repr, sorted(fitting)))} of its first record"
    else:
        why = "its first lines" if known in formats_recognizing(read_head(path)) else "its name"
    return f"{form} for {why}; --format (format=) names another"


def format_named(name: str) -> CorpusFormat:
    """The format of this name."""
    if name not in FORMATS:
        raise ValueError(f"There is no format {name!r}. Choose one of {sorted(FORMATS)}, or None to detect the format.")
    return FORMATS[name]


def known_formats() -> list[CorpusFormat]:
    """All formats; one of another package that cannot be loaded is left out with a warning."""
    formats = []
    for name in FORMATS:
        try:
            formats.append(FORMATS[name])
        except FormatError as error:
            logger.warning("%s", error)
    return formats


def documents_in(path: Path, known: CorpusFormat) -> list[Path]:
    """The files of a format of many small files that belong to a folder or document; none for another format."""
    return [] if known.documents is None else known.documents(path)


def format_of_documents(folder: Path) -> CorpusFormat | None:
    """The format of many small files that are in a folder."""
    formats = known_formats()
    first = next((known for known in formats if documents_in(folder, known)), None)
    if first is None:
        return None
    outside = (known for known in formats if known is not first and FORMATS.owner(known.name))
    return first_of([first, *(known for known in outside if documents_in(folder, known))], folder)


def first_of(formats: Sequence[CorpusFormat], folder: Path) -> CorpusFormat:
    """The first of the formats that recognize a file in this folder, with a warning if there are others."""
    if len(formats) > 1:
        _tell_of_several(folder, tuple(known.name for known in formats))
    return formats[0]


@cache  # a folder can have thousands of files
def _tell_of_several(folder: Path, names: tuple[str, ...]) -> None:
    owned = ((name, FORMATS.owner(name)) for name in names)
    formats = " and ".join(f"{name!r} ({owner})" if owner else repr(name) for name, owner in owned)
    logger.warning(
        "%s: the formats %s recognize the same files, which are read as %r; --format (format=) names another.",
        folder,
        formats,
        names[0],
    )


def _format_of_folder(folder: Path) -> CorpusFormat | None:
    if known := format_of_documents(folder):
        return known
    for file in visible_paths(folder):
        try:
            if file.is_file() and (known := _format_of_file(file)):
                return known
        except CorpusError:  # a file that is no part of the corpus
            continue
    return None


def _fit(known: CorpusFormat, head: str, keys: frozenset[str]) -> int:
    """How specifically a format recognizes a file: the number of keys it requires; 0 if it does not."""
    if known.by_name_only:
        return 0
    if keys:
        return max((len(form.required) for form in known.keys if form.fit(keys)), default=0)
    try:
        return int(known.recognizes is not None and known.recognizes(head))
    except Exception as error:
        if owner := FORMATS.owner(known.name):
            problem = f"{type(error).__name__}: {error}"
            logger.warning("The format %r %s failed to look at a file (%s).", known.name, owner, problem)
            return 0
        raise


def _not_detected(path: Path) -> CorpusError:
    if path.is_dir():
        problem, remedy = "there are no files of a known format in it", "Give a corpus file or its folder"
    elif plain_name(path).endswith(TABLES):
        problem, remedy = "tables are not read", OF_TABLES
    elif keys := sorted(record_keys(head := read_head(path))):
        found = ", ".join(map(repr, keys[:SHOWN_KEYS])) + (", …" if len(keys) > SHOWN_KEYS else "")
        problem = f"its JSON is of no known form; the keys of its first record are {found}"
        remedy = OF_PAIRS if PAIR.search(head) else NAME_FIELDS
    else:
        problem = f"its format cannot be detected; it begins with {head[:40]!r}"
        of_tables = f"{OF_TABLES}. " if plain_name(path).endswith(".csv") else ""
        known = "; ".join(f"{known.name!r} ({known.description})" for known in known_formats())
        remedy = f"{of_tables}Name the format with format=… (--format): {known}"
    return CorpusError.at(path, "", problem, remedy)
