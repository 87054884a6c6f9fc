"""`evaluate` and `calibrate` through the real command: scores and reports; what is saved, shown and refused."""

import json
import re
import shutil

import pytest

from modeling_triaffine import NestedNERPipeline, TriaffineConfig, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.errors import PIPE_CLOSED
from modeling_triaffine.evaluation.prediction import predict_words, score_raw_text
from modeling_triaffine.publishing.model_card import card_of_folder
from modeling_triaffine.publishing.run_summary import RunSummary
from tests.helpers.cards import make_evaluation, make_summary
from tests.helpers.corpora import json_lines, write_json
from tests.helpers.portable import near
from tests.helpers.tiny import save_tiny_model, tiny_model, tiny_pipeline, tiny_processor


@pytest.fixture(scope="module")
def marking_model(encoder, tmp_path_factory):
    """Folder of a tiny model whose likeliest label of most spans is an entity's."""
    return save_tiny_model(tmp_path_factory.mktemp("marking"), encoder, seed=2)


@pytest.fixture
def evaluate(command, marking_model, tmp_path):
    """Runs `triaffine-ner evaluate` on data; its result, and the scores that it wrote."""

    def run(*arguments, model=marking_model):
        output = tmp_path / "scores.json"
        result = command("evaluate", "--model", model, *arguments, "--output", output)
        return result, json.loads(output.read_text()) if result.code == 0 else None

    return run


def counts(scores):
    return {name: scores[name] for name in ("correct", "gold", "predicted")}


@pytest.fixture
def corpus(marking_model, tmp_path):
    """A corpus of two sentences, all of whose gold entities but one the model finds; and the counts of its scores."""
    sentences = [["gene", "binds"], ["The", "gene-protein", "binds"]]
    model = TriaffineForNestedNER.from_pretrained(marking_model)
    processor = TriaffineProcessor.from_pretrained(marking_model)
    found, others = predict_words(model, processor, [{"tokens": tokens} for tokens in sentences])
    right = [{name: entity[name] for name in ("start", "end", "type")} for entity in found]
    wrong = {**right[0], "type": "DNA" if right[0]["type"] == "protein" else "protein"}
    folder = tmp_path / "corpus"
    folder.mkdir()
    golds = zip(sentences, [[wrong, *right[1:]], []], strict=True)
    (folder / "dev.jsonl").write_text(json_lines(*({"tokens": tokens, "entities": gold} for tokens, gold in golds)))
    return folder, {"correct": len(found) - 1, "gold": len(found), "predicted": len(found) + len(others)}


def test_scores_of_given_words(evaluate, command, marking_model, corpus):
    folder, expected = corpus
    result, scores = evaluate(folder)
    assert expected["gold"] > 1
    assert counts(scores["given_words"]) == expected
    assert list(scores) == ["given_words"]
    for row in scores["given_words"]["by_label"].values():  # – in the table
        assert (row["precision"] is None) == (row["predicted"] == 0)
        assert (row["f1"] is None) == (not row["predicted"] and not row["gold"])
    assert len(result.out.splitlines()) <= 30
    assert "Raw text" not in result.out
    for arguments in ([folder, "--split", "dev"], [folder / "dev.jsonl"], [folder / "dev.jsonl", "--split", "dev"]):
        assert evaluate(*arguments)[1] == scores
    piped = command("evaluate", "--model", marking_model, folder, "--output", "-")
    assert (json.loads(piped.out), "F1" in piped.err) == (scores, True)
    missing, _ = evaluate(folder, "--split", "test")
    assert (missing.code, "no split 'test'. Give --split validation" in missing.err) == (2, True)
    refused = command("evaluate", "--model", marking_model, folder, "--output", folder)  # before the model runs
    assert (refused.out, f"{folder} is a folder" in refused.err) == ("", True)


def test_scores_of_what_a_threshold_and_a_policy_leave(evaluate, corpus):
    folder, expected = corpus
    _, none = evaluate(folder, "--threshold", "1")
    assert counts(none["given_words"]) == {**expected, "correct": 0, "predicted": 0}
    _, flat = evaluate(folder, "--overlap", "flat")
    assert 0 < flat["given_words"]["predicted"] < expected["predicted"]


def test_the_report_is_named_and_holds_the_errors(evaluate, marking_model, corpus, tmp_path):
    folder, expected = corpus
    options = ("--report", tmp_path / "report", "--compare", marking_model)
    result, _ = evaluate(folder, *options)
    assert f"The report: {tmp_path / 'report' / 'report.html'}" in result.out
    analysis = json.loads((tmp_path / "report" / "report.json").read_text())
    assert counts(analysis["scores"]) == expected
    assert analysis["comparison"]["bootstrap"]["difference"] == 0
    again, _ = evaluate(folder, *options)
    assert (again.code, "report exists already" in again.err) == (2, True)


def test_texts_are_scored_in_the_models_sentences_and_no_other_split_is_read(encoder, evaluate, tmp_path):
    tiny_model(encoder, seed=2).save_pretrained(tmp_path / "model")
    tiny_processor(encoder, sentence_splitter="lines", word_splitter="whitespace").save_pretrained(tmp_path / "model")
    (tmp_path / "corpus").mkdir()
    # The second one crosses the lines, the third one ends inside a word.
    gold = [[start, end, "protein"] for start, end in ((0, 12), (11, 20), (0, 4), (13, 20))]
    (tmp_path / "corpus" / "dev.jsonl").write_text(json_lines({"text": "gene. Binds-\nprotein", "label": gold}))
    (tmp_path / "corpus" / "train.jsonl").write_text("damaged")
    result, scores = evaluate(tmp_path / "corpus", model=tmp_path / "model")
    assert [scores[kind]["gold"] for kind in ("given_words", "raw_text")] == [2, 4]
    assert "Raw text: precision" in result.out


def test_predicted_words_do_not_depend_on_the_batch_and_leave_the_model_in_its_mode(encoder):
    model, processor = tiny_model(encoder, mlp_dropout=0.5).train(), tiny_processor(encoder)
    records = [{"tokens": ["gene"] * length} for length in (3, 1, 5, 2)]
    together = predict_words(model, processor, records, batch_size=4, threshold=0.3)
    alone = [predict_words(model, processor, [record], threshold=0.3)[0] for record in records]
    assert together == near(alone)
    assert any(together)
    assert model.training


def test_raw_text_is_scored_by_characters(encoder):
    pipeline = tiny_pipeline(encoder)
    text = "The gene-protein binds."
    found = pipeline(text, threshold=0.3)
    gold = [{"start": e["start"], "end": e["end"], "type": e["entity_group"]} for e in found]
    assert gold
    assert score_raw_text(pipeline, [{"text": text, "entities": gold}], threshold=0.3)["f1"] == 1
    inside_a_word = [{**entity, "start": entity["start"] + 1} for entity in gold[:1]]
    assert score_raw_text(pipeline, [{"text": text, "entities": inside_a_word}], threshold=0.3)["correct"] == 0


# ---- calibrate

TEXT = "The gene binds DNA ."


def sentence(*types, start=1):
    return {"tokens": TEXT.split(), "entities": [{"start": start, "end": start + 1, "type": kind} for kind in types]}


@pytest.fixture
def scored(saved_model, tmp_path):
    """A copy of the model, with summary and card of a run that was scored on its test split."""
    folder = tmp_path / "model"
    shutil.copytree(saved_model, folder)
    evaluation = make_evaluation("DNA", "protein", sentences=3)
    evaluation.scores["gold"] = 3
    make_summary(evaluation=evaluation, training_sentences=5, label_counts={}).save(folder)
    (folder / "README.md").write_text(card_of_folder(folder))
    return folder


@pytest.fixture
def calibrate(command, scored, tmp_path):
    """Runs `triaffine-ner calibrate` on a corpus of these sentences, as the split of this name."""

    def run(*records, split="dev", options=()):
        (tmp_path / "corpus").mkdir(exist_ok=True)
        corpus = write_json(tmp_path / "corpus" / f"{split}.jsonl", *records).parent
        return command("calibrate", "--model", scored, corpus, *options)

    return run


def test_calibration_is_saved_used_and_shown(scored, calibrate):
    network = TriaffineForNestedNER.from_pretrained(scored)
    network.head.label_bias.data[-1] += 1.0  # so that it finds nothing without a threshold
    network.save_pretrained(scored)
    pipeline = NestedNERPipeline(model=str(scored))
    likely = max(pipeline(TEXT, threshold=0.0), key=lambda entity: entity["score"])
    start = len(TEXT[: likely["start"]].split())
    label, words = likely["entity_group"], likely["word"].split()
    gold = {"tokens": TEXT.split(), "entities": [{"start": start, "end": start + len(words), "type": label}]}
    result = calibrate(*[gold] * 6)
    assert result.code == 0
    config = TriaffineConfig.from_pretrained(scored)
    assert list(config.label_thresholds) == [label]
    assert config.temperature != 1.0
    assert all(fact in result.out for fact in ("DNA", "protein", "default", "calibration error"))
    pipeline = NestedNERPipeline(model=str(scored))
    found = {(entity["word"], entity["entity_group"]) for entity in pipeline(TEXT)}
    assert (likely["word"], label) in found
    assert label not in {entity["entity_group"] for entity in pipeline(TEXT, threshold={label: 1.0})}
    summary = RunSummary.load(scored)
    assert summary.calibration.sentences == 6
    assert summary.calibration.split == "validation"
    card = (scored / "README.md").read_text()
    assert "# model" in card
    assert "## Calibration" in card
    saved = json.loads((scored / "config.json").read_text())
    again = calibrate(*[gold] * 6)
    assert re.sub(r"\d", "0", again.out) == re.sub(r"\d", "0", result.out)
    assert json.loads((scored / "config.json").read_text()) == near(saved)


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
def test_failed_calibrations_change_nothing(scored, calibrate, records, split, options, facts):
    before = {path.name: path.read_bytes() for path in scored.iterdir()}
    result = calibrate(*records, split=split, options=options)
    assert (result.code, result.out) == (2, "")
    assert [fact for fact in facts if fact not in result.err] == []
    assert {path.name: path.read_bytes() for path in scored.iterdir()} == before


def test_calibration_is_saved_although_the_reader_of_the_tables_leaves(scored, calibrate, close_output):
    (scored / "README.md").write_text("# Mine")
    close_output()
    assert calibrate(sentence("DNA"), sentence("DNA")).code == PIPE_CLOSED
    assert RunSummary.load(scored).calibration.sentences == 2
    assert (scored / "README.md").read_text() == "# Mine"
