"""Which format a file or folder has: by its documents, by the keys of its JSON, by its first lines, or by its name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .corpus_format import IN_LIST, CorpusFormat
from .formats import FORMATS
from .json_records import record_keys
from .reading import plain_name, read_head, visible_paths
from .schema import OF_TABLES, CorpusError

TABLES = (".parquet", ".arrow", ".xlsx")
SHOWN_KEYS = 12
REMEDY = (
    "docs/corpora.md shows all forms that are read: name one (--format, format=), or where the fields of JSON have "
    "other names, convert it with triaffine-ner convert --columns 'text=… entities=… start=… end=… type=…'"
)


def format_of_columns(columns: Mapping[str, Any]) -> str | None:
    """The format of JSON whose fields are named; None if they are other columns."""
    if "text" in columns:
        return "text_spans"
    return "word_tags" if isinstance(columns.get("tokens"), str) or "names" in columns else None


def detect_format(path: Path) -> CorpusFormat:
    """Detects the format of a folder from its documents, of a file from its content, or else from its suffix.

    Of several formats that recognize a file of JSON, the one that requires most of its keys is taken.

    Raises:
        CorpusError: the file is empty, or of no known format.

    Examples:
        >>> from pathlib import Path
        >>> from modeling_triaffine.data import detect_format
        >>> detect_format(Path("outputs/demo/corpus/train.jsonl")).name
        'json_lines'
    """
    if path.is_dir():
        known = format_of_documents(path) or next(filter(None, map(format_if_known, visible_paths(path))), None)
    else:
        known = format_of_content(path) or next(
            (one for one in FORMATS.values() if plain_name(path).endswith(one.lists) and documents_in(path, one)), None
        )
    if known is None:
        raise _not_detected(path)
    return known


def format_if_known(file: Path) -> CorpusFormat | None:
    """The format of a file by itself; None if it has none, or cannot be read."""
    try:
        return format_of_content(file) if file.is_file() else None
    except CorpusError:
        return None


def format_of_content(path: Path) -> CorpusFormat | None:
    """The format of a file by its content or suffix; None if it has none of its own, as a list of documents."""
    name = plain_name(path)
    if name.endswith(TABLES):
        return None
    if recognized := formats_recognizing(read_head(path)):
        return recognized[0]
    named = [known for known in FORMATS.values() if name.endswith(known.suffixes) and not known.keys]
    return named[0] if len(named) == 1 else None


def formats_recognizing(head: str) -> list[CorpusFormat]:
    """The formats that recognize a file by its first characters most specifically.

    A test sees to it that one format of this package does; those registered at run time come after it.
    """
    keys = frozenset(record_keys(head))
    keys |= {IN_LIST} if keys and head.startswith("[") else frozenset()
    fits = {known.name: _fit(known, head, keys) for known in FORMATS.values() if not known.by_name_only}
    best = max(fits.values())
    return [FORMATS[name] for name, fit in fits.items() if fit == best] if best else []


def _fit(known: CorpusFormat, head: str, keys: frozenset[str]) -> int:
    """How specifically a format recognizes a file: the number of keys it requires; 0 if it does not."""
    if keys and (fitting := [len(form.required) for form in known.keys if form.fit(keys)]):
        return max(fitting)
    return int(known.recognizes is not None and known.recognizes(head))


def may_be(file: Path, known: CorpusFormat, is_named: bool) -> bool:
    """A file can be of the format that the user names, or otherwise that its neighbours have."""
    has_suffix = bool(known.suffixes) and plain_name(file).endswith(known.suffixes)
    if known.documents is not None:
        return has_suffix or (plain_name(file).endswith(known.lists) and bool(documents_in(file, known)))
    if has_suffix and (is_named or known.may_be is None):
        return True
    try:
        head = read_head(file)
    except CorpusError:
        return False
    is_recognized = any(one.read == known.read for one in formats_recognizing(head))
    return is_recognized or (known.may_be is not None and known.may_be(head))


def format_named(name: str) -> CorpusFormat:
    """The format of this name."""
    if name not in FORMATS:
        raise ValueError(f"There is no format {name!r}. Choose one of {sorted(FORMATS)}, or None to detect the format.")
    return FORMATS[name]


def documents_in(path: Path, known: CorpusFormat) -> list[Path]:
    """The files of a format of many small files that belong to a folder or document; none for another format."""
    return [] if known.documents is None else known.documents(path)


def format_of_documents(folder: Path) -> CorpusFormat | None:
    """The format of many small files that are in a folder."""
    return next((known for known in FORMATS.values() if documents_in(folder, known)), None)


def _not_detected(path: Path) -> CorpusError:
    if path.is_dir():
        problem, remedy = "there are no files of a known format in it", "Give a corpus file or its folder"
    elif plain_name(path).endswith((*TABLES, ".csv")):
        problem, remedy = "tables are not read", OF_TABLES
    elif keys := sorted(record_keys(head := read_head(path))):
        found = ", ".join(map(repr, keys[:SHOWN_KEYS])) + (", …" if len(keys) > SHOWN_KEYS else "")
        problem, remedy = f"its JSON is of no known form; the keys of its first record are {found}", REMEDY
    else:
        problem, remedy = f"its format cannot be detected; it begins with {head[:40]!r}", REMEDY
    return CorpusError.at(path, "", problem, remedy)
