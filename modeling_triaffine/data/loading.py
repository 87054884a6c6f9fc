"""`load_nested_ner`: a corpus in any known format → `datasets`, with its splits.

Holds the cache, streaming, and the report of what was dropped. Which formats there are is in `formats.py`.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict, NamedSplit
from datasets.exceptions import DatasetGenerationError
from datasets.fingerprint import Hasher, generate_random_fingerprint

from ..model import text_triaffine
from .alignment import WordSplitter
from .formats import FORMATS, PathLike, find_splits, format_of
from .reading import CorpusFormat, open_corpus, read_head
from .schema import FEATURES, CorpusError, Record, RecordChecker

logger = logging.getLogger(__name__)

NOT_AN_OPTION = {
    "word_splitter": (
        "keeps no text that a word_splitter could cut",
        "Load it without, then use `retokenize`, which cuts the tokens joined by spaces",
    ),
    "sentence_splitter": ("has sentences of its own, that no sentence_splitter is to cut", "Load it without"),
    "columns": ("has no columns that must be named", "Load it without"),
}
"""An option that not every format has → what a format without it is like, and what to do."""


def load_nested_ner(
    path: PathLike | Mapping[str, PathLike],
    format: str | None = None,
    *,
    labels: Iterable[str] | None = None,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str | None = None,
    columns: Mapping[str, Any] | None = None,
    streaming: bool = False,
    cache_dir: PathLike | None = None,
) -> DatasetDict | IterableDatasetDict:
    """A nested NER corpus in the one schema of this package (`FEATURES`).

    `path` may be

    - a folder: what is called `train`, `dev` (or `validation`, `valid`, `val`, `eval`) and `test` in it, files or
      folders of documents, are the splits; a folder of documents alone is `train`;
    - a file: GENIA's XML gives its own splits, counted over the whole corpus, any other file is `train`;
    - a mapping, split → file or folder of documents: each is that split as a whole.

    All files but those of documents may be gzipped. The result is cached by the content of the files, so a changed file
    is read again. What a reader drops is counted, logged as one warning a split, and kept in each split's
    `info.description`.

    Args:
        path: folder, file, or mapping of splits to files or folders.
        format: one of `FORMATS` (docs/corpora.md shows what they look like); None tells it from name and content. Where
            it is given and no file in a folder ends as that format's do, `train`, `dev`, `test` may end in anything.
        labels: the entity types allowed; None allows any.
        word_splitter: text → [(start, end)] of its words in characters. Only for formats that keep the text as written
            (GENIA's, and all that count characters); `retokenize` serves the others.
        sentence_splitter: how texts are cut into sentences, "punctuation" (the default, as the pipeline does), "lines"
            or "none". Only for formats that do not say what the sentences are.
        columns: what the columns of "iob2" hold, numbers from 0: {"tokens": 0, "entities": [1, 2], "pos": 3}; the span
            group of "docbin": {"entities": "sc"}; None tells it from the file.
        streaming: give an `IterableDatasetDict` that reads while it is iterated. All but JSON lists, which are parsed
            as a whole, then need constant memory, hence repeated ids are not noticed.
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
    given = {"word_splitter": word_splitter, "sentence_splitter": sentence_splitter, "columns": columns}
    options = {name: value for name, value in given.items() if value is not None}
    splits: dict[str, Dataset] | dict[str, IterableDataset] = {}
    for split, file in find_splits(path, format).items():
        corpus_format = format_of(file, format)
        _check_options(file, corpus_format, options)
        source = _CorpusFile(file, corpus_format.name, allowed, options)
        splits.update(_stream(source, split) if streaming else _prepare(source, split, cache_dir))
    return IterableDatasetDict(splits) if streaming else DatasetDict(splits)


def has_text(path: PathLike | Mapping[str, PathLike], format: str | None = None) -> bool:
    """Whether the format of every file keeps the text, so that `load_nested_ner` takes a `word_splitter`."""
    return all(format_of(file, format).keeps_text for file in find_splits(path, format).values())


def _check_options(file: Path, corpus_format: CorpusFormat, options: Mapping[str, Any]) -> None:
    for option in options.keys() - set(corpus_format.options):
        why, remedy = NOT_AN_OPTION[option]
        raise CorpusError.at(file, "", f"the format {corpus_format.name!r} {why}", remedy)


@dataclass(frozen=True)
class _CorpusFile:
    """A file, or a folder of documents, and how it is to be read."""

    path: Path
    format_name: str  # not the format itself, so that a streaming data set can be sent to a worker process
    labels: tuple[str, ...] | None
    options: Mapping[str, Any]

    @property
    def format(self) -> CorpusFormat:
        return FORMATS[self.format_name]

    def records(self, check: RecordChecker) -> Iterator[Record]:
        if self.format.documents is None:
            read_head(self.path)  # says that a file is empty before a reader finds its content broken
        records = self.format.read(self.path, check, **self.options)
        first = next(records, None)
        if first is None:
            problem = f"there is no sentence in it, read as {self.format_name!r}"
            raise check.error("", problem, check.report().removesuffix(".") or "See whether it is whole")
        return chain([first], records)

    def fingerprint(self, split: str) -> str:
        """Changes with whatever the data depends on: the files' content and names, the options, and the readers."""
        digest = hashlib.sha256()
        documents = self.format.documents(self.path) if self.format.documents else [self.path]
        readers = sorted(Path(__file__).parent.glob("*.py"))
        for source in (*documents, *readers, Path(text_triaffine.__file__)):
            name = source.relative_to(self.path) if source.is_relative_to(self.path) else source.name
            digest.update(os.fsencode(name) + b"\0")
            with open_corpus(source) as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        try:
            options = [self.format_name, self.labels, self.options, split]
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
        if isinstance(error.__cause__, (ValueError, OSError, ImportError)):
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
