"""Converts data sets to the schema of this package, such as those on the Hub."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, LargeList, List

from .alignment import WordSplitter
from .formats.bioc import BIGBIO_KB, bigbio_text
from .formats.text_spans import annotated_text
from .formats.words import tagged_sentences
from .json_records import JsonObject
from .loading import as_dataset
from .offsets import check_unit
from .record_checker import RecordChecker
from .schema import AnyDataset, Text, as_records
from .texts import DEFAULT_SENTENCE_SPLITTER, numbered, sentences_of


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
        columns: field → column. Either `tokens` or `text`; `entities`: for tokens, one or several columns of tags
            (strings, class labels, or numbers of the tags `names`; also lists of these, one for each level of
            nesting) or of spans by tokens; for texts, a column of spans by characters in the forms of the
            format "text_spans". Spans have start, end and label, or the names given as `start`, `end` and `type`, and
            with `inclusive_end` their last token or character is that at the end. Optionally `id`, and for tokens `pos`
            and `doc_id`; without `doc_id`, and for texts, every row is a document of its own. Or "bigbio_kb", for a
            data set with that schema.
        word_splitter, sentence_splitter, offsets: the way to split texts, and the unit of offsets in them, see
            `load_nested_ner`.

    Returns:
        A data set of the same kind; what was dropped is logged as one warning for each split and kept in
        `info.description`.

    Raises:
        CorpusError: a row is invalid; the message names split, row and field.
        TypeError: it is no data set of `datasets`, or a streaming one.
        ValueError: `columns` names unknown fields or columns, or `offsets` is unknown.

    Examples:
        >>> from datasets import Dataset
        >>> from modeling_triaffine.data import adapt_dataset
        >>> rows = Dataset.from_list([{"words": ["mayor", "of", "Orsk"], "ner": ["B-Person", "I-Person", "I-Person"]}])
        >>> adapt_dataset(rows, {"tokens": "words", "entities": "ner"})[0]["entities"]
        [{'start': 0, 'end': 3, 'type': 'Person'}]
    """
    check_unit(offsets)

    def adapted(part: Dataset, split: str) -> Dataset:
        check = RecordChecker(split, offsets=offsets)
        texts = numbered(_texts(part, columns, split, check), check)
        splitters = word_splitter, sentence_splitter
        rows = as_dataset((record for text in texts for record in sentences_of(text, check, *splitters)), part.split)
        rows.info.description = check.report()
        check.tell()
        return rows

    if isinstance(dataset, DatasetDict):
        return DatasetDict({split: adapted(part, split) for split, part in dataset.items()})
    return adapted(dataset, str(getattr(dataset, "split", None) or "dataset"))


def _texts(dataset: Dataset, columns: Mapping[str, Any] | str, name: str, check: RecordChecker) -> Iterator[Text]:
    values = _values(as_records(dataset, (), "adapt_dataset"), check)
    if not isinstance(columns, Mapping) and columns != BIGBIO_KB.name:
        raise ValueError(f"`columns` is {columns!r}. Give a mapping of fields to columns, or {BIGBIO_KB.name!r}.")
    if isinstance(columns, Mapping) and "text" not in columns:
        return tagged_sentences(values, columns, name, check)
    read = partial(annotated_text, columns=columns) if isinstance(columns, Mapping) else bigbio_text
    return (read(JsonObject(row, f"row {n}", check, number=n), f"{name}:{n}") for n, (row, _) in enumerate(values))


def _values(dataset: Dataset, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The rows, each with its place, with names of class labels, and lists of objects in place of objects of lists."""
    features = dataset.features  # a deep copy at every access
    for number, row in enumerate(dataset):
        for column, value in row.items():
            try:
                row[column] = _readable(value, features[column])
            except ValueError as error:
                raise check.error(f"row {number}", f"field '{column}': {error}", "Correct the row") from None
        yield row, f"row {number}"


def _readable(value: Any, feature: Any) -> Any:
    if value is None:
        return None
    if isinstance(feature, ClassLabel):
        return feature.names[value] if value >= 0 else value
    if isinstance(feature, (List, LargeList)):
        return [_readable(item, feature.feature) for item in value]
    if isinstance(feature, Mapping):
        fields = {name: _readable(value[name], feature[name]) for name in feature}
        # A list of values in each field is a table; a list of objects is none.
        lists = [inner for inner in feature.values() if isinstance(inner, (List, LargeList))]
        if not fields or len(lists) < len(fields) or any(isinstance(inner.feature, Mapping) for inner in lists):
            return fields
        columns = [values or [] for values in fields.values()]
        return [dict(zip(fields, row, strict=True)) for row in zip(*columns, strict=True)]
    return value
