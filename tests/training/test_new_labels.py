"""A trained model goes on with new labels, and keeps those that the new data does not annotate."""

import json
import logging
import shutil
from pathlib import Path

import pytest
import torch

from modeling_triaffine import DataCollatorForNestedNER, TriaffineConfig
from modeling_triaffine.commands import main
from modeling_triaffine.evaluation.prediction import predict_words
from modeling_triaffine.training import new_labels
from modeling_triaffine.training.new_labels import START_BELOW, extend_labels
from modeling_triaffine.training.run import prepare_run
from tests.helpers.micro_training import micro_records, write_lines
from tests.helpers.tiny import tiny_model, tiny_processor

RECORDS = [{"tokens": ["The", "gene", "binds", "DNA"]}, {"tokens": ["protein"]}]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"triaffine_rank": 3},
        {"share_triaffine": False},
        {"attention": "label", "share_triaffine": False},
        {"attention": "triaffine_no_label"},
        {"attention": "linear", "scoring": "linear_boundary", "cross_span": False},
        {"attention": "none", "scoring": "biaffine_shared", "cross_span": False},
        {"multi_label": True, "triaffine_rank": 3},
    ],
    ids=str,
)
def test_a_model_finds_the_same_with_new_labels(encoder, fields):
    model, processor = tiny_model(encoder, **fields), tiny_processor(encoder)
    for bias in (value for name, value in model.named_parameters() if name.endswith("label_bias")):
        bias.data[-1] -= 3  # so that something is found
    extended = extend_labels(model, ["RNA", "virus"])
    assert extended.config.entity_labels == ["DNA", "protein", "RNA", "virus"]
    assert extended.training == model.training
    batch = processor.pad(processor.encode([record["tokens"] for record in RECORDS]))
    with torch.no_grad():
        before, after = model(**batch).span_logits, extended(**batch).span_logits
    columns = [0, 1] if model.config.multi_label else [0, 1, 4]
    torch.testing.assert_close(after[..., columns], before, rtol=1e-4, atol=1e-5)
    spans = before[..., 0] > -1e3
    last = before[..., -1][spans] - START_BELOW
    torch.testing.assert_close(after[..., 2:4][spans], torch.stack([last, last], dim=-1), rtol=1e-4, atol=1e-5)
    if not model.config.multi_label:
        old, new = (
            [
                [(one["start"], one["end"], one["type"]) for one in found]
                for found in predict_words(one, processor, RECORDS)
            ]
            for one in (model, extended)
        )
        assert any(old)
        assert old == new


@pytest.mark.parametrize("multi_label", [False, True])
def test_kept_entities_are_learned_where_sure_and_left_out_where_not(encoder, multi_label):
    processor = tiny_processor(encoder)
    collator = DataCollatorForNestedNER(processor, {"DNA": 0, "protein": 1, "None": 2}, multi_label=multi_label)
    (feature,) = processor.encode([["a", "b"]])
    feature["entities"] = [{"start": 0, "end": 1, "type": "protein"}]
    scores = [(0, 1, 0.9), (0, 2, 0.6), (1, 2, 0.2)]
    feature["kept"] = [{"start": start, "end": end, "type": "DNA", "score": score} for start, end, score in scores]
    labels = collator([feature])["labels"][0]
    if multi_label:
        assert labels[[0, 0, 1], [0, 1, 1]].tolist() == [[1, 1], [1, 0], [-100, 0]]
    else:
        assert labels.tolist() == [[1, 0], [-100, -100]]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """As of the micro model, but with proteins only; every second one is a virus."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for seed, name in enumerate(("train", "dev")):
        records = micro_records(6, seed)
        for record in records:
            proteins = [entity for entity in record["entities"] if entity["type"] == "protein"]
            for entity in proteins[::2]:
                entity["type"] = "virus"
            record["entities"] = proteins
        write_lines(folder / f"{name}.jsonl", records)
    return folder


@pytest.fixture
def options(saved_model, corpus, tmp_path):
    given = {"model_name_or_path": saved_model, "train_file": corpus, "output_dir": tmp_path / "out"}
    given |= {"num_train_epochs": 1, "disable_tqdm": 1, "card_examples": 0}
    return ["--use_cpu", *(str(part) for name, value in given.items() for part in (f"--{name}", value))]


def test_training_goes_on_with_new_labels_and_warns_of_those_that_are_gone(options, saved_model, tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    main(["train", *options, "--keep_labels", "--eval_strategy", "no", "--save_strategy", "no"])
    assert all(name in caplog.text for name in ("virus", "DNA"))
    config = TriaffineConfig.from_pretrained(tmp_path / "out")
    assert config.entity_labels == ["DNA", "protein", "virus"]
    summary = json.loads((tmp_path / "out" / "run_summary.json").read_text())
    assert summary["labels"]["DNA"]["count"] == 0


def test_what_the_model_finds_of_labels_that_the_data_lacks_is_kept(options, monkeypatch):
    monkeypatch.setattr(new_labels, "LIKELY", 0.1)  # the model is not trained
    run = prepare_run([*options, "--keep_labels"])
    kept = [entity for entities in run.dataset["train"]["kept"] for entity in entities]
    assert kept
    assert {entity["type"] for entity in kept} == {"DNA"}
    assert all(entity["score"] >= 0.1 for entity in kept)
    assert "kept" not in run.dataset["validation"].column_names
    assert "kept" not in prepare_run(options).dataset["train"].column_names


def test_a_calibration_does_not_outlive_further_training(options, saved_model, tmp_path, caplog):
    config = TriaffineConfig.from_pretrained(saved_model)
    config.temperature, config.label_thresholds = 1.5, {"DNA": 0.3}
    calibrated = tmp_path / "calibrated"
    shutil.copytree(saved_model, calibrated)
    config.save_pretrained(calibrated)
    run = prepare_run([*options, "--model_name_or_path", str(calibrated)])
    assert (run.trainer.model.config.temperature, run.trainer.model.config.label_thresholds) == (1.0, None)
    assert "calibrat" in caplog.text


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (lambda corpus, encoder: ["--model_name_or_path", encoder], ["--keep_labels", "--model_name_or_path"]),
        (lambda corpus, encoder: ["--no_do_train"], ["--keep_labels"]),
        (lambda corpus, encoder: complete(corpus), ["--keep_labels", "DNA, protein"]),
    ],
    ids=["encoder", "no training", "nothing missing"],
)
def test_without_labels_to_keep_there_is_an_error(options, corpus, encoder, tmp_path, change, facts):
    with pytest.raises(ValueError, match="--keep_labels") as refused:
        prepare_run([*options, "--keep_labels", *change(corpus, encoder)])
    assert [fact for fact in facts if fact not in str(refused.value)] == []


def complete(corpus: Path) -> list[str]:
    write_lines(corpus / "train.jsonl", micro_records(6))
    return []


def test_a_new_type_in_the_validation_data_alone_is_an_error(options, corpus):
    write_lines(corpus / "train.jsonl", micro_records(6))
    with pytest.raises(ValueError, match=r"validation.*virus"):
        prepare_run(options)
