"""The summary of a run: what it keeps and refuses."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from modeling_triaffine.evaluation.reliability import Bin, Calibration, LabelCalibration
from modeling_triaffine.evaluation.scores import Scores
from modeling_triaffine.publishing.card_tables import card_tables
from modeling_triaffine.publishing.run_summary import SUMMARY_FILE, Evaluation, Example, RunSummary
from tests.helpers.cards import make_evaluation, make_row, make_summary

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
    assert summary.save(tmp_path / "new") == tmp_path / "new" / SUMMARY_FILE
    assert RunSummary.load(tmp_path / "new").to_json() == summary.to_json()  # which has null for NaN
    assert [path.name for path in (tmp_path / "new").iterdir()] == [SUMMARY_FILE]
    assert RunSummary.load(str(tmp_path / "new")).is_trained == (summary.training_seconds is not None)


def test_text_in_any_script_stays_readable(tmp_path: Path):
    summary = make_summary(dataset="Протоколы \u2028 会议", examples=[Example('"\\ \x00 🧬')])
    summary.save(tmp_path)
    assert "Протоколы" in (tmp_path / SUMMARY_FILE).read_text(encoding="utf-8")
    assert RunSummary.load(tmp_path).examples == summary.examples


def cut_off(text: str) -> str:
    return text[: len(text) // 2]


def test_where_there_is_no_summary(tmp_path: Path):
    assert RunSummary.load(tmp_path) is None
    assert RunSummary.load(tmp_path / "nowhere") is None


def with_fields(**changes: Any):
    return lambda text: json.dumps({**json.loads(text), **changes})


EVALUATION = dataclasses.asdict(make_evaluation())


def with_scores(**changes: Any):
    return with_fields(evaluation={**EVALUATION, "scores": {**EVALUATION["scores"], **changes}})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_off, "(Unterminated string|Expecting|delimiter)"),
        (lambda text: "[1, 2]", "list"),
        (lambda text: "[" * 100_000, "nested too deeply"),
        (lambda text: text.encode() + b"\xff", "utf-8"),
        (with_fields(novel=1), "novel"),
        (with_fields(base_model=3), "base_model.* 3"),
        (with_fields(language=["en", 1]), "language.* 1"),
        (with_fields(training_seconds="long"), "training_seconds.* 'long'"),
        (with_fields(labels={"DNA": {"count": 1.5}}), r"labels\.DNA\.count is 1\.5: .* integer"),
        (with_fields(labels={"DNA": {}}), r"labels\.DNA\.count is missing"),
        (with_fields(training_table=[{"epoch": None}]), r"training_table\.0\.epoch is None"),
        (with_fields(calibration={"labels": {"DNA": {}}}), r"calibration\.split is missing"),
        (with_scores(by_label=None), r"evaluation\.scores: `scores` lacks by_label"),
        (with_scores(flat=None), r"evaluation\.scores: `scores\['flat'\]` lacks precision"),
        (with_scores(nested={"f1": 0.5}), r"`scores\['nested'\]` lacks precision, recall, correct"),
        (with_scores(f1=66.67), r"`scores` has f1 = 66\.67"),
        (
            with_fields(evaluation={**EVALUATION, "candidate_recall": {"recall": 1.0}}),
            "`candidate_recall` lacks found, go",
        ),
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
        Evaluation("test", 1, Scores({**scores, "f1": float("nan")}))


def test_the_json_of_an_epoch_has_its_scores_beside_the_other_facts(tmp_path: Path):
    row = json.loads(make_summary().save(tmp_path).read_text())["training_table"][0]
    assert list(row)[:3] == ["epoch", "training_loss", "validation_loss"]
    assert {name: row[name] for name in ("precision", "flat_f1", "nested_f1", "kept")} == {
        "precision": 0.5,
        "flat_f1": 0.4,
        "nested_f1": 0.2,
        "kept": False,
    }
    assert "scores" not in row


def test_a_summary_from_before_a_part_of_the_scores_was_known_is_read(tmp_path: Path):
    path = make_summary().save(tmp_path)
    facts = json.loads(path.read_text())
    del facts["evaluation"]["scores"]["nested"]
    del facts["training_table"][0]["nested_f1"]
    path.write_text(json.dumps(facts))
    tables = card_tables(RunSummary.load(tmp_path), ["DNA"])
    assert [row[0] for row in tables["by_part"].rows][:2] == ["all", "flat"]
    assert "nested" not in [row[0] for row in tables["by_part"].rows]
    shown = dict(zip(tables["epochs"].columns, tables["epochs"].rows[0], strict=True))
    assert (shown["Flat F1"], shown["Nested F1"]) == ("40.00", None)
