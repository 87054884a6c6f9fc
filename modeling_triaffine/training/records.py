"""The records that a trainer is given: a data set or a list, whose entities have types of the model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import datasets
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset

from ..data.features import as_records, name_types
from ..data.schema import ENTITY_FIELDS
from ..model.configuration_triaffine import TriaffineConfig
from ..parsing import shown

# What a trainer takes as a data set.
Records = datasets.Dataset | Sequence[Mapping[str, Any]] | Dataset[Any]


def as_dataset(records: Any, what: str) -> Any:
    """A data set of records in other forms, such as a list; None of None. `what` names them in messages."""
    if records is None or (isinstance(records, datasets.Dataset) and records.format["type"] == "custom"):
        return records  # a transform may make the types
    if isinstance(records, Subset):
        return as_dataset(records.dataset, what).select(records.indices)
    if isinstance(records, ConcatDataset):
        return datasets.concatenate_datasets([as_dataset(part, what) for part in records.datasets])
    if isinstance(records, Iterator | IterableDataset | datasets.IterableDataset):
        raise ValueError(f"{what} is a stream ({type(records).__name__}), not a whole data set; give list(stream).")
    if not len(records):
        raise ValueError(f"{what} has 0 records.")
    if isinstance(records, datasets.Dataset):
        return name_types(records)
    rows = [records[row] for row in range(len(records))]
    columns = dict.fromkeys(column for row in rows for column in row)
    return datasets.Dataset.from_dict({column: [row.get(column) for row in rows] for column in columns})


def plain_records(dataset: datasets.Dataset) -> datasets.Dataset:
    """The dataset with rows of Python types whatever its format; the user's own transform stays."""
    if dataset.format["type"] == "custom":  # which may add the columns
        return dataset
    return as_records(dataset, ("tokens",), "NestedNERTrainer")


def entity_types(records: datasets.Dataset, what: str) -> list[set[str]]:
    """The types in each record; raises ValueError for entities of another form; `what` names the records."""
    types = []
    for row, entities in enumerate(as_records(records, ("tokens", "entities"), what)["entities"]):
        is_list = isinstance(entities, list) and all(isinstance(entity, dict) for entity in entities)
        if not is_list or any(entity.get(name) is None for entity in entities for name in ENTITY_FIELDS):
            raise ValueError(
                f"{what} has the entities {shown(entities)} in row {row}. Give a list of objects with "
                f"{', '.join(ENTITY_FIELDS)}, an empty one if there is no entity; adapt_dataset converts other forms."
            )
        if any(isinstance(entity["type"], int) for entity in entities):
            raise ValueError(f"{what} has numbers as types of entities in row {row}. Give names or a ClassLabel.")
        types.append({entity["type"] for entity in entities})
    return types


def check_types(records: datasets.Dataset | None, what: str, config: TriaffineConfig) -> None:
    """Raises ValueError for entities whose type is not a label of the model; `what` names the records."""
    if records is None or records.format["type"] == "custom":
        return
    types = entity_types(records, what)
    unknown = set().union(*types) - {*config.trained_labels}
    if unknown:
        row = next(row for row, found in enumerate(types) if found & unknown)
        raise ValueError(
            f"{what} has entities of type {', '.join(sorted(unknown))} (the first in sentence "
            f"{records[row].get('id') or row!r}), which the model has no label for; it knows "
            f"{', '.join(config.trained_labels)}. Train on data with all types, or remove these entities."
        )
