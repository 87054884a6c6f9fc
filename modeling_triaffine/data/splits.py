"""The files of each split of a corpus: its name is in that of a file or folder, or is given."""

import glob
import logging
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .corpus_format import CorpusFormat
from .detection import detect_format, documents_in, format_if_known, format_named, format_of_documents, may_be
from .reading import plain_name, visible_paths
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
"""What the names of the parts of a split have, with their number."""
OF_SAVED_DATA = ("dataset_dict.json", "state.json")
"""Files in folders that `save_to_disk` of `datasets` writes: of all splits, and of one."""
EACH_BY_ITSELF = (
    "Give one of them by itself (training takes --train_file, --validation_file and --test_file; Python a mapping, "
    '{"train": …})'
)
SHOWN = 3

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
        """Each file is a document, since there are several which are no parts of one file."""
        return len(self.files) > 1 and not all(SHARD.search(file.name) for file in self.files)

    def split_in_name(self) -> str | None:
        """The split that the name of the file, or of the folder around its files, tells."""
        is_document = self.format.documents is not None and not plain_name(self.path).endswith(self.format.lists)
        return None if is_document and self.path.is_file() else split_of(self.path)


def split_of(path: Path) -> str | None:
    """The split that is in the name of a file or folder; None if none is, or several are."""
    names = SPLIT_IN_NAME.findall(SHARD.sub("", plain_name(path)))
    return SPLIT_OF_NAME[names[0]] if len(names) == 1 else None


def find_splits(path: CorpusPath, format: str | None, only: str | None = None) -> dict[str | None, SplitFiles]:
    """Split → its files. The split is None if `path` names none: its format decides, or it is all `train`.

    Files of other splits than `only` need not be of a known format.
    """
    if not isinstance(path, Mapping):
        return _splits_among(_existing(path), format, only)
    splits: dict[str | None, SplitFiles] = {}
    for name, given in path.items():
        split = SPLIT_OF_NAME.get(name, name)
        if split in splits:
            raise ValueError(f"Two files are given for the split {split!r}. Give one, or a list of both.")
        paths = _existing(given)
        is_folder = len(paths) == 1 and paths[0].is_dir()
        named = _named_splits(paths[0], _entries(paths[0]), format, split) if is_folder else {}
        if split not in named and len(named) > 1:
            problem = f"it is given for {split}, and has {', '.join(sorted(named))}"
            raise CorpusError.at(paths[0], "", problem, "Give the files")
        splits[split] = named[split] if split in named else files_among(paths, format)
    return splits


def _existing(given: object) -> list[Path]:
    """The files and folders of a path, a pattern, or several of either."""
    several = given if isinstance(given, (list, tuple)) else [given]
    found = [path for one in several for path in _matching(one)]
    if not found:
        raise ValueError("No file is given. Give the path of a corpus file or folder.")
    if len(found) == 1 and found[0].name:
        return found
    # "." has no name, and the folder around several is absolute.
    return [*dict.fromkeys(Path(os.path.abspath(path)) for path in found)]


def _matching(given: object) -> list[Path]:
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(
            f"A corpus is a file or folder, but the data is of type {type(given).__name__}. Data in memory is for "
            f"adapt_dataset, which takes a Dataset. {TO_DATASET}."
        )
    path = Path(given).expanduser()
    if not path.exists():
        if matching := sorted(map(Path, glob.glob(str(path), recursive=True))):
            return matching
        raise FileNotFoundError(
            f"{path}: no such file. Give the path of a corpus file, or of a folder with train, dev, test."
        )
    if any((path / name).is_file() for name in OF_SAVED_DATA):
        remedy = "Load it with datasets.load_from_disk, and write it with write_nested_ner (docs/corpora.md)"
        raise CorpusError.at(path, "", "it is a data set saved by save_to_disk", remedy)
    return [path]


def _entries(folder: Path) -> list[Path]:
    return sorted(part for part in folder.iterdir() if not part.name.startswith("."))


def _splits_among(paths: Sequence[Path], format: str | None, only: str | None) -> dict[str | None, SplitFiles]:
    """The splits that the names of several files, or of what is in a folder, tell; otherwise all as one."""
    folder = _around(paths)
    if len(paths) == 1 and not folder.is_dir():
        return {None: files_among(paths, format)}
    named = _named_splits(folder, paths if len(paths) > 1 else _entries(folder), format, only)
    if not named:
        found = files_among(paths, format)
        of_documents = found.format.documents is not None
        if len(found.files) == 1 and not of_documents:
            return {split_of(found.files[0]): SplitFiles(found.files[0], found.files, found.format)}
        for file in (file.relative_to(found.path) for file in found.files if found.path in file.parents):
            is_document = of_documents and file.stem not in SPLIT_OF_NAME
            if any(map(split_of, file.parents if is_document else (file, *file.parents))):
                remedy = f"Give the folder that contains the splits. {EACH_BY_ITSELF}"
                raise CorpusError.at(found.path, "", f"its file {file.as_posix()} could be of a split", remedy)
        return {None: found}
    in_order = [split for split in dict.fromkeys(SPLIT_OF_NAME.values()) if split in named]
    splits: dict[str | None, SplitFiles] = {split: named[split] for split in in_order}
    read = {file for found in splits.values() for file in found.files}
    suffixes = tuple({Path(plain_name(file)).suffix for file in read if file.suffix != ".txt"} - {""})
    there = [file for path in paths for file in visible_paths(path) if file.is_file() and file not in read]
    listed = {file.name for found in splits.values() if found.path.is_file() for file in found.files}
    others = [file for file in there if plain_name(file).endswith(suffixes) and file.name not in listed]
    _tell(folder, "files outside all splits left out", others)
    return splits


def _named_splits(folder: Path, entries: Sequence[Path], format: str | None, only: str | None) -> dict[str, SplitFiles]:
    """The splits among the entries of a folder: those whose names are that of a split alone, or else contain one.

    A file comes before a folder.

    Raises:
        CorpusError: several entries could be one split; or one has the name of a split and is of no known format,
            though others of its kind are.
    """
    named = [(entry, split) for entry in entries if (split := split_of(entry))]
    alone = [(entry, split) for entry, split in named if SPLIT_IN_NAME.fullmatch(_bare_name(entry))]
    by_split: dict[str, list[SplitFiles]] = defaultdict(list)
    unread: dict[Path, tuple[str, Exception]] = {}
    formats = {file: known for file, _ in named if file.is_file() and (known := format_if_known(file))}
    beside = next(iter(formats.values())) if len({known.name for known in formats.values()}) == 1 else None
    for entry, split in alone or named:
        if format and entry.is_file() and not may_be(entry, format_named(format), is_named=True):
            continue
        try:
            is_alike = beside is not None and entry not in formats and entry.is_file() and may_be(entry, beside, False)
            found = files_among([entry], beside.name if is_alike and beside else format)
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


def _bare_name(entry: Path) -> str:
    """The name of a file or folder without suffixes and the number of a shard."""
    return SHARD.sub("", plain_name(entry)).partition(".")[0]


def _one_of(folder: Path, split: str, found: Sequence[SplitFiles]) -> SplitFiles:
    """Of files and folders with the name of a split, the file; all of them if they are the shards of one."""
    files = [one for one in found if one.path.is_file()] or [*found]
    if all(SHARD.search(one.path.name) for one in files) and len(files) > 1:
        return SplitFiles(folder, tuple(one.path for one in files), files[0].format)
    if len(files) > 1:
        names = _shown(folder, [one.path for one in files])
        raise CorpusError.at(folder, "", f"{names} could each be its {split} split", EACH_BY_ITSELF)
    return files[0]


def files_among(paths: Sequence[Path], format: str | None) -> SplitFiles:
    """All files of one format among these and in these folders, searched recursively."""
    folder = _around(paths)
    known = None if format is None else format_named(format)
    if len(paths) == 1:
        known = known or (format_of_documents if folder.is_dir() else detect_format)(folder)
        documents = [] if known is None else documents_in(folder, known)
        if known is not None and (documents or not folder.is_dir()):
            return SplitFiles(folder, tuple(documents or paths), known)
    there = [file for path in paths for file in visible_paths(path) if file.is_file()]
    if known is None:
        by_format: dict[str, list[Path]] = defaultdict(list)
        for file in there:
            if (found := format_if_known(file)) is not None and found.documents is None:
                by_format[found.name].append(file)
        if not by_format:
            raise _nothing_found(folder, there)
        if len(by_format) > 1:
            forms = ", ".join(f"{name!r} ({_shown(folder, files)})" for name, files in by_format.items())
            remedy = f"Give the folder of one, or name one: --format (format=) {next(iter(by_format))}"
            raise CorpusError.at(folder, "", f"it has files of several forms, {forms}", remedy)
        ((name, recognized),) = by_format.items()
        known = format_named(name)
        left_out = [file for file in there if file not in {*recognized} and not may_be(file, known, is_named=False)]
    else:
        left_out = [file for file in there if file not in {*paths} and not may_be(file, known, is_named=True)]
    files = [file for file in there if file not in {*left_out}]
    if not files:
        raise _nothing_found(folder, there)
    _tell(folder, "files of unknown formats left out", left_out)
    return SplitFiles(folder, tuple(files), known)


def _around(paths: Sequence[Path]) -> Path:
    """The path that messages name: the only one, or the folder around several."""
    return paths[0] if len(paths) == 1 else Path(os.path.commonpath(paths))


def _nothing_found(folder: Path, there: Sequence[Path]) -> Exception:
    """The error if none of the files `there` is of a known format."""
    if len(there) == 1:
        detect_format(there[0])  # whose error says more
    return FileNotFoundError(
        f"{folder}: it is a folder without documents or files of a known format. It contains "
        f"{_shown(folder, there) or 'no files'}. Give a corpus file, or a folder with train, dev (validation, valid) "
        f"and test. {OF_TABLES}."
    )


def _tell(folder: Path, what: str, files: Sequence[Path]) -> None:
    """Warns of files of a corpus, if there are any; `what` they are, in words."""
    if files:
        logger.warning("%s: %s: %d (%s).", folder, what, len(files), _shown(folder, files))


def _shown(folder: Path, files: Iterable[Path]) -> str:
    names = [os.path.relpath(file, folder) for file in files]
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
