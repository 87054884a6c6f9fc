"""Damaged and hostile model folders: refused in one paragraph, before they run code."""

import json
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load, load_file, save_file
from transformers import AutoModel, PretrainedConfig

from modeling_triaffine import NestedNERPipeline, TriaffineForNestedNER, TriaffineProcessor
from tests.helpers.tiny import save_tiny_model, tiny_model

CONFIG, PROCESSOR, VOCABULARIES = "config.json", "processor_config.json", "vocabularies.json"
WEIGHTS = "model.safetensors"
VOCABULARY = {"[PAD]": 0, "[UNK]": 1}


@pytest.fixture(scope="module")
def good_model(encoder, tmp_path_factory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("good") / "model", encoder, ["words", "pos", "chars"])


@pytest.fixture
def model_folder(good_model, tmp_path) -> Path:
    return Path(shutil.copytree(good_model, tmp_path / "model"))


def change(path: Path, fields: Any) -> None:
    """Puts the fields of a dict into the JSON file that is there; anything else takes its place, None removes it."""
    if fields is None:
        path.unlink()
        return
    content = json.loads(path.read_text()) if path.exists() else {}
    for name, value in fields.items() if isinstance(fields, dict) else ():
        content[name] = content[name] | value if name == "encoder_config" and isinstance(value, dict) else value
    path.write_text(json.dumps(content if isinstance(fields, dict) else fields))


DAMAGED: list[tuple[str, Any, str]] = [
    (CONFIG, {"mlp_dropout": "0.1"}, "`mlp_dropout` is '0.1'; it must be a number"),
    (CONFIG, {"id2label": {"0": ["DNA"], "1": "protein", "2": "None"}}, "`id2label` is .*'DNA'.*a name of its own"),
    (CONFIG, {"label2id": [1]}, "a field cannot be parsed .*list"),
    (CONFIG, {"encoder_config": None}, "no `encoder_config`"),
    (CONFIG, {"encoder_config": {"num_hidden_layers": "x"}}, "`encoder_config`.*'num_hidden_layers' expected int"),
    (CONFIG, {"encoder_config": {"hidden_act": "nope"}}, "cannot build the encoder.*'nope'"),
    (CONFIG, {"encoder_config": {"vocab_size": 50}}, "do not match the shapes"),
    (CONFIG, {"lstm_layers": 400}, "`lstm_layers` is 400; it must be from 1 to 16"),
    (CONFIG, [], "config.json"),
    (PROCESSOR, {"max_subwords": "192"}, "`max_subwords` is '192'; it must be"),
    (PROCESSOR, {"vocabulary_parts": ["nonesuch"]}, r"`vocabulary_parts` holds \['nonesuch'\]; choose among words"),
    (PROCESSOR, {"sentence_splitter": ["lines"]}, r"`sentence_splitter` is \['lines'\]"),
    (PROCESSOR, [], "processor_config.json"),
    (VOCABULARIES, {"words": ["gene"]}, "vocabularies.json is damaged"),
    (VOCABULARIES, {"words": {**VOCABULARY, "gene": 3}}, "is damaged .*the vocabulary of words lacks"),
    (VOCABULARIES, {"chars": VOCABULARY | {f"c{n}": n for n in range(2, 100)}}, "reads chars .* too large a one"),
    ("tokenizer_config.json", {"tokenizer_class": 5}, "tokenizer_config.json"),
    ("tokenizer_config.json", {"cls_token": "[NEW]"}, r"ids up to (\d+), but the encoder \1 vectors"),
    ("tokenizer.json", [], "tokenizer.json"),
    (PROCESSOR, None, r"has no processor_config\.json\. .*from_encoder\(\)"),
    *((name, None, f"has no {name}") for name in (VOCABULARIES, "tokenizer.json")),
    (WEIGHTS, None, r"no file named model\.safetensors found in directory"),
]


@pytest.mark.parametrize(("name", "fields", "message"), DAMAGED, ids=lambda value: str(value)[:60])
def test_damaged_and_missing_files_are_refused_in_one_paragraph(model_folder, name, fields, message):
    change(model_folder / name, fields)
    with pytest.raises((ValueError, OSError), match=message) as refusal:
        NestedNERPipeline(model=model_folder)
    assert "\n" not in str(refusal.value)


# ---- weights


@pytest.mark.parametrize(("subfolder", "variant"), [("", None), ("inner", "fp16")])
def test_index_never_leads_out_of_its_folder(encoder, tmp_path, subfolder, variant):
    folder = tmp_path / "model" / subfolder
    model = tiny_model(encoder)
    model.save_pretrained(folder, max_shard_size="20KB", variant=variant)
    model.save_pretrained(folder.parent / "other")
    options = {"subfolder": subfolder, "variant": variant}
    assert TriaffineForNestedNER.from_pretrained(tmp_path / "model", **options)
    (path,) = folder.glob("*.index*.json")
    index = json.loads(path.read_text())
    index["weight_map"]["head.label_bias"] = f"../other/{WEIGHTS}"
    path.write_text(json.dumps(index))
    with pytest.raises(ValueError, match=r"names \.\./other/model\.safetensors, no safetensors file in its folder"):
        TriaffineForNestedNER.from_pretrained(tmp_path / "model", **options)
    for damaged in ({}, {"weight_map": {"a": 5}, "metadata": {}}, {"weight_map": {"a": WEIGHTS}}):
        path.write_text(json.dumps(damaged))
        with pytest.raises(ValueError, match=rf"{path.name} is not a valid index of weights"):
            TriaffineForNestedNER.from_pretrained(tmp_path / "model", **options)


def test_damaged_or_incomplete_weights_are_refused(model_folder):
    path = model_folder / WEIGHTS
    whole = path.read_bytes()
    weights = load(whole)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="damaged or cut off"):
        TriaffineForNestedNER.from_pretrained(model_folder)
    for name, value in (("head.label_bias", float("nan")), ("encoder.embeddings.word_embeddings.weight", float("inf"))):
        broken = {**weights, name: weights[name].clone()}
        broken[name].flatten()[-1] = value
        save_file(broken, path, metadata={"format": "pt"})
        for kind in (TriaffineForNestedNER, AutoModel):
            with pytest.raises(ValueError, match=rf"hold numbers that are not finite, in {name}\. Use"):
                kind.from_pretrained(model_folder)
    del weights["head.label_bias"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"lack head\.label_bias, which would be random"):
        AutoModel.from_pretrained(model_folder)


def test_pickled_weights_are_never_read(model_folder):
    """Also where the configuration names them."""
    torch.save(load_file(model_folder / WEIGHTS), model_folder / "pytorch_model.bin")
    torch.save({}, model_folder / "adapter_model.bin")
    change(model_folder / CONFIG, {"transformers_weights": "adapter_model.bin"})
    assert TriaffineForNestedNER.from_pretrained(model_folder)
    (model_folder / WEIGHTS).unlink()
    with pytest.raises(OSError, match="safetensors"):
        TriaffineForNestedNER.from_pretrained(model_folder, use_safetensors=False)


def test_sizes_are_compared_before_memory_is_taken(model_folder, monkeypatch):
    """Tensors of the sizes in the configuration are not made first, to be refused then."""
    change(model_folder / CONFIG, {"encoder_config": {"vocab_size": 2**23}, "word_vocab_size": 2**23})
    monkeypatch.setattr(torch, "empty_like", lambda *_, **__: pytest.fail("memory was taken"))
    with pytest.raises(ValueError, match=r"word_embeddings\.weight \[\d+, 16\], not \[8388608, 16\]"):
        TriaffineForNestedNER.from_pretrained(model_folder)


def test_the_place_of_weights_that_fill_the_disk_is_named(saved_model, tmp_path, monkeypatch):
    full = mock.Mock(side_effect=SafetensorError("No space left on device"))
    monkeypatch.setattr("transformers.modeling_utils.safe_save_file", full)
    with pytest.raises(OSError, match=f"cannot be written to {tmp_path}: No space left"):
        TriaffineForNestedNER.from_pretrained(saved_model).save_pretrained(tmp_path)


def test_an_adapter_does_not_bring_other_weights(model_folder):
    pytest.importorskip("peft")  # without it, transformers reads no adapters
    (model_folder / "adapter_config.json").write_text('{"base_model_name_or_path": "owner/other"}')
    for loader in (TriaffineForNestedNER.from_pretrained, AutoModel.from_pretrained, NestedNERPipeline):
        with pytest.raises(ValueError, match=r"name an audio tokenizer or an adapter|load_adapter\("):
            loader(model_folder)


# ---- code


EVIL_TOKENIZER = {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}, "tokenizer_class": "Evil"}
EVIL_CONFIG = {"auto_map": {"AutoConfig": "evil.Evil"}, "model_type": "evil"}
EVIL_PART = {"model_type": "align_text_model", "auto_map": {"AutoModel": "me/x--evil.Evil"}}
EVIL_AUDIO = {"audio_tokenizer_class": "AutoModel", "audio_tokenizer_name_or_path": "evil"}


@pytest.mark.parametrize(
    ("name", "fields", "load", "options"),
    [
        ("tokenizer_config.json", EVIL_TOKENIZER, TriaffineProcessor.from_pretrained, {}),
        ("tokenizer_config.json", EVIL_TOKENIZER, TriaffineProcessor.from_pretrained, {"trust_remote_code": None}),
        ("tokenizer_config.json", EVIL_TOKENIZER, TriaffineProcessor.from_encoder, {}),
        (PROCESSOR, {"audio_tokenizer": EVIL_AUDIO}, TriaffineProcessor.from_pretrained, {}),
        ("audio_tokenizer_config.json", EVIL_AUDIO, TriaffineProcessor.from_pretrained, {}),
        (CONFIG, EVIL_CONFIG, TriaffineForNestedNER.from_encoder, {"num_labels": 2}),
        (CONFIG, {"encoder_config": {"model_type": "llava", "vision_config": EVIL_PART}}, NestedNERPipeline, {}),
    ],
)
def test_a_strangers_code_is_not_run_by_an_answer_from_the_terminal(
    model_folder, monkeypatch, tmp_path, name, fields, load, options
):
    """Standard input may be a text to predict on, whose first line would be the answer."""
    run = tmp_path / "run"
    (model_folder / "evil.py").write_text(f"open({str(run)!r}, 'w')\nclass Evil: pass\n")
    change(model_folder / name, fields)
    monkeypatch.setattr("builtins.input", lambda _: "y")
    with pytest.raises(ValueError, match="custom code"):
        load(model_folder, **options)
    assert not run.exists()


HUB_KERNEL = "evil/flash-attn"
FORMS_OF_FIELDS = (("", ""), ("_", ""), ("_", "_internal"))


def test_a_file_does_not_choose_how_attention_is_computed(model_folder, monkeypatch):
    """It could name code on the Hub, which transformers downloads and runs (CVE-2026-4372)."""
    kinds = ("attn_implementation", "experts_implementation")
    fields = dict.fromkeys((f"{start}{kind}{end}" for kind in kinds for start, end in FORMS_OF_FIELDS), HUB_KERNEL)
    change(model_folder / CONFIG, {**fields, "encoder_config": fields})
    received = []  # by transformers, of which only newer versions drop some of these fields themselves
    from_dict = PretrainedConfig.from_dict.__func__

    def receive(cls: Any, values: dict[str, Any], **options: Any) -> Any:
        received.append(str(values))
        return from_dict(cls, values, **options)

    monkeypatch.setattr(PretrainedConfig, "from_dict", classmethod(receive))
    model = TriaffineForNestedNER.from_pretrained(model_folder)
    for config in (model.config, model.encoder.config):
        assert HUB_KERNEL not in (config._attn_implementation, config._experts_implementation)
    assert received
    assert not any(HUB_KERNEL in values for values in received)
    chosen = TriaffineForNestedNER.from_pretrained(model_folder, attn_implementation="eager")
    assert chosen.encoder.config._attn_implementation == "eager"
