"""Devices that there are not, and labels that a call keeps."""

import shutil

import pytest
import torch

from modeling_triaffine import NestedNERPipeline
from tests.helpers.tiny import tiny_pipeline


def test_a_device_that_there_is_not(saved_model, caplog, monkeypatch):
    for device in ("cuda:9", "bogus"):
        with pytest.raises(ValueError, match=f"There is no device '{device}'"):
            NestedNERPipeline(saved_model, device=device)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert NestedNERPipeline(saved_model, device=0).device.type == "cpu"
    assert "device=0, but torch finds no GPU" in caplog.text


def test_labels_that_a_call_keeps(encoder):
    pipeline = tiny_pipeline(encoder, seed=2)
    text = "The gene-protein binds."
    by_label = [pipeline(text, threshold=0.3, labels=[label]) for label in ("DNA", "protein")]
    assert by_label == [[], pipeline(text, threshold=0.3)]
    assert by_label[1]
    with pytest.raises(ValueError, match="`labels` is"):
        pipeline(text, labels=["virus"])


def test_a_folder_without_weights_is_named(saved_model, tmp_path):
    shutil.copytree(saved_model, tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    with pytest.raises(FileNotFoundError, match=r"has no model\.safetensors; train a model first"):
        NestedNERPipeline(tmp_path / "model")
