"""A path → the files of each split, and their format: by name or content of a file, by the keys of its JSON.

The split is in the name of a file or folder, or is given. All files of a split have one format.
"""

import glob
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .formats import FORMATS, IN_LIST, CorpusFormat
from .reading import plain_name, read_head, record_keys, visible_files
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


def split_of(path: Path) -> str | None:
    """The split that is in the name of a file or folder; None if none is, or several are."""
    names = SPLIT_IN_NAME.findall(plain_name(path))
    return SPLIT_OF_NAME[names[0]] if len(names) == 1 else None


# ---- Splits ----


def find_splits(path: CorpusPath, format: str | None) -> dict[str | None, SplitFiles]:
    """Finds the files of each split. The split is None if no name tells one: its texts say it, or it is all `train`."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"There is no format {format!r}. Choose one of {sorted(FORMATS)}, or None to detect it.")
    known = None if format is None else FORMATS[format]
    splits: dict[str | None, SplitFiles] = {}
    if not isinstance(path, Mapping):
        paths = _existing(path)
        splits.update(_named_splits(paths, known))
        return splits or {None: files_among(paths, known)}
    for name, given in path.items():
        split = SPLIT_OF_NAME.get(name, name)
        if split in splits:
            raise ValueError(f"Two files are given for the split {split!r}. Give one, or a list of both.")
        paths = _existing(given)
        named = _named_splits(paths, known) if len(paths) == 1 else {}
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


def _named_splits(paths: Sequence[Path], known: CorpusFormat | None) -> dict[str, SplitFiles]:
    """The splits that names of files tell, or of folders around them, below the paths.

    Of several places for a split, the least deep counts, then a name that is the split's before one that contains it,
    and a file before a folder. Files beside the splits that are not read are told.

    Raises:
        CorpusError: several could be one split.
    """
    folder, there = _around(paths), _files_in(paths)
    split_at: dict[Path, str] = {}
    for file in there:
        below = (place for place in (*reversed(file.parents), file) if folder in place.parents)
        told = [(place, split) for place in below if (split := split_of(place))]
        split_at.update(told[:1])  # by the outermost name
    found = _read_places(split_at, known)
    splits: dict[str, SplitFiles] = {}
    for split in dict.fromkeys(SPLIT_OF_NAME.values()):
        ranks = {
            place: (0 if place in paths else len(place.parts), not _is_exact(place), place.is_dir())
            for place in found
            if split_at[place] == split
        }
        first = [place for place, rank in ranks.items() if rank == min(ranks.values())]
        if len(first) > 1:
            problem = f"{_shown(folder, first)} could each be its {split} split"
            raise CorpusError.at(folder, "", problem, EACH_BY_ITSELF)
        if first:
            splits[split] = found[first[0]]
    read: set[Path] = set()
    kinds: set[str] = set()
    for files in splits.values():
        read |= {*files.files}
        kinds |= {*files.format.suffixes} if files.format.documents else {*map(_suffix, files.files)} - {"", ".txt"}
    outside = [file for file in there if plain_name(file).endswith(tuple(kinds)) and file not in read]
    if splits:
        _tell(folder, "files outside all splits left out", outside)
    return splits


def _read_places(split_at: Mapping[Path, str], known: CorpusFormat | None) -> dict[Path, SplitFiles]:
    """The files at those of the places that can be read.

    A file of unknown format has that of its neighbours if they lack its split: their reader says what is wrong with it.
    """
    found: dict[Path, SplitFiles] = {}
    for place in split_at:
        if known and place.is_file() and not may_be(place, known):
            continue
        with suppress(CorpusError, FileNotFoundError):
            files = files_among([place], known)
            if place.is_dir() or files.format.documents is None or _is_exact(place):  # documents may have any name
                found[place] = files
    neighbours, read_splits = [*found.values()], {split_at[place] for place in found}
    for place, split in split_at.items():
        for near in neighbours if place.is_file() and split not in read_splits else ():
            if _suffix(place) == _suffix(near.files[0]) or may_be(place, near.format):
                found[place] = SplitFiles(place, (place,), near.format)
    return found


def _is_exact(place: Path) -> bool:
    """The name without suffix is that of a split, and does not only contain it."""
    return SPLIT_IN_NAME.fullmatch(plain_name(place).partition(".")[0]) is not None


def files_among(paths: Sequence[Path], known: CorpusFormat | None) -> SplitFiles:
    """All files of one format among these and in these folders, searched recursively."""
    folder, is_named = _around(paths), known is not None
    if len(paths) == 1:
        for kind in [known] if known else FORMATS.values():
            if kind.documents is not None and (documents := kind.documents(folder)):
                return SplitFiles(folder, tuple(documents), kind)
        if folder.is_file():
            return SplitFiles(folder, tuple(paths), known or format_of_file(folder))
    there = _files_in(paths)
    if not is_named:
        formats = {file: kind for file in there if (kind := format_if_known(file)) and kind.documents is None}
        examples = {kind.name: file for file, kind in formats.items()}
        if len(examples) > 1:
            forms = ", ".join(f"{name!r} ({os.path.relpath(file, folder)})" for name, file in examples.items())
            remedy = f"Give the folder of one, or name one: --format (format=) {next(iter(examples))}"
            raise CorpusError.at(folder, "", f"it has files of several forms, {forms}", remedy)
        known = next(iter(formats.values()), None)
    files = [file for file in there if known and (may_be(file, known) or (is_named and file in paths))]
    if known is None or not files:
        for file in there:
            if known is None and (len(there) == 1 or split_of(file)):
                format_of_file(file)  # whose error says more
        raise FileNotFoundError(
            f"{folder}: it has no documents or files of {f'the format {known.name}' if known else 'a known format'}. "
            f"It contains {_shown(folder, there) or 'no files'}. Give a corpus file, or a folder with train, dev and "
            f"test; `predict` reads texts without entities. {OF_TABLES}."
        )
    taken = {*files}
    _tell(folder, "files of unknown formats left out", [file for file in there if file not in taken])
    return SplitFiles(folder, tuple(files), known)


def _around(paths: Sequence[Path]) -> Path:
    """The path that messages name: the only one, or the folder around several."""
    return paths[0] if len(paths) == 1 else Path(os.path.commonpath(paths))


def _suffix(path: Path) -> str:
    return Path(plain_name(path)).suffix


def _files_in(paths: Iterable[Path]) -> list[Path]:
    return [*dict.fromkeys(file for path in paths for file in visible_files(path))]


def _tell(folder: Path, what: str, files: Sequence[Path]) -> None:
    """Warns of files of a corpus, if there are any; `what` describes them."""
    if files:
        logger.warning("%s: %s: %d (%s).", folder, what, len(files), _shown(folder, files))


def _shown(folder: Path, files: Sequence[Path]) -> str:
    names = [os.path.relpath(file, folder) for file in files]
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


# ---- The format of a file ----


def format_of_file(path: Path) -> CorpusFormat:
    """The format of a file by its content, or else its suffix; CorpusError if it is empty, or of no known format."""
    name = plain_name(path)
    is_table = name.endswith(TABLES)
    recognized = [] if is_table else formats_recognizing(read_head(path))
    named = [known for known in FORMATS.values() if name.endswith(known.suffixes) and not known.keys]
    if recognized or len(named) == 1:
        return [*recognized, *named][0]
    if is_table or name.endswith(".csv"):
        raise CorpusError.at(path, "", "tables are not read", OF_TABLES)
    problem = f"its format cannot be detected; it begins with {read_head(path)[:40]!r}"
    if keys := sorted(record_keys(read_head(path))):
        shown = ", ".join(map(repr, keys[:SHOWN_KEYS])) + (", …" if len(keys) > SHOWN_KEYS else "")
        problem = f"its JSON is of no known form; the keys of its first record are {shown}"
    raise CorpusError.at(path, "", problem, REMEDY)


def format_if_known(file: Path) -> CorpusFormat | None:
    """The format of a file; None if it has none, or cannot be read."""
    with suppress(CorpusError):
        return format_of_file(file)
    return None


def formats_recognizing(head: str) -> list[CorpusFormat]:
    """The formats that recognize a file by its first characters most specifically.

    Of several that know keys of its JSON, that is the one with most of them. A test sees to it that one format of this
    package does; those registered at run time come after it.
    """
    fits = _fits(head)
    best = max(fits.values())
    return [FORMATS[name] for name, fit in fits.items() if fit == best] if best else []


def _fits(head: str) -> dict[str, int]:
    keys = record_keys(head)
    keys |= {IN_LIST} if keys and head.startswith("[") else set()
    return {known.name: known.fit(head, keys) for known in FORMATS.values()}


def may_be(file: Path, known: CorpusFormat) -> bool:
    """A file can be of the format that the user names, or that its neighbours have."""
    if known.documents is not None or plain_name(file).endswith(known.suffixes):
        return plain_name(file).endswith(known.suffixes)
    with suppress(CorpusError):
        head = read_head(file)
        return _fits(head)[known.name] > 0 or (known.may_be is not None and known.may_be(head))
    return False
