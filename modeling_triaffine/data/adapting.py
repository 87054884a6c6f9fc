"""Converts data sets with other columns, such as those on the Hub, to the schema of this package."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, LargeList, List, concatenate_datasets

from .alignment import WordSplitter
from .corpus_format import check_columns
from .documents import Document, Sentence, as_texts, document_of_words
from .features import FEATURES, AnyDataset, as_records
from .formats.bigbio import BIGBIO, bigbio_document
from .formats.text_spans import OF_SPAN, TextForm, annotated_text
from .formats.word_tags import HEAD, NESTED, TAGS, TagForm, entities_in, tag_form
from .json_records import JsonObject
from .offsets import check_unit
from .record_checker import RecordChecker
from .texts import DEFAULT_SENTENCE_SPLITTER, numbered, sentences_of

logger = logging.getLogger(__name__)

PART_SIZE = 10_000
"""Sentences that are in memory as Python's objects, which take several times as much as a data set."""


def adapt_dataset(
    dataset: AnyDataset,
    columns: Mapping[str, Any] | str,
    *,
    labels: Iterable[str] | None = None,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
    offsets: str | None = None,
) -> AnyDataset:
    """Converts a data set loaded by `datasets.load_dataset` to the schema of this package (`FEATURES`).

    Args:
        dataset: rows of tokens or of texts; a `DatasetDict` is converted split by split.
        columns: field → column. Either `tokens` or `text`; `entities`: for tokens, one or several columns of tags
            (strings, class labels, or numbers of the tags `names`; also lists of these, one for each token or for each
            level of nesting) or of spans by tokens; for texts, a column of spans by characters in the forms of the
            format "text_spans". Spans have start, end and label, or the names given as `start`, `end` and `type`, and
            with `inclusive_end` their last token or character is that at the end. Optionally `id`, and for tokens `pos`
            and `doc_id`; without `doc_id`, and for texts, every row is a document of its own. Or "bigbio_kb", for a
            data set with that schema.
        labels: the entity types allowed; None allows any.
        word_splitter, sentence_splitter, offsets: how texts are split, and what the offsets in them count, see
            `load_nested_ner`.

    Returns:
        A data set of the same kind; what was dropped is logged as one warning for each split and kept in
        `info.description`.

    Raises:
        CorpusError: a row is invalid; the message names split, row and field.
        TypeError: the data set is a streaming one, or no data set of `datasets`.
        ValueError: `columns` names unknown fields or columns, or `offsets` is unknown, or is given for tokens.

    Examples:
        >>> from datasets import Dataset
        >>> from modeling_triaffine.data import adapt_dataset
        >>> rows = Dataset.from_list([{"words": ["mayor", "of", "Orsk"], "ner": ["B-Person", "I-Person", "I-Person"]}])
        >>> adapt_dataset(rows, {"tokens": "words", "entities": "ner"})[0]["entities"]
        [{'start': 0, 'end': 3, 'type': 'Person'}]
    """
    labels = [labels] if isinstance(labels, str) else labels
    allowed = None if labels is None else frozenset(labels)  # an iterator would be empty after the first split
    parts: Mapping[Any, Dataset] = dataset if isinstance(dataset, DatasetDict) else {None: dataset}
    adapted = {
        split: _adapt(part, split, columns, allowed, word_splitter, sentence_splitter, offsets)
        for split, part in parts.items()
    }
    return DatasetDict(adapted) if isinstance(dataset, DatasetDict) else adapted[None]


def _adapt(
    dataset: Dataset,
    split: str | None,
    columns: Mapping[str, Any] | str,
    labels: frozenset[str] | None,
    word_splitter: WordSplitter | None,
    sentence_splitter: str,
    offsets: str | None,
) -> Dataset:
    dataset = as_records(dataset, (), "adapt_dataset")
    name = str(split or dataset.split or "dataset")
    check_unit(offsets)
    check = RecordChecker(name, labels, offsets=offsets)
    if isinstance(columns, Mapping):
        named = _columns_named(columns, dataset.column_names)
        if TAGS[0] in named and NESTED in {*dataset.column_names} - {*named}:
            check.note(f"field '{NESTED}' ignored", len(dataset))
        dataset = dataset.select_columns(named)
    elif columns != BIGBIO.name:
        raise ValueError(f"`columns` is {columns!r}. Give a mapping of fields to columns, or {BIGBIO.name!r}.")
    of_words = isinstance(columns, Mapping) and "text" not in columns
    if of_words and offsets is not None:
        raise ValueError(f"`offsets` is {offsets!r}, but the data set has words, not offsets in a text. Leave it out.")
    documents = _of_words(dataset, columns, name, check) if of_words else _of_texts(dataset, columns, name, check)
    records = (
        record
        for one in numbered(as_texts(documents, check), check)
        for record in sentences_of(one, check, word_splitter, sentence_splitter)
    )
    parts: list[Dataset] = []
    while (part := [*islice(records, PART_SIZE)]) or not parts:
        by_column = {field: [dict(record)[field] for record in part] for field in FEATURES}
        parts.append(Dataset.from_dict(by_column, features=FEATURES, split=dataset.split))
    adapted = concatenate_datasets(parts, split=dataset.split)
    if report := check.report():
        adapted.info.description = report
        logger.warning("%s", report)
    return adapted


def _columns_named(columns: Mapping[str, Any], known: Sequence[str]) -> list[str]:
    """The columns that are read."""
    of_texts = "text" in columns
    if of_texts:
        check_columns(columns, ("text", "entities"), ("id", *OF_SPAN))
    else:
        check_columns(columns, ("tokens", "entities"), ("pos", "id", "doc_id", "names", *OF_SPAN))
    named: list[Any] = []
    for field, column in columns.items():
        if field == "entities" and not of_texts and isinstance(column, (list, tuple)):
            named += column
        elif field not in ("names", *OF_SPAN):
            is_path = of_texts and isinstance(column, str) and column not in known
            named.append(column.partition(".")[0] if is_path else column)
    if missing := [column for column in named if column not in known]:
        raise ValueError(f"`columns` names {missing}, but the data set has {list(known)}.")
    return list(dict.fromkeys(named))


def _of_words(dataset: Dataset, columns: Any, name: str, check: RecordChecker) -> Iterator[Document]:
    numbers: Counter[str] = Counter()
    given = columns["entities"]
    named = [given] if isinstance(given, str) else given
    forms = {column: _form(dataset, columns, column) for column in named}
    for record in _rows(dataset, check):
        row = record.fields
        identifier = _value(row, columns, "id", f"{name}:{record.number}")
        doc_id = _value(row, columns, "doc_id", identifier)
        tokens = record.value(columns["tokens"], list)
        entities = (entities_in(record, column, forms[column], len(tokens), columns) for column in named)
        fields = {
            "id": identifier,
            "doc_id": doc_id,
            "sent_id": numbers[doc_id],
            "tokens": tokens,
            "pos": row[columns["pos"]] if "pos" in columns else [],
            "entities": [*chain.from_iterable(entities)],
        }
        yield document_of_words(doc_id, [Sentence(fields, record.where)])
        numbers[doc_id] += 1


def _value(row: Mapping[str, Any], columns: Mapping[str, Any], field: str, default: str) -> str:
    """The field as a string; the default if it has no column, or is null."""
    value = row[columns[field]] if field in columns else None
    return default if value is None else str(value)


def _of_texts(dataset: Dataset, columns: Any, name: str, check: RecordChecker) -> Iterator[Document]:
    form = None if isinstance(columns, str) else TextForm.named(columns)
    for record in _rows(dataset, check):
        default_id = f"{name}:{record.number}"
        yield bigbio_document(record, default_id) if form is None else annotated_text(record, default_id, form)


def _rows(dataset: Dataset, check: RecordChecker) -> Iterator[JsonObject]:
    """The rows with names of class labels, and lists of objects in place of objects of lists."""
    features = dataset.features  # a deep copy at every access
    for number, row in enumerate(dataset):
        where = f"row {number}"
        for column, value in row.items():
            try:
                row[column] = _readable(value, features[column])
            except ValueError as error:
                raise check.error(where, f"field '{column}': {error}", "Correct the row, or leave it out") from None
        yield JsonObject(row, where, check, number=number)


def _readable(value: Any, feature: Any) -> Any:
    if value is None:
        return None
    if isinstance(feature, ClassLabel):
        return feature.int2str(value)
    if isinstance(feature, (List, LargeList)):
        return [_readable(one, feature.feature) for one in value]
    if isinstance(feature, Mapping):
        fields = {name: _readable(value[name], feature[name]) for name in feature}
        if not fields or not all(map(_is_column, feature.values())):
            return fields
        lists = [values or [] for values in fields.values()]
        return [dict(zip(fields, one, strict=True)) for one in zip(*lists, strict=True)]
    return value


def _is_column(feature: Any) -> bool:
    """Whether an object has a list of values here, one for each of what it describes; a list of objects is none."""
    return isinstance(feature, (List, LargeList)) and not isinstance(feature.feature, Mapping)


def _form(dataset: Dataset, columns: Mapping[str, Any], column: str) -> TagForm | None:
    """How the tags of a column are written; None for a column of spans."""
    tag = dataset.features[column]
    while isinstance(tag, (List, LargeList)):
        tag = tag.feature
    if getattr(tag, "dtype", "null") == "null" or isinstance(tag, Mapping):
        return None
    head = dataset[:HEAD]
    names = tag.names if isinstance(tag, ClassLabel) else columns.get("names")
    return tag_form(zip(head[columns["tokens"]], head[column], strict=True), names)
