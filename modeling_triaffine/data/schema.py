"""The one schema of all corpora: texts, sentences of words, their entities, and the error for what fits neither.

`FEATURES` is the schema as the library `datasets` holds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NotRequired, TypedDict, TypeVar

from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from ..model.text_triaffine import Offsets

AnyDataset = TypeVar("AnyDataset", Dataset, DatasetDict)

CONTEXT_FIELDS = ("left_tokens", "right_tokens")
TO_DATASET = (
    "Make a data set of one record for each text or sentence with datasets.Dataset.from_list; "
    "docs/corpora.md#a-table-spreadsheet-or-dataframe shows how to group the rows of a table"
)
OF_TABLES = (
    "If it is a table of entities, docs/corpora.md#a-table-spreadsheet-or-dataframe converts it with pandas; if it is "
    "a data set, adapt_dataset does"
)


class Entity(TypedDict):
    """One entity by its positions `start` and `end` (exclusive), counted in words or in characters.

    Examples:
        >>> from modeling_triaffine.data import Entity
        >>> Entity(start=0, end=2, type="Person")
        {'start': 0, 'end': 2, 'type': 'Person'}
    """

    start: int
    end: int
    type: str


class Record(TypedDict):
    """One sentence, in the form of `FEATURES`."""

    id: str
    doc_id: str
    sent_id: int
    tokens: list[str]
    pos: list[str]
    entities: list[Entity]
    left_tokens: list[str] | None
    right_tokens: list[str] | None


RECORD_FIELDS = tuple(Record.__annotations__)
ENTITY_FIELDS = tuple(Entity.__annotations__)

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


class Text(TypedDict):
    """A text of a corpus, as every reader returns it. Positions count characters; a corpus of words is these, joined.

    `doc_id` names it, `entities` count its characters. Where the corpus says so: `borders`, positions that no sentence
    crosses; `sentences`, which a splitter finds otherwise, with their `sentence_ids` and the number of the
    `first_sentence`; `words` of the corpus's own, with their `pos`, and where several words share characters their
    `forms` and the `word_entities`, which count words; `left_tokens` and `right_tokens`, context that comes with a text
    of one sentence; the `split` to which it belongs. `where` is its place in the corpus, for messages.

    Examples:
        >>> from modeling_triaffine.data import Text
        >>> Text(doc_id="news-1", text="Orsk", entities=[{"start": 0, "end": 4, "type": "City"}])["text"]
        'Orsk'
    """

    doc_id: str
    text: str
    entities: list[Entity]
    borders: NotRequired[list[int]]
    sentences: NotRequired[list[Offsets]]
    sentence_ids: NotRequired[list[str]]
    first_sentence: NotRequired[int]
    words: NotRequired[list[Offsets]]
    pos: NotRequired[list[str]]
    forms: NotRequired[list[str]]
    word_entities: NotRequired[list[Entity]]
    left_tokens: NotRequired[list[str]]
    right_tokens: NotRequired[list[str]]
    split: NotRequired[str]
    where: NotRequired[str]


class CorpusError(ValueError):
    """A corpus file cannot be read; the message says where, what is wrong and what to do.

    Examples:
        >>> from modeling_triaffine.data import CorpusError
        >>> CorpusError.at("a.jsonl", "line 1", "field 'end' is missing", "Add it")
        CorpusError("a.jsonl, line 1: field 'end' is missing. Add it.")
    """

    summary = ""
    """Place and problem, without the remedy."""

    @classmethod
    def at(cls, path: Path | str, where: str, problem: str, remedy: str) -> CorpusError:
        """`where` is a place in the file ("line 3"), or empty for the file as a whole."""
        place = f"{path}, {where}" if where else str(path)
        error = cls(f"{place}: {problem}. {remedy}.")
        error.summary = f"{place}: {problem}"
        return error


# ---- Data sets ----


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
    names = fields["type"].names

    def name_them(record: dict[str, Any]) -> dict[str, Any]:
        rows = record["entities"] or []
        return {"entities": [{**row, "type": None if row["type"] is None else names[row["type"]]} for row in rows]}

    features = Features({**dataset.features, "entities": type(entities)({**fields, "type": Value("string")})})
    return dataset.map(name_them, features=features, desc="Names of types")
