"""The splits of a corpus: files and folders by their names, or as they are given."""

import logging
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from .corpus_format import CorpusFormat
from .detection import (
    detect_format,
    files_of,
    format_named,
    format_of,
    format_of_folder,
    has_documents,
    known_formats,
    lacking,
)
from .reading import visible_paths
from .schema import OF_TABLES, TO_DATASET, CorpusError

logger = logging.getLogger(__name__)

SPLIT_OF_NAME = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "devel", "development", "val", "valid", "eval", "validation", "testa"), "validation"),
    **dict.fromkeys(("test", "testing", "testb"), "test"),
}
"""Name of a file, folder or key of `path` → its split. CoNLL-2002 and 2003 call theirs testa and testb."""

SPLIT_IN_NAME = re.compile(rf"(?<![a-z0-9])({'|'.join(SPLIT_OF_NAME)})(?:set)?(?![a-z0-9])")

SHARD = re.compile(r"-\d+-of-(?!0*1(?!\d))\d+")
"""What the names of the parts of a split have, if there are several."""

OF_SAVED_DATA = ("dataset_dict.json", "state.json")
"""Files in folders that `save_to_disk` of `datasets` writes: of all splits, and of one."""

PathLike = str | os.PathLike[str]


def find_splits(path: PathLike | Mapping[str, PathLike], format: str | None) -> dict[str | None, Path]:
    """Split → its file or folder. The split is None if `path` is a single one, whose format decides about splits.

    Raises:
        FileNotFoundError: there is no such file, or the folder has no splits.
        CorpusError: the splits are ambiguous.
        TypeError: `path` is data in memory.
    """
    if not isinstance(path, Mapping):
        given = _existing(path)
        return _splits_of_folder(given, format) if given.is_dir() else {None: given}
    splits: dict[str | None, Path] = {}
    for name, file in path.items():
        split = SPLIT_OF_NAME.get(name, name)
        if split in splits:
            raise ValueError(f"Two files are given for the split {split!r}. Give one file for each split.")
        splits[split] = part = _existing(file)
        if part.is_dir():
            _warn_of_other_files(part, _left_out(part, format_of(part, format)))
    if not splits:
        raise ValueError('No file is given. Give at least one, as in {"train": "train.jsonl"}.')
    return splits


def only_split(
    path: PathLike | Mapping[str, PathLike], format: str | None, split: str
) -> PathLike | Mapping[str, PathLike]:
    """The corpus without its other splits, as far as these are other files."""
    file = find_splits(path, format).get(split)
    return path if file is None else {split: file}


def _existing(given: PathLike) -> Path:
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(
            f"A corpus is a file or folder, but the data is of type {type(given).__name__}. Data in memory is for "
            f"adapt_dataset, which takes a Dataset. {TO_DATASET}."
        )
    path = Path(given).expanduser()
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: no such file. Give the path of a corpus file, or of a folder with train, dev, test."
        )
    if any((path / name).is_file() for name in OF_SAVED_DATA):
        remedy = "Load it with datasets.load_from_disk, and write it with write_nested_ner (docs/corpora.md)"
        raise CorpusError.at(path, "", "it is a data set saved by save_to_disk", remedy)
    return path


def _splits_of_folder(folder: Path, format: str | None) -> dict[str | None, Path]:
    """The files and folders that have names of splits, otherwise the folder itself if it has documents.

    A folder of files beside the file of its split is left out: the parts of a split may stay beside what joins them.
    """
    formats = known_formats() if format is None else [format_named(format)]
    found = _parts_named_as_splits(folder, formats)
    found |= _folders_named_as_splits(folder, formats, {_split_named(part) for part in found})
    if not found and (format is not None or not any(has_documents(folder, known) for known in formats)):
        # Files of other suffixes are of the format that is given, or of the one that their content shows.
        found = _parts_named_as_splits(folder, formats, any_suffix=True)
    splits: dict[str | None, Path] = {}
    for part in found:
        split = _split_named(part)
        if split in splits:
            problem = f"both {splits[split].name} and {part.name} could be its {split} split"
            raise CorpusError.at(folder, "", problem, "Remove one, or give a mapping: {split: file}")
        splits[split] = part
    candidates = [known for known in formats if known in found.values()] if splits else formats
    of_documents = [known for known in candidates if has_documents(folder, known)]
    for known in of_documents:
        _check_documents(folder, known, list(splits.values()))
    if splits:
        _warn_of_other_files(folder, _others_beside(folder, found))
        return {split: splits[split] for split in dict.fromkeys(SPLIT_OF_NAME.values()) if split in splits}
    of_files = [] if format is None else files_of(folder, formats[0])  # parts of one split, unless their names say more
    if of_documents or (of_files and not any(map(_split_named, of_files))):
        _warn_of_other_files(folder, _left_out(folder, (of_documents or formats)[0]))
        return {None: folder}
    raise FileNotFoundError(
        f"{folder}: has no documents, and no file named train, dev (validation, valid) or test. It contains "
        f"{sorted(file.name for file in folder.iterdir())[:10]}; give one of them or a mapping {{split: file}}"
        f"{lacking(folder)}. {OF_TABLES}."
    )


def _parts_named_as_splits(
    folder: Path, formats: Sequence[CorpusFormat], any_suffix: bool = False
) -> dict[Path, CorpusFormat]:
    """Files and folders of documents that have names of splits → their formats.

    If there are none, those whose names differ in the split alone, such as news-train.tsv and news-dev.tsv.

    Raises:
        CorpusError: there are several such series of files, or a split has several.
    """
    series: dict[str, dict[Path, CorpusFormat]] = {}
    shards: list[Path] = []
    for part in sorted(folder.iterdir()):
        known = next((known for known in formats if _split_named(part) and _is_split(part, known, any_suffix)), None)
        if known is not None and not part.name.startswith("."):  # of which archives of some systems hold copies
            if known.documents is None and SHARD.search(part.name):
                shards.append(part)
            else:
                series.setdefault(_series_and_suffix(part)[0], {})[part] = known
    named = series.get("*", {})
    if shard := next((part for part in shards if _split_named(part) not in map(_split_named, named)), None):
        if len(formats) > 1:
            detect_format(shard)  # parts of tables would be read no better in a folder of their own
        problem = f"{shard.name} is one of several parts of a split"
        raise CorpusError.at(folder, "", problem, "Put the parts of every split into a folder, such as train/")
    if named:
        return named
    sizes = {name: len({*map(_split_named, parts)}) for name, parts in series.items()}
    most = max(sizes.values(), default=0)
    if most < 2:
        return {}
    first, *others = [name for name, size in sizes.items() if size == most]
    if all(part.is_file() for part in series[first]) and any(has_documents(folder, known) for known in formats):
        return {}  # names of documents may contain "test"
    if others:
        problem = f"both {first} and {others[0]}, with a split for *, could be its files"
        raise CorpusError.at(folder, "", problem, "Keep one of them in the folder, or give a mapping: {split: file}")
    return series[first]


def _folders_named_as_splits(
    folder: Path, formats: Collection[CorpusFormat], others: Collection[str | None]
) -> dict[Path, CorpusFormat]:
    """Folders that have names of splits but for the `others`, with several files each → their formats."""
    folders = [part for part in sorted(folder.iterdir()) if part.is_dir() and part.name.lower() in SPLIT_OF_NAME]
    folders = [part for part in folders if _split_named(part) not in others]
    full = [part for part in folders if any(files_of(part, known) for known in formats)]
    return {part: format_of_folder(part, formats) for part in full}


def _split_named(part: Path) -> str | None:
    """The split that a name contains, if it contains one only."""
    names = SPLIT_IN_NAME.findall(part.name.lower())
    return SPLIT_OF_NAME[names[0]] if len(names) == 1 else None


def _series_and_suffix(part: Path) -> tuple[str, str]:
    """The name without its suffix and with * for the split; and the suffix from the first dot on, without `.gz`.

    The dots before the split do not count: v1.0-dev-de.tsv → v1.0-*-de, .tsv.
    """
    before, split, after = SPLIT_IN_NAME.sub("*", part.name.lower().removesuffix(".gz"), count=1).partition("*")
    name, dot, suffix = after.partition(".") if split else before.partition(".")
    return (before + split + name if split else name), dot + suffix


def _is_split(part: Path, known: CorpusFormat, any_suffix: bool) -> bool:
    _, suffix = _series_and_suffix(part)
    if known.documents is None:
        return part.is_file() and (any_suffix or suffix in known.suffixes)
    named = not suffix if part.is_dir() else suffix in known.lists
    return named and has_documents(part, known)


def _others_beside(folder: Path, splits: Mapping[Path, CorpusFormat]) -> list[Path]:
    """What is not read although its name or suffix is that of a split, or although it is in the folder of a split."""
    suffixes = {_series_and_suffix(split)[1] for split, known in splits.items() if known.documents is None} - {""}
    others = [
        part
        for part in sorted(folder.iterdir())
        if part not in splits and not part.name.startswith(".")
        if _series_and_suffix(part)[0] == "*"
        or (part.is_file() and part.name.lower().removesuffix(".gz").endswith(tuple(suffixes)))
    ]
    return others + [file for split, known in splits.items() for file in _left_out(split, known)]


def _left_out(split: Path, known: CorpusFormat) -> list[Path]:
    """What is in a split's folder, or in one inside it, but is none of its files."""
    if known.documents is not None or split.is_file():
        return []
    files = {*files_of(split, known)}
    return [file for file in visible_paths(split) if file.is_file() and file not in files]


def _warn_of_other_files(folder: Path, others: Sequence[Path]) -> None:
    if others:
        names = ", ".join(part.relative_to(folder).as_posix() for part in others[:3])
        logger.warning("%s: files and folders not read, which are in no split: %d (%s).", folder, len(others), names)


def _check_documents(folder: Path, known: CorpusFormat, splits: list[Path]) -> None:
    """Warns of documents that are in no split; raises CorpusError if the splits are ambiguous."""
    assert known.documents is not None
    documents = [file for file in known.documents(folder) if file.name.endswith(known.suffixes)]  # not their texts
    remedy = "Give a mapping: {split: folder or file}"
    if not splits:
        inside = [parent for file in documents for parent in file.relative_to(folder).parents]
        named_inside = {SPLIT_OF_NAME[part.name]: part for part in inside if part.name in SPLIT_OF_NAME}
        if len(named_inside) > 1:
            problem = f"its folder {min(named_inside.values()).as_posix()} could be a split"
            raise CorpusError.at(folder, "", problem, "Give the folder that contains the splits, or a mapping")
        named = [file.name for file in documents if file.parent == folder and file.stem in SPLIT_OF_NAME]
        if named:
            raise CorpusError.at(folder, "", f"{named[0]} could be a document or a split", remedy)
    elif any(split.is_dir() for split in splits):
        outside = [file.name for file in documents if not any(split in file.parents for split in splits)]
        if outside:
            raise CorpusError.at(folder, "", f"{outside[0]} is outside of the folders of its splits", remedy)
    else:
        listed = {file.name for split in splits for file in known.documents(split)}
        if outside := sorted({file.name for file in documents} - listed):
            logger.warning("%s: documents on no list ignored: %d (%s).", folder, len(outside), outside[0])
