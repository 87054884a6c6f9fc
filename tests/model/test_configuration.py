"""TriaffineConfig: defaults, labels, every refusal, round trips."""

import json

import pytest
from transformers import AutoConfig, BertConfig

from modeling_triaffine import TriaffineConfig


def test_defaults_are_the_full_model_of_the_paper():
    config = TriaffineConfig(num_labels=4, hidden_size=8)
    assert config.id2label == {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2", 3: "None"}
    assert (config.attention, config.scoring, config.cross_span, config.cross_span_axis) == (
        *("triaffine", "triaffine"),
        True,
        "key",
    )
    assert (config.triaffine_dim, config.max_candidates, config.max_subwords) == (256, 30, 192)


def test_round_trip_through_json(tmp_path):
    encoder = BertConfig(hidden_size=32, num_attention_heads=2, name_or_path="/some/where")
    config = TriaffineConfig(encoder_config=encoder, id2label={0: "DNA", 1: "None"}, triaffine_rank=8)
    config.save_pretrained(tmp_path)
    assert "/some/where" not in (tmp_path / "config.json").read_text()
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert type(loaded) is TriaffineConfig
    loaded_fields, fields = (json.loads(one.to_json_string()) for one in (loaded, config))
    loaded_fields.pop("_name_or_path", None), fields.pop("_name_or_path", None)
    assert loaded_fields == fields
    assert loaded.hidden_size == 32
    assert type(loaded.encoder_config) is BertConfig


def test_keys_of_json_become_numbers_and_label2id_alone_is_enough():
    assert TriaffineConfig(id2label={"0": "a", "1": "None"}).id2label == {0: "a", 1: "None"}
    assert TriaffineConfig(label2id={"None": 1, "a": 0}).id2label == {0: "a", 1: "None"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"attention": "biaffine"}, r"`attention` is 'biaffine'; choose one of 'triaffine'"),
        ({"scoring": "quadratic"}, "`scoring`"),
        ({"cross_span_axis": "rows"}, "`cross_span_axis`"),
        ({"loss_reduction": "sum"}, "`loss_reduction`"),
        ({"subword_pooling": "last"}, "`subword_pooling`"),
        ({"context": "all"}, "`context`"),
        ({"attention": "none"}, "do not fit"),
        ({"scoring": "biaffine", "cross_span": False}, "do not fit"),
        ({"attention": "none", "scoring": "biaffine"}, "set cross_span=False"),
        ({"attention": "label", "scoring": "linear_boundary_shared", "cross_span": False}, "linear_boundary"),
        ({"attention": "label"}, "share_triaffine=False or cross_span=False"),
        ({"scoring": "linear"}, "share_triaffine=False or cross_span=False"),
        ({"triaffine_dim": 0}, "`triaffine_dim` is 0"),
        ({"triaffine_rank": 0}, "`triaffine_rank`"),
        ({"max_span_width": -1}, "`max_span_width`"),
        ({"max_candidates": 2.5}, "`max_candidates` is 2.5"),
        ({"mlp_dropout": 1.0}, "`mlp_dropout`"),
        ({"triaffine_init_std": 0}, "`triaffine_init_std`"),
        ({"pos_embedding_size": 50}, "`pos_vocab_size` is 0"),
        ({"char_lstm_hidden_size": 25}, "switched on together"),
        ({"id2label": {0: "DNA", 1: "O"}}, 'must be "None"'),
        ({"id2label": {0: "None", 1: "DNA"}}, 'must be "None"'),
        ({"id2label": {0: "DNA", 2: "None"}}, "number at least two labels"),
        ({"id2label": {0: "DNA", 1: "DNA", 2: "None"}}, "same name"),
        ({"id2label": {0: "DNA", 1: "None"}, "num_labels": 3}, "leave num_labels out"),
        ({"id2label": {0: "DNA", 1: "None"}, "label2id": {"DNA": 1, "None": 0}}, "inverse"),
        ({"encoder_config": {"hidden_size": 8}}, "model_type"),
        ({"encoder_config": {"model_type": "bert", "hidden_size": 24}, "hidden_size": 8}, "the encoder's width is 24"),
        ({"encoder_config": {"model_type": "bert", "max_position_embeddings": 64}}, "at most 64"),
    ],
)
def test_refusals(fields, message):
    with pytest.raises(ValueError, match=message):
        TriaffineConfig(**({"num_labels": 4} if "id2label" not in fields else {}) | fields)


def test_code_and_auto_classes_are_named_in_the_saved_folder(tmp_path):
    TriaffineConfig(num_labels=3, hidden_size=8).save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    for reference in [*saved["auto_map"].values(), saved["custom_pipelines"]["token-classification"]["impl"]]:
        module, name = reference.split(".")
        assert f"class {name}(" in (tmp_path / f"{module}.py").read_text()


def test_configuration_given_is_left_as_it_is_and_foreign_fields_are_kept():
    encoder = BertConfig(hidden_size=32, num_attention_heads=2, name_or_path="/some/where", dtype="float16")
    config = TriaffineConfig(encoder_config=encoder, num_labels=3, classifier_dropout=None)
    assert encoder._name_or_path == "/some/where"
    assert config.encoder_config.dtype is None
    assert config.classifier_dropout is None
