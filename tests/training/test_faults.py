"""Faults of numbers and memory in training: each is told in one paragraph, and nothing broken is taken for a whole.

The faults are real ones: numbers that overflow, an allocation beyond all memory. Those of folders and files are in
`test_faults_of_runs.py`.
"""

import os
import socket
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.batching import RECORD_IDS, RecordCollator
from modeling_triaffine.training.checkpoints import list_checkpoints
from modeling_triaffine.training.faults import FAILED_UPDATE_FILE, TrainingFault
from tests.helpers.faults import (
    RECORDS,
    UPDATES,
    assert_same_weights,
    failed_update,
    failing_at_batch,
    ids_of_update,
    make_loss_nan,
    take_all_memory,
)
from tests.helpers.micro_training import micro_trainer, new_process

# ---- Numbers ----


@pytest.mark.parametrize(("accumulation", "workers"), [(1, 0), (2, 2)], ids=["single", "accumulated with workers"])
def test_a_loss_that_is_no_number_ends_training_before_the_update(tmp_path, accumulation, workers) -> None:
    options = {**UPDATES, "gradient_accumulation_steps": accumulation, "dataloader_num_workers": workers}
    uninterrupted = micro_trainer(tmp_path / "whole", RECORDS, **options)
    uninterrupted.train()

    trainer = micro_trainer(tmp_path / "out", RECORDS, **options)
    trainer.model.register_forward_hook(failing_at_batch(4 * accumulation - 1, make_loss_nan))
    broken = 4 if accumulation > 1 else 3
    with pytest.raises(FloatingPointError) as caught:
        trainer.train()
    message = str(caught.value)
    assert f"The loss of update {broken} is nan" in message
    assert "All weights are finite" in message
    assert str(tmp_path / "out" / FAILED_UPDATE_FILE) in message
    assert f"checkpoint-{broken - 1}: resume_from_checkpoint" in message
    report = failed_update(tmp_path / "out")
    ids = ids_of_update(trainer, broken, accumulation)
    assert (report["update"], report["broken_weights"]) == (broken, [])
    assert [batch["sentences"] for batch in report["batches"]] == ids
    assert [batch["loss"] == "nan" for batch in report["batches"]] == [True, False][:accumulation]
    assert [path.name for path in list_checkpoints(tmp_path / "out")][-1] == f"checkpoint-{broken - 1}"
    assert_same_weights(
        trainer.model.state_dict(), load_file(tmp_path / f"out/checkpoint-{broken - 1}/model.safetensors")
    )

    resumed = micro_trainer(tmp_path / "out", RECORDS, **options)
    resumed.train(resume_from_checkpoint=True)
    assert_same_weights(resumed.model.state_dict(), uninterrupted.model.state_dict())


class BreakGradients(TrainerCallback):
    def __init__(self, update: int):
        self.update = update

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        if state.global_step + 1 == self.update:
            model.head.label_bias.grad.fill_(float("inf"))


def test_an_update_that_broke_the_weights_is_named_by_the_next(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, **{**UPDATES, "save_steps": 2})
    trainer.add_callback(BreakGradients(3))
    with pytest.raises(FloatingPointError, match=r"loss of update 4 is nan.*Update 3, .*broke.*weight head.label_bias"):
        trainer.train()
    report = failed_update(tmp_path)
    assert (report["update"], report["broken_weights"]) == (3, ["head.label_bias"])
    assert [batch["sentences"] for batch in report["batches"]] == ids_of_update(trainer, 3, 1)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["checkpoint-2"]


def test_broken_weights_are_not_saved(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, **UPDATES)
    trainer.add_callback(BreakGradients(3))
    with pytest.raises(FloatingPointError, match=r"checkpoint of update 3 is not saved: the weight head\.label_bias"):
        trainer.train()
    assert failed_update(tmp_path)["update"] == 3
    assert [path.name for path in list_checkpoints(tmp_path)] == ["checkpoint-1", "checkpoint-2"]
    with pytest.raises(FloatingPointError, match=r"The model is not saved"):
        trainer.save_model()
    assert not (tmp_path / "config.json").exists()


def test_remedies_are_those_of_the_settings(tmp_path, monkeypatch) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, max_grad_norm=0)
    trainer.model.register_forward_hook(failing_at_batch(1, make_loss_nan))
    monkeypatch.setattr(type(trainer.accelerator), "mixed_precision", "fp16")
    with pytest.raises(FloatingPointError, match=r"or bf16 instead of fp16, or max_grad_norm to clip the gradients\."):
        trainer.train()


def test_a_model_that_was_broken_from_the_start_is_told(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.head.label_bias.data.fill_(float("nan"))
    with pytest.raises(
        FloatingPointError, match=r"update 1 is nan.*started with is broken: the weight head\.label_bias"
    ):
        trainer.train()
    assert not (tmp_path / FAILED_UPDATE_FILE).exists()


def test_a_record_without_an_id_is_named_by_its_words(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS)
    collate = RecordCollator(trainer.processing_class, trainer.data_collator, with_ids=True)
    record = {"tokens": ["the", "alpha", "gene"], "entities": []}
    assert collate([record, {**record, "id": "7"}])[RECORD_IDS] == ["the alpha gene", "7"]
    assert RECORD_IDS not in next(iter(trainer.get_eval_dataloader(trainer.train_dataset)))


# ---- Two processes ----


def train_in_process(rank: int, port: int, folder: Path) -> None:
    """One of two processes; the loss of the second is no number in update 3."""
    torch.set_num_threads(1)
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in names.items()}, MASTER_ADDR="127.0.0.1")
    trainer = micro_trainer(folder, RECORDS, **UPDATES)
    if rank == 1:
        trainer.model.register_forward_hook(failing_at_batch(3, make_loss_nan))
    try:
        trainer.train()
    except FloatingPointError as error:
        (folder / f"{rank}.txt").write_text(str(error))


def test_of_two_processes_both_end_where_one_loss_is_no_number(tmp_path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [new_process(train_in_process, rank, port, tmp_path) for rank in range(2)]
    for process in processes:
        process.join(timeout=120)
    told = [(tmp_path / f"{rank}.txt").read_text() for rank in range(2)]
    assert told[0] == told[1]
    assert "The loss of update 3 is nan" in told[0]
    batches = failed_update(tmp_path)["batches"]
    assert [batch["loss"] == "nan" for batch in batches] == [False, True]
    ids = [name for batch in batches for name in batch["sentences"]]
    assert len(set(ids)) == 4
    assert [path.name for path in list_checkpoints(tmp_path)] == ["checkpoint-1", "checkpoint-2"]


# ---- Memory ----


def test_memory_that_runs_out_is_told_with_what_needs_less(tmp_path) -> None:
    options = {"per_device_train_batch_size": 4}
    trainer = micro_trainer(tmp_path, RECORDS, config={"triaffine_rank": None}, **options)
    trainer.model.register_forward_hook(failing_at_batch(2, take_all_memory))
    with pytest.raises(TrainingFault) as caught:
        trainer.train()
    message = str(caught.value)
    assert isinstance(caught.value, RuntimeError)
    assert "Memory ran out in training, at a batch of 4 sentences of up to" in message
    assert "DefaultCPUAllocator: can't allocate memory" in message
    for option in ("max_subwords_per_batch", "per_device_train_batch_size below 4", "gradient_accumulation_steps"):
        assert option in message
    for option in ("triaffine_rank", "save_memory", "gradient_checkpointing", "bf16"):
        assert option in message


def test_what_is_done_already_is_not_advised(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, gradient_checkpointing=True, per_device_train_batch_size=1)
    trainer.model.register_forward_hook(failing_at_batch(1, take_all_memory))
    with pytest.raises(TrainingFault, match=r"What needs less: bf16\.$"):
        trainer.train()


def test_memory_that_runs_out_in_evaluation_is_told(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.register_forward_hook(failing_at_batch(1, take_all_memory))
    with pytest.raises(TrainingFault, match=r"Memory ran out in evaluation, at a batch of \d+ sentences"):
        trainer.evaluate(trainer.train_dataset)


def test_memory_of_a_gpu_is_told_by_its_first_sentences(tmp_path) -> None:
    def fail(_output):
        raise torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.1 GiB "
            "is free. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF."
        )

    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.register_forward_hook(failing_at_batch(1, fail))
    with pytest.raises(
        TrainingFault, match=r"\(CUDA out of memory\. Tried to allocate 2\.00 GiB\)\. What needs less: "
    ):
        trainer.train()


def test_a_process_other_than_the_first_tells_its_own_faults(tmp_path, monkeypatch, caplog) -> None:
    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.register_forward_hook(failing_at_batch(1, take_all_memory))
    monkeypatch.setattr(NestedNERTrainingArguments, "process_index", 1)
    with pytest.raises(TrainingFault):
        trainer.train()
    assert "Process 1: Memory ran out in training" in caplog.text


def test_smaller_batches_are_found_where_memory_runs_out(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, per_device_train_batch_size=8, auto_find_batch_size=True)

    def too_large(_module, _inputs, options, _output) -> None:
        if len(options["num_words"]) > 4:
            take_all_memory(None)

    trainer.model.register_forward_hook(too_large, with_kwargs=True)
    trainer.train()
    assert trainer.state.train_batch_size <= 4
    assert trainer.state.global_step == 3


def test_errors_of_the_program_are_not_dressed_up(tmp_path) -> None:
    def fail(_output):
        raise RuntimeError("sizes do not match")

    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.register_forward_hook(failing_at_batch(1, fail))
    with pytest.raises(RuntimeError, match=r"^sizes do not match$") as caught:
        trainer.train()
    assert not isinstance(caught.value, TrainingFault)
