"""Converts data sets with other columns, such as those on the Hub, to the schema of this package."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, List

from ..parsing import shown
from .alignment import WordSplitter
from .bigbio import BIGBIO, bigbio_document
from .context import AnyDataset
from .documents import DEFAULT_SENTENCE_SPLITTER, AnnotatedText, sentences_of
from .iob2 import RULE, TAG, decode_tags
from .json_forms import annotated_text
from .json_objects import JsonObject
from .schema import FEATURES, Record, RecordChecker

logger = logging.getLogger(__name__)

COLUMNS = {"tokens", "text", "entities", "pos", "id", "doc_id"}
OF_TOKENS = {"pos", "doc_id"}
"""Columns that do not apply to texts."""


def adapt_dataset(
    dataset: AnyDataset,
    columns: Mapping[str, Any] | str,
    *,
    labels: Iterable[str] | None = None,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> AnyDataset:
    """Converts a data set loaded by `datasets.load_dataset` to the schema of this package (`FEATURES`).

    Args:
        dataset: rows of tokens or of texts; a `DatasetDict` is converted split by split.
        columns: field → column. Either `tokens` or `text`; `entities`: for tokens, one or several columns of IOB2
            or BIOES tags (strings or class labels) or a column of spans by tokens; for texts, a column of spans by
            characters, in the forms of the format "text_spans". Optionally `id`, and for tokens `pos` and `doc_id`;
            without `doc_id`, and for texts, every row is a document of its own. Or "bigbio_kb", for a data set with
            that schema.
        labels: the entity types allowed; None allows any.
        word_splitter, sentence_splitter: how texts are split, see `load_nested_ner`.

    Returns:
        A data set of the same kind; what was dropped is logged as one warning for each split and kept in
        `info.description`.

    Raises:
        CorpusError: a row is invalid; the message names split, row and field.
        ValueError: `columns` names unknown fields or columns.

    >>> corpus = adapt_dataset(  # doctest: +SKIP
    ...     load_dataset("GermanEval/germeval_14"), {"tokens": "tokens", "entities": ["ner_tags", "nested_ner_tags"]}
    ... )
    """
    if isinstance(dataset, DatasetDict):
        options: dict[str, Any] = {"labels": labels, "word_splitter": word_splitter}
        options["sentence_splitter"] = sentence_splitter
        return DatasetDict({split: adapt_dataset(part, columns, **options) for split, part in dataset.items()})
    if isinstance(columns, Mapping):
        _check_columns(dataset, columns)
    elif columns != BIGBIO.name:
        raise ValueError(f"`columns` is {columns!r}. Give a mapping of fields to columns, or {BIGBIO.name!r}.")
    name = str(dataset.split or "dataset")
    check = RecordChecker(name, labels)
    if isinstance(columns, Mapping) and "text" not in columns:
        records = _from_tokens(dataset, columns, name, check)
    else:
        documents = _documents(dataset, columns, name, check)
        records = (
            record
            for document in documents
            for record in sentences_of(document, check, word_splitter, sentence_splitter)
        )
    adapted = Dataset.from_list(list(records), features=FEATURES, split=dataset.split)
    if report := check.report():
        adapted.info.description = report
        logger.warning("%s", report)
    return adapted


def _check_columns(dataset: Dataset, columns: Mapping[str, Any]) -> None:
    given = set(columns)
    if "entities" not in given or len(given & {"tokens", "text"}) != 1 or not given <= COLUMNS:
        raise ValueError(
            f"`columns` names {sorted(given)}. Name `entities`, `tokens` or `text`, and optionally pos, id, doc_id."
        )
    if "text" in given and (unused := sorted(given & OF_TOKENS)):
        raise ValueError(
            f"`columns` names {unused} besides `text`, which apply to tokens: every text is a document of its own, and "
            "has no tags. Leave them out, or name `tokens`."
        )
    named = [name for value in columns.values() for name in ([value] if isinstance(value, str) else value)]
    if missing := sorted(set(named) - set(dataset.column_names)):
        raise ValueError(f"`columns` names {missing}, but the data set has {dataset.column_names}.")


def _from_tokens(dataset: Dataset, columns: Mapping[str, Any], name: str, check: RecordChecker) -> Iterator[Record]:
    numbers: Counter[str] = Counter()
    given = columns["entities"]
    for number, row in enumerate(_rows(dataset)):
        where = f"row {number}"
        identifier = str(row[columns["id"]]) if "id" in columns else f"{name}:{number}"
        doc_id = str(row[columns["doc_id"]]) if "doc_id" in columns else identifier
        entities = [
            entity
            for column in ([given] if isinstance(given, str) else given)
            for entity in _entities(row[column], column, len(row[columns["tokens"]] or []), where, check)
        ]
        raw = {"id": identifier, "doc_id": doc_id, "sent_id": numbers[doc_id], "tokens": row[columns["tokens"]]}
        yield check({**raw, "pos": row[columns["pos"]] if "pos" in columns else [], "entities": entities}, where)
        numbers[doc_id] += 1


def _documents(
    dataset: Dataset, columns: Mapping[str, Any] | str, name: str, check: RecordChecker
) -> Iterator[AnnotatedText]:
    for number, row in enumerate(_rows(dataset)):
        default_id, where = f"{name}:{number}", f"row {number}"
        if isinstance(columns, str):
            yield bigbio_document(row, default_id, where, check)
        else:
            fields = {field: row[columns[field]] for field in ("text", "entities", "id") if field in columns}
            yield annotated_text(JsonObject(fields, where, check), default_id)


def _rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """The rows with names of class labels, and lists of objects in place of objects of lists."""
    for row in dataset:
        yield {name: _readable(value, dataset.features[name]) for name, value in row.items()}


def _readable(value: Any, feature: Any) -> Any:
    if value is None:
        return None
    if isinstance(feature, ClassLabel):
        return feature.int2str(value)
    if isinstance(feature, List):
        return [_readable(one, feature.feature) for one in value]
    if isinstance(feature, Mapping):
        fields = {name: _readable(value[name], feature[name]) for name in feature}
        if fields and all(isinstance(feature[name], List) for name in feature):
            return [dict(zip(fields, one, strict=True)) for one in zip(*fields.values(), strict=True)]
        return fields
    return value


def _entities(values: Any, column: str, num_tokens: int, where: str, check: RecordChecker) -> Sequence[Any]:
    """The entities in a column of tags, or its spans, which are checked later."""
    if not isinstance(values, list):
        raise check.error(where, f"field '{column}' is {shown(values)}", "It must be a list of tags or of spans")
    if not values or not all(isinstance(value, str) for value in values):
        return [_span(value) for value in values]
    if len(values) != num_tokens:
        problem = f"field '{column}' has {len(values)} tags for {num_tokens} tokens"
        raise check.error(where, problem, "Give one tag for each token")
    if wrong := [tag for tag in values if not TAG.fullmatch(tag)]:
        raise check.error(where, f"field '{column}' has the tag {wrong[0]!r}", RULE)
    return list(decode_tags(values, check))


def _span(value: Any) -> Any:
    """The span with its `label` renamed to `type`."""
    if isinstance(value, Mapping) and "label" in value and "type" not in value:
        return {**{name: value[name] for name in value if name != "label"}, "type": value["label"]}
    return value
