"""The trainer: parameter groups, batches, the loss of an update, evaluation, arguments."""

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from accelerate.data_loader import BatchSamplerShard
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers import TrainingArguments

from modeling_triaffine import NestedNERTrainer
from modeling_triaffine.data.windows import Windows
from modeling_triaffine.evaluation.prediction import sweep_candidates
from modeling_triaffine.evaluation.scoring import score_entities
from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.batching import EncodedRecords, EvaluationBatchSampler, TrainingBatchSampler
from modeling_triaffine.training.optimization import build_parameter_groups
from tests.helpers.micro_training import micro_records, micro_trainer, trainer_like
from tests.helpers.portable import near
from tests.helpers.two_processes import weights_after_training

# ---- Parameter groups ----


def group_names(model: nn.Module, groups: list[dict]) -> dict[str, set[str]]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {group["name"]: {names[id(parameter)] for parameter in group["params"]} for group in groups}


def test_each_parameter_is_in_one_group_with_its_rate_and_decay(tmp_path: Path) -> None:
    rates = {"head": 3.0, "words": 2.0, "encoder": 1.0}
    options = {"learning_rate": 3.0, "embeddings_learning_rate": 2.0, "encoder_learning_rate": 1.0}
    trainer = micro_trainer(tmp_path, micro_records(4), **options)
    groups = trainer.create_optimizer().param_groups
    by_group = group_names(trainer.model, groups)

    counted = Counter(name for names in by_group.values() for name in names)
    assert set(counted) == {name for name, _ in trainer.model.named_parameters()}
    assert set(counted.values()) == {1}
    for group in groups:
        part, *no_decay = group["name"].split("_", 1)
        assert all(name.startswith(f"{part}.") for name in by_group[group["name"]])
        assert (group["lr"], group["weight_decay"]) == (rates[part], 0.0 if no_decay else 0.01)
    assert groups[0]["name"].startswith("head")


def test_biases_norms_and_the_label_bias_do_not_decay(tmp_path: Path) -> None:
    trainer = micro_trainer(tmp_path, micro_records(4))
    model = trainer.model
    by_group = group_names(model, trainer.create_optimizer().param_groups)
    no_decay = {name for group, names in by_group.items() if group.endswith("no_decay") for name in names}
    norms = {
        f"{module_name}.{name}"
        for module_name, module in model.named_modules()
        if isinstance(module, nn.LayerNorm)
        for name, _ in module.named_parameters()
    }
    biases = {name for name, _ in model.named_parameters() if "bias" in name}
    assert "head.label_bias" in biases
    assert norms
    assert no_decay == norms | biases


def test_frozen_parameters_are_in_no_group() -> None:
    model = nn.ModuleDict({"head": nn.Linear(2, 2), "encoder": nn.Linear(2, 2)})
    model["encoder"].requires_grad_(False)
    groups = build_parameter_groups(model.named_parameters(), {"head": 1.0, "encoder": 1.0}, 0.1, {"head.weight"})
    assert [group["name"] for group in groups] == ["head", "head_no_decay"]


@pytest.mark.parametrize("wrapper", ["base_model", "_orig_mod"])
def test_a_wrapped_model_has_no_parts_with_rates(wrapper: str) -> None:
    model = nn.ModuleDict({wrapper: nn.ModuleDict({"head": nn.Linear(2, 2)})})
    with pytest.raises(ValueError, match=rf"'{wrapper}.head.weight' has no learning rate"):
        build_parameter_groups(model.named_parameters(), {}, 0.1, set())


# ---- Batches ----

# (sub-words, words) of each row
sizes_strategy = st.lists(st.tuples(st.integers(2, 60), st.integers(0, 30)), max_size=120)


def subwords_with_padding(sizes: list[tuple[int, int]], batch: list[int]) -> int:
    return len(batch) * max(sizes[row][0] for row in batch)


def dealt_out(sampler: TrainingBatchSampler, processes: int) -> list[list[list[int]]]:
    """The batches of each process, as accelerate deals them out."""
    return [list(BatchSamplerShard(sampler, processes, index)) for index in range(processes)]


@given(
    sizes_strategy,
    st.integers(1, 9),
    st.none() | st.integers(1, 200),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 3),
)
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
    assert (
        len(batches) == len(sampler) == len(TrainingBatchSampler(sizes, batch_size, seed + 1, max_subwords, processes))
    )
    rows = sorted(row for batch in batches for row in batch)
    assert sorted(set(rows)) == list(range(len(sizes)))
    assert len(rows) - len(sizes) < processes
    for batch in batches:
        if max_subwords is None:
            assert 0 < len(batch) <= batch_size
        else:
            assert len(batch) == 1 or subwords_with_padding(sizes, batch) <= max_subwords
    parts = dealt_out(sampler, processes)
    assert len({len(part) for part in parts}) == 1
    assert [batch for turn in zip(*parts, strict=True) for batch in turn] == batches
    first_and_last = [*batches[:processes], *batches[-processes:]]
    assert not sizes or max(sizes) in [sizes[row] for batch in first_and_last for row in batch]


@pytest.mark.parametrize("max_subwords", [None, 500], ids=["rows", "words"])
def test_training_order_changes_with_seed_and_epoch_and_groups_lengths(max_subwords: int | None) -> None:
    lengths = np.random.default_rng(0).integers(2, 60, size=3000)
    sizes = [(length, length // 2) for length in lengths.tolist()]

    def batches(seed: int, epoch: int, grouped: bool = True) -> list[list[int]]:
        sampler = TrainingBatchSampler(sizes, 10, seed, max_subwords if grouped else None, group_by_length=grouped)
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


@given(sizes_strategy.filter(bool), st.integers(1, 7), st.integers(1, 4), st.none() | st.integers(1, 200))
def test_evaluation_counts_each_row_once_over_all_processes(sizes, batch_size, processes, max_subwords) -> None:
    samplers = [EvaluationBatchSampler(sizes, batch_size, processes, index, max_subwords) for index in range(processes)]
    counted = [row for sampler in samplers for rows in sampler.rows_that_count for row in rows]
    assert sorted(counted) == list(range(len(sizes)))
    assert len({len(sampler) for sampler in samplers}) == 1  # collective operations need this
    for sampler in samplers:
        for batch, rows in zip(sampler, sampler.rows_that_count, strict=True):
            assert rows in ([], batch)
            if max_subwords is None:
                assert 0 < len(batch) <= batch_size
            else:
                assert len(batch) == 1 or subwords_with_padding(sizes, batch) <= max_subwords


def test_records_are_as_long_as_the_encoder_reads_them(tmp_path: Path) -> None:
    records = micro_records(9)
    for record in records:
        record["left_tokens"] = ["kappa", "gene"]
    trainer = micro_trainer(tmp_path, records)
    loader = trainer.get_train_dataloader()
    sizes = EncodedRecords(trainer.processing_class, Windows(trainer.train_dataset), show_progress=False).sizes
    for rows, batch in zip(loader.batch_sampler, loader, strict=True):
        assert [sizes[row][1] for row in rows] == batch["num_words"].tolist()
        assert [sizes[row][0] for row in rows] == batch["attention_mask"].sum(1).tolist()


def test_columns_that_a_transform_adds_are_measured_trained_and_scored(tmp_path: Path) -> None:
    records = micro_records(8)

    def add_columns(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        given = [records[row] for row in rows["row"]]
        return {name: [record[name] for record in given] for name in ("tokens", "entities")}

    data = datasets.Dataset.from_dict({"row": range(len(records))}).with_transform(add_columns)
    plain = micro_trainer(tmp_path, records, records[:3])
    trainer = trainer_like(plain, train_dataset=data, eval_dataset=data.select(range(3)))
    both = plain.train_dataset, data
    sizes = [EncodedRecords(plain.processing_class, Windows(one), show_progress=False).sizes for one in both]
    assert sizes[0] == sizes[1]
    scores, expected = (one.evaluate() for one in (trainer, plain))
    names = [name for name in expected if not name.endswith(("_runtime", "_second"))]
    assert {name: scores[name] for name in names} == near({name: expected[name] for name in names})
    assert math.isfinite(trainer.train().metrics["train_loss"])


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
    assert len(seen) > 3 * 8
    assert 0 not in seen


def test_a_transform_that_differs_each_time_is_encoded_each_time(tmp_path: Path) -> None:
    """As the augmentation of a user."""
    records, calls = micro_records(2), []

    def change(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        calls.extend(rows["row"])
        return {
            "tokens": [[f"w{len(calls)}", *records[row]["tokens"][1:]] for row in rows["row"]],
            "entities": [records[row]["entities"] for row in rows["row"]],
        }

    data = datasets.Dataset.from_dict({"row": range(2)}).with_transform(change)
    trainer = trainer_like(micro_trainer(tmp_path, records), train_dataset=data)
    loader = trainer.get_train_dataloader()
    (first,), (second,) = (list(loader) for _ in range(2))
    assert not torch.equal(first["input_ids"], second["input_ids"])


# ---- Updates ----


@pytest.mark.parametrize(("batch_size", "accumulation"), [(4, 2), (3, 3), (1, 8)], ids=["4+4", "3+3+2", "8x1"])
def test_accumulated_update_is_that_of_one_batch(tmp_path: Path, batch_size: int, accumulation: int) -> None:
    records = micro_records(8)
    start = micro_trainer(tmp_path, records).model.double().state_dict()
    whole = weights_after_training(micro_trainer(tmp_path, records, optim="sgd", per_device_train_batch_size=8))
    parts = weights_after_training(
        micro_trainer(
            tmp_path,
            records,
            optim="sgd",
            per_device_train_batch_size=batch_size,
            gradient_accumulation_steps=accumulation,
        )
    )
    assert any(not torch.equal(start[name], whole[name]) for name in whole)
    for name in whole:
        torch.testing.assert_close(parts[name], whole[name], rtol=0, atol=1e-10, msg=name)


def test_batches_of_subwords_make_the_update_of_one_batch(tmp_path: Path) -> None:
    records = micro_records(8)
    options = {"optim": "sgd", "max_subwords_per_batch": 40, "gradient_accumulation_steps": 8}
    parts = micro_trainer(tmp_path, records, **options)
    sizes = [len(batch["num_words"]) for batch in parts.get_train_dataloader()]
    assert len(set(sizes)) > 1  # else the mean over batches would be that over sentences
    weights = weights_after_training(parts)
    assert parts.state.max_steps == 1
    whole = weights_after_training(micro_trainer(tmp_path, records, optim="sgd", per_device_train_batch_size=8))
    for name in whole:
        torch.testing.assert_close(weights[name], whole[name], rtol=0, atol=1e-10, msg=name)


def test_rates_fall_linearly_to_zero_over_the_real_updates(tmp_path: Path) -> None:
    options = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "num_train_epochs": 2}
    trainer = micro_trainer(tmp_path, micro_records(7), logging_steps=1, **options)
    trainer.train()
    logged = [entry["learning_rate"] for entry in trainer.state.log_history if "learning_rate" in entry]
    assert logged == pytest.approx([1e-2, 0.75e-2, 0.5e-2, 0.25e-2])
    assert set(trainer.lr_scheduler.get_last_lr()) == {0.0}


def test_a_warm_up_longer_than_the_training_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for warmup, warned in ((0.5, False), (3, False), (4, True)):
        caplog.clear()
        micro_trainer(tmp_path, micro_records(8), warmup_steps=warmup).create_scheduler(
            4, torch.optim.SGD([torch.ones(1)])
        )
        assert ("rates are never reached: the warm-up has 4 updates" in caplog.text) == warned


# ---- Evaluation ----


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> NestedNERTrainer:
    """A trainer whose model has learned something, with evaluation data that holds two types on one span."""
    validation = micro_records(9, seed=1)
    first = validation[0]["entities"][0]
    validation[0]["entities"].append({**first, "type": "DNA"})
    options = {"num_train_epochs": 6, "per_device_eval_batch_size": 4, "max_grad_norm": 1.0}
    trainer = micro_trainer(tmp_path_factory.mktemp("trained"), micro_records(64), validation, **options)
    trainer.train()
    return trainer


def test_metrics_are_the_scores_of_the_predictions_against_the_entity_lists(trained: NestedNERTrainer) -> None:
    metrics = trained.evaluate()
    predictions = trained.predict_entities(trained.eval_dataset)
    scores = score_entities(predictions, trained.eval_dataset["entities"])
    assert 0.5 < scores["f1"] < 1.0
    assert scores["gold"] == sum(map(len, trained.eval_dataset["entities"]))
    assert [metrics[f"eval_{ratio}"] for ratio in ("f1", "precision", "recall")] == [
        scores[ratio] for ratio in ("f1", "precision", "recall")
    ]
    assert metrics["eval_flat_f1"] == scores["flat"]["f1"]
    assert metrics["eval_nested_f1"] == scores["nested"]["f1"]
    assert metrics["eval_f1_protein"] == scores["by_label"]["protein"]["f1"]
    assert trained.state.log_history[-1]["eval_f1"] == scores["f1"]


def test_evaluation_counts_the_gold_among_the_candidates(
    trained: NestedNERTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trained.model.head.config, "max_candidates", 2)
    metrics = trained.evaluate()
    (row,) = sweep_candidates(trained.model, trained.processing_class, list(trained.eval_dataset), counts=[2])
    assert metrics["eval_candidate_recall"] == near(row["candidates"]["recall"])
    assert metrics["eval_recall"] < metrics["eval_candidate_recall"] < 1


def test_evaluation_does_not_depend_on_batch_size_or_order(
    trained: NestedNERTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = trained.eval_dataset
    turned = dataset.select(range(len(dataset) - 1, -1, -1))
    losses, predictions = [], []
    for batch_size, max_subwords, rows in (
        (1, None, dataset),
        (4, None, dataset),
        (50, None, dataset),
        (4, None, turned),
        (1, 30, dataset),
    ):
        trained.args.per_device_eval_batch_size = batch_size
        monkeypatch.setattr(trained.args, "max_subwords_per_batch", max_subwords)
        losses.append(trained.evaluate(rows)["eval_loss"])
        found = trained.predict_entities(rows)
        predictions.append(found if rows is dataset else found[::-1])
    assert losses == pytest.approx([losses[0]] * 5, rel=1e-5)
    spans = [
        [[(entity["start"], entity["end"], entity["type"]) for entity in of_sentence] for of_sentence in found]
        for found in predictions
    ]
    assert all(found == spans[0] for found in spans)


def test_evaluation_leaves_the_random_generators_alone(trained: NestedNERTrainer) -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    trained.evaluate()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]


def test_records_without_entities_are_predicted_without_metrics(trained: NestedNERTrainer) -> None:
    bare = trained.eval_dataset.remove_columns("entities")
    output = trained.predict(bare)
    assert output.predictions == near(trained.predict_entities(trained.eval_dataset))
    assert output.label_ids is None
    assert not [name for name in output.metrics if "f1" in name or "loss" in name]


# ---- Arguments ----


def test_plain_training_arguments_train_with_one_rate(tmp_path: Path) -> None:
    records = micro_records(8)
    trainer = micro_trainer(tmp_path / "unused", records, records)
    arguments = TrainingArguments(
        str(tmp_path / "out"), use_cpu=True, max_steps=2, save_strategy="no", learning_rate=0.01
    )
    plain = trainer_like(trainer, arguments)
    plain.train()
    assert {group["initial_lr"] for group in plain.optimizer.param_groups} == {0.01}
    assert 0 <= plain.evaluate()["eval_f1"] <= 1


def test_a_calibration_is_for_the_model_before_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = micro_records(4)
    calibration = {"temperature": 1.5, "label_thresholds": {"DNA": 0.0}}
    trainer = micro_trainer(tmp_path, records, records, config=calibration, max_steps=1)
    trainer.evaluate()
    assert trainer.model.config.temperature == 1.5
    trainer.train()
    assert (trainer.model.config.temperature, trainer.model.config.label_thresholds) == (1.0, None)
    assert "calibrat" in caplog.text


def test_batches_go_to_a_gpu_without_waiting_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def goes_without_waiting(**options) -> bool:
        return NestedNERTrainingArguments(str(tmp_path), use_cpu=True, **options).accelerator_config.non_blocking

    assert not goes_without_waiting()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert goes_without_waiting()
    assert not goes_without_waiting(accelerator_config={"non_blocking": False})
