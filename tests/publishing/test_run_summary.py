"""The summary of a run: what it keeps and refuses."""

from pathlib import Path

import pytest

from modeling_triaffine.evaluation.calibration import Calibration, LabelCalibration
from modeling_triaffine.publishing.run_summary import SUMMARY_FILE, RunSummary
from tests.helpers.cards import make_row, make_summary

PROTEIN = LabelCalibration(make_row(1, 2, 3), make_row(2, 2, 3), 0.25)
CALIBRATION = Calibration("validation", 7, 1.5, (0.25, 0.0), {"protein": PROTEIN})


@pytest.mark.parametrize(
    "summary",
    [RunSummary(), make_summary(language=["en", "de"], dataset="Протоколы \u2028", calibration=CALIBRATION)],
    ids=["empty", "full"],
)
def test_round_trip(tmp_path: Path, summary: RunSummary):
    summary.save(tmp_path / "new")
    again = RunSummary.load(tmp_path / "new")
    again.save(tmp_path)
    first, second = ((folder / SUMMARY_FILE).read_bytes() for folder in (tmp_path / "new", tmp_path))
    assert first == second  # which have null for NaN
    assert (summary.dataset or "").encode() in first
    assert RunSummary.load(tmp_path / "nowhere") is None
    assert (again.evaluation, again.calibration) == (summary.evaluation, summary.calibration)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b'{"base_model": "own', "JSON"),
        (b"[1, 2]", "dictionary|object|dataclass"),
        (b'{"training_seconds": "long"}', "training_seconds "),
        (b'{"label_counts": {"DNA": []}}', r"label_counts\.DNA "),
    ],
)
def test_a_damaged_summary_is_refused_with_its_field(tmp_path: Path, damaged: bytes, message: str):
    (tmp_path / SUMMARY_FILE).write_bytes(damaged)
    with pytest.raises(ValueError, match=message) as error:
        RunSummary.load(tmp_path)
    assert str(tmp_path) in str(error.value)
