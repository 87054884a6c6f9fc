"""The splits of a corpus, by one rule: train, dev (validation) or test is in the name of a file or folder, or is given.

`find_splits` finds the part of each, `parts.py` the files in it; `sources.py` reads them.
"""

import filecmp
import glob
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .corpus_format import CorpusFormat
from .detection import format_of_documents
from .parts import SHARD, Part, folder_of, is_of, named_files, part_of, tell
from .reading import plain_name, visible_paths
from .schema import TO_DATASET, CorpusError

SPLIT_OF_NAME = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(
        ("dev", "devel", "develop", "development", "val", "valid", "eval", "validation", "testa"), "validation"
    ),
    **dict.fromkeys(("test", "testing", "testb"), "test"),
}
"""Name of a file, folder or key of `path` → its split. CoNLL-2002 and 2003 call theirs testa and testb."""

SPLIT_IN_NAME = re.compile(rf"(?<![a-z0-9])({'|'.join(SPLIT_OF_NAME)})(?:set)?(?![a-z0-9])")
SPLIT_INSIDE_A_WORD = re.compile(rf"({'|'.join(sorted(SPLIT_OF_NAME, key=len, reverse=True))})(?:set)?")
"""As in engtrain.bio and engtest.bio; tells a split only if names differ in it alone."""

OF_SAVED_DATA = ("dataset_dict.json", "state.json")
"""Files in folders that `save_to_disk` of `datasets` writes: of all splits, and of one."""

IN_WHICH_OPTION = '(training takes --train_file, --validation_file and --test_file; Python a mapping, {"train": …})'
EACH_BY_ITSELF = f"Give one of them by itself {IN_WHICH_OPTION}"

PathLike = str | os.PathLike[str]
Paths = PathLike | Sequence[PathLike]
CorpusPath = Paths | Mapping[str, Paths]
"""A corpus: a file, a folder or a pattern such as "gum/*.conllu"; several of them; or a mapping of splits to these."""


def find_splits(path: CorpusPath, format: str | None, only: str | None = None) -> dict[str | None, Part]:
    """Split → its files. The split is None if `path` names none: its format decides, or it is all `train`.

    Files of other splits than `only` need not be of a known format.
    """
    if not isinstance(path, Mapping):
        return _splits_of(_existing(path), format, only)
    splits: dict[str | None, Part] = {}
    for name, given in path.items():
        split = SPLIT_OF_NAME.get(name, name)
        if split in splits:
            raise ValueError(f"Two files are given for the split {split!r}. Give one, or a list of both.")
        splits[split] = _part_of_split(split, _existing(given), format)
    return splits


def split_in_name(part: Part) -> str | None:
    """The split that the name of a part's file, or of the folder around its files, tells; None if it tells none."""
    if part.path.is_dir():
        return SPLIT_OF_NAME.get(part.path.name.lower())
    return None if _is_one_document(part.path, part.format) else name_of_split(part.path).split


def _part_of_split(split: str, paths: Sequence[Path], format: str | None) -> Part:
    """The files that are given for a split; of one folder with splits, those of this one."""
    is_folder = len(paths) == 1 and paths[0].is_dir()
    named = _named_splits(paths[0], _entries(paths[0]), format, split) if is_folder else {}
    if not named:
        return part_of(paths, format)
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


def _splits_of(paths: Sequence[Path], format: str | None, only: str | None) -> dict[str | None, Part]:
    """The splits that the names of several files, or of what is in a folder, tell; otherwise all as one.

    The name of the only file need not differ from others in its split alone.
    """
    folder = folder_of(paths)
    if len(paths) == 1 and not folder.is_dir():
        return {None: part_of(paths, format)}
    entries = paths if len(paths) > 1 else _entries(folder)
    named = _named_splits(folder, entries, format, only)
    if not named:
        part = part_of(paths, format)
        single = Part(part.files[0], part.files, part.format)
        if len(part.files) == 1 and (split := split_in_name(single)):
            return {split: single}
        _check_for_splits(part)
        return {None: part}
    in_order = [split for split in dict.fromkeys(SPLIT_OF_NAME.values()) if split in named]
    splits: dict[str | None, Part] = {split: named[split] for split in in_order}
    _tell_of_others(folder, entries, list(splits.values()))
    _tell_of_copies(folder, splits)
    return splits


def _named_splits(folder: Path, entries: Sequence[Path], format: str | None, only: str | None) -> dict[str, Part]:
    """The splits among the entries of a folder.

    Names that are the name of a split alone come first; otherwise names that differ in it alone, such as
    news-train.tsv and news-dev.tsv, or engtrain.bio and engtest.bio. A file comes before a folder, a whole file before
    its parts.

    Raises:
        CorpusError: a file with the name of a split alone (of `only`, if given) is of no known format, though others of
            its kind are.
    """
    in_names = _series_of_splits(folder, entries, format, only, SPLIT_IN_NAME)
    return in_names or _series_of_splits(folder, entries, format, only, SPLIT_INSIDE_A_WORD)


def _series_of_splits(
    folder: Path, entries: Sequence[Path], format: str | None, only: str | None, pattern: re.Pattern[str]
) -> dict[str, Part]:
    series: dict[str, dict[str, list[Part]]] = defaultdict(lambda: defaultdict(list))
    unread: dict[Path, CorpusError] = {}
    for entry in entries:
        split, name, _ = name_of_split(entry, pattern)
        if split is None or (format and entry.is_file() and not is_of(entry, format)):
            continue
        try:
            part = part_of([entry], format)
        except FileNotFoundError:  # an empty folder
            continue
        except CorpusError as error:
            if name == "*" and entry.is_file():
                unread[entry] = error
            continue
        if not _is_one_document(entry, part.format):
            series[name][split].append(part)
    chosen = series[_chosen_series(folder, series)]
    if not chosen and unread and format_of_documents(folder) is None:
        raise next(iter(unread.values()))
    splits = {split: _one_part(folder, split, parts) for split, parts in chosen.items()}
    suffixes = {name_of_split(part.path).suffix for part in splits.values() if part.path.is_file()}
    for entry, problem in unread.items():
        split, _, suffix = name_of_split(entry)
        if split not in splits and only in (None, split) and suffix in suffixes:
            raise CorpusError(f"{problem} To leave it out, give the others by themselves {IN_WHICH_OPTION}.")
    return splits


class SplitName(NamedTuple):
    """What a name tells: its split, None if it tells none or several; the name with * for the split; and its suffix."""

    split: str | None
    series: str
    suffix: str = ""


def name_of_split(entry: Path, pattern: re.Pattern[str] = SPLIT_IN_NAME) -> SplitName:
    """What the name of a file or folder tells. The dots before the split do not count: v1.0-dev-de.tsv → v1.0-*-de."""
    name = SHARD.sub("", plain_name(entry))
    names = pattern.findall(name)
    if len(names) != 1:
        return SplitName(None, name)
    before, _, after = pattern.sub("*", name, count=1).partition("*")
    rest, dot, suffix = after.partition(".")
    return SplitName(SPLIT_OF_NAME[names[0]], f"{before}*{rest}", dot + suffix)


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

    def rank(part: Part) -> tuple[bool, bool, bool]:
        has_other_suffix = name_of_split(part.path).suffix not in part.format.suffixes
        return part.path.is_dir(), _num_shards(part.path) > 1, has_other_suffix

    best = min(map(rank, parts))
    first, *others = [part for part in parts if rank(part) == best]
    number = _num_shards(first.path)
    if number > 1 and number != len(others) + 1:
        problem = f"{first.path.name} is one of {number} parts of a split, of which {len(others) + 1} are there"
        raise CorpusError.at(folder, "", problem, "Add the others, or join them")
    if others and number <= 1:
        names = " and ".join(named_files(folder, [part.path]) for part in (first, others[0]))
        raise CorpusError.at(folder, "", f"both {names} could be its {split} split", EACH_BY_ITSELF)
    return Part(folder, tuple(part.path for part in (first, *others)), first.format) if others else first


def _num_shards(path: Path) -> int:
    """Of how many parts of a split a file is one; 1 of a whole file."""
    found = SHARD.search(path.name)
    return int(found[1]) if found else 1


def _is_one_document(entry: Path, known: CorpusFormat) -> bool:
    """Whether an entry is one of many documents, whose name says nothing about splits."""
    return known.documents is not None and entry.is_file() and not entry.name.endswith(known.lists)


def _check_for_splits(part: Part) -> None:
    """Raises CorpusError if names of some of the files, or of folders around them, are those of splits."""
    files = [file for file in part.files if part.path in file.parents]
    around = sorted({parent for file in files for parent in file.relative_to(part.path).parents})
    inside = {SPLIT_OF_NAME[folder.name.lower()]: folder for folder in around if folder.name.lower() in SPLIT_OF_NAME}
    named = [file for file in files if name_of_split(file).split and not _is_one_document(file, part.format)]
    named += [file for file in files if file.stem in SPLIT_OF_NAME and file.name.endswith(part.format.suffixes)]
    of_files = [file.relative_to(part.path) for file in named if file.parent != part.path]
    if len(inside) > 1 or len({name_of_split(file).split for file in of_files}) > 1:
        first = min(inside.values() if len(inside) > 1 else of_files)
        what = "folder" if len(inside) > 1 else "file"
        remedy = f"Give the folder that contains the splits, {part.path / first.parent}"
        raise CorpusError.at(part.path, "", f"its {what} {first.as_posix()} could be a split", remedy)
    if named:
        problem = f"{named[0].name} could be a split, but no name tells those of the other files"
        raise CorpusError.at(part.path, "", problem, EACH_BY_ITSELF)


# ---- What is told ----


def _tell_of_others(folder: Path, entries: Sequence[Path], parts: Sequence[Part]) -> None:
    """Tells of files that are in no split, though they have a split's name, or the suffix of a format that is read."""
    read = {file for part in parts for file in part.files}
    # Those that a list names may be there several times, in the stages of their annotation.
    listed = {file.name for part in parts if part.path.is_file() and part.format.documents for file in part.files}
    suffixes = tuple({suffix for part in parts for suffix in _suffixes_of(part)} - {""})
    series = {"*", *(name_of_split(part.path).series for part in parts)}
    told = {part.path for part in parts}  # what is left out in the folder of a split
    others = [
        file
        for entry in entries
        if entry not in told
        for file in visible_paths(entry)
        if file.is_file()
        and file not in read
        and file.name not in listed
        and (plain_name(file).endswith(suffixes) or name_of_split(file).series in series)
    ]
    tell(folder, "files outside all splits left out", others)


def _suffixes_of(part: Part) -> Iterable[str]:
    """The suffixes of a split's files, without those of texts beside their annotations."""
    if part.format.documents is not None:
        return part.format.suffixes
    return (Path(plain_name(file)).suffix for file in part.files)


def _tell_of_copies(folder: Path, splits: Mapping[str | None, Part]) -> None:
    """Tells of files that two splits have in common."""
    sizes: dict[tuple[str, int], tuple[str | None, Path]] = {}
    copies = []
    for split, part in splits.items():
        for file in part.files if len(part.files) > 1 else ():
            other, first = sizes.setdefault((file.name, file.stat().st_size), (split, file))
            if other != split and file.stat().st_size and filecmp.cmp(first, file, shallow=False):
                copies.append(file)
    tell(folder, "files that are the same in another split", copies)
