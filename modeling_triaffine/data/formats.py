"""Which formats there are, which one a file or folder is of, and which of them are which split.

What a format looks like is in its reader's file: a new one is a module with a `CorpusFormat` and its name in `FORMATS`
below.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from .ace import ACE
from .brat import BRAT
from .conllu import CONLLU
from .docbin import DOCBIN
from .genia import GENIA
from .iob2 import IOB2
from .json_lines import JSON_LINES
from .label_studio import LABEL_STUDIO
from .published_json import PUBLISHED_JSON
from .reading import CorpusFormat, read_head
from .schema import CorpusError
from .text_spans import TEXT_SPANS

logger = logging.getLogger(__name__)

FORMATS: dict[str, CorpusFormat] = {
    known.name: known
    for known in (LABEL_STUDIO, TEXT_SPANS, JSON_LINES, PUBLISHED_JSON, CONLLU, IOB2, GENIA, BRAT, DOCBIN, ACE)
}
"""Where several recognize a file, the first has it."""

SPLIT_OF_NAME = {
    "train": "train",
    "dev": "validation",
    "val": "validation",
    "valid": "validation",
    "eval": "validation",
    "validation": "validation",
    "test": "test",
}
"""What files, folders and keys of `path` are called → the split they are."""

PathLike = str | os.PathLike[str]


def detect_format(path: Path) -> CorpusFormat:
    """The format of a folder by the documents in it; of a file by its name's ending, and else by what is in it.

    Raises:
        CorpusError: the file is empty, or of no known format.
    """
    if path.is_dir():
        return _format_of_folder(path, FORMATS.values())
    name = path.name.lower().removesuffix(".gz")
    by_name = [known for known in FORMATS.values() if name.endswith(known.suffixes)]
    if len(by_name) == 1:
        return by_name[0]
    head = read_head(path)
    for known in by_name or FORMATS.values():
        if known.recognizes(head) or (name.endswith(known.lists) and _holds_documents(path, known)):
            return known
    known_formats = "; ".join(
        f"{known.name!r} ({known.description}; {', '.join(known.suffixes)})" for known in FORMATS.values()
    )
    problem = f"its format cannot be told; it begins {head[:40]!r}"
    raise CorpusError.at(path, "", problem, f"Say which one it is with format=…: {known_formats}")


def format_of(path: Path, name: str | None) -> CorpusFormat:
    """The format with this name, or where that is None, the one that `path` is of."""
    if name is None:
        return detect_format(path)
    known = _format_named(name)
    if path.is_dir() and not _holds_documents(path, known):
        return _format_of_folder(path, [known])
    return known


def find_splits(path: PathLike | Mapping[str, PathLike], format: str | None) -> dict[str | None, Path]:
    """Split → file or folder; the split is None where `path` is one, and the format decides.

    Raises:
        FileNotFoundError: there is no such file, or nothing in the folder that could be a split.
        CorpusError: it is not clear what is which split.
    """
    if not isinstance(path, Mapping):
        given = _existing(Path(path).expanduser())
        return _splits_of_folder(given, format) if given.is_dir() else {None: given}
    splits: dict[str | None, Path] = {}
    for name, file in path.items():
        split = SPLIT_OF_NAME.get(name, name)
        if split in splits:
            raise ValueError(f"Two files are given for the split {split!r}. Give one under one of its names.")
        splits[split] = _existing(Path(file).expanduser())
    if not splits:
        raise ValueError('No file is given. Give at least one, as in {"train": "train.jsonl"}.')
    return splits


def _format_named(name: str) -> CorpusFormat:
    if name not in FORMATS:
        raise ValueError(
            f"There is no format {name!r}. Choose one of {sorted(FORMATS)}, or None to tell it by the file."
        )
    return FORMATS[name]


def _format_of_folder(folder: Path, formats: Iterable[CorpusFormat]) -> CorpusFormat:
    for known in formats:
        if _holds_documents(folder, known):
            return known
    raise CorpusError.at(
        folder, "", "is a folder, and not one of documents", "Give each split's file, or the folder by itself"
    )


def _holds_documents(folder: Path, known: CorpusFormat) -> bool:
    return known.documents is not None and bool(known.documents(folder))


def _existing(path: Path) -> Path:
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: no such file. Give the path of a corpus file, or of a folder with train, dev, test."
        )
    return path


def _splits_of_folder(folder: Path, format: str | None) -> dict[str | None, Path]:
    """The files and folders of documents that are called as splits are; or else the folder, where it has documents."""
    formats = list(FORMATS.values()) if format is None else [_format_named(format)]
    found = _parts_called_splits(folder, formats)
    if not found and format is not None:  # what is said of the format is believed, whatever the files' endings
        found = _parts_called_splits(folder, formats, any_ending=True)
    splits: dict[str | None, Path] = {}
    for part in found:
        split = _split_called(part)
        if split in splits:
            problem = f"both {splits[split].name} and {part.name} could be its {split} split"
            raise CorpusError.at(folder, "", problem, "Remove one, or name the files: {split: file}")
        splits[split] = part
    candidates = [known for known in formats if known in found.values()] if splits else formats
    of_documents = [known for known in candidates if _holds_documents(folder, known)]
    for known in of_documents:
        _check_documents(folder, known, list(splits.values()))
    if splits:
        _tell_other_files(folder, found)
        return {split: splits[split] for split in dict.fromkeys(SPLIT_OF_NAME.values()) if split in splits}
    if of_documents:
        return {None: folder}
    endings = sorted({suffix for known in formats for suffix in known.suffixes})
    raise FileNotFoundError(
        f"{folder}: no file is named train, dev (validation, valid) or test and ends in one of {endings}, and there "
        f"are no documents. It holds {sorted(file.name for file in folder.iterdir())[:10]}; give one of them, or "
        f"{{split: file}}, or say which format it is: then any ending will do."
    )


def _parts_called_splits(
    folder: Path, formats: Iterable[CorpusFormat], any_ending: bool = False
) -> dict[Path, CorpusFormat]:
    """Files and folders of documents that are called as splits are → their formats."""
    found = {}
    for part in sorted(folder.iterdir()):
        known = next((known for known in formats if _split_called(part) and _is_split(part, known, any_ending)), None)
        if known is not None:
            found[part] = known
    return found


def _split_called(part: Path) -> str | None:
    return SPLIT_OF_NAME.get(part.name.lower().partition(".")[0])


def _ending(part: Path) -> str:
    return part.name.lower().removesuffix(".gz").partition(".")[2]


def _is_split(part: Path, known: CorpusFormat, any_ending: bool) -> bool:
    """Whether a file or folder with the name of a split is one in this format: a corpus file, or documents."""
    ending = _ending(part)
    if known.documents is None:
        return part.is_file() and (any_ending or f".{ending}" in known.suffixes)
    named = not ending if part.is_dir() else f".{ending}" in known.lists
    return named and _holds_documents(part, known)


def _tell_other_files(folder: Path, splits: Mapping[Path, CorpusFormat]) -> None:
    """Warns of files that are called as splits are, or end as the files of the splits do, and are not read."""
    endings = {_ending(split) for split, known in splits.items() if known.documents is None}
    suffixes = tuple(f".{ending}" for ending in endings if ending)
    others = [
        part.name
        for part in sorted(folder.iterdir())
        if part.is_file() and part not in splits and not part.name.startswith(".")
        if _split_called(part) or part.name.lower().removesuffix(".gz").endswith(suffixes)
    ]
    if others:
        problem = "not read, being called otherwise or ending otherwise than its splits"
        logger.warning("%s: %s: %d (%s).", folder, problem, len(others), ", ".join(others[:3]))


def _check_documents(folder: Path, known: CorpusFormat, splits: list[Path]) -> None:
    """Tells documents that are in no split; raises CorpusError where it is not clear what is meant."""
    assert known.documents is not None
    documents = known.documents(folder)
    remedy = "Name what is which split: {split: folder or file}"
    if not splits:
        named = [file.name for file in documents if file.parent == folder and file.stem in SPLIT_OF_NAME]
        if named:
            raise CorpusError.at(folder, "", f"it is not clear whether {named[0]} is a document or a split", remedy)
    elif any(split.is_dir() for split in splits):
        outside = [file.name for file in documents if not any(split in file.parents for split in splits)]
        if outside:
            raise CorpusError.at(folder, "", f"{outside[0]} lies outside the folders that are its splits", remedy)
    else:
        listed = {file.name for split in splits for file in known.documents(split)}
        if outside := sorted({file.name for file in documents} - listed):
            logger.warning("%s: documents that no list names ignored: %d (%s).", folder, len(outside), outside[0])
