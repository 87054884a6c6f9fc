"""Options that several commands share."""

import pytest
import typer

from modeling_triaffine.commands.options import read_threshold


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("DNA=0.4, cell line=.5", {"DNA": 0.4, "cell line": 0.5}),
        ("DNA=1.,B=0", {"DNA": 1.0, "B": 0.0}),
        ("Ämter (x=y, z)=0.5,IL-2,3=0.25", {"Ämter (x=y, z)": 0.5, "IL-2,3": 0.25}),
    ],
)
def test_thresholds_for_labels_with_any_characters(text, threshold):
    assert read_threshold(text) == threshold


@pytest.mark.parametrize(
    "text", ["", "2", "nan", "DNA", "DNA=", "=0.5", "DNA=2", "DNA=nan", "DNA=0.4,B", "DNA=0.4.1", "A=0.4,A=0.6"]
)
def test_other_thresholds_are_refused(text):
    with pytest.raises(typer.BadParameter, match="nor one for each label"):
        read_threshold(text)
