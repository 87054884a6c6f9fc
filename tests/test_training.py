"""The trainer: parameter groups, batches, the loss of an update, evaluation, two processes."""

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import AutoModel, TrainingArguments

from modeling_triaffine import NestedNERTrainer
from modeling_triaffine.evaluation.scoring import score_entities
from modeling_triaffine.training.batching import EvaluationBatchSampler, ShuffledLengthSampler
from modeling_triaffine.training.parameter_groups import build_parameter_groups
from tests.micro_training import REPOSITORY, micro_records, micro_trainer, script_environment

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


def test_a_parameter_without_a_rate_is_an_error() -> None:
    model = nn.ModuleDict({"tail": nn.Linear(2, 2)})
    with pytest.raises(ValueError, match=r"'tail.weight' has no learning rate"):
        build_parameter_groups(model.named_parameters(), {}, 0.1, set())


# ---- Batches ----

lengths_strategy = st.lists(st.integers(0, 60), max_size=120)


@given(lengths_strategy, st.integers(1, 9), st.integers(0, 3), st.integers(0, 3), st.booleans())
@settings(deadline=None)
def test_training_order_is_a_permutation_fixed_by_seed_and_epoch(lengths, batch_size, seed, epoch, grouped) -> None:
    sampler, again = (ShuffledLengthSampler(lengths, batch_size, seed, grouped) for _ in range(2))
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    list(again)  # another epoch before, another state of the global generators
    for one in (sampler, again):
        one.set_epoch(epoch)
    order = list(sampler)
    assert sorted(order) == list(range(len(lengths)))
    assert order == list(again)
    if grouped and len(lengths) >= batch_size:
        assert max(lengths) in [lengths[row] for row in order[:batch_size]] + [
            lengths[row] for row in order[len(order) // batch_size * batch_size :]
        ]


def test_training_order_changes_with_seed_and_epoch_and_groups_lengths() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, size=1000)

    def order(seed: int, epoch: int, grouped: bool = True) -> list[int]:
        sampler = ShuffledLengthSampler(lengths, 10, seed, grouped)
        sampler.set_epoch(epoch)
        return list(sampler)

    def padding(rows: list[int]) -> int:
        batches = lengths[rows].reshape(-1, 10)
        return int((batches.max(1, keepdims=True) - batches).sum())

    assert order(0, 0) != order(0, 1) != order(1, 0)
    assert order(1, 2) != order(2, 1)
    assert padding(order(0, 0)) < padding(order(0, 0, grouped=False)) / 10
    batch_mates = [{frozenset(order(0, epoch)[start : start + 10]) for start in range(0, 1000, 10)} for epoch in (0, 1)]
    assert len(batch_mates[0] & batch_mates[1]) < 10


@given(st.lists(st.integers(0, 60), min_size=1, max_size=60), st.integers(1, 7), st.integers(1, 4))
def test_evaluation_counts_each_row_once_over_all_processes(lengths, batch_size, processes) -> None:
    samplers = [EvaluationBatchSampler(lengths, batch_size, processes, index) for index in range(processes)]
    counted = [row for sampler in samplers for rows in sampler.rows_that_count for row in rows]
    assert sorted(counted) == list(range(len(lengths)))
    assert len({len(sampler) for sampler in samplers}) == 1  # collective operations need this
    for sampler in samplers:
        for batch, rows in zip(sampler, sampler.rows_that_count, strict=True):
            assert 0 < len(batch) <= batch_size
            assert rows in ([], batch)


# ---- Updates ----


def weights_after_training(trainer: NestedNERTrainer) -> dict[str, torch.Tensor]:
    trainer.model.double()  # so that only a real difference is one
    trainer.train()
    return trainer.model.state_dict()


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


def test_rates_fall_linearly_to_zero_over_the_real_updates(tmp_path: Path) -> None:
    options = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "num_train_epochs": 2}
    trainer = micro_trainer(tmp_path, micro_records(7), logging_steps=1, **options)
    trainer.train()
    logged = [entry["learning_rate"] for entry in trainer.state.log_history if "learning_rate" in entry]
    assert logged == pytest.approx([1e-2, 0.75e-2, 0.5e-2, 0.25e-2])
    assert set(trainer.lr_scheduler.get_last_lr()) == {0.0}


def test_a_loss_that_is_no_number_is_not_hidden(tmp_path: Path) -> None:
    trainer = micro_trainer(tmp_path, micro_records(4), logging_steps=1)
    trainer.model.head.label_bias.data.fill_(float("nan"))
    trainer.train()
    assert np.isnan(trainer.state.log_history[0]["loss"])


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


def test_evaluation_does_not_depend_on_batch_size_or_order(trained: NestedNERTrainer) -> None:
    dataset = trained.eval_dataset
    turned = dataset.select(range(len(dataset) - 1, -1, -1))
    losses, predictions = [], []
    for batch_size, rows in ((1, dataset), (4, dataset), (50, dataset), (4, turned)):
        trained.args.per_device_eval_batch_size = batch_size
        losses.append(trained.evaluate(rows)["eval_loss"])
        found = trained.predict_entities(rows)
        predictions.append(found if rows is dataset else found[::-1])
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-5)
    spans = [
        [[(entity["start"], entity["end"], entity["type"]) for entity in of_sentence] for of_sentence in found]
        for found in predictions
    ]
    assert spans[0] == spans[1] == spans[2] == spans[3]


def test_evaluation_leaves_the_random_generators_alone(trained: NestedNERTrainer) -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    trained.evaluate()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]


def test_records_without_entities_are_predicted_without_metrics(trained: NestedNERTrainer) -> None:
    bare = trained.eval_dataset.remove_columns("entities")
    output = trained.predict(bare)
    assert output.predictions == trained.predict_entities(trained.eval_dataset)
    assert output.label_ids is None
    assert not [name for name in output.metrics if "f1" in name or "loss" in name]


# ---- Two processes ----

TWO_PROCESSES = """
import json, sys
from pathlib import Path
import torch
from tests.micro_training import micro_records, micro_trainer
from tests.test_training import weights_after_training

folder = Path(sys.argv[1])
options = {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 2, "save_strategy": "epoch"}
trainer = micro_trainer(folder, micro_records(8), micro_records(7, seed=1), optim="sgd", **options)
weights_after_training(trainer)
result = {
    "processes": trainer.accelerator.num_processes,
    "metrics": trainer.evaluate(),
    "predictions": trainer.predict_entities(trainer.eval_dataset),
}
trainer.save_model()

# Checkpoint 4 lies in the middle of the second of two epochs of three updates.
options = {"per_device_train_batch_size": 2, "num_train_epochs": 2, "save_strategy": "steps", "save_steps": 4}
trainers = [
    micro_trainer(folder / "again", micro_records(12), config={"mlp_dropout": 0.3}, save_total_limit=9, **options)
    for _ in range(2)
]
trainers[0].train()
trainers[1].train(resume_from_checkpoint=str(folder / "again" / "checkpoint-4"))
whole, resumed = (trainer.model.state_dict() for trainer in trainers)
result["differing_after_resume"] = [name for name in whole if not torch.equal(whole[name], resumed[name])]
(folder / f"process_{trainer.args.process_index}.json").write_text(json.dumps(result))
"""


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    """The folder that two real processes wrote into, and the result of each."""
    folder = tmp_path_factory.mktemp("two")
    script = folder / "two.py"
    script.write_text(TWO_PROCESSES, encoding="utf-8")
    configuration = REPOSITORY / "examples" / "accelerate" / "cpu_2_processes.yaml"
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(configuration)]
    done = subprocess.run(
        [*launch, str(script), str(folder)],
        env=script_environment(folder),
        capture_output=True,
        text=True,
        timeout=300,
    )
    # Processes may abort when the interpreter ends, after all work is done: what they wrote is what counts.
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("process_*.json"))]
    assert [result["processes"] for result in results] == [2, 2], done.stderr
    return folder, results


def test_two_processes_train_and_score_as_one_does(tmp_path: Path, two_processes: tuple[Path, list[dict]]) -> None:
    folder, results = two_processes
    options = {"optim": "sgd", "per_device_train_batch_size": 8}
    alone = micro_trainer(tmp_path, micro_records(8), micro_records(7, seed=1), **options)
    weights = weights_after_training(alone)
    metrics = alone.evaluate()
    for result in results:
        for name in ("eval_loss", "eval_f1", "eval_nested_f1"):
            assert result["metrics"][name] == pytest.approx(metrics[name], rel=1e-9), name
        scores = score_entities(result["predictions"], alone.eval_dataset["entities"])
        assert scores["f1"] == result["metrics"]["eval_f1"]
    saved = AutoModel.from_pretrained(folder, dtype=torch.float64).state_dict()
    for name, value in weights.items():
        torch.testing.assert_close(saved[name], value, rtol=0, atol=1e-10, msg=name)


def test_two_processes_write_whole_checkpoints_and_resume_in_the_middle_of_an_epoch(
    two_processes: tuple[Path, list[dict]],
) -> None:
    folder, results = two_processes
    assert (folder / "checkpoint-1" / "rng_state_1.pth").is_file()
    assert not (folder / "_incomplete").exists()
    assert (folder / "again" / "checkpoint-4" / "rng_state_1.pth").is_file()
    assert [result["differing_after_resume"] for result in results] == [[], []]


def test_plain_training_arguments_train_with_one_rate(tmp_path: Path) -> None:
    records = micro_records(8)
    trainer = micro_trainer(tmp_path / "unused", records, records)
    arguments = TrainingArguments(
        str(tmp_path / "out"), use_cpu=True, max_steps=2, save_strategy="no", learning_rate=0.01
    )
    plain = NestedNERTrainer(
        trainer.model,
        arguments,
        processing_class=trainer.processing_class,
        train_dataset=trainer.train_dataset,
        eval_dataset=trainer.eval_dataset,
    )
    plain.train()
    assert {group["initial_lr"] for group in plain.optimizer.param_groups} == {0.01}
    assert 0 <= plain.evaluate()["eval_f1"] <= 1
