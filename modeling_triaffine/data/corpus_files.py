"""A path → the files of each split, and their format: by name or content of a file, by the keys of its JSON.

The split is in the name of a file or folder, or is given. All files of a split have one format.
"""

import glob
import logging
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .formats import FORMATS, IN_LIST, CorpusFormat
from .reading import plain_name, read_head, record_keys, visible_paths
from .schema import OF_TABLES, TO_DATASET, CorpusError

logger = logging.getLogger(__name__)

SPLIT_OF_NAME = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(
        ("dev", "devel", "develop", "development", "val", "valid", "eval", "validation", "testa"), "validation"
    ),
    **dict.fromkeys(("test", "testing", "testb"), "test"),
}
"""Name of a file, folder or key of `path` → its split. CoNLL-2002 and 2003 call theirs testa and testb."""

SPLIT_IN_NAME = re.compile(rf"(?<![a-z0-9])({'|'.join(SPLIT_OF_NAME)})(?:set)?(?![a-z0-9])")
TABLES = (".parquet", ".arrow", ".xlsx")
EACH_BY_ITSELF = (
    "Give one of them by itself (training takes --train_file, --validation_file and --test_file; Python a mapping, "
    '{"train": …})'
)
REMEDY = (
    "docs/corpora.md shows all forms that are read: name one (--format, format=), or where the fields of JSON have "
    "other names, convert it with triaffine-ner convert --columns 'text=… entities=… start=… end=… type=…'"
)
SHOWN, SHOWN_KEYS = 3, 12

PathLike = str | os.PathLike[str]
Paths = PathLike | Sequence[PathLike]
CorpusPath = Paths | Mapping[str, Paths]
"""A corpus: a file, a folder or a pattern such as "gum/*.conllu"; several of them; or a mapping of splits to these."""


@dataclass(frozen=True)
class SplitFiles:
    """The files of a split, all of one format; `path` is what messages name: the file, or the folder around them."""

    path: Path
    files: tuple[Path, ...]
    format: CorpusFormat

    def split_in_name(self) -> str | None:
        """The split that the name of the file, or of the folder around its files, tells."""
        is_document = self.format.documents is not None and self.path.is_file()
        return None if is_document else split_of(self.path)


def split_of(path: Path) -> str | None:
    """The split that is in the name of a file or folder; None if none is, or several are."""
    names = SPLIT_IN_NAME.findall(plain_name(path))
    return SPLIT_OF_NAME[names[0]] if len(names) == 1 else None


# ---- Splits ----


def find_splits(path: CorpusPath, format: str | None, only: str | None = None) -> dict[str | None, SplitFiles]:
    """Finds the files of each split. The split is None if `path` names none: its texts say it, or it is all `train`.

    Files of other splits than `only` need not be of a known format.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"There is no format {format!r}. Choose one of {sorted(FORMATS)}, or None to detect it.")
    known = None if format is None else FORMATS[format]
    if not isinstance(path, Mapping):
        paths = _existing(path)
        named = _named_splits(paths, known, only)
        return {split: named[split] for split in dict.fromkeys(SPLIT_OF_NAME.values()) if split in named} or {
            None: _without_splits(paths, known)
        }
    splits: dict[str | None, SplitFiles] = {}
    for name, given in path.items():
        split = SPLIT_OF_NAME.get(name, name)
        if split in splits:
            raise ValueError(f"Two files are given for the split {split!r}. Give one, or a list of both.")
        paths = _existing(given)
        named = _named_splits(paths, known, split) if len(paths) == 1 else {}
        if split not in named and len(named) > 1:
            problem = f"it is given for {split}, and has {', '.join(sorted(named))}"
            raise CorpusError.at(paths[0], "", problem, "Give the files")
        splits[split] = named[split] if split in named else files_among(paths, known)
    return splits


def _existing(given: object) -> list[Path]:
    """The files and folders of a path, a pattern, or several of either."""
    found: list[Path] = []
    for entry in given if isinstance(given, (list, tuple)) else [given]:
        if not isinstance(entry, (str, os.PathLike)):
            raise TypeError(
                f"A corpus is a file or folder, but the data is of type {type(entry).__name__}. Data in memory is for "
                f"adapt_dataset, which takes a Dataset. {TO_DATASET}."
            )
        path = Path(entry).expanduser()
        matching = [path] if path.exists() else sorted(map(Path, glob.glob(str(path), recursive=True)))
        if not matching:
            raise FileNotFoundError(f"{path}: no such file. Give a corpus file, or a folder with train, dev, test.")
        found += matching
    if not found:
        raise ValueError("No file is given. Give the path of a corpus file or folder.")
    if len(found) == 1 and found[0].name:
        return found
    # "." has no name, and the folder around several is absolute.
    return [*dict.fromkeys(Path(os.path.abspath(path)) for path in found)]


def _without_splits(paths: Sequence[Path], known: CorpusFormat | None) -> SplitFiles:
    """All files as one split; CorpusError if the name of one is that of a split, or lies in a folder of that name."""
    found = files_among(paths, known)
    for file in (file.relative_to(found.path) for file in found.files if found.path in file.parents):
        is_document = found.format.documents and file.stem not in SPLIT_OF_NAME
        if any(map(split_of, file.parents if is_document else (file, *file.parents))):
            remedy = f"Give the folder that contains the splits. {EACH_BY_ITSELF}"
            raise CorpusError.at(found.path, "", f"its file {file.as_posix()} could be of a split", remedy)
    return found


def _named_splits(paths: Sequence[Path], known: CorpusFormat | None, only: str | None) -> dict[str, SplitFiles]:
    """The splits among several paths, or what is in a folder, whose names are that of a split or else contain one.

    A file comes before a folder. Files beside them that are not read are told.

    Raises:
        CorpusError: several could be one split; or a file has the name of a split and is of no known format, though
            others of its kind are.
    """
    folder = _around(paths)
    if folder.is_file():
        return {}
    entries = [*paths] if len(paths) > 1 else sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    named = [(entry, split) for entry in entries if (split := split_of(entry))]
    alone = [pair for pair in named if SPLIT_IN_NAME.fullmatch(plain_name(pair[0]).partition(".")[0])]
    formats = {kind.name: kind for entry, _ in named if (kind := format_if_known(entry))}
    beside = next(iter(formats.values())) if len(formats) == 1 else None
    found: dict[str, list[SplitFiles]] = defaultdict(list)
    unread: dict[Path, tuple[str, Exception]] = {}
    for entry, split in alone or named:
        if known and entry.is_file() and not may_be(entry, known, is_named=True):
            continue
        is_alike = beside and entry.is_file() and not format_if_known(entry) and may_be(entry, beside, is_named=False)
        try:
            files = files_among([entry], beside if is_alike else known)
        except (CorpusError, FileNotFoundError) as error:
            unread[entry] = split, error
            continue
        if files.split_in_name():
            found[split].append(files)
    splits: dict[str, SplitFiles] = {}
    for split, of_split in found.items():
        splits[split], *others = [files for files in of_split if files.path.is_file()] or of_split
        if others:
            names = _shown(folder, [files.path for files in of_split])
            raise CorpusError.at(folder, "", f"{names} could each be its {split} split", EACH_BY_ITSELF)
    suffixes = {_suffix(files.path) for files in splits.values()}
    for entry, (split, problem) in unread.items():
        is_needed = _suffix(entry) in suffixes if splits else alone and not format_of_documents(folder)
        if is_needed and entry.is_file() and split not in splits and only in (None, split):
            raise problem
    read = {file for files in splits.values() for file in files.files}
    documents = tuple(suffix for files in splits.values() if files.format.documents for suffix in files.format.suffixes)
    kinds = documents or tuple({_suffix(file) for file in read} - {"", ".txt"})
    outside = [file for file in _files_in(paths) if plain_name(file).endswith(kinds) and file not in read]
    if splits:
        _tell(folder, "files outside all splits left out", outside)
    return splits


def files_among(paths: Sequence[Path], known: CorpusFormat | None) -> SplitFiles:
    """All files of one format among these and in these folders, searched recursively."""
    folder, is_named = _around(paths), known is not None
    if len(paths) == 1:
        known = known or (format_of_documents(folder) if folder.is_dir() else format_of_file(folder))
        documents = documents_in(folder, known) if known else []
        if known is not None and (documents or folder.is_file()):
            return SplitFiles(folder, tuple(documents or paths), known)
    there = _files_in(paths)
    formats = {} if is_named else {file: kind for file in there if (kind := format_if_known(file))}
    formats = {file: kind for file, kind in formats.items() if kind.documents is None}
    examples = {kind.name: file for file, kind in formats.items()}
    if len(examples) > 1:
        forms = ", ".join(f"{name!r} ({os.path.relpath(file, folder)})" for name, file in examples.items())
        remedy = f"Give the folder of one, or name one: --format (format=) {next(iter(examples))}"
        raise CorpusError.at(folder, "", f"it has files of several forms, {forms}", remedy)
    known = known or next(iter(formats.values()), None)
    taken = {*paths} if is_named else {*formats}
    files = [file for file in there if known and (file in taken or may_be(file, known, is_named))]
    if known is None or not files:
        if len(there) == 1 and known is None:
            format_of_file(there[0])  # whose error says more
        raise FileNotFoundError(
            f"{folder}: it has no documents or files of {f'the format {known.name}' if known else 'a known format'}. "
            f"It contains {_shown(folder, there) or 'no files'}. Give a corpus file, or a folder with train, dev and "
            f"test; `predict` reads texts without entities. {OF_TABLES}."
        )
    _tell(folder, "files of unknown formats left out", [file for file in there if file not in {*files}])
    return SplitFiles(folder, tuple(files), known)


def _around(paths: Sequence[Path]) -> Path:
    """The path that messages name: the only one, or the folder around several."""
    return paths[0] if len(paths) == 1 else Path(os.path.commonpath(paths))


def _suffix(path: Path) -> str:
    return Path(plain_name(path)).suffix


def _files_in(paths: Iterable[Path]) -> list[Path]:
    return [file for path in paths for file in visible_paths(path) if file.is_file()]


def _tell(folder: Path, what: str, files: Sequence[Path]) -> None:
    """Warns of files of a corpus, if there are any; `what` describes them."""
    if files:
        logger.warning("%s: %s: %d (%s).", folder, what, len(files), _shown(folder, files))


def _shown(folder: Path, files: Sequence[Path]) -> str:
    names = [os.path.relpath(file, folder) for file in files]
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


# ---- The format of a file ----


def detect_format(path: Path) -> CorpusFormat:
    """Detects the format of a folder from its documents or files, of a file from its content or else its suffix.

    Raises:
        CorpusError: the file is empty, or of no known format.
        FileNotFoundError: the folder has no file of a known format.
    """
    return files_among([path], None).format


def format_of_file(path: Path) -> CorpusFormat:
    """The format of a file by its content or its suffix; CorpusError if it has none."""
    if found := format_of_content(path):
        return found
    if plain_name(path).endswith((*TABLES, ".csv")):
        raise CorpusError.at(path, "", "tables are not read", OF_TABLES)
    problem = f"its format cannot be detected; it begins with {read_head(path)[:40]!r}"
    if keys := sorted(record_keys(read_head(path))):
        shown = ", ".join(map(repr, keys[:SHOWN_KEYS])) + (", …" if len(keys) > SHOWN_KEYS else "")
        problem = f"its JSON is of no known form; the keys of its first record are {shown}"
    raise CorpusError.at(path, "", problem, REMEDY)


def format_if_known(file: Path) -> CorpusFormat | None:
    """The format of a file by itself; None if it has none, or cannot be read."""
    with suppress(CorpusError):
        return format_of_content(file) if file.is_file() else None
    return None


def format_of_content(path: Path) -> CorpusFormat | None:
    """The format of a file by its content or suffix; None if it has none of its own, as a list of documents."""
    name = plain_name(path)
    if name.endswith(TABLES):
        return None
    named = [known for known in FORMATS.values() if name.endswith(known.suffixes) and not known.keys]
    recognized = formats_recognizing(read_head(path))
    return recognized[0] if recognized else named[0] if len(named) == 1 else None


def formats_recognizing(head: str) -> list[CorpusFormat]:
    """The formats that recognize a file by its first characters most specifically.

    Of several that know keys of its JSON, that is the one with most of them. A test sees to it that one format of this
    package does; those registered at run time come after it.
    """
    keys = record_keys(head)
    keys |= {IN_LIST} if keys and head.startswith("[") else set()
    fits = {known.name: known.fit(head, keys) for known in FORMATS.values()}
    best = max(fits.values())
    return [FORMATS[name] for name, fit in fits.items() if fit == best] if best else []


def may_be(file: Path, known: CorpusFormat, is_named: bool) -> bool:
    """A file can be of the format that the user names, or otherwise that its neighbours have."""
    has_suffix = bool(known.suffixes) and plain_name(file).endswith(known.suffixes)
    if known.documents is not None:
        return has_suffix
    if has_suffix and (is_named or known.may_be is None):
        return True
    with suppress(CorpusError):
        head = read_head(file)
        is_recognized = any(kind.read == known.read for kind in formats_recognizing(head))
        return is_recognized or (known.may_be is not None and known.may_be(head))
    return False


def documents_in(path: Path, known: CorpusFormat) -> list[Path]:
    """The files of a format of many small files that belong to a folder or document; none for another format."""
    return [] if known.documents is None else known.documents(path)


def format_of_documents(folder: Path) -> CorpusFormat | None:
    """The format of many small files that are in a folder."""
    return next((known for known in FORMATS.values() if documents_in(folder, known)), None)
