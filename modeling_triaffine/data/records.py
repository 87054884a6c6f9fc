"""Sentences of words in the library `datasets`: the schema, other data sets in this schema, context, statistics."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Dataset, DatasetDict, Features, LargeList, List, NamedSplit, Value
from datasets.fingerprint import Hasher

from ..files import shown
from ..model.kinds_triaffine import NONE_LABEL
from ..model.options_triaffine import MODEL_OPTIONS, ModelOptions
from ..model.text_triaffine import neighbouring_words
from ..nesting import nested_spans, nesting_depths
from .formats.text_spans import BIGBIO_KB, annotated_text, bigbio_text
from .formats.words import tagged_sentences
from .reading import json_reader
from .schema import CONTEXT_FIELDS, ENTITY_FIELDS, OF_TABLES, RecordChecker, Text
from .texts import DEFAULT_SENTENCE_SPLITTER, WordSplitter, sentences_of

AnyDataset = TypeVar("AnyDataset", Dataset, DatasetDict)

FEATURES = Features(
    {
        "id": Value("string"),
        "doc_id": Value("string"),
        "sent_id": Value("int32"),
        "tokens": List(Value("string")),
        "pos": List(Value("string")),
        "entities": List({"start": Value("int32"), "end": Value("int32"), "type": Value("string")}),
        "left_tokens": List(Value("string")),
        "right_tokens": List(Value("string")),
    }
)
"""The columns of every reader. `left_tokens` and `right_tokens` are null unless the corpus brings its own context:
`add_context` fills in null and keeps lists, also empty ones.

Examples:
    >>> from modeling_triaffine.data import FEATURES
    >>> list(FEATURES)[:4]
    ['id', 'doc_id', 'sent_id', 'tokens']
"""

ENTITY_FEATURES = List(
    {
        "start": Value("int64"),
        "end": Value("int64"),
        "entity_group": Value("string"),
        "score": Value("float64"),
        "word": Value("string"),
    }
)
"""A column of the entities that the pipeline finds, for `Dataset.map(…, features=…)`.

Examples:
    >>> from datasets import Dataset, Features, Value
    >>> from modeling_triaffine.data import ENTITY_FEATURES
    >>> features = Features({"text": Value("string"), "entities": ENTITY_FEATURES})
    >>> Dataset.from_list([{"text": "It rained.", "entities": []}], features=features)[0]["entities"]
    []
"""


def as_records(dataset: object, columns: Iterable[str], function: str) -> Dataset:
    """The data set with rows of Python types, and types of entities by name; errors name the `function`."""
    if not isinstance(dataset, Dataset):
        found = type(dataset).__name__
        raise TypeError(f"{function} needs a Dataset or DatasetDict, but the data is of type {found}. {OF_TABLES}.")
    if missing := [name for name in columns if name not in dataset.column_names]:
        found, remedy = dataset.column_names, "adapt_dataset converts texts with spans, tags and other forms"
        raise ValueError(f"{function} needs the columns {missing}, but the data set has {found}. {remedy}.")
    rows = dataset if dataset.format["type"] is None else dataset.with_format(None)
    entities = rows.features.get("entities")
    fields = getattr(entities, "feature", None)
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), ClassLabel):
        return rows

    def name_them(record: dict[str, Any]) -> dict[str, Any]:
        named = readable(record["entities"] or [], entities)
        return {"entities": [{**entity, "type": None if entity["type"] == -1 else entity["type"]} for entity in named]}

    features = Features({**rows.features, "entities": type(entities)({**fields, "type": Value("string")})})
    return rows.map(name_them, features=features, desc="Names of types")


def as_dataset(records: Any, what: str) -> Any:
    """Returns records in any form, such as a list, as a data set of Python types; `what` names them in errors."""
    if records is None:
        return None
    if not isinstance(records, Dataset):
        try:
            rows = [dict(records[row]) for row in range(len(records))]
            columns = dict.fromkeys(column for row in rows for column in row)  # from_list reads those of the first row
            records = Dataset.from_dict({column: [row.get(column) for row in rows] for column in columns})
        except (TypeError, ValueError, KeyError) as error:
            found = type(records).__name__
            raise ValueError(f"{what} is no data set, nor a list of records, but a {found}: {error!r}.") from error
    if not len(records):
        raise ValueError(f"{what} has 0 records.")
    if records.format["type"] == "custom":
        raise ValueError(f"{what} has a transform, but its records are encoded once. Give it after `map`.")
    return as_records(records, ("tokens",), what)


def entity_types(records: Dataset, what: str, known: Iterable[str] | None = None) -> set[str]:
    """Returns the types of the records' entities, all of them `known`; `what` names the records in errors."""
    types: set[str] = set()
    columns = ["tokens", "entities"]
    for row, record in enumerate(as_records(records, columns, what).select_columns(columns)):
        entities, size = record["entities"], len(record["tokens"])
        is_list = isinstance(entities, list) and all(isinstance(entity, dict) for entity in entities)
        fields: Any = [[entity.get(name) for name in ENTITY_FIELDS] for entity in entities] if is_list else [[None]]
        if any(None in values or not 0 <= values[0] < values[1] <= size for values in fields):
            raise ValueError(
                f"{what} has the entities {shown(entities)} in row {row}, of {size} words. Give a list of objects with "
                f"{', '.join(ENTITY_FIELDS)} (in words, the end exclusive), or []; adapt_dataset converts other forms."
            )
        if no_names := [kind for *_, kind in fields if isinstance(kind, int) or kind in ("", NONE_LABEL)]:
            remedy = f"Give a name other than {NONE_LABEL!r}, or a ClassLabel in place of numbers"
            raise ValueError(f"{what} has {no_names[0]!r} as the type of an entity in row {row}. {remedy}.")
        types |= {kind for *_, kind in fields}
        if known is not None and (unknown := types.difference(known)):
            raise ValueError(
                f"{what} has entities of type {', '.join(sorted(unknown))} in row {row}, which the model has no label "
                f"for; it knows {', '.join(known)}. Train on data with all types, or remove these entities."
            )
    return types


def readable(value: Any, feature: Any) -> Any:
    """A value with the names of class labels, and with lists of objects in place of objects of lists."""
    if value is None:
        return None
    if isinstance(feature, ClassLabel):
        return feature.names[value] if value >= 0 else value
    if isinstance(feature, (List, LargeList)):
        return [readable(item, feature.feature) for item in value]
    if isinstance(feature, Mapping):
        fields = {name: readable(value[name], feature[name]) for name in feature}
        # A list of values in each field is a table; a list of objects is none.
        lists = [inner for inner in feature.values() if isinstance(inner, (List, LargeList))]
        if not fields or len(lists) < len(fields) or any(isinstance(inner.feature, Mapping) for inner in lists):
            return fields
        columns = [values or [] for values in fields.values()]
        return [dict(zip(fields, row, strict=True)) for row in zip(*columns, strict=True)]
    return value


def dataset_of_texts(texts: Iterable[Text], check: RecordChecker, split: str | None, *splitters: Any) -> Dataset:
    """The sentences of texts in the schema. Arrow takes them in batches: Python's objects need ten times its memory."""
    rows = (record for text in texts for record in sentences_of(text, check, *splitters))
    batches = iter(lambda: [*islice(rows, 1_000)], [])
    schema = FEATURES.arrow_schema
    table = pa.Table.from_batches((pa.RecordBatch.from_pylist(batch, schema) for batch in batches), schema)
    return Dataset(table, split=None if split is None else NamedSplit(str(split)))


# ---- Other data sets ----


def adapt_dataset(
    dataset: AnyDataset,
    columns: Mapping[str, Any] | str,
    *,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
    offsets: str | None = None,
    max_bad_records: int = 0,
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
        word_splitter, sentence_splitter, offsets, max_bad_records: as of `load_nested_ner`.

    What was dropped is logged as one warning for each split and kept in `info.description`.

    Raises:
        CorpusError: a row is invalid; the message names split, row and field.
        ValueError, TypeError: `columns` or `offsets` is wrong; it is no data set of `datasets`, or a streaming one.

    Examples:
        >>> from datasets import Dataset
        >>> from modeling_triaffine.data import adapt_dataset
        >>> rows = Dataset.from_list([{"words": ["mayor", "of", "Orsk"], "ner": ["B-Person", "I-Person", "I-Person"]}])
        >>> adapt_dataset(rows, {"tokens": "words", "entities": "ner"})[0]["entities"]
        [{'start': 0, 'end': 3, 'type': 'Person'}]
    """

    def adapted(part: Dataset, split: str) -> Dataset:
        check = RecordChecker(split, offsets=offsets, max_bad_records=max_bad_records)
        texts = check.numbered(_texts_of(part, columns, split, check))
        rows = dataset_of_texts(texts, check, part.split, word_splitter, sentence_splitter)
        rows.info.description = check.tell()
        return rows

    if isinstance(dataset, DatasetDict):
        return DatasetDict({split: adapted(part, split) for split, part in dataset.items()})
    return adapted(dataset, str(getattr(dataset, "split", None) or "dataset"))


def _texts_of(dataset: Dataset, columns: Mapping[str, Any] | str, name: str, check: RecordChecker) -> Iterator[Text]:
    values = _values(as_records(dataset, (), "adapt_dataset"), check)
    if not isinstance(columns, Mapping) and columns != BIGBIO_KB.name:
        raise ValueError(f"`columns` is {columns!r}. Give a mapping of fields to columns, or {BIGBIO_KB.name!r}.")
    if isinstance(columns, Mapping) and "text" not in columns:
        return tagged_sentences(values, columns, name, check)
    text_of: Any = partial(annotated_text, columns=columns) if isinstance(columns, Mapping) else bigbio_text
    return json_reader(text_of, "text and entities", lambda *_: name, lambda *_: values)(Path(name), check)


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


def add_context(dataset: AnyDataset, context: str, max_tokens: int) -> AnyDataset:
    """Fills in `left_tokens` and `right_tokens` if the corpus has no context of its own.

    Neighbors are the sentences of the same `doc_id` in the order of `sent_id`, within each split; a sentence without a
    `doc_id` has none. Records with their own context (lists, not null) are not changed.

    Args:
        dataset: with `tokens`, and `doc_id` and `sent_id` unless `context` is "none"; order and columns are kept.
        context: "none": both sides are empty; "previous_sentence": the previous sentence on the left, nothing on the
            right (the published setting on GENIA); "document": all neighboring words on both sides.
        max_tokens: the maximum number of words on each side, the nearest ones.

    Raises:
        ValueError, TypeError: `context` is none of these, or a column is missing; the data set is a streaming one.

    Examples:
        >>> from datasets import Dataset
        >>> from modeling_triaffine.data import add_context
        >>> columns = {"doc_id": ["1", "1"], "sent_id": [0, 1], "tokens": [["Rain", "."], ["Sun"]]}
        >>> add_context(Dataset.from_dict(columns), "document", max_tokens=128)["left_tokens"][:]
        [[], ['Rain', '.']]
    """
    MODEL_OPTIONS["context"].check(context)
    if isinstance(dataset, DatasetDict):
        return DatasetDict({split: add_context(part, context, max_tokens) for split, part in dataset.items()})
    dataset = as_records(dataset, ["tokens"] if context == "none" else ["tokens", "doc_id", "sent_id"], "add_context")
    documents: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    if context != "none":
        for row, (doc_id, sent_id) in enumerate(zip(dataset["doc_id"], dataset["sent_id"], strict=True)):
            documents[(row,) if doc_id is None else doc_id].append((sent_id, row))
    tokens = dataset["tokens"][:] if documents else []
    places: dict[int, tuple[list[list[str]], int]] = {}  # row → the sentences of its document, and its position
    for members in documents.values():
        rows = [row for _, row in sorted(members)]
        sentences = [tokens[row] for row in rows]
        places |= {row: (sentences, position) for position, row in enumerate(rows)}

    def fill_in(record: dict[str, Any], row: int) -> dict[str, list[str]]:
        if any(record.get(side) is not None for side in CONTEXT_FIELDS):
            return {side: record.get(side) or [] for side in CONTEXT_FIELDS}
        around = neighbouring_words(*places.get(row, ([], 0)), context, max_tokens)
        return dict(zip(CONTEXT_FIELDS, around, strict=True))

    return dataset.map(
        fill_in,
        with_indices=True,
        features=Features({**dataset.features, **{side: FEATURES[side] for side in CONTEXT_FIELDS}}),
        new_fingerprint=Hasher.hash([dataset._fingerprint, context, max_tokens]),  # otherwise all words are hashed
        desc="Adding context",
    )


# ---- Statistics ----


def corpus_statistics(records: Iterable[Any], max_candidates: int = ModelOptions.max_candidates) -> dict[str, Any]:
    """Counts over the sentences of one or several splits.

    Args:
        records: sentences with `tokens`, `entities` and optionally `pos`; of a `DatasetDict`, all splits.
        max_candidates: the model's m, which bounds the entity spans that it can find in a sentence.

    Returns:
        - `sentences`, `tokens`, `entities`, `nested_entities` (that contain another one or are contained in one; a span
          with two types is not nested), `inner_entities` (that are contained in one), `entities_by_type`,
          `sentences_with_pos`;
        - `most_entities`, `longest_sentence` (words), `nesting_depth` (the deepest);
        - distributions, value → how often: `sentence_lengths` and `entity_lengths` (words), `entities_per_sentence`,
          `entity_depths`;
        - `spans_above_max_candidates` (out of reach) and `needed_candidates` (for all to be in reach).

    Examples:
        >>> from modeling_triaffine.data import corpus_statistics
        >>> person, city = {"start": 0, "end": 4, "type": "Person"}, {"start": 3, "end": 4, "type": "City"}
        >>> corpus_statistics([{"tokens": ["The", "mayor", "of", "Orsk"], "entities": [person, city]}])["nesting_depth"]
        2
    """
    totals, types, candidates = Counter[str](), Counter[str](), Counter[int]()
    sentence_lengths, entity_lengths, entities_per_sentence, entity_depths = (Counter[int]() for _ in range(4))
    for record in chain.from_iterable(records.values()) if isinstance(records, Mapping) else records:
        spans = [(entity["start"], entity["end"]) for entity in record["entities"]]
        depths, nested = nesting_depths(spans), nested_spans(spans)
        totals["nested_entities"] += sum(span in nested for span in spans)
        totals["sentences_with_pos"] += bool(record.get("pos"))
        candidates[len(depths)] += 1
        types.update(entity["type"] for entity in record["entities"])
        sentence_lengths[len(record["tokens"])] += 1
        entity_lengths.update(end - start for start, end in spans)
        entities_per_sentence[len(spans)] += 1
        entity_depths.update(depths[span] for span in spans)
    return {
        "sentences": sentence_lengths.total(),
        "tokens": sum(length * n for length, n in sentence_lengths.items()),
        "entities": types.total(),
        "nested_entities": totals["nested_entities"],
        "inner_entities": entity_depths.total() - entity_depths[1],
        "entities_by_type": dict(sorted(types.items())),
        "sentences_with_pos": totals["sentences_with_pos"],
        "most_entities": max(entities_per_sentence, default=0),
        "longest_sentence": max(sentence_lengths, default=0),
        "nesting_depth": max(entity_depths, default=0),
        "sentence_lengths": dict(sorted(sentence_lengths.items())),
        "entity_lengths": dict(sorted(entity_lengths.items())),
        "entities_per_sentence": dict(sorted(entities_per_sentence.items())),
        "entity_depths": dict(sorted(entity_depths.items())),
        "spans_above_max_candidates": sum(max(spans - max_candidates, 0) * n for spans, n in candidates.items()),
        "needed_candidates": max(candidates, default=0),
    }


def repeated_sentences(splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> str:
    """Reports in one line repeated sentences, and those of `train` in other splits; empty without any."""
    of_train = {tuple(record["tokens"]) for record in splits.get("train", ())}
    repeated, shared = [], []
    for split, records in splits.items():
        first: dict[tuple[str, ...], set[tuple[int, int, str]]] = {}
        total = equal = differing = in_train = 0
        for record in records:
            words = tuple(record["tokens"])
            entities = {(entity["start"], entity["end"], entity["type"]) for entity in record["entities"]}
            total += 1
            equal += words in first
            differing += first.setdefault(words, entities) != entities
            in_train += split != "train" and words in of_train
        if equal:
            repeated.append(f"{equal:,} in {split}, {differing:,} of them with other entities")
        if in_train:
            shared.append(f"of {split} in train: {in_train:,} of {total:,}")
    lines = [f"equal sentences: {', '.join(repeated)}", *shared] if repeated else shared
    return "; ".join(lines)


def quantile(distribution: Mapping[int, int], share: float) -> int:
    """The smallest value that at least a `share` of the cases does not exceed; 0 for an empty distribution."""
    if not distribution:
        return 0
    return int(np.quantile([*distribution], share, weights=[*distribution.values()], method="inverted_cdf"))
