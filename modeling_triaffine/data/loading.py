"""A corpus in any known format, or the rows of a data set → texts → sentences of words in the library `datasets`."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from datasets import Dataset, DatasetDict, NamedSplit

from .corpus_files import CorpusPath, SplitFiles, find_splits, split_of
from .features import FEATURES, AnyDataset, as_records, readable
from .formats.bioc import BIGBIO_KB, bigbio_text
from .formats.text_spans import annotated_text
from .formats.words import tagged_sentences
from .reading import JsonObject, read_head
from .record_checker import WITHOUT_SPANS, RecordChecker
from .schema import CorpusError, Text
from .texts import DEFAULT_SENTENCE_SPLITTER, WordSplitter, is_written, numbered, sentences_of

logger = logging.getLogger(__name__)


def load_nested_ner(
    path: CorpusPath,
    format: str | None = None,
    *,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str | None = None,
    columns: Mapping[str, Any] | None = None,
    offsets: str | None = None,
    max_bad_records: int = 0,
) -> DatasetDict:
    """Loads a nested NER corpus in the schema of this package (`FEATURES`); docs/corpora.md says what is read, and how.

    What a reader drops is counted, logged as one warning for each split, and kept in the split's `info.description`.

    Args:
        path: a file; a folder, whose files or folders named `train`, `dev` and `test` are the splits; a pattern such as
            "gum/*.conllu"; a list of these; or a mapping of splits to any of these. Without names of splits, all of it
            is `train`. GENIA's XML brings its own splits.
        format: one of `FORMATS`; None detects it from content and name.
        word_splitter: a function from a text to the [(start, end)] of its words. None takes the words of the corpus; if
            it has none, the words that the pipeline finds.
        sentence_splitter: how texts are split into sentences whose corpus marks none: "punctuation" (the default, as in
            the pipeline), "lines" or "none".
        columns: the columns, layer, span group or fields to read, as the format takes them, such as
            {"tokens": 0, "entities": [1, 2]} of "iob2", {"text": "body", "entities": "marks"} of JSON. None: detected.
        offsets: what the offsets in texts count: "characters" (None), "utf16" (units of UTF-16) or "bytes" (of UTF-8).
        max_bad_records: how many records and entities of each split that cannot be read are dropped, each named with
            its place in the report. One more raises CorpusError, and so does what does not parse as a whole.

    Returns:
        A `DatasetDict` with those of the splits `train`, `validation` and `test` that exist.

    Raises:
        FileNotFoundError: there is no such file, or a folder has no splits.
        CorpusError: a ValueError. The format cannot be detected, or a file cannot be read.
        TypeError: `path` is data in memory, which [`adapt_dataset`] converts; an option is of another type.

    Examples:
        >>> from modeling_triaffine import load_nested_ner
        >>> corpus = load_nested_ner("outputs/demo/corpus")
        >>> sorted(corpus)
        ['test', 'train', 'validation']
        >>> corpus["train"][0]["entities"][0].keys() >= {"start", "end", "type"}
        True
    """
    if word_splitter is not None and not callable(word_splitter):
        raise TypeError(
            f"`word_splitter` is {word_splitter!r}. Give a function from a text to the offsets of its words."
        )
    splits = DatasetDict()
    for part in read_parts(path, format, columns=columns, offsets=offsets, max_bad_records=max_bad_records):
        splits |= part.sentences(word_splitter, sentence_splitter)
    return splits


def load_texts(
    path: CorpusPath,
    format: str | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    offsets: str | None = None,
    max_bad_records: int = 0,
) -> dict[str, list[Text]]:
    """Loads the texts of a corpus by split, as they were written, with entities by characters; see [`Text`].

    If a corpus has words alone, its text has one sentence a line, the words joined by spaces. Entities that cross
    sentences or begin inside a word are kept; discontinuous ones are dropped. Arguments and errors are those of
    [`load_nested_ner`].

    Examples:
        >>> import json
        >>> from pathlib import Path
        >>> from modeling_triaffine.data import load_texts
        >>> _ = Path("texts.jsonl").write_text(json.dumps({"text": "Orsk slept.", "entities": [[0, 4, "City"]]}))
        >>> load_texts("texts.jsonl")["train"][0]["entities"]
        [{'start': 0, 'end': 4, 'type': 'City'}]
    """
    splits: dict[str, list[Text]] = {}
    for part in read_parts(path, format, columns=columns, offsets=offsets, max_bad_records=max_bad_records):
        splits |= part.texts
        part.check.tell()
    for text in chain.from_iterable(splits.values()):
        text.pop("where", None)
    return splits


@dataclass
class CorpusPart:
    """The contents of files that belong together: the texts of a split, or of all splits of GENIA's XML.

    Attributes:
        check: the counts of reading them.
        texts: split → its texts.
        name: name of the split in place of `train` if nobody names it: the split in the file's name, or that name.
    """

    check: RecordChecker
    texts: dict[str, list[Text]] = field(default_factory=dict)
    name: str | None = None

    @property
    def has_words(self) -> bool:
        """Some of the texts have words of the corpus's own."""
        return any("words" in text for text in chain.from_iterable(self.texts.values()))

    @property
    def is_written(self) -> bool:
        """The texts are as written, so that a model can be scored on raw text."""
        return any(map(is_written, chain.from_iterable(self.texts.values())))

    def sentences(
        self, word_splitter: WordSplitter | None = None, sentence_splitter: str | None = None, own_words: bool = False
    ) -> dict[str, Dataset]:
        """The splits in the schema; see [`load_nested_ner`] and [`sentences_of`]."""
        check = deepcopy(self.check)
        splitters = word_splitter, sentence_splitter or DEFAULT_SENTENCE_SPLITTER, own_words
        splits = {split: _as_dataset(texts, check, split, *splitters) for split, texts in self.texts.items()}
        report = check.report()
        if not any(map(len, splits.values())):
            raise check.error("", "it has no sentences", report.removesuffix(".") or "Check whether it is complete")
        check.tell()
        for rows in splits.values():
            rows.info.description = report
        return splits


def _as_dataset(texts: Iterable[Text], check: RecordChecker, split: str | None, *splitters: Any) -> Dataset:
    """The sentences of texts in the schema."""
    rows = [record for text in texts for record in sentences_of(text, check, *splitters)]
    columns = {name: [row[name] for row in rows] for name in FEATURES}  # type: ignore[literal-required]
    return Dataset.from_dict(columns, features=FEATURES, split=None if split is None else NamedSplit(split))


def read_parts(
    path: CorpusPath,
    format: str | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    offsets: str | None = None,
    max_bad_records: int = 0,
    only: str | None = None,
) -> list[CorpusPart]:
    """Reads the files of a corpus, each once, whatever is made of them: sentences of one or other words, and texts.

    Args:
        path, format, columns, offsets, max_bad_records: as of [`load_nested_ner`].
        only: the split to read, if others are other files.
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise TypeError(f"`columns` is {columns!r}. Give a mapping, such as {{'tokens': 0, 'entities': [1, 2]}}.")
    how = "--format (format=) names another" if format is None else "as named"
    if columns is not None and format is None:
        of_words = isinstance(columns.get("tokens"), str) or "names" in columns
        format = "text_spans" if "text" in columns else "word_tags" if of_words else None
    found = find_splits(path, format)
    parts = []
    for split, files in ({only: found[only]} if only in found else found).items():
        known = files.format
        if columns is not None and not known.columns:
            raise CorpusError.at(files.path, "", f"the format {known.name!r} has no columns", "Leave them out")
        read_as = f"Read as {known.name!r} ({known.description}); {how}"
        part = CorpusPart(RecordChecker(files.path, read_as, offsets, max_bad_records))
        for text in numbered(_texts(files, part.check, {} if columns is None else {"columns": columns}), part.check):
            part.texts.setdefault(split or text.get("split") or "train", []).append(text)
        part.texts = part.texts or {split or "train": []}
        if split is None and not any("split" in text for text in part.texts.get("train", ())):
            part.name = split_of(files.path) or files.path.name
        parts.append(part)
    return parts


def _texts(files: SplitFiles, check: RecordChecker, options: Mapping[str, Any]) -> Iterator[Text]:
    """The texts of a split; `check` counts what the reader does not read."""
    number = 0
    for file in files.files:
        check.folder, check.is_document = files.path, len(files.files) > 1
        if files.format.documents is None:
            check.path = file
            read_head(file)  # an empty file is reported as such, not as invalid content
        for text in files.format.read(file, check, **options):
            number += 1
            yield text
    check.path = files.path
    if number and check.counts[WITHOUT_SPANS] == number:
        remedy = "Name the field (convert --columns, columns=), or move a test split without entities elsewhere"
        raise check.error("", "no text has a field of spans", remedy)


# ---- Data sets ----


def adapt_dataset(
    dataset: AnyDataset,
    columns: Mapping[str, Any] | str,
    *,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
    offsets: str | None = None,
) -> AnyDataset:
    """Converts a data set loaded by `datasets.load_dataset` to the schema of this package (`FEATURES`).

    Args:
        dataset: rows of tokens or of texts; a `DatasetDict` is converted split by split.
        columns: a mapping of fields to columns, or "bigbio_kb" for a data set with that schema. With `tokens`,
            `entities` are one or several columns of tags (strings, class labels, numbers of the tags `names`, or lists
            of these, one for each level of nesting) or of spans by tokens. With `text`, they are a column of spans by
            characters. `start`, `end` and `type` name the fields of a span (by default start, end and label);
            `inclusive_end` says that the end is the last token or character. `id`, `pos` and `doc_id` are optional;
            without `doc_id`, every row is a document.
        word_splitter, sentence_splitter, offsets: as of `load_nested_ner`.

    Returns:
        A data set of the same kind; what was dropped is logged as one warning for each split and kept in
        `info.description`.

    Raises:
        CorpusError: a row is invalid; the message names split, row and field.
        TypeError: it is no data set of `datasets`, or a streaming one.
        ValueError: `columns` or `offsets` is wrong.

    Examples:
        >>> from datasets import Dataset
        >>> from modeling_triaffine.data import adapt_dataset
        >>> rows = Dataset.from_list([{"words": ["mayor", "of", "Orsk"], "ner": ["B-Person", "I-Person", "I-Person"]}])
        >>> adapt_dataset(rows, {"tokens": "words", "entities": "ner"})[0]["entities"]
        [{'start': 0, 'end': 3, 'type': 'Person'}]
    """

    def adapted(part: Dataset, split: str) -> Dataset:
        check = RecordChecker(split, offsets=offsets)
        texts = numbered(_texts_of_rows(part, columns, split, check), check)
        rows = _as_dataset(texts, check, part.split, word_splitter, sentence_splitter)
        rows.info.description = check.report()
        check.tell()
        return rows

    if isinstance(dataset, DatasetDict):
        return DatasetDict({split: adapted(part, split) for split, part in dataset.items()})
    return adapted(dataset, str(getattr(dataset, "split", None) or "dataset"))


def _texts_of_rows(
    dataset: Dataset, columns: Mapping[str, Any] | str, name: str, check: RecordChecker
) -> Iterator[Text]:
    values = _values(as_records(dataset, (), "adapt_dataset"), check)
    if not isinstance(columns, Mapping) and columns != BIGBIO_KB.name:
        raise ValueError(f"`columns` is {columns!r}. Give a mapping of fields to columns, or {BIGBIO_KB.name!r}.")
    if isinstance(columns, Mapping) and "text" not in columns:
        return tagged_sentences(values, columns, name, check)
    read: Any = partial(annotated_text, columns=columns) if isinstance(columns, Mapping) else bigbio_text
    rows = (JsonObject(row, where, check, number=number) for number, (row, where) in enumerate(values))
    return filter(None, (read(row, f"{name}:{row.number}") for row in rows))


def _values(dataset: Dataset, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The rows as [`readable`] makes them, each with its place."""
    features = dataset.features  # a deep copy at every access
    for number, row in enumerate(dataset):
        for column, value in row.items():
            try:
                row[column] = readable(value, features[column])
            except ValueError as error:
                raise check.error(f"row {number}", f"field '{column}': {error}", "Correct the row") from None
        yield row, f"row {number}"
