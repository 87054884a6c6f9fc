"""The records that a trainer is given: a data set in one of several forms, whose entities have types of the model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import datasets
import numpy as np
import pyarrow
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset
from transformers import TrainingArguments

from ..data.features import as_records, name_types
from ..data.schema import ENTITY_FIELDS
from ..model.configuration_triaffine import TriaffineConfig
from ..parsing import shown

# What a trainer takes as a data set.
Records = datasets.Dataset | Sequence[Mapping[str, Any]] | Dataset[Any]


def as_dataset(records: Any, what: str) -> datasets.Dataset:
    """A data set of records in other forms: a list, or a part of either. `what` names them in messages.

    Raises:
        ValueError: it is a stream, empty, or of another kind.
    """
    if isinstance(records, Subset):
        return as_dataset(records.dataset, what).select(records.indices)
    if isinstance(records, ConcatDataset):
        return datasets.concatenate_datasets([as_dataset(part, what) for part in records.datasets])
    kind = type(records).__name__
    if isinstance(records, Iterator | IterableDataset | datasets.IterableDataset):
        raise ValueError(
            f"{what} is a stream ({kind}), but batches of similar length need all sentences. Load the corpus without "
            "streaming, or give list(stream), or the first sentences of it."
        )
    if isinstance(records, datasets.Dataset) and len(records):
        return records if records.format["type"] == "custom" else name_types(records)  # a transform may make the types
    is_list = isinstance(records, datasets.Dataset | Dataset | Sequence) and not isinstance(records, str)
    rows = [records[row] for row in range(len(records))] if is_list else None
    if rows == []:
        raise ValueError(f"{what} has 0 records.")
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        kind += f" of {type(rows[0]).__name__}" if rows else ""
        raise ValueError(
            f"{what} is a {kind}; give a datasets.Dataset, such as a split of load_nested_ner, or a list of records "
            "with tokens and entities."
        )
    made: list[datasets.Dataset] = []
    for column in dict.fromkeys(column for row in rows for column in row):
        values = (row.get(column) for row in rows)
        plain = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]  # of pandas
        try:
            made.append(datasets.Dataset.from_dict({column: plain}))
        except (pyarrow.ArrowException, TypeError) as error:
            raise ValueError(f"{what}: {column} has values of different types in its records ({error}).") from error
    return datasets.concatenate_datasets(made, axis=1) if made else datasets.Dataset.from_dict({})


def plain_records(dataset: Any, what: str) -> datasets.Dataset:
    """The dataset with rows of Python types whatever its format; the user's own transform stays."""
    dataset = as_dataset(dataset, what)
    if dataset.format["type"] == "custom":  # which may add the columns
        return dataset
    return as_records(dataset, ("tokens",), what)


def as_datasets(args: TrainingArguments, train: Any, evaluation: Any, config: TriaffineConfig) -> tuple[Any, Any]:
    """The data sets to train and to evaluate on, as [`as_dataset`]; several of the latter are a dictionary.

    Raises:
        ValueError: a data set has another form or other labels, or has not enough records for a batch.
    """

    def checked(records: Any, name: str) -> datasets.Dataset | None:
        if records is None:
            return None
        what = f"NestedNERTrainer: {name}"
        dataset = as_dataset(records, what)
        if dataset.format["type"] != "custom":  # a user's transform may add the columns
            as_records(dataset, ("tokens", "entities"), what)
            check_types(dataset, what, config)
        return dataset

    train = checked(train, "train_dataset")
    if isinstance(evaluation, Mapping):
        evaluation = {key: checked(one, f"eval_dataset[{key!r}]") for key, one in evaluation.items()}
    else:
        evaluation = checked(evaluation, "eval_dataset")
    least = args.train_batch_size * args.world_size if args.dataloader_drop_last else 1
    if train is not None and len(train) < least:
        raise ValueError(
            f"NestedNERTrainer: train_dataset has {len(train)} records, and the least is {least}: "
            "dataloader_drop_last leaves out batches that are not full."
        )
    return train, evaluation


def entity_types(records: datasets.Dataset, what: str) -> list[set[str]]:
    """The types in each record; raises ValueError for entities of another form; `what` names the records."""
    types = []
    for row, entities in enumerate(plain_records(records, what)["entities"]):
        is_list = isinstance(entities, list) and all(isinstance(entity, dict) for entity in entities)
        numbers = [entity["type"] for entity in entities if isinstance(entity.get("type"), int)] if is_list else []
        if numbers:
            raise ValueError(
                f"{what} has an entity of type {numbers[0]}, a number, in row {row}, but no names for the numbers. "
                "Give the names of the types, or a datasets.ClassLabel, which has the names."
            )
        if not is_list or any(entity.get(name) is None for entity in entities for name in ENTITY_FIELDS):
            raise ValueError(
                f"{what} has the entities {shown(entities)} in row {row}. Give a list of objects with "
                f"{', '.join(ENTITY_FIELDS)}, an empty one if there is no entity; adapt_dataset converts other forms."
            )
        types.append({entity["type"] for entity in entities})
    return types


def check_types(records: datasets.Dataset, what: str, config: TriaffineConfig) -> None:
    """Raises ValueError for entities whose type is not a label of the model; `what` names the records."""
    types = entity_types(records, what)
    unknown = set().union(*types) - {*config.trained_labels}
    if unknown:
        row = next(row for row, found in enumerate(types) if found & unknown)
        name = records[row].get("id") or row
        raise ValueError(
            f"{what} has entities of type {', '.join(sorted(unknown))} (the first in sentence {name!r}), which the "
            f"model has no label for; it knows {', '.join(config.trained_labels)}. Train on data with all types, or "
            "remove these entities."
        )
