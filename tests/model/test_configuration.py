"""TriaffineConfig: defaults, labels, every refusal, round trips."""

import json

import pytest
from transformers import AutoConfig, BertConfig
from transformers.pipelines import clean_custom_task

from modeling_triaffine import TriaffineConfig, TriaffineForNestedNER
from modeling_triaffine.model.configuration_triaffine import PipelineTasks

THREE = {0: "DNA", 1: "protein", 2: "other_name", 3: "None"}


def test_defaults_are_the_full_model_of_the_paper():
    assert TriaffineConfig(id2label=THREE, auxiliary_labels=["other_name"]).entity_labels == ["DNA", "protein"]
    config = TriaffineConfig(num_labels=4, hidden_size=8)
    assert config.id2label == {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2", 3: "None"}
    assert (config.attention, config.scoring) == ("triaffine", "triaffine")
    assert (config.cross_span, config.cross_span_axis) == (True, "key")
    assert (config.triaffine_dim, config.max_candidates, config.max_subwords) == (256, 30, 192)


def test_round_trip_through_json(tmp_path):
    encoder = BertConfig(hidden_size=32, num_attention_heads=2, name_or_path="/some/where")
    config = TriaffineConfig(encoder_config=encoder, id2label={0: "DNA", 1: "None"}, triaffine_rank=8)
    config.save_pretrained(tmp_path)
    assert "/some/where" not in (tmp_path / "config.json").read_text()
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert type(loaded) is TriaffineConfig
    loaded_fields, fields = (json.loads(each.to_json_string()) for each in (loaded, config))
    assert loaded_fields | {"_name_or_path": ""} == fields | {"_name_or_path": ""}
    assert type(loaded.encoder_config) is BertConfig


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "nonesuch") for name in ("attention", "scoring", "loss_reduction", "context")),
        *(("triaffine_dim", value) for value in (0, True, "8", 2**30, None)),
        *(("mlp_dropout", value) for value in (1.0, float("nan"), None)),
        *((name, 0) for name in ("triaffine_rank", "cross_span")),
        ("hidden_size", 2**30),
        *(("encoder_config", value) for value in ("bert-base-cased", {"model_type": "clip"})),
    ],
)
def test_a_value_out_of_its_bounds_is_refused_by_name_when_built_and_when_set(name, value):
    with pytest.raises(ValueError, match=f"`{name}` is ") as built:
        TriaffineConfig(**{name: value})
    config = TriaffineConfig()
    before = getattr(config, name)
    with pytest.raises(ValueError, match=f"`{name}` is ") as set_later:
        setattr(config, name, value)
    assert str(built.value) == str(set_later.value)
    assert "\n" not in str(built.value)
    assert getattr(config, name) == before


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({"attention": "none"}, ("'none'", "'triaffine'")),
        ({"scoring": "biaffine", "cross_span": False}, ("'biaffine'", "attentions that fit are 'none'")),
        ({"attention": "none", "scoring": "biaffine"}, ("cross_span=False",)),
        ({"attention": "label", "scoring": "linear_boundary_shared", "cross_span": False}, ("boundary MLPs",)),
        ({"attention": "label"}, ("share_triaffine=False", "cross_span=False")),
        ({"scoring": "linear"}, ("share_triaffine=False", "cross_span=False")),
        ({"pos_embedding_size": 50}, ("`pos_vocab_size` is 0",)),
        ({"char_lstm_hidden_size": 25}, ("`char_embedding_size`",)),
        ({"encoder_config": {"hidden_size": 8}}, ("model_type",)),
        ({"encoder_config": {"model_type": "bert", "hidden_size": 24}, "hidden_size": 8}, ("8", "24")),
        ({"id2label": {0: "None", 1: "DNA"}}, ('"None"',)),
        ({"id2label": {0: "DNA", 2: "None"}}, ("`id2label` is {0: 'DNA', 2: 'None'}; number at least two labels",)),
        ({"id2label": {"x": "DNA", 1: "None"}}, ("'x'",)),
        ({"id2label": {0: "DNA", "0": "RNA", 1: "None"}}, ("'0': 'RNA'",)),
        ({"label2id": {"DNA": 0, "RNA": 0, "None": 1}}, ("`label2id` is {'DNA': 0, 'RNA': 0, 'None': 1}, unlike",)),
        ({"id2label": {0: "DNA", 1: "DNA", 2: "None"}}, ("a name of its own",)),
        ({"id2label": {0: "DNA", 1: "None"}, "num_labels": 3}, ("`num_labels` is 3",)),
        ({"id2label": {0: "DNA", 1: "None"}, "label2id": {"DNA": 1, "None": 0}}, ("`label2id`",)),
        *(
            ({"id2label": THREE, "auxiliary_labels": names}, ("`auxiliary_labels`",))
            for names in (["DNA"], ["None"], ["DNA", "protein", "other_name"], "other_name")
        ),
    ],
)
def test_choices_sizes_and_labels_that_do_not_fit_together(fields, facts):
    with pytest.raises(ValueError, match="TriaffineConfig") as error:
        TriaffineConfig(**fields)
    assert all(fact in str(error.value) for fact in facts)


OTHERS = {0: "PER", 1: "ORG", 2: "None"}
INVERSE = {"PER": 0, "ORG": 1, "None": 2}


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ({"num_labels": 3, "id2label": OTHERS, "label2id": INVERSE}, ["PER", "ORG", "None"]),
        ({"label2id": INVERSE}, ["PER", "ORG", "None"]),
        ({"num_labels": 3, "id2label": {str(i): name for i, name in OTHERS.items()}}, ["PER", "ORG", "None"]),
        ({"num_labels": 3}, ["LABEL_0", "LABEL_1", "None"]),
        ({"num_labels": 2}, ["DNA", "None"]),
        ({"num_labels": None, "id2label": None}, ["DNA", "None"]),
    ],
)
def test_labels_given_together_replace_those_of_the_file(given, labels, tmp_path):
    config = TriaffineConfig(id2label={0: "DNA", 1: "None"}, temperature=2.0, label_thresholds={"DNA": 0.3})
    config.save_pretrained(tmp_path)
    for load in (TriaffineConfig.from_pretrained, AutoConfig.from_pretrained):
        loaded, unused = load(tmp_path, return_unused_kwargs=True, foo=1, **given)
        assert list(loaded.id2label.values()) == labels
        assert loaded.label2id == {name: number for number, name in enumerate(labels)}
        assert unused == {"foo": 1}
        calibration = (2.0, {"DNA": 0.3}) if len(labels) == 2 else (1.0, None)
        assert (loaded.temperature, loaded.label_thresholds) == calibration


def test_thresholds_go_with_renamed_labels(tmp_path):
    labels = {0: "DNA", 1: "RNA", 2: "None"}
    TriaffineConfig(id2label=labels, temperature=2.0, label_thresholds={"RNA": 0.3}).save_pretrained(tmp_path)
    config = TriaffineConfig.from_pretrained(tmp_path, id2label={**labels, 1: "messenger"})
    assert (config.temperature, config.label_thresholds) == (2.0, {"messenger": 0.3})
    config.id2label = {**labels, 1: "transfer"}
    config.num_labels = 3  # as it is
    assert config.label_thresholds == {"transfer": 0.3}
    config.auxiliary_labels = ["transfer"]
    config.num_labels = 4
    assert (config.trained_labels, config.auxiliary_labels) == (["LABEL_0", "LABEL_1", "LABEL_2"], None)
    config.validate()
    config.id2label = {0: "DNA", 1: "None"}
    assert (config.temperature, config.label_thresholds) == (1.0, None)


def test_the_custom_pipeline_is_for_processes_without_the_package(tmp_path, monkeypatch):
    TriaffineConfig(num_labels=3, hidden_size=8).save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    config = TriaffineConfig.from_pretrained(tmp_path)
    tasks = config.custom_pipelines
    assert (len(tasks), "ner" in tasks) == (1, False)  # this package has a pipeline of its own
    monkeypatch.setattr(PipelineTasks, "is_installed", False)
    assert ("ner" in tasks, "summarization" in tasks) == (True, False)
    assert tasks["ner"] == saved["custom_pipelines"]["token-classification"]
    clean_custom_task(tasks["ner"])  # as `pipeline(…, config=config)` does
    assert json.loads(config.to_json_string())["custom_pipelines"] == saved["custom_pipelines"]


@pytest.mark.parametrize("kind", [TriaffineConfig, TriaffineForNestedNER])
def test_a_model_of_another_type_is_refused_without_warnings_of_its_fields(kind, encoder, caplog):
    with pytest.raises(ValueError, match=r"it is a model of type 'bert'.* TriaffineForNestedNER.from_encoder\(\)\.$"):
        kind.from_pretrained(encoder)
    assert caplog.messages == []
