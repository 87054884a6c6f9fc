"""The summary of a run: what it keeps and refuses, where its facts come from."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from modeling_triaffine.evaluation.reliability import Bin, Calibration, LabelCalibration
from modeling_triaffine.machine import describe_hardware, describe_versions
from modeling_triaffine.publishing.model_card import build_model_card
from modeling_triaffine.publishing.run_facts import choose_sentences, describe_labels, read_training_table
from modeling_triaffine.publishing.run_summary import SUMMARY_FILE, Epoch, Evaluation, Example, Label, RunSummary
from modeling_triaffine.version import __version__
from tests.helpers.cards import NESTED, SENTENCE, make_config, make_evaluation, make_row, make_summary

# ---- Saved and loaded ----


CALIBRATION = Calibration(
    "validation",
    7,
    "best F1",
    1.5,
    {"protein": LabelCalibration(make_row(1, 2, 3), make_row(2, 2, 3), 0.25)},
    [Bin(2, 0.75, 0.5)],
    [Bin(2, 0.5, 0.5)],
)


@pytest.mark.parametrize(
    "summary",
    [RunSummary(), make_summary(language=["en", "de"], calibration=CALIBRATION)],
    ids=["empty", "full"],
)
def test_round_trip(tmp_path: Path, summary: RunSummary):
    expected = dataclasses.replace(
        summary,
        training_table=[
            dataclasses.replace(row, validation_loss=None)
            if row.validation_loss is not None and math.isnan(row.validation_loss)
            else row
            for row in summary.training_table
        ],
    )
    assert summary.save(tmp_path / "new") == tmp_path / "new" / SUMMARY_FILE
    assert RunSummary.load(tmp_path / "new") == expected
    assert [path.name for path in (tmp_path / "new").iterdir()] == [SUMMARY_FILE]
    assert RunSummary.load(str(tmp_path / "new")).is_trained == (summary.training_seconds is not None)


def test_the_card_is_the_same_from_the_file(tmp_path: Path):
    summary = make_summary()
    summary.save(tmp_path)
    before, after = (
        str(build_model_card(make_config(), model_name="tester/model", summary=known))
        for known in (summary, RunSummary.load(tmp_path))
    )
    assert before == after


def test_text_in_any_script_stays_readable(tmp_path: Path):
    summary = make_summary(dataset="Протоколы \u2028 会议", examples=[Example('"\\ \x00 🧬')])
    summary.save(tmp_path)
    assert "Протоколы" in (tmp_path / SUMMARY_FILE).read_text(encoding="utf-8")
    assert RunSummary.load(tmp_path).examples == summary.examples


def test_where_there_is_no_summary(tmp_path: Path):
    assert RunSummary.load(tmp_path) is None
    assert RunSummary.load(tmp_path / "nowhere") is None


def cut_off(text: str) -> str:
    return text[: len(text) // 2]


def with_fields(**changes: Any):
    return lambda text: json.dumps({**json.loads(text), **changes})


def with_scores(**changes: Any):
    evaluation = dataclasses.asdict(make_evaluation())
    return with_fields(evaluation={**evaluation, "scores": {**evaluation["scores"], **changes}})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_off, "(Unterminated string|Expecting|delimiter)"),
        (lambda text: "", "Expecting value"),
        (lambda text: "[1, 2]", "list"),
        (lambda text: text.encode() + b"\xff", "utf-8"),
        (with_fields(novel=1), "novel"),
        (with_fields(base_model=3), "base_model.* 3"),
        (with_fields(language=["en", 1]), "language.* 1"),
        (with_fields(training_seconds="long"), "training_seconds.* 'long'"),
        (with_fields(processes=True), "processes.* True"),
        (with_fields(labels={"DNA": {"count": 1.5}}), r"labels\['DNA'\]: .*count.* 1\.5"),
        (with_fields(labels={"DNA": {}}), r"labels\['DNA'\]: .*'count'"),
        (with_fields(training_table=[{"epoch": None}]), r"training_table\[0\]: .*epoch.* None"),
        (with_fields(examples=[{"text": SENTENCE, "entities": [{}]}]), r"examples\[0\]: \{\} .* 14 characters"),
        (with_fields(examples=[{"text": "Short.", "entities": NESTED}]), "'IL-2 gene'.* 6 characters"),
        (with_scores(flat=None), "evaluation: `scores` lacks flat"),
        (with_scores(nested={"f1": 0.5}), r"`scores\['nested'\]` lacks precision, recall, correct"),
        (with_scores(f1=66.67), r"`scores` has f1 = 66\.67"),
        (with_scores(recall=None), "`scores` lacks recall"),
        (with_scores(by_label={"DNA": {**make_row(1, 1, 1), "gold": "1"}}), r"`scores\['by_label'\]\['DNA'\]` lacks"),
    ],
)
def test_a_damaged_summary_is_refused_in_one_paragraph(tmp_path: Path, damage, message: str):
    path = make_summary().save(tmp_path)
    damaged = damage(path.read_text(encoding="utf-8"))
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    with pytest.raises(ValueError, match=message) as error:
        RunSummary.load(tmp_path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_scores_out_of_range_are_refused_where_they_are_made():
    scores = make_evaluation().scores
    with pytest.raises(ValueError, match="f1 = nan"):
        Evaluation("test", 1, {**scores, "f1": float("nan")})
    with pytest.raises(ValueError, match="`candidate_recall` lacks found, gold"):
        Evaluation("test", 1, scores, candidate_recall={"recall": 1.0})


# ---- Facts ----


def log_entry(epoch: float, step: int, **scores: float) -> dict[str, float]:
    return {**{f"eval_{name}": value for name, value in scores.items()}, "epoch": epoch, "step": step}


def test_training_table_from_the_log():
    log = [
        {"loss": 3.0, "epoch": 0.3, "step": 3},
        {"loss": 2.0, "epoch": 0.9, "step": 9},
        log_entry(1.0, 10, loss=1.5, precision=0.1, recall=0.2, f1=0.3, flat_f1=0.4, nested_f1=0.5, f1_DNA=0.6),
        log_entry(1.5, 15, loss=1.0),
        {"loss": 1.0, "epoch": 1.8, "step": 18},
        log_entry(2.0, 20, loss=0.9),
        log_entry(2.5, 25, loss=0.8, f1=0.9),
        log_entry(3.0, 30, loss=0.7, f1=0.1),
        {"train_runtime": 5.0, "train_loss": 1.0, "epoch": 3.0, "step": 30},
    ]
    assert read_training_table(log, kept_step=25) == [
        Epoch(1.0, 2.5, 1.5, 0.1, 0.2, 0.3, 0.4, 0.5),
        Epoch(2.0, 1.0, 0.9),
        Epoch(2.5, None, 0.8, f1=0.9, kept=True),
    ]
    assert read_training_table([], kept_step=0) == []


RECORDS = [
    {"tokens": ["IL", "-", "2", "binds", "IL"], "entities": [{"start": 0, "end": 3, "type": "protein"}]},
    {
        "tokens": ["the", "(", "IL", ")", "gene"],
        "entities": [{"start": 1, "end": 5, "type": "DNA"}, {"start": 2, "end": 3, "type": "protein"}],
    },
    {"tokens": ["IL"], "entities": [{"start": 0, "end": 1, "type": "protein"}]},
    {"tokens": ["long"] * 30, "entities": [{"start": 0, "end": end, "type": "protein"} for end in range(14, 20)]},
]


def test_labels_are_counted_with_their_commonest_spellings():
    described = describe_labels(RECORDS, ["DNA", "protein", "RNA"], spellings=2)
    assert described == {
        "DNA": Label(1, ["(IL) gene"]),
        "protein": Label(9, ["IL", "IL - 2"]),
        "RNA": Label(0, []),
    }
    assert describe_labels(RECORDS, ["DNA"], spellings=0) == {"DNA": Label(1, [])}
    assert describe_labels(RECORDS[3:], ["protein"], spellings=1)["protein"].examples == [" ".join(["long"] * 14)]


def test_shown_sentences_fit_into_a_line_and_nest():
    assert choose_sentences(RECORDS, 2) == ["the (IL) gene", "IL - 2 binds IL"]
    assert len(choose_sentences(RECORDS, 9)) == 4
    assert choose_sentences(RECORDS, 0) == []


def test_hardware_and_versions():
    versions = describe_versions()
    assert versions["modeling_triaffine"] == __version__
    # PyPI's CUDA builds leave the local part of the version, as in 2.13.0+cu130, out of their metadata.
    assert torch.__version__.startswith(versions["torch"])
    assert versions["transformers"] == transformers.__version__
    hardware = describe_hardware()
    assert hardware["cores"] >= 1
    assert not set(versions) & set(hardware)
