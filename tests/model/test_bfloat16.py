"""bfloat16 on the CPU: used where the processor multiplies it faster, else replaced by float32 with a warning."""

import pytest
import torch
from transformers import pipeline

from modeling_triaffine import NestedNERPipeline, NestedNERTrainingArguments
from modeling_triaffine.model import pipeline_triaffine
from modeling_triaffine.model.triaffine_blocks import multiplies_bfloat16
from modeling_triaffine.training import plan

WARNING = "multiplies float32 faster than bfloat16"


@pytest.fixture(params=[True, False], ids=["with instructions", "without"])
def has_instructions(request, monkeypatch):
    for module in (pipeline_triaffine, plan):
        monkeypatch.setattr(module, "multiplies_bfloat16", lambda: request.param)
    return request.param


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"avx512_bf16": True, "avx2": True, "cpu_name": "AMD EPYC"}, True),
        ({"avx512_bf16": True, "amx_bf16": False, "cpu_name": "Intel Xeon"}, False),
        ({"avx512_bf16": True, "amx_bf16": True, "cpu_name": "Intel Xeon"}, True),
        ({"amx_bf16": True}, True),
        ({"bf16": True, "neon": True}, True),
        ({}, False),
    ],
)
def test_instructions_are_those_that_torch_names(monkeypatch, capabilities, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert multiplies_bfloat16() == expected


@pytest.mark.parametrize("load", [NestedNERPipeline, lambda **options: pipeline("ner", **options)], ids=["ours", "ner"])
def test_a_pipeline_computes_in_bfloat16_where_that_is_fast(saved_model, has_instructions, caplog, load):
    loaded = load(model=str(saved_model), dtype="bfloat16", device="cpu")
    expected = torch.bfloat16 if has_instructions else torch.float32
    assert {weight.dtype for weight in loaded.model.parameters()} == {expected}
    assert (WARNING in caplog.text) != has_instructions


def test_training_on_a_cpu_needs_no_other_option(tmp_path, has_instructions, monkeypatch, caplog):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    options = NestedNERTrainingArguments(str(tmp_path), bf16=True)
    assert (options.bf16, options.device.type) == (has_instructions, "cpu")
    assert (WARNING in caplog.text) != has_instructions
