"""Faults of numbers and memory in training: each stops it with one paragraph, and nothing broken is saved.

The faults are real ones: numbers that overflow, an allocation beyond all memory. Those of folders and files are in
`test_interrupted_runs.py`.
"""

import math
import re
from dataclasses import fields

import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.batching import RECORD_IDS, RecordCollator
from modeling_triaffine.training.checkpoints import find_checkpoint
from modeling_triaffine.training.interruptions import OutOfMemoryError, TrainingFault, loss_error
from modeling_triaffine.training.plan import training_options
from modeling_triaffine.training.summary import describe_settings
from tests.helpers.faults import (
    RECORDS,
    UPDATES,
    assert_same_weights,
    failing_at_batch,
    ids_of_update,
    make_loss_nan,
    take_all_memory,
)
from tests.helpers.micro_training import micro_trainer

# ---- Numbers ----


def test_a_loss_that_is_not_finite_stops_training_before_the_update(tmp_path) -> None:
    """It is that of the first of two batches; how a run goes on is in `test_interrupted_runs.py`."""
    options = {**UPDATES, "gradient_accumulation_steps": 2, "dataloader_num_workers": 2}
    trainer = micro_trainer(tmp_path, RECORDS, **options)
    trainer.model.register_forward_hook(failing_at_batch(7, make_loss_nan))
    with pytest.raises(FloatingPointError, match=r"loss of update 4 is nan.*All weights are finite") as caught:
        trainer.train()
    assert isinstance(caught.value, TrainingFault)
    at_fault, sound = ids_of_update(trainer, update=4, accumulation=2)
    assert all(repr(name) in str(caught.value) for name in at_fault)
    assert not any(repr(name) in str(caught.value) for name in sound)
    latest = tmp_path / "checkpoint-3"
    assert find_checkpoint("latest", tmp_path) == str(latest)
    assert_same_weights(trainer.model.state_dict(), load_file(latest / "model.safetensors"))


class BreakGradients(TrainerCallback):
    def __init__(self, update: int):
        self.update = update

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        if state.global_step + 1 == self.update:
            model.head.label_bias.grad.fill_(float("inf"))


def test_an_update_that_broke_the_weights_is_noticed_at_the_next(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, **{**UPDATES, "save_steps": 2})
    trainer.add_callback(BreakGradients(3))
    with pytest.raises(FloatingPointError, match=r"update 4 is nan.* previous update.*weight head\.label_bias"):
        trainer.train()
    assert find_checkpoint("latest", tmp_path) == str(tmp_path / "checkpoint-2")


def test_broken_weights_are_not_saved(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, **UPDATES)
    trainer.add_callback(BreakGradients(3))
    with pytest.raises(FloatingPointError, match=r"checkpoint of update 3 is not saved: the weight head\.label_bias"):
        trainer.train()
    assert find_checkpoint("latest", tmp_path) == str(tmp_path / "checkpoint-2")
    with pytest.raises(FloatingPointError, match=r"The model is not saved"):
        trainer.save_model()
    assert not (tmp_path / "config.json").exists()


def test_a_record_without_an_id_is_named_by_its_words(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS)
    collate = RecordCollator(trainer.processing_class, trainer.data_collator, with_ids=True)
    record = {"tokens": ["the", "alpha", "gene"], "entities": []}
    assert collate([record, {**record, "id": "7"}])[RECORD_IDS] == ["the alpha gene", "7"]
    assert RECORD_IDS not in next(iter(trainer.get_eval_dataloader(trainer.train_dataset)))


# ---- Memory ----


def not_enough_memory(_output) -> None:
    """As torch words it on Windows and arm64."""
    where = "[enforce fail at alloc_cpu.cpp:113] data. "
    raise RuntimeError(f"{where}DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes.")


def gpu_is_full(_output) -> None:
    raise torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.1 GiB is "
        "free. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF."
    )


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        (take_all_memory, r"DefaultCPUAllocator: can't allocate memory.*"),
        (not_enough_memory, r"DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        (gpu_is_full, r"CUDA out of memory\. Tried to allocate 2\.00 GiB"),
    ],
)
def test_memory_that_runs_out_is_explained_with_what_reduces_it(tmp_path, fail, reason) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, per_device_train_batch_size=4)
    trainer.model.register_forward_hook(failing_at_batch(2, fail))
    with pytest.raises(RuntimeError, match=rf"batch of 4 sentences of up to \d+ sub-words \({reason}\)\.") as caught:
        trainer.train()
    assert isinstance(caught.value, OutOfMemoryError)
    for option in ("max_subwords_per_batch", "gradient_accumulation_steps", "triaffine_rank", "bf16"):
        assert f"--{option}" in str(caught.value)
    assert any(field.name in str(caught.value) for field in fields(trainer.args) if "_checkpointing" in field.name)
    assert {*re.findall(r"--(\w+)", str(caught.value))} <= training_options().keys()


def test_what_a_loss_that_is_not_finite_advises_are_options() -> None:
    named = re.findall(r"--(\w+)", str(loss_error(1, math.nan, ["a"], [])))
    assert len(named) > 3
    assert {*named} <= training_options().keys()


def test_of_many_sentences_at_fault_some_are_named_and_the_others_counted() -> None:
    assert "'20' and 3 more." in str(loss_error(1, math.nan, [str(number) for number in range(1, 24)], []))


def test_memory_that_one_sentence_exhausts_is_explained_with_its_name(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, per_device_train_batch_size=1, per_device_eval_batch_size=1)
    trainer.model.register_forward_hook(failing_at_batch(1, take_all_memory))
    for run in (trainer.train, lambda: trainer.evaluate(trainer.train_dataset)):
        with pytest.raises(OutOfMemoryError, match=r"at one sentence of \d+ sub-words, '[^']+' \(") as caught:
            run()
        assert "batch_size" not in str(caught.value)
        trainer.model.register_forward_hook(failing_at_batch(1, take_all_memory))


def test_a_process_other_than_the_first_logs_its_own_faults(tmp_path, monkeypatch, caplog) -> None:
    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.register_forward_hook(failing_at_batch(1, take_all_memory))
    monkeypatch.setattr(NestedNERTrainingArguments, "process_index", 1)
    with pytest.raises(TrainingFault):
        trainer.train()
    [message] = caplog.messages
    assert message.startswith("Process 1: Out of memory")


@pytest.mark.parametrize("fail", [take_all_memory, not_enough_memory])
def test_smaller_batches_are_found_where_memory_runs_out(tmp_path, fail) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, per_device_train_batch_size=8, auto_find_batch_size=True)

    def too_large(_module, _inputs, options, _output) -> None:
        if len(options["num_words"]) > 4:
            fail(None)

    trainer.model.register_forward_hook(too_large, with_kwargs=True)
    trainer.train()
    assert trainer.state.train_batch_size <= 4
    assert describe_settings(trainer)["per_device_train_batch_size"] == trainer.state.train_batch_size
    assert trainer.state.global_step == 3


def test_memory_that_runs_out_in_evaluation_changes_no_batch_size(tmp_path) -> None:
    options = {"auto_find_batch_size": True, "eval_strategy": "epoch"}
    trainer = micro_trainer(tmp_path, RECORDS, RECORDS, **options)
    trainer.model.register_forward_hook(lambda model, *_: None if model.training else take_all_memory(None))
    with pytest.raises(OutOfMemoryError, match=r"batch of \d+ sentences.*--per_device_eval_batch_size"):
        trainer.train()


def test_errors_of_the_program_stay_as_they_are(tmp_path) -> None:
    def fail(_output):
        raise RuntimeError("sizes do not match")

    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.register_forward_hook(failing_at_batch(1, fail))
    with pytest.raises(RuntimeError, match=r"^sizes do not match$") as caught:
        trainer.train()
    assert not isinstance(caught.value, TrainingFault)
