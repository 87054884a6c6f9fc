"""Keywords that transformers documents for loading, `pipeline` and calling: they work, or are refused by name."""

import numpy as np
import pytest
import torch
import transformers

from modeling_triaffine import NestedNERPipeline, TriaffineConfig, TriaffineForNestedNER, TriaffineProcessor

TEXT = "The IL-2 gene binds protein. It is DNA!"


def load(folder, **options):
    assert TriaffineForNestedNER.from_pretrained(folder, **options).head.label_bias.isfinite().all()


def find(folder, **options):
    found = transformers.pipeline("ner", model=str(folder), trust_remote_code=True, **options)(TEXT)
    assert isinstance(found, list)


def encode(folder, **options):
    processor = TriaffineProcessor.from_pretrained(folder)
    batch, expected = processor(TEXT, **options), processor(TEXT)
    assert all(np.array_equal(batch[name], values) for name, values in expected.items())


def test_keywords_of_transformers_work_together(saved_model, tmp_path):
    attention = {"attn_implementation": "eager"}
    where = {"cache_dir": tmp_path / "cache", "local_files_only": True, "token": None}
    where |= {"subfolder": "", "revision": "main"}
    how = {"use_safetensors": False, "dtype": torch.float32, "device_map": "cpu", "quantization_config": None}
    load(saved_model, config=TriaffineConfig.from_pretrained(saved_model), **where, **how, **attention)
    parts = {"tokenizer": str(saved_model), "processor": TriaffineProcessor.from_pretrained(saved_model)}
    find(saved_model, **parts, revision="main", use_fast=True, token=None, local_files_only=True, num_workers=0)
    find(saved_model, device="cpu", dtype=torch.float32, model_kwargs=attention, pipeline_class=NestedNERPipeline)
    find(saved_model, device_map="cpu", batch_size=2, threshold=0.2, aggregation_strategy="simple", ignore_labels=["O"])
    encode(saved_model, return_tensors="np", padding=True, truncation=True)


@pytest.mark.parametrize(
    ("call", "options", "kind"),
    [
        (load, {"made_up": 1}, TypeError),
        *((find, {name: object()}, TypeError) for name in ("feature_extractor", "image_processor", "made_up")),
        *((encode, {name: 8}, TypeError) for name in ("text_pair", "max_length", "stride", "images")),
        *((encode, {"padding": value}, ValueError) for value in (False, "max_length")),
        (encode, {"truncation": "only_first"}, ValueError),
    ],
)
def test_a_keyword_that_cannot_be_followed_is_refused_by_its_name(saved_model, call, options, kind):
    (name,) = options
    with pytest.raises(kind, match=name):
        call(saved_model, **options)


def test_inputs_that_are_not_of_the_processor_and_the_collator_are_refused(saved_model):
    model, processor = NestedNERPipeline(model=saved_model).model, TriaffineProcessor.from_pretrained(saved_model)
    with pytest.raises(ValueError, match=r"`word_index`.*TriaffineProcessor"):
        model(**processor.tokenizer(TEXT, return_tensors="pt"))
    with pytest.raises(ValueError, match=r"as DataCollatorForNestedNER makes them, but `labels` is \[1, 5\]"):
        model(**processor(TEXT.partition(".")[0]), labels=torch.zeros(1, 5, dtype=torch.long))
