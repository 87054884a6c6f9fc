"""The files of one split: those of one format among the files and folders that are given for it."""

import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .corpus_format import CorpusFormat
from .detection import detect_format, documents_in, format_named, format_of_content, format_of_documents, known_formats
from .reading import plain_name, stem, visible_paths
from .schema import OF_TABLES, CorpusError

logger = logging.getLogger(__name__)

SHARD = re.compile(r"-\d+-of-0*(\d+)")
"""What the names of the parts of a split have, with their number."""
SHOWN = 3


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


def _part_again(path: Path, files: tuple[Path, ...], format: str) -> Part:
    return Part(path, files, format_named(format))


def part_of(paths: Sequence[Path], format: str | None) -> Part:
    """All files of one format among these and in these folders, searched recursively."""
    folder = folder_of(paths)
    named = None if format is None else format_named(format)
    if len(paths) == 1 and not folder.is_dir():
        known = named or detect_format(folder)
        return Part(folder, tuple(documents_in(folder, known) if known.documents else paths), known)
    there = [file for path in paths for file in visible_paths(path) if file.is_file()]
    if len(paths) == 1:
        of_documents = named or format_of_documents(folder)
        if of_documents is not None and (files := documents_in(folder, of_documents)):
            tell(folder, "files of other forms left out", _of_other_forms(there, files, of_documents))
            return Part(folder, tuple(files), of_documents)
    for path in paths if len(paths) > 1 and format is None else ():
        if path.is_dir() and (of_documents := format_of_documents(path)):
            problem = f"several files or folders are given, of which {path.name} is of the format {of_documents.name!r}"
            raise CorpusError.at(folder, "", problem, "Give one folder that contains all of its documents")
    by_format: dict[str, list[Path]] = defaultdict(list)
    for file in there:
        if (name := _format_in_folder(file, format)) is not None:
            by_format[name].append(file)
    if not by_format:
        raise _nothing_found(folder, paths, there)
    first, *others = by_format
    if others:
        forms = ", ".join(f"{name!r} ({len(files)}: {named_files(folder, files)})" for name, files in by_format.items())
        remedy = f"Give the folder of one, or name one: --format (format=) {first}"
        raise CorpusError.at(folder, "", f"it has files of several forms, {forms}", remedy)
    files = by_format[first]
    _check_names(folder, files)
    tell(folder, "files of unknown formats left out", sorted({*there} - {*files}))
    return Part(folder, tuple(files), format_named(first))


def folder_of(paths: Sequence[Path]) -> Path:
    """The path that messages name: the only one, or the folder around several."""
    return paths[0] if len(paths) == 1 else Path(os.path.commonpath(paths))


def is_of(file: Path, format: str) -> bool:
    """Whether a file is of this format by its suffix, its content, or as a list of documents."""
    known = format_named(format)
    if plain_name(file).endswith(known.suffixes):
        return True
    if known.documents is not None:
        return plain_name(file).endswith(known.lists) and bool(documents_in(file, known))
    try:
        return detect_format(file).read == known.read
    except CorpusError:
        return False


def _format_in_folder(file: Path, format: str | None) -> str | None:
    """The format of one of the files in a folder; None if it is of no known form, or not of the one that is named."""
    if format is not None:
        return format if is_of(file, format) else None
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


def _check_names(folder: Path, files: Sequence[Path]) -> None:
    """Raises CorpusError if two differ in the suffix alone, so that their documents would have the same names."""
    by_name: dict[Path, Path] = {}
    for file in files:
        other = by_name.setdefault(file.with_name(stem(file)), file)
        if other != file:
            problem = f"{other.name} and {file.name} would give their documents the same names"
            raise CorpusError.at(folder, "", problem, "Rename one of them")


def _nothing_found(folder: Path, paths: Sequence[Path], there: Sequence[Path]) -> Exception:
    """The error if none of the files `there` is of a known format."""
    in_folders = [known.name for known in known_formats() for path in paths if documents_in(path, known)]
    if in_folders and len(paths) > 1:
        problem = f"several files or folders of the format {in_folders[0]!r} are given"
        return CorpusError.at(folder, "", problem, "Give one folder that contains them")
    names = sorted(file.name for file in folder.iterdir())[:10] if folder.is_dir() else []
    counts = Counter(file.suffix.lower() for file in there)
    lacking = f"; for brat, its .txt files ({counts['.txt']}) need .ann files beside them" if counts[".txt"] else ""
    packed = f"; ZIP archives in it ({counts['.zip']}) are to be unpacked first" if counts[".zip"] else ""
    return FileNotFoundError(
        f"{folder}: it is a folder without documents or files of a known format. It contains {names}{lacking}{packed}. "
        f"Give a corpus file, or a folder with train, dev (validation, valid) and test. {OF_TABLES}."
    )


def tell(folder: Path, what: str, files: Sequence[Path]) -> None:
    """Warns of files of a corpus, if there are any; `what` they are, in words."""
    if files:
        logger.warning("%s: %s: %d (%s).", folder, what, len(files), named_files(folder, files))


def named_files(folder: Path, files: Iterable[Path]) -> str:
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
