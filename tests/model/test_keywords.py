"""Every keyword that transformers documents for `pipeline`, loading, saving and calling works or is refused by name."""

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoConfig, AutoTokenizer

from modeling_triaffine import NestedNERPipeline, TriaffineForNestedNER, TriaffineProcessor

TEXT = "The IL-2 gene binds protein. It is DNA!"

# Keyword → a value it works with, or (value, error's kind) where it is refused by name.
LOADING = {
    "config": AutoConfig.from_pretrained,
    "cache_dir": "cache",
    "local_files_only": True,
    "use_safetensors": False,
    "attn_implementation": "eager",
    "dtype": torch.float32,
    "device_map": "cpu",
    "subfolder": "",
    "output_loading_info": False,
    "trust_remote_code": False,
    "made_up": (1, TypeError),
    **dict.fromkeys(("token", "quantization_config", "variant", "state_dict", "proxies"), None),
}
PIPELINE = {
    "config": AutoConfig.from_pretrained,
    "tokenizer": AutoTokenizer.from_pretrained,
    **dict.fromkeys(("feature_extractor", "image_processor", "video_processor", "made_up"), (object(), TypeError)),
    "processor": TriaffineProcessor.from_pretrained,
    "revision": "main",
    "use_fast": True,
    "token": None,
    "device": "cpu",
    "device_map": "cpu",
    "dtype": torch.float32,
    "model_kwargs": {"attn_implementation": "eager"},
    "pipeline_class": lambda folder: NestedNERPipeline,
    "batch_size": 2,
    "num_workers": 0,
    "threshold": 0.2,
    "aggregation_strategy": "simple",
    "ignore_labels": ["O"],
    "local_files_only": True,
    "cache_dir": ("cache", TypeError),
}
PROCESSOR = {
    "return_tensors": "np",
    "padding": True,
    "truncation": True,
    "text_pair": ("x", TypeError),
    "text_kwargs": ({"padding": True}, TypeError),
    "common_kwargs": ({"return_tensors": "pt"}, TypeError),
    **dict.fromkeys(("max_length", "stride", "add_special_tokens", "return_offsets_mapping"), (8, TypeError)),
    **dict.fromkeys(("images", "audio", "videos"), (None, TypeError)),
}


def load(folder, **options):
    assert TriaffineForNestedNER.from_pretrained(folder, **options).head.label_bias.isfinite().all()


def find(folder, **options):
    found = transformers.pipeline("ner", model=str(folder), trust_remote_code=True, **options)(TEXT)
    assert isinstance(found, list)


def encode(folder, **options):
    processor = TriaffineProcessor.from_pretrained(folder)
    batch, expected = processor(TEXT, **options), processor(TEXT)
    assert all(np.array_equal(batch[name], values) for name, values in expected.items())


TABLES = ((load, LOADING), (find, PIPELINE), (encode, PROCESSOR))


@pytest.mark.parametrize(("call", "table", "name"), [(call, table, name) for call, table in TABLES for name in table])
def test_a_keyword_works_or_is_refused_by_its_name(call, table, name, saved_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value, refused = table[name] if isinstance(table[name], tuple) else (table[name], None)
    value = value(saved_model) if callable(value) else value
    if refused is None:
        call(saved_model, **{name: value})
    else:
        with pytest.raises(refused, match=name):
            call(saved_model, **{name: value})


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"padding": False}, "`padding` is False"),
        ({"padding": "max_length"}, "`padding` is 'max_length'"),
        ({"truncation": "only_first"}, "`truncation` is 'only_first'"),
        ({"return_tensors": "tf"}, "tf"),
    ],
)
def test_values_that_a_processor_cannot_follow(saved_model, options, fact):
    with pytest.raises(ValueError, match=fact):
        TriaffineProcessor.from_pretrained(saved_model)(TEXT, **options)


def test_the_output_of_a_tokenizer_is_no_input_of_the_model(saved_model):
    model, processor = NestedNERPipeline(model=saved_model).model, TriaffineProcessor.from_pretrained(saved_model)
    with pytest.raises(ValueError, match=r"`word_index`.*TriaffineProcessor"):
        model(**processor.tokenizer(TEXT, return_tensors="pt"))


def test_labels_of_words_are_not_those_of_spans(saved_model):
    model, processor = NestedNERPipeline(model=saved_model).model, TriaffineProcessor.from_pretrained(saved_model)
    inputs = processor(TEXT.partition(".")[0])
    with pytest.raises(ValueError, match=r"as DataCollatorForNestedNER makes them, but `labels` is \[1, 5\]"):
        model(**inputs, labels=torch.zeros(1, 5, dtype=torch.long))
