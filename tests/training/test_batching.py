"""The data that a trainer takes; the sentences of its batches, and how they are encoded."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate.data_loader import BatchSamplerShard
from datasets import ClassLabel, Dataset, DatasetDict, Features, LargeList, List, Value
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, RandomSampler, Subset, WeightedRandomSampler
from transformers import TrainingArguments

from modeling_triaffine import NestedNERTrainer, start_from_recipe
from modeling_triaffine.data import add_context
from modeling_triaffine.training.batching import EncodedRecords, TrainingBatchSampler
from tests.helpers.micro_training import micro_dataset, micro_records, micro_trainer, trainer_like, write_recipe

sizes_strategy = st.lists(st.tuples(st.integers(2, 60), st.integers(0, 30)), max_size=120)  # (sub-words, words)


def subwords_with_padding(sizes: list[tuple[int, int]], batch: list[int]) -> int:
    return len(batch) * max(sizes[row][0] for row in batch)


@given(sizes_strategy, st.integers(1, 9), st.none() | st.integers(1, 200), st.integers(1, 4), *[st.integers(0, 3)] * 2)
def test_training_batches_are_fixed_by_seed_and_epoch(sizes, batch_size, max_subwords, processes, seed, epoch) -> None:
    sampler, again = (TrainingBatchSampler(sizes, batch_size, seed, max_subwords, processes) for _ in range(2))
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    list(again)  # another epoch before, another state of the global generators
    for one in (sampler, again):
        one.set_epoch(epoch)
    batches = list(sampler)
    assert batches == list(again)
    other = TrainingBatchSampler(sizes, batch_size, seed + 1, max_subwords, processes)
    assert len(batches) == len(sampler) == len(other)
    rows = sorted(row for batch in batches for row in batch)
    assert sorted(set(rows)) == list(range(len(sizes)))
    assert len(rows) - len(sizes) < processes
    for batch in batches:
        if max_subwords is None:
            assert 0 < len(batch) <= batch_size
        else:
            assert len(batch) == 1 or subwords_with_padding(sizes, batch) <= max_subwords
    parts = [list(BatchSamplerShard(sampler, processes, index)) for index in range(processes)]
    assert len({len(part) for part in parts}) == 1
    assert [batch for turn in zip(*parts, strict=True) for batch in turn] == batches
    first_and_last = [*batches[:processes], *batches[-processes:]]
    assert not sizes or max(sizes) in [sizes[row] for batch in first_and_last for row in batch]


@pytest.mark.parametrize("max_subwords", [None, 500], ids=["rows", "words"])
def test_training_order_changes_with_seed_and_epoch_and_groups_lengths(max_subwords: int | None) -> None:
    lengths = np.random.default_rng(0).integers(2, 60, size=3000)
    sizes = [(length, length // 2) for length in lengths.tolist()]

    def batches(seed: int, epoch: int, grouped: bool = True) -> list[list[int]]:
        order = "group_by_length" if grouped else "random"
        sampler = TrainingBatchSampler(sizes, 10, seed, max_subwords if grouped else None, order=order)
        sampler.set_epoch(epoch)
        return list(sampler)

    def padding(found: list[list[int]]) -> int:
        return sum(subwords_with_padding(sizes, batch) for batch in found) - int(lengths.sum())

    assert batches(0, 0) != batches(0, 1) != batches(1, 0)
    assert batches(1, 2) != batches(2, 1)
    assert padding(batches(0, 0)) < padding(batches(0, 0, grouped=False)) / 10
    batch_mates = [{frozenset(batch) for batch in batches(0, epoch)} for epoch in (0, 1)]
    assert len(batch_mates[0] & batch_mates[1]) < 0.01 * len(batch_mates[0])


def test_an_incomplete_turn_is_spread_or_left_out() -> None:
    def turns(count: int, **options) -> list[list[int]]:
        rows = [len(batch) for batch in TrainingBatchSampler([(5, 3)] * count, 2, 0, num_processes=3, **options)]
        return [rows[start : start + 3] for start in range(0, len(rows), 3)]

    assert turns(7) == [[2, 2, 2], [1, 1, 1]]  # the last row three times
    assert turns(8) == [[2, 2, 2], [1, 1, 1]]
    assert turns(11) == [[2, 2, 2], [2, 2, 1]]
    assert turns(11, drop_last=True) == [[2, 2, 2]]
    assert turns(7, max_subwords=10) == [[2, 2, 2], [1, 1, 1]]
    assert turns(8, max_subwords=10, drop_last=True) == [[2, 2, 2]]
    assert sorted(turns(7, max_subwords=20)[0]) == [2, 2, 3]
    assert turns(0) == turns(0, max_subwords=10) == []
    mixed = TrainingBatchSampler([(20, 3), *[(5, 3)] * 4], 9, 0, max_subwords=20, num_processes=3)
    assert sorted(map(len, mixed)) == [1, 2, 2]  # no row is repeated where a batch can be halved


def test_the_order_of_the_data_is_kept_on_wish(tmp_path: Path) -> None:
    trainer = micro_trainer(tmp_path, micro_records(12), per_device_train_batch_size=5)
    sequential = {"per_device_train_batch_size": 5, "train_sampling_strategy": "sequential"}
    arguments = TrainingArguments(str(tmp_path), use_cpu=True, **sequential)
    loader = trainer_like(trainer, arguments).get_train_dataloader()
    assert [*loader.batch_sampler] == [[*range(5)], [*range(5, 10)], [10, 11]]
    arguments.train_sampling_strategy = "batch_rebalance"
    with pytest.raises(ValueError, match="train_sampling_strategy is 'batch_rebalance'; choose one of group_by_length"):
        trainer_like(trainer, arguments).get_train_dataloader()


class OneSentence(NestedNERTrainer):  # as for rare types
    def _get_train_sampler(self, train_dataset: Any = None) -> WeightedRandomSampler:
        return WeightedRandomSampler([0.0, 1.0] + [0.0] * 6, 8)

    def _get_eval_sampler(self, eval_dataset: Any) -> RandomSampler:
        return RandomSampler(eval_dataset)


class OwnLoaders(NestedNERTrainer):  # as transformers documents them
    def get_train_dataloader(self) -> DataLoader:
        return DataLoader(self.train_dataset, batch_size=2, collate_fn=self.data_collator)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader:
        return DataLoader(self.eval_dataset, batch_size=3, collate_fn=self.data_collator)


@pytest.mark.parametrize("kind", [OneSentence, OwnLoaders])
def test_what_a_person_overrides_is_used(tmp_path: Path, kind: type[NestedNERTrainer]) -> None:
    trainer = micro_trainer(tmp_path, micro_records(8), micro_records(5, 1))
    expected = trainer.evaluate()
    trainer.__class__ = kind
    assert trainer.evaluate()["eval_f1"] == expected["eval_f1"]
    trainer.train()
    if kind is OneSentence:
        (batch,) = trainer.get_train_dataloader()
        assert {*batch["num_words"].tolist()} == {len(trainer.train_dataset[1]["tokens"])}
        assert trainer.state.max_steps == 1
        assert [len(batch["num_words"]) for batch in trainer.get_eval_dataloader()] == [5]
    else:
        assert trainer.state.max_steps == 4


def test_records_are_as_long_as_the_encoder_reads_them(tmp_path: Path) -> None:
    records = micro_records(9)
    for record in records:
        record["left_tokens"] = ["kappa", "gene"]
    trainer = micro_trainer(tmp_path, records)
    loader = trainer.get_train_dataloader()
    sizes = EncodedRecords(trainer.processing_class, trainer.train_dataset, show_progress=False).sizes
    for rows, batch in zip(loader.batch_sampler, loader, strict=True):
        assert [sizes[row][1] for row in rows] == batch["num_words"].tolist()
        assert [sizes[row][0] for row in rows] == batch["attention_mask"].sum(1).tolist()


def test_each_sentence_is_encoded_once_whatever_a_collator_does_with_it(tmp_path: Path, monkeypatch) -> None:
    trainer = micro_trainer(tmp_path, micro_records(8), micro_records(3, 1), num_train_epochs=3, eval_strategy="epoch")
    processor, collate, encoded, seen = trainer.processing_class, trainer.data_collator, [], []
    encode = processor.encode

    def count(words: Any, *others: Any, **options: Any) -> Any:
        encoded.extend(map(tuple, words))
        return encode(words, *others, **options)

    def collate_and_destroy(features: list[dict[str, Any]]) -> Any:
        batch = collate(features)
        seen.extend(batch["input_ids"][feature, :1].item() for feature in range(len(features)))
        for feature in features:
            feature["input_ids"][:] = 0
        return batch

    monkeypatch.setattr(processor, "encode", count)
    trainer = trainer_like(trainer, data_collator=collate_and_destroy)
    trainer.train()
    assert len(encoded) == 8 + 3
    trainer.predict(trainer.eval_dataset.select([0]))
    assert len(trainer._encoded) == 2  # without what is predicted once
    assert len(seen) > 3 * 8
    assert 0 not in seen


RECORDS = micro_records(6)
NAMES = ["protein", "DNA"]  # in another order than the model's labels
NUMBERED = [
    {"tokens": record["tokens"], "entities": [{**one, "type": NAMES.index(one["type"])} for one in record["entities"]]}
    for record in RECORDS
]


def class_labels(kind=List):
    entity = {"start": Value("int32"), "end": Value("int32"), "type": ClassLabel(names=NAMES)}
    return Dataset.from_list(NUMBERED, features=Features({"tokens": List(Value("string")), "entities": kind(entity)}))


ALL = {
    "list": RECORDS,
    "records without some fields": [RECORDS[0], *({n: one[n] for n in ("tokens", "entities")} for one in RECORDS[1:])],
    "class labels": class_labels(),
    "class labels in a large list": class_labels(LargeList),
    "class labels as tensors": class_labels().with_format("torch"),
    "subset of a list": Subset(micro_records(9), range(6)),
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    trainer = micro_trainer(tmp_path_factory.mktemp("expected"), RECORDS)
    return trainer.evaluate(micro_dataset(RECORDS))["eval_loss"]


@pytest.mark.parametrize("data", ALL.values(), ids=ALL)
def test_all_forms_of_the_same_sentences(data, expected, tmp_path):
    both = {"a": data, "b": micro_dataset(RECORDS)}
    trainer = trainer_like(micro_trainer(tmp_path, RECORDS, max_steps=1), train_dataset=data, eval_dataset=both)
    scores = trainer.evaluate()
    assert scores["eval_a_loss"] == pytest.approx(expected)
    assert scores["eval_a_f1"] == scores["eval_b_f1"]
    assert trainer.evaluate(data)["eval_loss"] == pytest.approx(expected)  # given to the call
    assert len(trainer.predict(data).predictions) == 6
    trainer.train()
    model, _, _ = start_from_recipe(write_recipe(tmp_path / "recipe"), {"train": data}, tmp_path)
    assert model.config.entity_labels == ["DNA", "protein"]


NO_ENTITIES = r"has the entities .* in row 0, .* words\. Give a list .* start, end, type .*exclusive.* adapt_dataset"
OTHER_COLUMNS = micro_dataset(RECORDS).rename_column("tokens", "words")
REFUSED = {
    "numbers": (NUMBERED, "as the type of an entity in row 0.*ClassLabel"),
    "no name": ([{"tokens": ["A"], "entities": [{"start": 0, "end": 1, "type": ""}]}], "has '' as the type"),
    "transform": (class_labels().with_transform(lambda rows: rows), "has a transform"),
    "nothing": ([], "has 0 records"),
    "texts": (["Orsk"], "is no data set, nor a list"),
    "a stream": (iter(RECORDS), "is no data set, nor a list"),
    "splits": (DatasetDict(train=class_labels()), "is no data set, nor a list"),
    "other columns": (OTHER_COLUMNS, r"needs the columns \['tokens'\], .*'words'.* adapt_dataset"),
    "null": (Dataset.from_list([{**RECORDS[0], "entities": None}]), NO_ENTITIES),
    "labels": (Dataset.from_list([{"tokens": ["A"], "entities": [{"start": 0, "end": 1, "label": "X"}]}]), NO_ENTITIES),
    "characters": ([{"tokens": ["Orsk"], "entities": [{"start": 0, "end": 4, "type": "DNA"}]}], NO_ENTITIES),
    "pairs": ([{"tokens": ["Orsk"], "entities": [(0, 1, "DNA")]}], "is no data set, nor a list"),
}


@pytest.mark.parametrize(("data", "fact"), REFUSED.values(), ids=REFUSED)
def test_data_of_another_form_is_an_error_about_the_data(data, fact, tmp_path):
    with pytest.raises(ValueError, match=f"train_dataset.*{fact}"):
        trainer_like(micro_trainer(tmp_path, RECORDS), train_dataset=data)
    with pytest.raises(ValueError, match=fact):
        start_from_recipe(write_recipe(tmp_path / "recipe"), {"train": data}, tmp_path)


def test_a_model_that_reads_context_is_trained_and_scored_with_it(tmp_path):
    trainer = micro_trainer(tmp_path, RECORDS, config={"context": "document"})
    for run in (trainer.train, lambda: trainer.evaluate(micro_dataset(RECORDS))):
        with pytest.raises(ValueError, match=r"context of .*'document'.*add_context\(data, 'document', 64\)"):
            run()
    with_context = add_context(micro_dataset(RECORDS), "document", 64)
    assert "eval_f1" in trainer_like(trainer, train_dataset=with_context).evaluate(with_context)
