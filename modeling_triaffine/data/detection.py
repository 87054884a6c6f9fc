"""Which format a file or folder has: by its documents, by the keys of its JSON, by its first lines, or by its name."""

import logging
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from .corpus_format import IN_LIST, CorpusFormat
from .formats import FORMATS, FormatError
from .json_records import record_keys
from .reading import read_head, stem, visible_paths
from .schema import OF_TABLES, CorpusError

logger = logging.getLogger(__name__)

TABLES = (".parquet", ".arrow", ".xlsx")
SHOWN_KEYS = 12


def detect_format(path: Path) -> CorpusFormat:
    """Detects the format of a folder from its documents, of a file from its content, or else from its suffix.

    Of several formats that recognize a file of JSON, the one that requires most of its keys is taken.

    Raises:
        CorpusError: the file is empty, or of no known format.
    """
    if path.is_dir():
        return format_of_folder(path, known_formats())
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(TABLES):
        raise CorpusError.at(path, "", "tables are not read", OF_TABLES)
    head = read_head(path)
    if recognized := formats_recognizing(head):
        return recognized[0]
    formats = known_formats()
    named = [known for known in formats if known.suffixes and name.endswith(known.suffixes) and not known.keys]
    if len(named) == 1:
        return named[0]
    for known in formats:
        if known.lists and name.endswith(known.lists) and has_documents(path, known):
            return known
    raise _not_detected(path, head)


def formats_recognizing(head: str) -> list[CorpusFormat]:
    """The formats that recognize a file by its first characters most specifically; a test sees to it that one does."""
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


def format_of(path: Path, name: str | None) -> CorpusFormat:
    """The format of this name; None detects the format of `path`."""
    if name is None:
        return detect_format(path)
    known = format_named(name)
    return format_of_folder(path, [known]) if path.is_dir() else known


def format_named(name: str) -> CorpusFormat:
    """The format of this name.

    Raises:
        ValueError: there is none.
    """
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


def files_of(path: Path, known: CorpusFormat) -> list[Path]:
    """The files of a split in the order of their names: a file alone, or those with suffixes of the format.

    Raises:
        CorpusError: two of them differ in the suffix alone, so that their documents would have the same names.
    """
    if known.documents is not None:
        return known.documents(path)
    if path.is_file():
        return [path]
    files = (file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith("."))
    by_stem: dict[str, Path] = {}
    for file in files:
        if file.name.lower().removesuffix(".gz").endswith(known.suffixes):
            other = by_stem.setdefault(stem(file), file)
            if other != file:
                problem = f"{other.name} and {file.name} would give their documents the same names"
                raise CorpusError.at(path, "", problem, "Rename one of them")
    return list(by_stem.values())


def has_documents(path: Path, known: CorpusFormat) -> bool:
    return known.documents is not None and bool(known.documents(path))


def format_of_folder(folder: Path, formats: Collection[CorpusFormat]) -> CorpusFormat:
    for known in formats:
        if has_documents(folder, known):
            return known
    for known in formats:
        files = [] if known.documents is not None else files_of(folder, known)
        if files and (len(formats) == 1 or detect_format(files[0]) is known):
            return known
    problem = "is a folder without documents of a known format"
    remedy = "Give each split's file, or the folder as the only path"
    raise CorpusError.at(folder, "", problem + lacking(folder), remedy)


def lacking(folder: Path) -> str:
    """What a folder without documents may lack, to end a sentence."""
    counts = Counter(file.suffix.lower() for file in visible_paths(folder) if file.is_file())
    missing = "; for brat, its .txt files ({}) need .ann files beside them" if counts[".txt"] else ""
    packed = "; ZIP archives in it ({}) are to be unpacked first" if counts[".zip"] else ""
    return missing.format(counts[".txt"]) + packed.format(counts[".zip"])


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


def _not_detected(path: Path, head: str) -> CorpusError:
    if keys := sorted(record_keys(head)):
        found = ", ".join(map(repr, keys[:SHOWN_KEYS])) + (", …" if len(keys) > SHOWN_KEYS else "")
        problem = f"its JSON is of no known form; the keys of its first record are {found}"
        remedy = "Name the form with format=… (--format) if it is one of these, or convert it with adapt_dataset"
    else:
        problem = f"its format cannot be detected; it begins with {head[:40]!r}"
        of_tables = f"{OF_TABLES}. " if path.name.lower().endswith((".csv", ".csv.gz")) else ""
        remedy = f"{of_tables}Name the format with format=… (--format)"
    known = "; ".join(f"{known.name!r} ({known.description})" for known in known_formats())
    return CorpusError.at(path, "", problem, f"{remedy}: {known}")
