"""`calibrate` through the real command: what it saves and shows, and every wrong use."""

import json
import re
import shutil

import pytest

from modeling_triaffine import NestedNERPipeline, TriaffineConfig, TriaffineForNestedNER
from modeling_triaffine.errors import PIPE_CLOSED
from modeling_triaffine.publishing.model_card import card_of_folder
from modeling_triaffine.publishing.run_summary import RunSummary
from tests.helpers.cards import make_evaluation, make_summary
from tests.helpers.corpora import write_json
from tests.helpers.portable import near

TEXT = "The gene binds DNA ."


def sentence(*types, start=1):
    return {"tokens": TEXT.split(), "entities": [{"start": start, "end": start + 1, "type": kind} for kind in types]}


@pytest.fixture
def model(saved_model, tmp_path):
    """A copy of the model, with summary and card of a run that was scored on its test split."""
    folder = tmp_path / "model"
    shutil.copytree(saved_model, folder)
    evaluation = make_evaluation("DNA", "protein", sentences=3)
    evaluation.scores["gold"] = 3
    summary = make_summary(evaluation=evaluation, training_sentences=5, label_counts={})
    summary.save(folder)
    (folder / "README.md").write_text(card_of_folder(folder))
    return folder


@pytest.fixture
def corpus(tmp_path):
    """Makes a corpus of these sentences, as the split of this name."""

    def write(*records, split="dev"):
        (tmp_path / "corpus").mkdir(exist_ok=True)
        return write_json(tmp_path / "corpus" / f"{split}.jsonl", *records).parent

    return write


def test_calibration_is_saved_used_and_shown(model, corpus, command):
    network = TriaffineForNestedNER.from_pretrained(model)
    network.head.label_bias.data[-1] += 1.0  # so that it finds nothing without a threshold
    network.save_pretrained(model)
    pipeline = NestedNERPipeline(model=str(model))
    likely = max(pipeline(TEXT, threshold=0.0), key=lambda entity: entity["score"])
    start = len(TEXT[: likely["start"]].split())
    label, words = likely["entity_group"], likely["word"].split()
    gold = {"tokens": TEXT.split(), "entities": [{"start": start, "end": start + len(words), "type": label}]}
    result = command("calibrate", "--model", model, corpus(*[gold] * 6))
    assert result.code == 0
    config = TriaffineConfig.from_pretrained(model)
    assert list(config.label_thresholds) == [label]
    assert config.temperature != 1.0
    assert all(fact in result.out for fact in ("DNA", "protein", "default", "calibration error"))
    pipeline = NestedNERPipeline(model=str(model))
    found = {(entity["word"], entity["entity_group"]) for entity in pipeline(TEXT)}
    assert (likely["word"], label) in found
    assert label not in {entity["entity_group"] for entity in pipeline(TEXT, threshold={label: 1.0})}
    summary = RunSummary.load(model)
    assert summary.calibration.sentences == 6
    assert summary.calibration.split == "validation"
    card = (model / "README.md").read_text()
    assert "# model" in card
    assert "## Calibration" in card
    saved = json.loads((model / "config.json").read_text())
    again = command("calibrate", "--model", model, corpus(*[gold] * 6))
    assert re.sub(r"\d", "0", again.out) == re.sub(r"\d", "0", result.out)
    assert json.loads((model / "config.json").read_text()) == near(saved)


@pytest.mark.parametrize(
    ("records", "split", "options", "facts"),
    [
        ([sentence("DNA")], "test", ["--split", "test"], ["its card has", "--split"]),
        ([sentence("DNA")] * 3, "dev", [], ["its card has"]),  # the same sentences under another name
        ([sentence("DNA")] * 5, "train", ["--split", "train"], ["was trained on", "--split"]),
        ([sentence("DNA")], "dev", ["--model", "tester/model"], ["tester/model", "hf download"]),
        ([sentence("DNA")], "dev", ["--split", "test"], ["'test'", "--split validation"]),
        ([sentence()], "dev", [], ["1 sentences", "DNA, protein"]),
    ],
)
def test_failed_calibrations_change_nothing(model, corpus, command, records, split, options, facts):
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    result = command("calibrate", "--model", model, corpus(*records, split=split), *options)
    assert (result.code, result.out) == (2, "")
    assert [fact for fact in facts if fact not in result.err] == []
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_calibration_is_saved_although_the_reader_of_the_tables_leaves(model, corpus, command, close_output):
    close_output()
    assert command("calibrate", "--model", model, corpus(sentence("DNA"), sentence("DNA"))).code == PIPE_CLOSED
    assert RunSummary.load(model).calibration.sentences == 2
