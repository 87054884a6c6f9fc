"""The splits of a corpus, by one rule: train, dev (validation) or test is in the name of a file or folder, or is given.

`find_splits` finds the files of each; `loading.py` reads them.
"""

import filecmp
import glob
import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .corpus_format import CorpusFormat
from .detection import detect_format, format_named, format_of_content, format_of_documents, has_documents, known_formats
from .reading import stem, visible_paths
from .schema import OF_TABLES, TO_DATASET, CorpusError

logger = logging.getLogger(__name__)

SPLIT_OF_NAME = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "devel", "development", "val", "valid", "eval", "validation", "testa"), "validation"),
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
class Part:
    """The files of a split, all of one format; `path` is what messages name: the file, or the folder around them."""

    path: Path
    files: tuple[Path, ...]
    format: CorpusFormat

    def __reduce__(self) -> tuple[Any, tuple[Path, tuple[Path, ...], str]]:
        """Pickled for a worker process, which finds the format by its name."""
        return _part_again, (self.path, self.files, self.format.name)

    @property
    def has_documents(self) -> bool:
        """Whether each file is a document, since there are several which are no parts of one file."""
        return len(self.files) > 1 and not all(SHARD.search(file.name) for file in self.files)

    @property
    def split_in_name(self) -> str | None:
        """The split that the name of its file, or of the folder around its files, tells; None if it tells none."""
        if self.path.is_dir():
            return SPLIT_OF_NAME.get(self.path.name.lower())
        return None if _is_one_document(self.path, self.format) else _named(self.path)[0]


def _part_again(path: Path, files: tuple[Path, ...], format: str) -> Part:
    return Part(path, files, format_named(format))


def find_splits(path: CorpusPath, format: str | None) -> dict[str | None, Part]:
    """Split → its files. The split is None if `path` names none: its format decides, or it is all `train`."""
    if not isinstance(path, Mapping):
        return _splits_of(_existing(path), format)
    splits: dict[str | None, Part] = {}
    for name, given in path.items():
        split = SPLIT_OF_NAME.get(name, name)
        if split in splits:
            raise ValueError(f"Two files are given for the split {split!r}. Give one, or a list of both.")
        splits[split] = _part_of_split(split, _existing(given), format)
    return splits


def _part_of_split(split: str, paths: Sequence[Path], format: str | None) -> Part:
    """The files that are given for a split; of one folder with splits, those of this one."""
    named = _named_splits(paths[0], _entries(paths[0]), format) if len(paths) == 1 and paths[0].is_dir() else {}
    if not named:
        return _part_of(paths, format)
    if split not in named:
        problem = f"it is given for {split}, and has {', '.join(sorted(named))}"
        raise CorpusError.at(paths[0], "", problem, "Give the files")
    return named[split]


def _entries(folder: Path) -> list[Path]:
    return sorted(part for part in folder.iterdir() if not part.name.startswith("."))


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
        matching = sorted(map(Path, glob.glob(str(path), recursive=True)))
        if not matching:
            raise FileNotFoundError(
                f"{path}: no such file. Give the path of a corpus file, or of a folder with train, dev, test."
            )
        return matching
    if not path.is_file() and not path.is_dir():
        raise CorpusError.at(path, "", "it is a pipe, but a corpus is read more than once", "Write it to a file first")
    if any((path / name).is_file() for name in OF_SAVED_DATA):
        remedy = "Load it with datasets.load_from_disk, and write it with write_nested_ner (docs/corpora.md)"
        raise CorpusError.at(path, "", "it is a data set saved by save_to_disk", remedy)
    return [path]


# ---- The rule ----


def _splits_of(paths: Sequence[Path], format: str | None) -> dict[str | None, Part]:
    """The splits that the names of several files, or of what is in a folder, tell; otherwise all as one."""
    folder = _folder_of(paths)
    if len(paths) == 1 and not folder.is_dir():
        return {None: _part_of(paths, format)}
    entries = paths if len(paths) > 1 else _entries(folder)
    named = _named_splits(folder, entries, format)
    if not named:
        part = _part_of(paths, format)
        _check_for_splits(part)
        return {None: part}
    in_order = [split for split in dict.fromkeys(SPLIT_OF_NAME.values()) if split in named]
    splits: dict[str | None, Part] = {split: named[split] for split in in_order}
    _tell_of_others(folder, entries, list(splits.values()))
    _tell_of_copies(folder, splits)
    return splits


def _named_splits(folder: Path, entries: Sequence[Path], format: str | None) -> dict[str, Part]:
    """The splits among the entries of a folder.

    Names that are the name of a split alone come first; otherwise names that differ in it alone, such as
    news-train.tsv and news-dev.tsv. A file comes before a folder, a whole file before its parts.
    """
    series: dict[str, dict[str, list[Part]]] = defaultdict(lambda: defaultdict(list))
    unread: CorpusError | None = None
    for entry in entries:
        split, name, _ = _named(entry)
        if split is None or (format and entry.is_file() and not _is_of(entry, format)):
            continue
        try:
            part = _part_of([entry], format)
        except FileNotFoundError:  # an empty folder
            continue
        except CorpusError as error:
            unread = unread or (error if name == "*" and entry.is_file() else None)
            continue
        if not _is_one_document(entry, part.format):
            series[name][split].append(part)
    chosen = series[_chosen_series(folder, series)]
    if not chosen and unread is not None and not any(has_documents(folder, known) for known in known_formats()):
        raise unread
    return {split: _one_part(folder, split, parts) for split, parts in chosen.items()}


def _named(entry: Path) -> tuple[str | None, str, str]:
    """The split that a name contains, if it contains one only; the name with * for the split; and its suffix.

    The dots before the split do not count: v1.0-dev-de.tsv → v1.0-*-de, .tsv.
    """
    name = SHARD.sub("", entry.name.lower().removesuffix(".gz"))
    names = SPLIT_IN_NAME.findall(name)
    if len(names) != 1:
        return None, name, ""
    before, _, after = SPLIT_IN_NAME.sub("*", name, count=1).partition("*")
    rest, dot, suffix = after.partition(".")
    return SPLIT_OF_NAME[names[0]], f"{before}*{rest}", dot + suffix


def _chosen_series(folder: Path, series: Mapping[str, Mapping[str, object]]) -> str:
    sizes = {name: len(splits) for name, splits in series.items()}
    most = [name for name, size in sizes.items() if size > 1 and size == max(sizes.values())]
    if "*" in sizes or not most:
        return "*"
    if len(most) > 1:
        problem = f"both {most[0]} and {most[1]}, with a split for *, could be its files"
        raise CorpusError.at(folder, "", problem, EACH_BY_ITSELF)
    return most[0]


def _one_part(folder: Path, split: str, parts: Sequence[Part]) -> Part:
    """The part that comes first, or all shards of a split together. An ending of the format comes before others."""
    ranks = [
        (part.path.is_dir(), bool(_num_shards(part.path)), _named(part.path)[2] not in part.format.suffixes)
        for part in parts
    ]
    first, *others = [part for part, rank in zip(parts, ranks, strict=True) if rank == min(ranks)]
    number = _num_shards(first.path)
    if (number or 1) == len(others) + 1:
        return Part(folder, tuple(part.path for part in (first, *others)), first.format) if others else first
    if number:
        problem = f"{first.path.name} is one of {number} parts of a split, of which {len(others) + 1} are there"
        remedy = "Add the others, or join them"
    else:
        names = " and ".join(_shown(folder, [part.path]) for part in (first, others[0]))
        problem, remedy = f"both {names} could be its {split} split", EACH_BY_ITSELF
    raise CorpusError.at(folder, "", problem, remedy)


def _num_shards(path: Path) -> int:
    """Of how many parts of a split a file is one; 0 of a whole file."""
    found = SHARD.search(path.name)
    return int(found[1]) if found and int(found[1]) > 1 else 0


def _is_one_document(entry: Path, known: CorpusFormat) -> bool:
    """Whether an entry is one of many documents, whose name says nothing about splits."""
    return known.documents is not None and entry.is_file() and not entry.name.endswith(known.lists or "\0")


# ---- The files of one split ----


def _part_of(paths: Sequence[Path], format: str | None) -> Part:
    """All files of one format among these and in these folders, searched recursively."""
    folder = _folder_of(paths)
    named = None if format is None else format_named(format)
    if len(paths) == 1 and not folder.is_dir():
        known = named or detect_format(folder)
        return Part(folder, tuple(known.documents(folder) if known.documents else paths), known)
    there = [file for path in paths for file in visible_paths(path) if file.is_file()]
    of_documents = (named or format_of_documents(folder)) if len(paths) == 1 else None
    if of_documents is not None and of_documents.documents is not None and (files := of_documents.documents(folder)):
        _tell(folder, "files of other forms left out", _of_other_forms(there, files, of_documents))
        return Part(folder, tuple(files), of_documents)
    by_format: dict[str, list[Path]] = defaultdict(list)
    for file in there:
        if (known_name := _format_in_folder(file, format)) is not None:
            by_format[known_name].append(file)
    if len(by_format) > 1:
        forms = ", ".join(f"{name!r} ({len(files)}: {_shown(folder, files)})" for name, files in by_format.items())
        problem = f"it has files of several forms, {forms}"
        remedy = f"Give the folder of one, or name one: --format (format=) {next(iter(by_format))}"
        raise CorpusError.at(folder, "", problem, remedy)
    for name, files in by_format.items():
        _check_names(folder, files)
        _tell(folder, "files of unknown formats left out", sorted({*there} - {*files}))
        return Part(folder, tuple(files), format_named(name))
    in_folders = [one.name for one in known_formats() for path in paths if has_documents(path, one)]
    if in_folders and len(paths) > 1:
        problem = f"several files or folders of the format {in_folders[0]!r} are given"
        raise CorpusError.at(folder, "", problem, "Give one folder that contains them")
    raise _nothing_found(folder, there)


def _format_in_folder(file: Path, format: str | None) -> str | None:
    """The format of one of the files in a folder; None if it is of no known form, or not of the one that is named."""
    if format is not None:
        return format if _is_of(file, format) else None
    try:
        detected = format_of_content(file)
    except CorpusError:
        return None
    return detected.name if detected is not None and detected.documents is None else None


def _of_other_forms(there: Iterable[Path], files: Iterable[Path], known: CorpusFormat) -> list[Path]:
    """The files of another known form than the documents in a folder; what is named as a document belongs to it."""
    documents = {file.name.removesuffix(suffix) for file in files for suffix in (*known.suffixes, file.suffix)}
    others = (file for file in there if file.name not in documents and stem(file) not in documents)
    return [file for file in others if _format_in_folder(file, None) is not None]


def _is_of(file: Path, format: str) -> bool:
    """Whether a file is of this format by its suffix, its content, or as a list of documents."""
    known = format_named(format)
    name = file.name.lower().removesuffix(".gz")
    if name.endswith(known.suffixes or "\0"):
        return True
    if known.documents is not None:
        return name.endswith(known.lists or "\0") and has_documents(file, known)
    try:
        return detect_format(file).read == known.read
    except CorpusError:
        return False


def _folder_of(paths: Sequence[Path]) -> Path:
    """The path that messages name: the only one, or the folder around several."""
    return paths[0] if len(paths) == 1 else Path(os.path.commonpath(paths))


def _check_names(folder: Path, files: Sequence[Path]) -> None:
    """Raises CorpusError if two differ in the suffix alone, so that their documents would have the same names."""
    by_name: dict[Path, Path] = {}
    for file in files:
        other = by_name.setdefault(file.with_name(stem(file)), file)
        if other != file:
            problem = f"{other.name} and {file.name} would give their documents the same names"
            raise CorpusError.at(folder, "", problem, "Rename one of them")


def _check_for_splits(part: Part) -> None:
    """Raises CorpusError if names of some of the files, or of folders around them, are those of splits."""
    files = [file for file in part.files if part.path in file.parents]
    around = sorted({parent for file in files for parent in file.relative_to(part.path).parents})
    inside = {SPLIT_OF_NAME[folder.name.lower()]: folder for folder in around if folder.name.lower() in SPLIT_OF_NAME}
    named = [file for file in files if _named(file)[0] and not _is_one_document(file, part.format)]
    named += [file for file in files if file.stem in SPLIT_OF_NAME and file.name.endswith(part.format.suffixes)]
    if len(inside) > 1:
        first = min(inside.values())
        problem = f"its folder {first.as_posix()} could be a split"
        remedy = f"Give the folder that contains the splits, {part.path / first.parent}"
    elif named:
        problem = f"{named[0].name} could be a split, but no name tells those of the other files"
        remedy = EACH_BY_ITSELF
    else:
        return
    raise CorpusError.at(part.path, "", problem, remedy)


def _nothing_found(folder: Path, there: Sequence[Path]) -> Exception:
    names = sorted(file.name for file in folder.iterdir())[:10] if folder.is_dir() else []
    counts = Counter(file.suffix.lower() for file in there)
    lacking = f"; for brat, its .txt files ({counts['.txt']}) need .ann files beside them" if counts[".txt"] else ""
    packed = f"; ZIP archives in it ({counts['.zip']}) are to be unpacked first" if counts[".zip"] else ""
    return FileNotFoundError(
        f"{folder}: it is a folder without documents or files of a known format. It contains {names}{lacking}{packed}. "
        f"Give a corpus file, or a folder with train, dev (validation, valid) and test. {OF_TABLES}."
    )


# ---- What is told ----


def _tell_of_others(folder: Path, entries: Sequence[Path], parts: Sequence[Part]) -> None:
    """Tells of files that are in no split, though they have a split's name, or the suffix of a format that is read."""
    read = {file for part in parts for file in part.files}
    listed = {file.name for part in parts if part.path.is_file() and part.format.documents for file in part.files}
    suffixes = tuple({suffix for part in parts for suffix in _suffixes_of(part)} - {""}) or "\0"
    series = {"*", *(_named(part.path)[1] for part in parts)}
    others = []
    for entry in entries:
        inside = any(part.path == entry for part in parts)
        for file in visible_paths(entry):
            alike = file.name.lower().removesuffix(".gz").endswith(suffixes) or _named(file)[1] in series
            if file.is_file() and file not in read and file.name not in listed and alike and not inside:
                others.append(file)
    _tell(folder, "files outside all splits left out", others)


def _suffixes_of(part: Part) -> Iterable[str]:
    """The suffixes of a split's files, without those of texts beside their annotations."""
    if part.format.documents is not None:
        return part.format.suffixes
    return (Path(file.name.lower().removesuffix(".gz")).suffix for file in part.files)


def _tell_of_copies(folder: Path, splits: Mapping[str | None, Part]) -> None:
    """Tells of files that two splits have in common."""
    sizes: dict[tuple[str, int], tuple[str | None, Path]] = {}
    copies = []
    for split, part in splits.items():
        for file in part.files if len(part.files) > 1 else ():
            other, first = sizes.setdefault((file.name, file.stat().st_size), (split, file))
            if other != split and file.stat().st_size and filecmp.cmp(first, file, shallow=False):
                copies.append(file)
    _tell(folder, "files that are the same in another split", copies)


def _tell(folder: Path, what: str, files: Sequence[Path]) -> None:
    if files:
        logger.warning("%s: %s: %d (%s).", folder, what, len(files), _shown(folder, files))


def _shown(folder: Path, files: Iterable[Path]) -> str:
    """The folders of files with their numbers, and the names of those in the folder itself."""
    by_place: dict[Path, list[Path]] = defaultdict(list)
    for file in files:
        by_place[file if file.parent == folder else file.parent].append(file)
    names = []
    for place, inside in by_place.items():
        path = place if len(inside) > 1 else inside[0]
        name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()
        names.append(f"{name}/: {len(inside)}" if len(inside) > 1 else name)
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
