"""`load_nested_ner`: a corpus in any known format → `datasets`, with its splits.

Contains the cache, streaming, and the report of what was dropped. `sources.py` reads the files of a split.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict, NamedSplit
from datasets.config import HF_DATASETS_CACHE
from datasets.exceptions import DatasetGenerationError

from ..files import FULL
from .alignment import WordSplitter
from .counts import BAD_RECORDS
from .cutting import text_of
from .detection import format_of_columns, known_formats
from .documents import Document, num_entities
from .features import FEATURES
from .offsets import check_count
from .record_checker import RecordChecker
from .schema import CorpusError, Record, Text
from .sources import Source, check_options
from .splits import CorpusPath, PathLike, find_splits, split_in_name

logger = logging.getLogger(__name__)

NAMED_SPLITTER = 'modeling_triaffine.model.text_triaffine.word_splitter("whitespace")'


def load_nested_ner(
    path: CorpusPath,
    format: str | None = None,
    *,
    labels: Iterable[str] | None = None,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str | None = None,
    columns: Mapping[str, Any] | None = None,
    offsets: str | None = None,
    max_bad_records: int = 0,
    streaming: bool = False,
    cache_dir: PathLike | None = None,
) -> DatasetDict | IterableDatasetDict:
    """Loads a nested NER corpus in the schema of this package (`FEATURES`).

    All files except those of documents may be gzipped. The result is cached by the content of the files, so a changed
    file is read again. What a reader drops is counted, logged as one warning for each split, and kept in the split's
    `info.description`.

    Args:
        path: a folder: its files or folders named `train`, `dev` (or `validation`, `valid`, `val`, `eval`) and `test`
            are the splits; if there are none, all files of one form in it are `train`, each a document. A file: GENIA's
            XML has its own splits, counted over the whole corpus; any other file is `train`. A pattern such as
            "gum/*.conllu", or a list: as the files in a folder. Or a mapping of splits to any of these.
        format: one of `FORMATS` (see docs/corpora.md); None detects it from content and name.
        labels: the entity types allowed; None allows any.
        word_splitter: text → [(start, end)] of its words in characters. Only for formats that keep the text as written
            (GENIA and all that count characters); use `retokenize` for the others.
        sentence_splitter: how texts are split into sentences: "punctuation" (the default, as in the pipeline), "lines"
            or "none". Only for formats that do not mark sentences.
        columns: the columns of "iob2", indices from 0: {"tokens": 0, "entities": [1, 2], "pos": 3}; the span group of
            "docbin": {"entities": "sc"}; the layer and feature of "cas": {"entities": "layer:feature"}; of "span_lines"
            {"inclusive_end": True} or False; the fields of JSON, of texts {"text", "entities", "start", "end", "type",
            "inclusive_end"}, of words {"tokens", "entities", "names"}. None detects them, and takes INCEpTION's
            built-in layer.
        offsets: what the offsets in texts count: "characters", "utf16" (units of UTF-16) or "bytes" (of UTF-8), or with
            "_lf" at the end the same, a line end of two characters as one. None takes characters, unless the quoted
            texts of entities show another count.
        max_bad_records: how many records of each split that cannot be read are dropped, each named with its place in
            the report: a line of JSON, a sentence of columns, a document of a folder, whatever raises CorpusError. One
            more raises it, and so does what is no single record, such as JSON or XML that does not parse as a whole.
        streaming: return an `IterableDatasetDict` that reads while it is iterated. Memory is constant, except for JSON
            lists, which are parsed as a whole; repeated ids are not detected.
        cache_dir: where prepared data is kept; None is the default of the `datasets` library.

    Returns:
        A `DatasetDict` (or `IterableDatasetDict`) with those of the splits `train`, `validation` and `test` that exist.

    Raises:
        FileNotFoundError: there is no such file, or a folder has no splits.
        CorpusError: a ValueError. The format cannot be detected, or a file cannot be read: the message names file,
            place, field and remedy. When streaming, it is raised during the iteration.
        TypeError: `path` is data in memory, which [`adapt_dataset`] converts; an option is of another type.

    Examples:
        >>> from modeling_triaffine import load_nested_ner
        >>> corpus = load_nested_ner("outputs/demo/corpus")
        >>> sorted(corpus)
        ['test', 'train', 'validation']
        >>> corpus["train"][0]["entities"][0].keys() >= {"start", "end", "type"}
        True
    """
    files = CorpusFiles(path, format, labels=labels, columns=columns, offsets=offsets, max_bad_records=max_bad_records)
    if not streaming:
        return DatasetDict(files.sentences(word_splitter, sentence_splitter, cache_dir, keep=False))
    splits: dict[str, IterableDataset] = {}
    for split, source in files.sources(word_splitter, sentence_splitter):
        splits |= _stream(source, split)
    return IterableDatasetDict(splits)


def load_texts(
    path: CorpusPath,
    format: str | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    offsets: str | None = None,
    max_bad_records: int = 0,
) -> dict[str, list[Text]]:
    """The texts of a corpus as they were written, by split: `doc_id`, `text`, `entities` by characters, and `borders`.

    `borders` are positions that no sentence crosses, such as those of BioC's passages. Entities that no sentence of
    words can represent are included, unless they are discontinuous; these are counted and logged as one warning for
    each file, with what the offsets may count if nothing quotes them.

    Args:
        path: as of [`load_nested_ner`].
        format, columns, offsets, max_bad_records: the same.

    Raises:
        CorpusError: a file's format has words only; or as of [`load_nested_ner`].

    Examples:
        >>> import json
        >>> from pathlib import Path
        >>> from modeling_triaffine.data import load_texts
        >>> _ = Path("texts.jsonl").write_text(json.dumps({"text": "Orsk slept.", "entities": [[0, 4, "City"]]}))
        >>> load_texts("texts.jsonl")["train"][0]["entities"]
        [{'start': 0, 'end': 4, 'type': 'City'}]
    """
    return CorpusFiles(path, format, columns=columns, offsets=offsets, max_bad_records=max_bad_records).texts()


class CorpusFiles:
    """The files of a corpus, which are read once, whatever is made of them: sentences of one or other words, and texts.

    Args:
        path, format, labels, columns, offsets, max_bad_records: as of [`load_nested_ner`].
        only: the split to read, if others are other files.
    """

    def __init__(
        self,
        path: CorpusPath,
        format: str | None = None,
        *,
        labels: Iterable[str] | None = None,
        columns: Mapping[str, Any] | None = None,
        offsets: str | None = None,
        max_bad_records: int = 0,
        only: str | None = None,
    ):
        if columns is not None and not isinstance(columns, Mapping):
            raise TypeError(f"`columns` is {columns!r}. Give a mapping, such as {{'tokens': 0, 'entities': [1, 2]}}.")
        if format is None and columns is not None:
            format = format_of_columns(columns)
        parts = find_splits(path, format, only)
        self.parts = {only: parts[only]} if only in parts else parts
        check_count(offsets)
        self._format, self._columns, self._offsets = format, columns, offsets
        self._max_bad_records = max_bad_records
        labels = [labels] if isinstance(labels, str) else labels
        self._labels = None if labels is None else tuple(sorted(set(labels)))
        self._documents: dict[str | None, tuple[list[Document], RecordChecker]] = {}

    @property
    def keeps_text(self) -> bool:
        """Whether all files keep the text as written."""
        return all(part.format.keeps_text for part in self.parts.values())

    @property
    def marks_sentences(self) -> bool:
        """Whether any file does."""
        return any(part.format.marks_sentences for part in self.parts.values())

    @property
    def has_own_words(self) -> bool:
        """Whether any file has."""
        return any(part.format.has_own_words for part in self.parts.values())

    def by_split(self) -> "list[CorpusFiles]":
        """The files of each split by themselves: those of one may have what others lack, such as their text."""
        apart = [copy(self) for _ in self.parts]
        for files, (split, part) in zip(apart, self.parts.items(), strict=True):
            files.parts = {split: part}
        return apart

    @property
    def name_of_only_split(self) -> str | None:
        """What to call a file or folder that is read as `train` because nobody says what it is.

        The split that its name tells, or else the name; None if splits are given, or in the files.
        """
        part = self.parts.get(None)
        return None if part is None or part.format.split_starts else split_in_name(part) or part.path.name

    def sources(
        self, word_splitter: WordSplitter | None = None, sentence_splitter: str | None = None
    ) -> Iterator[tuple[str | None, Source]]:
        """Split → its files with these options; CorpusError if a format does not have one of them."""
        if word_splitter is not None and not callable(word_splitter):
            raise TypeError(f"`word_splitter` is {word_splitter!r}. Give a function, such as {NAMED_SPLITTER}.")
        given = {
            "word_splitter": word_splitter,
            "sentence_splitter": sentence_splitter,
            "columns": self._columns,
            "offsets": self._offsets,
        }
        options = {name: value for name, value in given.items() if value is not None}
        for split, part in self.parts.items():
            check_options(part, options)
            yield split, Source(part, self._labels, options, self._format, self._max_bad_records)

    def sentences(
        self,
        word_splitter: WordSplitter | None = None,
        sentence_splitter: str | None = None,
        cache_dir: PathLike | None = None,
        keep: bool = True,
    ) -> dict[str, Dataset]:
        """The splits; see [`load_nested_ner`]. With `keep`, texts stay in memory for what else is made of them."""
        splits: dict[str, Dataset] = {}
        for split, source in self.sources(word_splitter, sentence_splitter):
            kept = partial(self._kept, split, source) if keep and source.part.format.keeps_text else None
            splits |= _prepare(source, split, cache_dir, kept)
        return splits

    def texts(self, to_convert: bool = False) -> dict[str, list[Text]]:
        """The texts as written, by split; see [`load_texts`].

        Those `to_convert` have white space at the boundaries of entities as annotated, and all is reported that is not
        in them, also what is no entity.
        """
        splits: dict[str, list[Text]] = {}
        for split, source in self.sources():
            if not (known := source.part.format).keeps_text:
                problem = f"the format {known.name!r} has words, but not the text that they were split from"
                with_text = ", ".join(one.name for one in known_formats() if one.keeps_text)
                remedy = f"Give the corpus in a format that keeps the text: {with_text}"
                raise CorpusError.at(source.part.path, "", problem, remedy)
            check = source.checker()
            for document in self._kept(split, source, check):
                with check.record(num_entities(document)):
                    text = text_of(document, check, trim=not to_convert)
                    splits.setdefault(split or document.split or "train", []).append(text)
            if check.entities_dropped or check.counts[BAD_RECORDS] or str(check.unchecked_offsets) or to_convert:
                _warn(check.report())
        return splits

    def _kept(self, split: str | None, source: Source, check: RecordChecker) -> list[Document]:
        """The documents of a split, read at the first call; `check` counts what the reader does not read."""
        if split not in self._documents:
            reading = source.checker()
            self._documents[split] = list(source.documents(reading)), reading
        documents, reading = self._documents[split]
        check.add(reading)
        return documents


def _prepare(
    source: Source,
    split: str | None,
    cache_dir: PathLike | None,
    documents: Callable[[RecordChecker], Iterable[Document]] | None = None,
) -> dict[str, Dataset]:
    """The splits of one file, from the cache if possible."""
    check = source.checker()
    name = split or "train"
    fingerprint = source.fingerprint(name)
    try:
        whole = Dataset.from_generator(
            source.records,
            features=FEATURES,
            gen_kwargs={"check": check, "documents": documents},
            cache_dir=None if cache_dir is None else str(cache_dir),
            split=NamedSplit(name),
            fingerprint=fingerprint,
        )
    except (DatasetGenerationError, OSError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if cause is error or (isinstance(cause, OSError) and cause.errno in FULL):
            raise OSError(
                f"The prepared corpus cannot be written to {cache_dir or HF_DATASETS_CACHE} ({cause}). Make room, or "
                "set the environment variable HF_DATASETS_CACHE to another folder."
            ) from error
        if isinstance(cause, (ValueError, OSError, ImportError)):
            raise cause.with_traceback(None) from None
        raise
    _report(whole, check)
    if split is not None or not source.part.format.split_starts:
        return {name: whole}
    return {
        part: Dataset(
            whole.data.slice(rows.start, len(rows)),
            info=whole.info.copy(),
            split=NamedSplit(part),
            fingerprint=f"{fingerprint}-{part}",
        )
        for part, rows in source.part.format.splits(len(whole)).items()
    }


def _report(dataset: Dataset, check: RecordChecker) -> None:
    """Logs what was dropped and stores it beside the cached data, so that later loads report it, too."""
    if report := check.report():
        dataset.info.description = report
        for file in dataset.cache_files:
            dataset.info.write_to_directory(str(Path(file["filename"]).parent))
    _warn(dataset.info.description)


def _stream(source: Source, split: str | None) -> dict[str, IterableDataset]:
    def whole(name: str, report: bool) -> IterableDataset:
        options = {"source": source, "report": report}
        return IterableDataset.from_generator(_streamed, FEATURES, gen_kwargs=options, split=NamedSplit(name))

    if split is not None or not source.part.format.split_starts:
        return {split or "train": whole(split or "train", report=True)}
    check = source.checker(unique_ids=False)
    num_sentences = sum(1 for _ in source.records(check))  # its splits are known at the end of the file
    _warn(check.report())
    return {
        part: whole(part, report=False).skip(rows.start).take(len(rows))
        for part, rows in source.part.format.splits(num_sentences).items()
    }


def _streamed(source: Source, report: bool) -> Iterator[Record]:
    check = source.checker(unique_ids=False)
    yield from source.records(check)
    if report:
        _warn(check.report())


def _warn(report: str) -> None:
    if report:
        logger.warning("%s", report)
