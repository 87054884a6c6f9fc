"""The summary of a run: what it keeps and refuses."""

from pathlib import Path

import pytest

from modeling_triaffine.evaluation.reliability import Bin, Calibration, LabelCalibration
from modeling_triaffine.publishing.run_summary import SUMMARY_FILE, Example, RunSummary
from tests.helpers.cards import make_row, make_summary

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
    again = RunSummary.load(tmp_path / "new")
    assert again.to_json() == summary.to_json()  # which has null for NaN
    assert (again.evaluation, again.calibration) == (summary.evaluation, summary.calibration)


def test_text_in_any_script_stays_readable(tmp_path: Path):
    summary = make_summary(dataset="Протоколы \u2028 会议", examples=[Example('"\\ \x00 🧬')])
    summary.save(tmp_path)
    assert "Протоколы" in (tmp_path / SUMMARY_FILE).read_text(encoding="utf-8")
    assert RunSummary.load(tmp_path).examples == summary.examples
    assert RunSummary.load(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b'{"base_model": "own', "JSON"),
        (b"[1, 2]", "dictionary|object|dataclass"),
        (b"\xff{}", "JSON"),
        (b'{"training_seconds": "long"}', "training_seconds: "),
        (b'{"labels": {"DNA": {}}}', r"labels\.DNA\.count: "),
        (b'{"training_table": [{"epoch": null}]}', r"training_table\.0\.epoch: "),
    ],
)
def test_a_damaged_summary_is_refused_with_its_field(tmp_path: Path, damaged: bytes, message: str):
    (tmp_path / SUMMARY_FILE).write_bytes(damaged)
    with pytest.raises(ValueError, match=message) as error:
        RunSummary.load(tmp_path)
    assert str(tmp_path) in str(error.value)
