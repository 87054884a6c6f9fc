"""`evaluate`, `statistics` and `convert` through the real command."""

import json

import pytest

from modeling_triaffine import TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.evaluation.prediction import predict_words, score_raw_text
from tests.helpers.corpora import json_lines
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
    rows = [*scores["given_words"]["by_label"].values()]
    for row in rows:  # – in the table
        assert (row["precision"] is None) == (row["predicted"] == 0)
        assert (row["f1"] is None) == (not row["predicted"] and not row["gold"])
    assert len(result.out.splitlines()) <= 30
    assert "Raw text" not in result.out
    for arguments in ([folder, "--split", "dev"], [folder / "dev.jsonl"], [folder / "dev.jsonl", "--split", "dev"]):
        assert evaluate(*arguments)[1] == scores
    piped = command("evaluate", "--model", marking_model, folder, "--output", "-")
    assert json.loads(piped.out) == scores
    assert "F1" in piped.err
    missing, _ = evaluate(folder, "--split", "test")
    assert missing.code == 2
    assert "no split 'test'. Give --split validation" in missing.err


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
    assert (again.code, "--report" in again.err) == (2, True)


def test_texts_are_scored_in_the_models_sentences_and_no_other_split_is_read(encoder, evaluate, tmp_path):
    tiny_model(encoder, seed=2).save_pretrained(tmp_path / "model")
    tiny_processor(encoder, sentence_splitter="lines", word_splitter="whitespace").save_pretrained(tmp_path / "model")
    (tmp_path / "corpus").mkdir()
    # The second one crosses the lines, the third one ends inside a word.
    gold = [[start, end, "protein"] for start, end in ((0, 12), (11, 20), (0, 4), (13, 20))]
    (tmp_path / "corpus" / "dev.jsonl").write_text(json_lines({"text": "gene. Binds-\nprotein", "label": gold}))
    (tmp_path / "corpus" / "train.jsonl").write_text("damaged")
    result, scores = evaluate(tmp_path / "corpus", model=tmp_path)  # the model is looked for one folder down
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


# ---- statistics and convert


@pytest.mark.parametrize(("name", "more"), [("statistics", []), ("convert", ["out", "--to", "brat"])])
def test_bad_records_of_a_corpus(command, caplog, tmp_path, name, more):
    good = '{"tokens": ["Orsk"], "entities": [{"start": 0, "end": 1, "type": "City"}]}\n'
    (tmp_path / "a.jsonl").write_text(f"{good}{{\n{good}")
    more = [tmp_path / more[0], *more[1:]] if more else []
    failed = command(name, tmp_path / "a.jsonl", *more)
    assert (failed.code, "line 2" in failed.err) == (2, True)
    assert command(name, tmp_path / "a.jsonl", *more, "--max_bad_records", 1).code == 0
    assert ["bad records dropped: 1 (" in told and "line 2" in told for told in caplog.messages] == [True]


def test_statistics_keep_within_the_line(command, tmp_path):
    (tmp_path / "a.tsv").write_text(f"Orsk\tB-{200 * 'x'}\tO\nOmsk\tO\tO\n")
    counted = command("statistics", tmp_path / "a.tsv")
    assert "entities by type: xxx" in counted.out
    assert max(map(len, counted.out.splitlines())) <= 100


def test_several_files_are_one_corpus(command, tmp_path):
    """Named one by one, as a shell expands a pattern."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.tsv").write_text(f"{name}\tB-X\n\nslept\tO\n")
    files = sorted(tmp_path.glob("*.tsv"))
    (counted,) = json.loads(command("statistics", *files, "--json").out).values()
    assert counted["sentences"] == 4
    assert command("convert", *files, tmp_path / "out").code == 0
    lines = (tmp_path / "out" / "train.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"].partition(":")[0] for line in lines] == ["a", "b"]


def test_columns_are_given_one_by_one(command, tmp_path):
    (tmp_path / "a.tsv").write_text("1\tOrsk\tB-X\tO\n")
    columns = ("--columns", "tokens=1", "--columns", "entities=2,3")
    assert command("convert", tmp_path / "a.tsv", tmp_path / "out", *columns).code == 0
    (record,) = map(json.loads, (tmp_path / "out" / "train.jsonl").read_text().splitlines())
    assert (record["text"], record["entities"]) == ("Orsk", [{"start": 0, "end": 4, "label": "X"}])
    assert command("convert", tmp_path / "a.tsv", tmp_path / "a.tsv").code == 2
    assert (tmp_path / "a.tsv").read_text() == "1\tOrsk\tB-X\tO\n"
