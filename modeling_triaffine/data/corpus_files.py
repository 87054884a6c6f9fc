"""A path → the files of each split, and their format: by name or content of a file, by the keys of its JSON.

The split is in the name of a file or folder, or is given. All files of a split have one format.
"""

import glob
import logging
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .corpus_format import IN_LIST, CorpusFormat
from .formats import FORMATS
from .json_records import record_keys
from .reading import plain_name, read_head, visible_paths
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
SHARD = re.compile(r"-\d+-of-0*(\d+)")
"""The number in the names of the parts of a split."""
OF_SAVED_DATA = ("dataset_dict.json", "state.json")
"""Files in folders that `save_to_disk` of `datasets` writes: of all splits, and of one."""
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

    @property
    def has_documents(self) -> bool:
        """True if each file is a document, since there are several which are no parts of one file."""
        return len(self.files) > 1 and not all(SHARD.search(file.name) for file in self.files)

    def split_in_name(self) -> str | None:
        """The split that the name of the file, or of the folder around its files, tells."""
        is_document = self.format.documents is not None and self.path.is_file()
        return None if is_document else split_of(self.path)


def split_of(path: Path) -> str | None:
    """The split that is in the name of a file or folder; None if none is, or several are."""
    names = SPLIT_IN_NAME.findall(SHARD.sub("", plain_name(path)))
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
        return _splits_among(_existing(path), known, only)
    splits: dict[str | None, SplitFiles] = {}
    for name, given in path.items():
        split = SPLIT_OF_NAME.get(name, name)
        if split in splits:
            raise ValueError(f"Two files are given for the split {split!r}. Give one, or a list of both.")
        paths = _existing(given)
        named = _named_splits(paths, known, split) if len(paths) == 1 and paths[0].is_dir() else {}
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
        if any((path / name).is_file() for name in OF_SAVED_DATA):
            remedy = "Load it with datasets.load_from_disk, and write it with write_nested_ner (docs/corpora.md)"
            raise CorpusError.at(path, "", "it is a data set saved by save_to_disk", remedy)
        matching = [path] if path.exists() else sorted(map(Path, glob.glob(str(path), recursive=True)))
        if not matching:
            remedy = "Give the path of a corpus file, or of a folder with train, dev, test"
            raise FileNotFoundError(f"{path}: no such file. {remedy}.")
        found += matching
    if not found:
        raise ValueError("No file is given. Give the path of a corpus file or folder.")
    if len(found) == 1 and found[0].name:
        return found
    # "." has no name, and the folder around several is absolute.
    return [*dict.fromkeys(Path(os.path.abspath(path)) for path in found)]


def _splits_among(paths: Sequence[Path], known: CorpusFormat | None, only: str | None) -> dict[str | None, SplitFiles]:
    """The splits that the names of several files, or of what is in a folder, tell; otherwise all as one."""
    if len(paths) == 1 and not paths[0].is_dir():
        return {None: files_among(paths, known)}
    named = _named_splits(paths, known, only)
    if named:
        in_order = [split for split in dict.fromkeys(SPLIT_OF_NAME.values()) if split in named]
        read = [file for found in named.values() for file in found.files]
        suffixes = {Path(plain_name(file)).suffix for file in read if file.suffix != ".txt"} - {""}
        others = [file for file in _files_in(paths) if plain_name(file).endswith(tuple(suffixes)) and file not in read]
        _tell(_around(paths), "files outside all splits left out", others)
        return {split: named[split] for split in in_order}
    found = files_among(paths, known)
    of_documents = found.format.documents is not None
    if len(found.files) == 1 and not of_documents:
        return {split_of(found.files[0]): SplitFiles(found.files[0], found.files, found.format)}
    for file in (file.relative_to(found.path) for file in found.files if found.path in file.parents):
        is_document = of_documents and file.stem not in SPLIT_OF_NAME
        if any(map(split_of, file.parents if is_document else (file, *file.parents))):
            remedy = f"Give the folder that contains the splits. {EACH_BY_ITSELF}"
            raise CorpusError.at(found.path, "", f"its file {file.as_posix()} could be of a split", remedy)
    return {None: found}


def _named_splits(paths: Sequence[Path], known: CorpusFormat | None, only: str | None) -> dict[str, SplitFiles]:
    """The splits among several paths, or what is in a folder, whose names are that of a split or else contain one.

    A file comes before a folder.

    Raises:
        CorpusError: several could be one split; or one has the name of a split and is of no known format, though others
            of its kind are.
    """
    folder = _around(paths)
    visible = [*paths] if len(paths) > 1 else sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    named = [(entry, split) for entry in visible if (split := split_of(entry))]
    bare = {entry: SHARD.sub("", plain_name(entry)).partition(".")[0] for entry, _ in named}
    alone = [(entry, split) for entry, split in named if SPLIT_IN_NAME.fullmatch(bare[entry])]
    formats = {entry: of_entry for entry, _ in named if (of_entry := format_if_known(entry))}
    beside = next(iter(formats.values())) if len({kind.name for kind in formats.values()}) == 1 else None
    by_split: dict[str, list[SplitFiles]] = defaultdict(list)
    unread: dict[Path, tuple[str, Exception]] = {}
    for entry, split in alone or named:
        if known and entry.is_file() and not may_be(entry, known, is_named=True):
            continue
        is_alike = beside and entry.is_file() and entry not in formats and may_be(entry, beside, is_named=False)
        try:
            found = files_among([entry], beside if is_alike else known)
        except (CorpusError, FileNotFoundError) as error:
            unread[entry] = split, error
            continue
        if found.split_in_name():
            by_split[split].append(found)
    splits = {split: _one_of(folder, split, found) for split, found in by_split.items()}
    suffixes = {Path(plain_name(found.path)).suffix for found in splits.values()}
    for entry, (split, problem) in unread.items():
        is_needed = Path(plain_name(entry)).suffix in suffixes if splits else alone and not format_of_documents(folder)
        if is_needed and entry.is_file() and split not in splits and only in (None, split):
            raise problem
    return splits


def _one_of(folder: Path, split: str, found: Sequence[SplitFiles]) -> SplitFiles:
    """Of files and folders with the name of a split, the file; all of them if they are the shards of one."""
    files = [entry for entry in found if entry.path.is_file()] or [*found]
    if all(SHARD.search(entry.path.name) for entry in files) and len(files) > 1:
        return SplitFiles(folder, tuple(entry.path for entry in files), files[0].format)
    if len(files) > 1:
        names = _shown(folder, [entry.path for entry in files])
        raise CorpusError.at(folder, "", f"{names} could each be its {split} split", EACH_BY_ITSELF)
    return files[0]


def files_among(paths: Sequence[Path], known: CorpusFormat | None) -> SplitFiles:
    """All files of one format among these and in these folders, searched recursively."""
    folder, is_named = _around(paths), known is not None
    if len(paths) == 1:
        known = known or (format_of_documents(folder) if folder.is_dir() else detect_format(folder))
        documents = documents_in(folder, known)
        if documents or folder.is_file():
            return SplitFiles(folder, tuple(documents or paths), known)  # type: ignore[arg-type]
    there = _files_in(paths)
    if known is None:
        by_format: dict[str, list[Path]] = defaultdict(list)
        for file in there:
            if (found := format_if_known(file)) is not None and found.documents is None:
                by_format[found.name].append(file)
        if len(by_format) > 1:
            forms = ", ".join(f"{name!r} ({_shown(folder, files)})" for name, files in by_format.items())
            remedy = f"Give the folder of one, or name one: --format (format=) {next(iter(by_format))}"
            raise CorpusError.at(folder, "", f"it has files of several forms, {forms}", remedy)
        known = FORMATS[next(iter(by_format))] if by_format else None
        taken = set(*by_format.values())
    else:
        taken = {*paths}
    files = [file for file in there if known and (file in taken or may_be(file, known, is_named))]
    if known is None or not files:
        if len(there) == 1:
            detect_format(there[0])  # whose error says more
        raise FileNotFoundError(
            f"{folder}: it is a folder without documents or files of a known format. It contains "
            f"{_shown(folder, there) or 'no files'}. Give a corpus file, or a folder with train, dev (validation, "
            f"valid) and test. {OF_TABLES}."
        )
    _tell(folder, "files of unknown formats left out", [file for file in there if file not in {*files}])
    return SplitFiles(folder, tuple(files), known)


def _around(paths: Sequence[Path]) -> Path:
    """The path that messages name: the only one, or the folder around several."""
    return paths[0] if len(paths) == 1 else Path(os.path.commonpath(paths))


def _files_in(paths: Iterable[Path]) -> list[Path]:
    return [file for path in paths for file in visible_paths(path) if file.is_file()]


def _tell(folder: Path, what: str, files: Sequence[Path]) -> None:
    """Warns of files of a corpus, if there are any; `what` describes them."""
    if files:
        logger.warning("%s: %s: %d (%s).", folder, what, len(files), _shown(folder, files))


def _shown(folder: Path, files: Iterable[Path]) -> str:
    names = [os.path.relpath(file, folder) for file in files]
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


# ---- The format of a file ----


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
        found = format_of_documents(path) or next(filter(None, map(format_if_known, visible_paths(path))), None)
        problem, remedy = "there are no files of a known format in it", "Give a corpus file or its folder"
    else:
        found = format_of_content(path)
        if found is None and plain_name(path).endswith((*TABLES, ".csv")):
            problem, remedy = "tables are not read", OF_TABLES
        elif found is None and (keys := sorted(record_keys(read_head(path)))):
            shown = ", ".join(map(repr, keys[:SHOWN_KEYS])) + (", …" if len(keys) > SHOWN_KEYS else "")
            problem, remedy = f"its JSON is of no known form; the keys of its first record are {shown}", REMEDY
        elif found is None:
            problem, remedy = f"its format cannot be detected; it begins with {read_head(path)[:40]!r}", REMEDY
    if found is None:
        raise CorpusError.at(path, "", problem, remedy)
    return found


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
    """The number of keys by which a format recognizes a file, the more the more specific; 0 if it does not."""
    if keys and (fitting := [len(form.required) for form in known.keys if form.fit(keys)]):
        return max(fitting)
    return int(known.recognizes is not None and known.recognizes(head))


def may_be(file: Path, known: CorpusFormat, is_named: bool) -> bool:
    """A file can be of the format that the user names, or otherwise that its neighbours have."""
    has_suffix = bool(known.suffixes) and plain_name(file).endswith(known.suffixes)
    if known.documents is not None:
        return has_suffix
    if has_suffix and (is_named or known.may_be is None):
        return True
    try:
        head = read_head(file)
    except CorpusError:
        return False
    is_recognized = any(kind.read == known.read for kind in formats_recognizing(head))
    return is_recognized or (known.may_be is not None and known.may_be(head))


def documents_in(path: Path, known: CorpusFormat | None) -> list[Path]:
    """The files of a format of many small files that belong to a folder or document; none for another format."""
    return [] if known is None or known.documents is None else known.documents(path)


def format_of_documents(folder: Path) -> CorpusFormat | None:
    """The format of many small files that are in a folder."""
    return next((known for known in FORMATS.values() if documents_in(folder, known)), None)
