"""Checks what a trainer is given: model, data sets, and whether these have what the best checkpoint is chosen by."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import datasets
import pyarrow
import torch
from torch.utils.data import ConcatDataset, IterableDataset, Subset
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedModel, TrainingArguments

from ..data.features import as_records, name_types
from ..data.schema import ENTITY_FIELDS
from ..evaluation.scores import Scores
from ..model.configuration_triaffine import TriaffineConfig
from ..parsing import shown

logger = logging.getLogger(__name__)

Records = datasets.Dataset | Sequence[Mapping[str, Any]] | TorchDataset[Any]


def check_model(model: PreTrainedModel, is_trained: bool) -> None:
    """Raises ValueError for a model that cannot be saved as it is; warns of weights that training hardly changes."""
    if getattr(model, "_hf_peft_config_loaded", False):
        raise ValueError(
            "The model has adapters added by `add_adapter`, which checkpoints would not contain. Wrap its encoder "
            "instead: "
            "model.encoder = peft.get_peft_model(model.encoder, config)."
        )
    config: Any = model.config
    config.validate()  # names may have been changed one by one
    if is_trained and model.dtype in (torch.float16, torch.bfloat16):
        logger.warning(
            "The model's weights are in %s, in which small updates are lost or rounded too much. Load it with "
            "dtype=torch.float32; bf16=True of the arguments then computes in bfloat16.",
            model.dtype,
        )


def check_processor(processor: Any, config: TriaffineConfig) -> None:
    """Raises ValueError unless the trained model could be used with this processor, which is saved with it."""
    if not hasattr(processor, "check_fits"):
        raise ValueError(
            f"NestedNERTrainer: processing_class is a {type(processor).__name__}; give the model's TriaffineProcessor."
        )
    processor.check_fits(config)


def as_dataset(records: Any, what: str) -> datasets.Dataset:
    """A data set of records in other forms: a list, or a part of either. `what` names them in messages.

    Raises:
        ValueError: it is a stream, or of another kind.
    """
    if isinstance(records, datasets.Dataset):
        return records if records.format["type"] == "custom" else name_types(records)  # a transform may make the types
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
    is_list = isinstance(records, Sequence | TorchDataset) and not isinstance(records, str)
    rows = [records[row] for row in range(len(records))] if is_list else []
    if is_list and not rows:
        raise ValueError(f"{what} has 0 records.")
    if not is_list or not all(isinstance(row, Mapping) for row in rows):
        kind += f" of {type(rows[0]).__name__}" if rows else ""
        raise ValueError(
            f"{what} is a {kind}; give a datasets.Dataset, such as a split of load_nested_ner, or a list of records "
            "with tokens and entities."
        )
    columns = dict.fromkeys(column for row in rows for column in row)
    try:
        return datasets.Dataset.from_dict({column: [row.get(column) for row in rows] for column in columns})
    except (pyarrow.ArrowException, TypeError) as error:
        raise ValueError(f"{what}: a field has values of different types in its records ({error}).") from error


def plain_records(dataset: Any, name: str) -> datasets.Dataset:
    """The dataset with rows of Python types whatever its format; the user's own transform stays."""
    dataset = as_dataset(dataset, f"NestedNERTrainer: {name}")
    if dataset.format["type"] == "custom":  # which may add the columns
        return dataset
    return as_records(dataset, ("tokens",), f"NestedNERTrainer: {name}")


def as_datasets(train: Any, evaluation: Any) -> tuple[datasets.Dataset | None, Any]:
    """The data sets to train and to evaluate on, as [`as_dataset`]; several of the latter are a dictionary."""

    def make(records: Any, name: str) -> datasets.Dataset | None:
        return None if records is None else as_dataset(records, f"NestedNERTrainer: {name}")

    if isinstance(evaluation, Mapping):
        return make(train, "train_dataset"), {
            name: make(records, f"eval_dataset[{name!r}]") for name, records in evaluation.items()
        }
    return make(train, "train_dataset"), make(evaluation, "eval_dataset")


def check_datasets(args: TrainingArguments, train: Any, evaluation: Any, config: TriaffineConfig) -> None:
    """Raises ValueError for data sets of another form or with other labels, and for no record that makes a batch."""
    named = {"train_dataset": train} | (
        {f"eval_dataset[{name!r}]": dataset for name, dataset in evaluation.items()}
        if isinstance(evaluation, dict)
        else {"eval_dataset": evaluation}
    )
    for name, dataset in named.items():
        # A user's transform may add the columns.
        if dataset is not None and dataset.format["type"] != "custom":
            as_records(dataset, ("tokens", "entities"), f"NestedNERTrainer: {name}")
            check_types(dataset, f"NestedNERTrainer: {name}", config)
    least = args.train_batch_size * args.world_size if args.dataloader_drop_last else 1
    if train is not None and len(train) < least:
        raise ValueError(
            f"NestedNERTrainer: train_dataset has {len(train)} records, and the least is {least}"
            + (": dataloader_drop_last leaves out batches that are not full." if least > 1 else ".")
        )


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
    unknown = set().union(*types) - {*config.entity_labels}
    if unknown:
        row = next(row for row, found in enumerate(types) if found & unknown)
        name = records[row].get("id") or row
        raise ValueError(
            f"{what} has entities of type {', '.join(sorted(unknown))} (the first in sentence {name!r}), which the "
            f"model has no label for; it knows {', '.join(config.entity_labels)}. Train on data with all types, or "
            "remove these entities."
        )


def check_best_metric(args: TrainingArguments, evaluation: Any, config: TriaffineConfig) -> None:
    """Raises ValueError for a metric that transformers would miss after the first evaluation only."""
    metric = args.metric_for_best_model
    if metric is None or args.eval_strategy == "no":
        return
    names = [*Scores.metric_names(config.entity_labels), "loss", *(["candidate_recall"] if config.cross_span else [])]
    sets = evaluation if isinstance(evaluation, dict) else {"": evaluation}
    computed = {
        (f"{name}_" if name else "") + figure: (data, figure) for name, data in sets.items() for figure in names
    }
    wanted = metric.removeprefix("eval_")
    if wanted not in computed:
        raise ValueError(
            f"metric_for_best_model is {metric!r}, which no evaluation computes. Choose one of {', '.join(computed)}, "
            "or set it to None and load_best_model_at_end to False."
        )
    data, figure = computed[wanted]
    label = figure.removeprefix("f1_")
    if data is None or figure == label:
        return
    if all(entity["type"] != label for record in plain_records(data, "eval_dataset") for entity in record["entities"]):
        raise ValueError(
            f"metric_for_best_model is {metric!r}, but the validation data has no entity of type {label!r}. Choose "
            "another metric, or give validation data with such entities."
        )
