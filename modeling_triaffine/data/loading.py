"""`load_nested_ner`: a corpus in any known format → `datasets`, with its splits.

Holds the registry of formats, how a file's format is told, how splits are found, and the cache. What a format looks
like is in its reader's file: a new one is a module with a `CorpusFormat` and its name in `FORMATS` below.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict, NamedSplit
from datasets.exceptions import DatasetGenerationError
from datasets.fingerprint import Hasher, generate_random_fingerprint

from .alignment import WordSplitter
from .genia import GENIA
from .json_lines import JSON_LINES
from .published_json import PUBLISHED_JSON
from .reading import CorpusFormat, open_corpus, read_head
from .schema import FEATURES, CorpusError, Record, RecordChecker

logger = logging.getLogger(__name__)

FORMATS: dict[str, CorpusFormat] = {known.name: known for known in (JSON_LINES, GENIA, PUBLISHED_JSON)}

SPLIT_OF_NAME = {
    "train": "train",
    "dev": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
}
"""What files (and keys of `path`) are called → the split they are."""

PathLike = str | os.PathLike[str]


def load_nested_ner(
    path: PathLike | Mapping[str, PathLike],
    format: str | None = None,
    *,
    labels: Iterable[str] | None = None,
    word_splitter: WordSplitter | None = None,
    streaming: bool = False,
    cache_dir: PathLike | None = None,
) -> DatasetDict | IterableDatasetDict:
    """A nested NER corpus in the one schema of this package (`FEATURES`).

    `path` may be

    - a folder: its files `train`, `dev` (or `validation`, `valid`) and `test` are the splits;
    - a file: GENIA's XML gives its own splits, counted over the whole corpus, any other file is `train`;
    - a mapping, split → file: each file is that split as a whole.

    All files may be gzipped. The result is cached by the content of the files, so a changed file is read again. What a
    reader drops is counted, logged as one warning a file, and kept in each split's `info.description`.

    Args:
        path: folder, file, or mapping of splits to files.
        format: "json_lines", "genia" or "published_json"; None tells it from name and content.
        labels: the entity types allowed; None allows any.
        word_splitter: text → [(start, end)] of its words in characters; cuts sentences as they are written instead of
            into the corpus' own words. Only for formats that keep the text (GENIA's); `retokenize` serves the others.
        streaming: give an `IterableDatasetDict` that reads while it is iterated. JSON lines and GENIA's XML then need
            constant memory, hence repeated ids are not noticed.
        cache_dir: where prepared data is kept; None is the `datasets` library's own place.

    Returns:
        `DatasetDict` (or `IterableDatasetDict`) with the splits there are, of `train`, `validation` and `test`.

    Raises:
        FileNotFoundError: there is no such file, or a folder has no split in it.
        CorpusError: a ValueError. The format cannot be told, or a file cannot be read: the message names file, place in
            it, field and remedy. When streaming it is raised at that place of the iteration.

    >>> corpus = load_nested_ner("corpus")  # doctest: +SKIP
    >>> corpus["train"][0]["entities"]  # doctest: +SKIP
    [{'start': 0, 'end': 2, 'type': 'DNA'}, {'start': 4, 'end': 6, 'type': 'protein'}]
    """
    allowed = None if labels is None else tuple(sorted(set(labels)))
    splits: dict[str, Dataset] | dict[str, IterableDataset] = {}
    for split, file in _files(path, format).items():
        corpus_format = _format_of(file, format)
        if word_splitter is not None and not corpus_format.keeps_text:
            raise CorpusError.at(
                file,
                "",
                f"the format {corpus_format.name!r} keeps no text that a word_splitter could cut",
                "Load it without, then use `retokenize`, which cuts the tokens joined by spaces",
            )
        source = _CorpusFile(file, corpus_format.name, allowed, word_splitter)
        splits.update(_stream(source, split) if streaming else _prepare(source, split, cache_dir))
    return IterableDatasetDict(splits) if streaming else DatasetDict(splits)


def has_text(path: PathLike | Mapping[str, PathLike], format: str | None = None) -> bool:
    """Whether the format of every file keeps the text, so that `load_nested_ner` takes a `word_splitter`."""
    return all(_format_of(file, format).keeps_text for file in _files(path, format).values())


def detect_format(path: Path) -> CorpusFormat:
    """The format of a file, told by its name's ending and, where that leaves a choice, by its first characters.

    Raises:
        CorpusError: the file is empty, or of no known format.
    """
    head = read_head(path)
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    by_name = [known for known in FORMATS.values() if ending in known.suffixes]
    if len(by_name) == 1:
        return by_name[0]
    by_content = [known for known in by_name or FORMATS.values() if known.recognizes(head)]
    if len(by_content) == 1:
        return by_content[0]
    known_formats = "; ".join(
        f"{known.name!r} ({known.description}; {', '.join(known.suffixes)})" for known in FORMATS.values()
    )
    problem = f"its format cannot be told; it begins {head[:40]!r}"
    raise CorpusError.at(path, "", problem, f"Say which one it is with format=…: {known_formats}")


def _format_of(path: Path, name: str | None) -> CorpusFormat:
    if name is None:
        return detect_format(path)
    if name not in FORMATS:
        raise ValueError(
            f"There is no format {name!r}. Choose one of {sorted(FORMATS)}, or None to tell it by the file."
        )
    return FORMATS[name]


def _files(path: PathLike | Mapping[str, PathLike], format: str | None) -> dict[str | None, Path]:
    """Split → file; the split is None where the format decides."""
    if not isinstance(path, Mapping):
        given = Path(path).expanduser()
        return _files_of_folder(given, format) if given.is_dir() else {None: _existing(given)}
    files: dict[str | None, Path] = {}
    for name, file in path.items():
        split = SPLIT_OF_NAME.get(name, name)
        if split in files:
            raise ValueError(f"Two files are given for the split {split!r}. Give one under one of its names.")
        files[split] = _existing(Path(file).expanduser())
    if not files:
        raise ValueError('No file is given. Give at least one, as in {"train": "train.jsonl"}.')
    return files


def _existing(file: Path) -> Path:
    if file.is_file():
        return file
    if file.is_dir():
        raise CorpusError.at(file, "", "is a folder, not a file", "Give each split's file, or the folder by itself")
    raise FileNotFoundError(
        f"{file}: no such file. Give the path of a corpus file, or of a folder with train, dev, test."
    )


def _files_of_folder(folder: Path, format: str | None) -> dict[str | None, Path]:
    formats = list(FORMATS.values()) if format is None else [_format_of(folder, format)]
    suffixes = {suffix for known in formats for suffix in known.suffixes}
    files: dict[str | None, Path] = {}
    for file in sorted(folder.iterdir()):
        name, *endings = file.name.lower().removesuffix(".gz").split(".")
        if name not in SPLIT_OF_NAME or len(endings) != 1 or f".{endings[0]}" not in suffixes:
            continue
        split = SPLIT_OF_NAME[name]
        if split in files:
            problem = f"both {files[split].name} and {file.name} could be its {split} split"
            raise CorpusError.at(folder, "", problem, "Remove one, or name the files: {split: file}")
        files[split] = file
    if not files:
        raise FileNotFoundError(
            f"{folder}: no file is named train, dev (validation, valid) or test and ends in one of {sorted(suffixes)}. "
            f"It holds {sorted(file.name for file in folder.iterdir())[:10]}; give one of them, or {{split: file}}."
        )
    return {split: files[split] for split in dict.fromkeys(SPLIT_OF_NAME.values()) if split in files}


@dataclass(frozen=True)
class _CorpusFile:
    """A file, and how it is to be read."""

    path: Path
    format_name: str  # not the format itself, so that a streaming data set can be sent to a worker process
    labels: tuple[str, ...] | None
    word_splitter: WordSplitter | None

    @property
    def format(self) -> CorpusFormat:
        return FORMATS[self.format_name]

    def records(self, check: RecordChecker) -> Iterator[Record]:
        options = {} if self.word_splitter is None else {"word_splitter": self.word_splitter}
        read_head(self.path)  # says that a file is empty before a reader finds its content broken
        records = self.format.read(self.path, check, **options)
        first = next(records, None)
        if first is None:
            raise check.error(
                "", f"there is no sentence in it, read as {self.format_name!r}", "See whether it is whole"
            )
        return chain([first], records)

    def fingerprint(self, split: str) -> str:
        """Changes with whatever the data depends on: the file's content and name, the options, and the readers."""
        digest = hashlib.sha256()
        for source in (self.path, *sorted(Path(__file__).parent.glob("*.py"))):
            with open_corpus(source) as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        try:
            options = [self.format_name, self.labels, self.word_splitter, split]
            return Hasher.hash([digest.hexdigest(), self.path.name, *options])
        except Exception:  # whatever pickling a user's splitter may raise: it has no stable name, so nothing is reused
            return generate_random_fingerprint()


def _prepare(source: _CorpusFile, split: str | None, cache_dir: PathLike | None) -> dict[str, Dataset]:
    """The splits of one file, through the cache."""
    check = RecordChecker(source.path, source.labels)
    name = split or "train"
    fingerprint = source.fingerprint(name)
    try:
        whole = Dataset.from_generator(
            source.records,
            features=FEATURES,
            gen_kwargs={"check": check},
            cache_dir=None if cache_dir is None else str(cache_dir),
            split=NamedSplit(name),
            fingerprint=fingerprint,
        )
    except DatasetGenerationError as error:
        if isinstance(error.__cause__, (ValueError, OSError)):
            raise error.__cause__.with_traceback(None) from None
        raise
    _report(whole, check)
    if split is not None or not source.format.split_starts:
        return {name: whole}
    return {
        part: Dataset(
            whole.data.slice(rows.start, len(rows)),
            info=whole.info.copy(),
            split=NamedSplit(part),
            fingerprint=f"{fingerprint}-{part}",
        )
        for part, rows in source.format.splits(len(whole)).items()
    }


def _report(dataset: Dataset, check: RecordChecker) -> None:
    """Logs what was dropped, and keeps it beside the cached data, so that a later load reports it as well."""
    if check.counts:
        dataset.info.description = check.report()
        for file in dataset.cache_files:
            dataset.info.write_to_directory(str(Path(file["filename"]).parent))
    _warn(dataset.info.description)


def _stream(source: _CorpusFile, split: str | None) -> dict[str, IterableDataset]:
    """The splits of one file, read whenever they are iterated."""

    def whole(name: str, report: bool) -> IterableDataset:
        options = {"source": source, "report": report}
        return IterableDataset.from_generator(_streamed, FEATURES, gen_kwargs=options, split=NamedSplit(name))

    if split is not None or not source.format.split_starts:
        return {split or "train": whole(split or "train", report=True)}
    check = RecordChecker(source.path, source.labels, unique_ids=False)
    num_sentences = sum(1 for _ in source.records(check))  # which splits there are shows only at the file's end
    _warn(check.report())
    return {
        part: whole(part, report=False).skip(rows.start).take(len(rows))
        for part, rows in source.format.splits(num_sentences).items()
    }


def _streamed(source: _CorpusFile, report: bool) -> Iterator[Record]:
    check = RecordChecker(source.path, source.labels, unique_ids=False)
    yield from source.records(check)
    if report:
        _warn(check.report())


def _warn(report: str) -> None:
    if report:
        logger.warning("%s", report)
