"""LoRA on the encoder by PEFT: a run is resumed, keeps its best checkpoint, and merged leaves an ordinary model."""

import copy
from pathlib import Path

import peft
import pytest
import torch
from huggingface_hub import HfApi
from safetensors.torch import load_file
from transformers import AutoModel, AutoProcessor

from modeling_triaffine import NestedNERTrainer, TriaffineForNestedNER
from modeling_triaffine.publishing import publish_folder
from modeling_triaffine.training.interruptions import ACTIVATION_CHECKPOINTING
from tests.helpers.faults import assert_same_weights
from tests.helpers.micro_training import micro_records, micro_trainer
from tests.helpers.tiny import tiny_model, tiny_processor

RECORDS = micro_records(16)
INPUTS = {"words": [record["tokens"] for record in RECORDS[:4]]}


def lora_trainer(folder: Path) -> NestedNERTrainer:
    """Eight updates in two epochs, checkpointed; embeddings below the adapters are frozen, as PEFT does it."""
    options = {"num_train_epochs": 2, "per_device_train_batch_size": 4, ACTIVATION_CHECKPOINTING: True}
    options |= {"eval_strategy": "epoch", "save_strategy": "epoch", "save_total_limit": 2}
    options |= {"load_best_model_at_end": True, "metric_for_best_model": "loss"}
    trainer = micro_trainer(folder, RECORDS, RECORDS[:4], **options)
    adapters = peft.LoraConfig(r=4, target_modules="all-linear")
    trainer.model.encoder = peft.get_peft_model(trainer.model.encoder, adapters)
    return trainer


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> NestedNERTrainer:
    trainer = lora_trainer(tmp_path_factory.mktemp("lora"))
    trainer.train()
    return trainer


def test_resumed_training_ends_with_the_same_weights(trained, tmp_path):
    resumed = lora_trainer(tmp_path)
    resumed.train(resume_from_checkpoint=str(Path(trained.args.output_dir) / "checkpoint-4"))
    assert resumed.state.global_step == trained.state.global_step == 8
    assert_same_weights(resumed.model.state_dict(), trained.model.state_dict())


def test_checkpoint_with_adapters_is_not_taken_for_a_model(trained):
    with pytest.raises(ValueError, match=r"lack encoder\..*PEFT adapters; .*merge_and_unload"):
        TriaffineForNestedNER.from_pretrained(Path(trained.args.output_dir) / "checkpoint-8")


def test_adapters_are_merged_before_the_model_is_published(tmp_path, monkeypatch):
    monkeypatch.setattr(HfApi, "create_repo", lambda *_, **__: pytest.fail("a repository was made"))
    trainer = lora_trainer(tmp_path)
    trainer.save_model()
    with pytest.raises(ValueError, match="merge_and_unload"):
        trainer.model.push_to_hub("owner/name", processor=trainer.processing_class)
    with pytest.raises(ValueError, match="merge_and_unload"):
        publish_folder(tmp_path, "owner/name")


def test_merged_model_is_saved_as_any_other(trained, tmp_path):
    inputs = trained.processing_class(**INPUTS)
    model, adapted = trained.model.eval(), trained.model.encoder
    with torch.no_grad():
        expected = model(**inputs)
        model.encoder = copy.deepcopy(adapted).merge_and_unload()
        trained.save_model(str(tmp_path))
        model.encoder = adapted  # as other tests find it
        output = AutoModel.from_pretrained(tmp_path)(**AutoProcessor.from_pretrained(tmp_path)(**INPUTS))
    plain = micro_trainer(tmp_path / "plain", RECORDS).model
    assert set(load_file(tmp_path / "model.safetensors")) == set(plain.state_dict())
    torch.testing.assert_close(output.span_logits, expected.span_logits)
    torch.testing.assert_close(output.logits, expected.logits)


@pytest.mark.parametrize("task", [None, "TOKEN_CLS", "FEATURE_EXTRACTION"])
def test_adapters_of_the_head_are_trained(encoder, task):
    model, processor = tiny_model(encoder), tiny_processor(encoder)
    inputs = processor(words=[["gene", "binds"]])
    expected = model(**inputs).span_logits
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type=task, target_modules="all-linear"))
    torch.testing.assert_close(adapted(**inputs).span_logits, expected)
    adapted(**inputs).span_logits.square().sum().backward()
    adapters = [weights for name, weights in adapted.named_parameters() if "scoring.inside.0.lora" in name]
    assert [weights.grad is not None for weights in adapters] == [True, True]
    whole = peft.LoraConfig(task_type=task, target_modules=["query"], modules_to_save=["head"])
    torch.testing.assert_close(peft.get_peft_model(tiny_model(encoder), whole)(**inputs).span_logits, expected)


def test_adapters_beside_quantized_weights_can_be_trained(encoder):
    """transformers' Trainer refuses models whose quantized weights it would train."""
    model = tiny_model(encoder)
    model.is_quantized = True
    assert model.is_quantized
    model.encoder = peft.get_peft_model(model.encoder, peft.LoraConfig(r=4, target_modules="all-linear"))
    assert not model.is_quantized
