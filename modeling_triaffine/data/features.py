"""The schema of a corpus as the library `datasets` holds it."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from datasets import ClassLabel, Dataset, DatasetDict, Features, LargeList, List, Value

from .schema import TO_DATASET

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
"""The columns of every reader. `left_tokens` and `right_tokens` are null if the corpus has no context and a (possibly
empty) list if it brings its own: `add_context` fills in the former and keeps the latter.

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
    """The data set with rows of Python types, whatever its format, and types of entities by name.

    `function` is named in messages.
    """
    if not isinstance(dataset, Dataset):
        found = type(dataset).__name__
        raise TypeError(f"{function} needs a Dataset or DatasetDict, but the data is of type {found}. {TO_DATASET}.")
    if missing := [name for name in columns if name not in dataset.column_names]:
        raise ValueError(
            f"{function} needs the columns {missing}, but the data set has {dataset.column_names}. adapt_dataset "
            "converts texts with spans, tags and other forms."
        )
    return name_types(dataset if dataset.format["type"] is None else dataset.with_format(None))


def name_types(dataset: Dataset) -> Dataset:
    """The data set with the names of its entities' types, where these are the numbers of a `ClassLabel`."""
    entities = dataset.features.get("entities")
    fields = getattr(entities, "feature", None)
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), ClassLabel):
        return dataset

    def name_them(record: dict[str, Any]) -> dict[str, Any]:
        rows = readable(record["entities"] or [], entities)
        return {"entities": [{**row, "type": None if row["type"] == -1 else row["type"]} for row in rows]}

    features = Features({**dataset.features, "entities": type(entities)({**fields, "type": Value("string")})})
    return dataset.map(name_them, features=features, desc="Names of types")


def readable(value: Any, feature: Any) -> Any:
    """A value with names of class labels, and lists of objects in place of objects of lists."""
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
