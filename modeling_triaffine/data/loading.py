"""`load_nested_ner`: a corpus in any known format → `datasets`, with its splits.

Contains the reading of a split's files, the cache, and the report of what was dropped.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, NamedSplit
from datasets.config import HF_DATASETS_CACHE
from datasets.exceptions import DatasetGenerationError
from datasets.fingerprint import Hasher, generate_random_fingerprint

from ..files import FULL
from ..version import __version__
from .alignment import WordSplitter
from .detection import format_of_columns
from .features import FEATURES
from .formats import FORMATS
from .offsets import check_unit
from .reading import read_head
from .record_checker import WITHOUT_SPANS, RecordChecker
from .schema import CorpusError, Record, Text
from .splits import CorpusPath, PathLike, SplitFiles, find_splits
from .texts import DEFAULT_SENTENCE_SPLITTER, numbered, sentences_of

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
    cache_dir: PathLike | None = None,
) -> DatasetDict:
    """Loads a nested NER corpus in the schema of this package (`FEATURES`).

    All files except those of documents may be gzipped. The result is cached by the files' names, sizes and times of
    change. What a reader drops is counted, logged as one warning for each split, and kept in the split's
    `info.description`.

    Args:
        path: a folder: its files or folders named `train`, `dev` (or `validation`, `valid`, `val`, `eval`) and `test`
            are the splits; if there are none, all files of one form in it are `train`, each a document. A file: GENIA's
            XML has its own splits, counted over the whole corpus; any other file is `train`. A pattern such as
            "gum/*.conllu", or a list: as the files in a folder. Or a mapping of splits to any of these.
        format: one of `FORMATS` (see docs/corpora.md); None detects it from content and name.
        labels: the entity types allowed; None allows any.
        word_splitter: text → [(start, end)] of its words in characters; None takes the words of the corpus, or if it
            has none, those of the pipeline. The text of a corpus of words alone is these, joined by spaces.
        sentence_splitter: how texts are split into sentences whose corpus marks none: "punctuation" (the default, as in
            the pipeline), "lines" or "none".
        columns: the columns, layer, span group or fields to read, as the format takes them (docs/corpora.md), such as
            {"tokens": 0, "entities": [1, 2]} of "iob2", {"text": "body", "entities": "marks"} of JSON. None: detected.
        offsets: what the offsets in texts count: "characters", "utf16" (units of UTF-16) or "bytes" (of UTF-8), or with
            "_lf" at the end the same, a line end of two characters as one. None takes characters.
        max_bad_records: how many records and entities of each split that cannot be read are dropped, each named with
            its place in the report: a line of JSON, a sentence of columns, a document of a folder, an entity that
            differs from its quote. One more raises CorpusError, and so does what is no single record, such as JSON or
            XML that does not parse as a whole.
        cache_dir: where prepared data is kept; None is the default of the `datasets` library.

    Returns:
        A `DatasetDict` with those of the splits `train`, `validation` and `test` that exist.

    Raises:
        FileNotFoundError: there is no such file, or a folder has no splits.
        CorpusError: a ValueError. The format cannot be detected, or a file cannot be read: the message names file,
            place, field and remedy.
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
    return DatasetDict(files.sentences(word_splitter, sentence_splitter, cache_dir, keep=False))


def load_texts(
    path: CorpusPath,
    format: str | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    offsets: str | None = None,
    max_bad_records: int = 0,
) -> dict[str, list[Text]]:
    """The texts of a corpus by split, as they were written, with entities by characters; see [`Text`].

    Texts of a corpus of words alone are these, joined by spaces, one sentence per line. Entities that no sentence of
    words can represent are included, unless they are discontinuous; these are counted and logged as one warning for
    each split.

    Args:
        path: as of [`load_nested_ner`].
        format, columns, offsets, max_bad_records: the same.

    Raises:
        CorpusError: as of [`load_nested_ner`].

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
        check_unit(offsets)
        self._format = format
        format = format_of_columns(columns) if format is None and columns is not None else format
        found = find_splits(path, format, only)
        self.files = {only: found[only]} if only in found else found
        for files in self.files.values():
            known = files.format
            if columns is not None and not known.columns:
                raise CorpusError.at(files.path, "", f"the format {known.name!r} has no columns", "Leave them out")
            if offsets is not None and not known.keeps_text:
                raise CorpusError.at(files.path, "", f"the format {known.name!r} has no offsets", "Leave them out")
        labels = [labels] if isinstance(labels, str) else labels
        self._labels = None if labels is None else tuple(sorted(set(labels)))
        self._columns, self._offsets, self._max_bad_records = columns, offsets, max_bad_records
        self._texts: dict[str | None, tuple[list[Text], RecordChecker]] = {}

    @property
    def keeps_text(self) -> bool:
        """All files keep the text as written."""
        return all(files.format.keeps_text for files in self.files.values())

    @property
    def has_own_words(self) -> bool:
        """One of the files has words of its own."""
        return any(files.format.has_own_words for files in self.files.values())

    def by_split(self) -> "list[CorpusFiles]":
        """The files of each split by themselves: those of one may have what others lack, such as their text."""
        apart = [copy(self) for _ in self.files]
        for one, (split, files) in zip(apart, self.files.items(), strict=True):
            one.files = {split: files}
        return apart

    @property
    def name_of_only_split(self) -> str | None:
        """What to call a file or folder that is read as `train` because nobody says what it is.

        The split that its name tells, or else the name; None if splits are given, or in the files.
        """
        files = self.files.get(None)
        return None if files is None or files.format.split_starts else files.split_in_name() or files.path.name

    def sentences(
        self,
        word_splitter: WordSplitter | None = None,
        sentence_splitter: str | None = None,
        cache_dir: PathLike | None = None,
        keep: bool = True,
    ) -> dict[str, Dataset]:
        """The splits; see [`load_nested_ner`]. With `keep`, texts stay in memory for what else is made of them."""
        if word_splitter is not None and not callable(word_splitter):
            raise TypeError(f"`word_splitter` is {word_splitter!r}. Give a function, such as {NAMED_SPLITTER}.")
        splits: dict[str, Dataset] = {}
        for split, files in self.files.items():
            check = self._checker(files)
            options = {
                "files": self,
                "split": split,
                "check": check,
                "splitters": (word_splitter, sentence_splitter or DEFAULT_SENTENCE_SPLITTER),
                "keep": keep and files.format.keeps_text,
            }
            key = self._fingerprint(files, split or "train", word_splitter, sentence_splitter)
            splits |= _prepare(files, split, options, key, cache_dir)
        return splits

    def texts(self) -> dict[str, list[Text]]:
        """The texts by split; see [`load_texts`]. What is dropped is told when they are read first."""
        splits: dict[str, list[Text]] = {}
        for split, files in self.files.items():
            check, is_told = self._checker(files), split in self._texts
            for text in self.read(split, check, keep=True):
                public = text.copy()
                public.pop("where", None)
                splits.setdefault(split or text.get("split") or "train", []).append(public)
            _warn("" if is_told else check.report())
        return splits

    def read(self, split: str | None, check: RecordChecker, keep: bool) -> Iterable[Text]:
        """The texts of a split, which `keep` keeps in memory; `check` counts what the reader does not read."""
        if not keep and split not in self._texts:
            return self._read(split, check)
        if split not in self._texts:
            reading = self._checker(self.files[split])
            self._texts[split] = list(self._read(split, reading)), reading
        texts, reading = self._texts[split]
        check.add(reading)
        return texts

    def _read(self, split: str | None, check: RecordChecker) -> Iterator[Text]:
        files = self.files[split]
        options = {} if self._columns is None else {"columns": self._columns}
        if files.format.documents is not None:
            yield from numbered(files.format.read(files.path, check, **options), check)
            return
        number = 0
        for text in numbered(self._texts_of_files(files, check, options), check):
            number += 1
            yield text
        check.path = files.path
        if number and check.counts[WITHOUT_SPANS] == number:
            remedy = "Name the field (convert --columns, columns=), or move a test split without entities elsewhere"
            raise check.error("", "no text has a field of spans", remedy)

    def _texts_of_files(self, files: SplitFiles, check: RecordChecker, options: Mapping[str, Any]) -> Iterator[Text]:
        for file in files.files:
            check.path, check.folder, check.is_document = file, files.path, files.has_documents
            read_head(file)  # an empty file is reported as such, not as invalid content
            yield from files.format.read(file, check, **options)

    def _checker(self, files: SplitFiles) -> RecordChecker:
        how = "as named" if self._format else "--format (format=) names another"
        read_as = f"Read as {files.format.name!r} ({files.format.description}); {how}"
        return RecordChecker(files.path, self._labels, read_as, self._offsets, self._max_bad_records)

    def _fingerprint(
        self, files: SplitFiles, split: str, word_splitter: WordSplitter | None, sentence_splitter: str | None
    ) -> str:
        """The cache key; a new one each time for what a reader or a splitter from outside of this package makes."""
        splitter = getattr(word_splitter, "func", word_splitter)
        module = getattr(splitter, "__module__", None) or type(splitter).__module__
        if files.format.name in FORMATS.registered or (
            splitter and not module.startswith(f"{__package__.partition('.')[0]}.")
        ):
            return str(generate_random_fingerprint())
        of_files = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files.files]
        options = (files.format.name, self._labels, self._columns, self._offsets, self._max_bad_records, split)
        return str(Hasher.hash([__version__, str(files.path), of_files, options, word_splitter, sentence_splitter]))


def _records(
    files: CorpusFiles, split: str | None, check: RecordChecker, splitters: tuple[WordSplitter | None, str], keep: bool
) -> Iterator[Record]:
    """The sentences of a split; CorpusError if there are none."""
    found = False
    for text in files.read(split, check, keep):
        for record in sentences_of(text, check, *splitters):
            found = True
            yield record
    if not found:
        raise check.error("", "it has no sentences", check.report().removesuffix(".") or "Check whether it is complete")


def _prepare(
    files: SplitFiles, split: str | None, options: dict[str, Any], fingerprint: str, cache_dir: PathLike | None
) -> dict[str, Dataset]:
    """The splits of the files of one, from the cache if possible."""
    name = split or "train"
    try:
        whole = Dataset.from_generator(
            _records,
            features=FEATURES,
            gen_kwargs=options,
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
    if report := options["check"].report():  # what was read now; it is kept beside the cached data for later loads
        whole.info.description = report
        for file in whole.cache_files:
            whole.info.write_to_directory(str(Path(file["filename"]).parent))
    _warn(whole.info.description)
    if split is not None or not files.format.split_starts:
        return {name: whole}
    return {
        part: Dataset(
            whole.data.slice(rows.start, len(rows)),
            info=whole.info.copy(),
            split=NamedSplit(part),
            fingerprint=f"{fingerprint}-{part}",
        )
        for part, rows in files.format.splits(len(whole)).items()
    }


def _warn(report: str) -> None:
    if report:
        logger.warning("%s", report)
