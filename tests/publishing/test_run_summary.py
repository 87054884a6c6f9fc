"""The summary of a run: what it keeps and refuses, where its facts come from."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from modeling_triaffine.publishing.model_card import build_model_card
from modeling_triaffine.publishing.run_facts import (
    choose_sentences,
    describe_hardware,
    describe_labels,
    describe_versions,
    read_training_table,
)
from modeling_triaffine.publishing.run_summary import SUMMARY_FILE, Epoch, Evaluation, Example, Label, RunSummary
from modeling_triaffine.version import __version__
from tests.helpers.cards import NESTED, SENTENCE, make_config, make_evaluation, make_row, make_summary

# ---- Saved and loaded ----


@pytest.mark.parametrize("summary", [RunSummary(), make_summary(language=["en", "de"])], ids=["empty", "full"])
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
        (cut_off, r"(Unterminated string|Expecting|delimiter)"),
        (lambda text: "", r"Expecting value"),
        (lambda text: "[1, 2]", r"it holds \[1, 2\], not facts by name"),
        (with_fields(optimizer="x", novel=1), r"it has novel, optimizer, which this version"),
        (with_fields(base_model=3), r"base_model is 3, not str"),
        (with_fields(language=["en", 1]), r"language\[1\] is 1, not str"),
        (with_fields(training_seconds="long"), r"training_seconds is 'long', not float"),
        (with_fields(processes=True), r"processes is True, not int"),
        (with_fields(labels={"DNA": {"count": 1.5}}), r"labels\['DNA'\]\.count is 1\.5, not int"),
        (with_fields(labels={"DNA": {}}), r"labels\['DNA'\] is incomplete \(.*'count'"),
        (with_fields(training_table=[{"epoch": None}]), r"training_table\[0\]\.epoch is None, not float"),
        (with_fields(examples=[{"text": SENTENCE, "entities": [{}]}]), r"\{\} is no entity of a text of 14 characters"),
        (
            with_fields(examples=[{"text": "Short.", "entities": NESTED}]),
            r"'IL-2 gene'.* is no entity of a text of 6 characters",
        ),
        (with_scores(flat=None), r"`scores` lack flat"),
        (with_scores(nested={"f1": 0.5}), r"`scores\['nested'\]` lacks precision, recall, correct"),
        (with_scores(f1=66.67), r"`scores` has f1 = 66\.67; scores are fractions in \[0, 1\]"),
        (with_scores(recall=None), r"`scores` lacks recall"),
        (with_scores(by_label={"DNA": {**make_row(1, 1, 1), "gold": "1"}}), r"`scores\['by_label'\]\['DNA'\]` lacks"),
    ],
)
def test_a_damaged_summary_is_told_in_one_paragraph(tmp_path: Path, damage, message: str):
    path = make_summary().save(tmp_path)
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as error:
        RunSummary.load(tmp_path)
    told = str(error.value)
    assert told.startswith(f"{path} is no summary of a training run: ")
    assert "delete it" in told
    assert "\n" not in told


def test_bytes_that_are_no_text_are_damage_too(tmp_path: Path):
    (tmp_path / SUMMARY_FILE).write_bytes(b'{"dataset": "\xff"}')
    with pytest.raises(ValueError, match=r"run_summary.json is no summary .*utf-8"):
        RunSummary.load(tmp_path)


def test_scores_that_are_none_are_refused_where_they_are_made():
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
    assert (versions["torch"], versions["transformers"]) == (torch.__version__, transformers.__version__)
    hardware = describe_hardware()
    assert hardware["cores"] >= 1
    assert not set(versions) & set(hardware)
