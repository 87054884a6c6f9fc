"""The scripts as a user runs them: prediction from files and standard input, scores, and mistakes told."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.evaluation.prediction import predict_words, score_raw_text
from modeling_triaffine.scripts import check_device, open_output
from tests.tiny import tiny_model, tiny_processor

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TEXTS = ["The gene binds DNA. It works.", "", "protein"]


def run(script, *arguments, **options):
    command = [sys.executable, str(EXAMPLES / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


def as_lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)


def test_prediction_from_a_file_of_texts_and_from_standard_input(saved_model, tmp_path):
    expected = NestedNERPipeline(model=saved_model)(TEXTS, threshold=0.3)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    options = ["--model", saved_model, "--threshold", "0.3"]
    result = run("predict.py", *options, tmp_path / "texts.txt", "--output", tmp_path / "out" / "entities.jsonl")
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    lines = [json.loads(line) for line in (tmp_path / "out" / "entities.jsonl").read_text().splitlines()]
    assert lines == [{"text": text, "entities": found} for text, found in zip(TEXTS, expected, strict=True)]
    piped = run("predict.py", *options, input="\n".join(TEXTS))
    assert [json.loads(line) for line in piped.stdout.splitlines()] == lines


def test_prediction_keeps_the_fields_of_json_lines_and_leaves_nothing_half_written(saved_model, tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(as_lines({"id": 7, "body": TEXTS[0]}, {"body": "a \ud800 gene", "more": [1]}))
    options = ["--model", saved_model, source, "--output", target, "--text_column", "body"]
    assert run("predict.py", *options).returncode == 0
    first, second = (json.loads(line) for line in target.read_text().splitlines())
    assert (first["id"], second["more"]) == (7, [1])
    target.unlink()
    source.write_text(as_lines({"body": "x"}, {"text": "y"}))
    result = run("predict.py", *options)
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert "in.jsonl, line 2: there is no text under 'body'" in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_mistakes_in_prediction_are_told_in_one_paragraph(saved_model, tmp_path):
    (tmp_path / "broken.jsonl").write_text("{")
    for arguments, message in (
        (["--model", saved_model, tmp_path / "broken.jsonl"], "broken.jsonl, line 1: this is no JSON"),
        (["--model", tmp_path / "nowhere"], "nowhere"),
    ):
        result = run("predict.py", *arguments, input="x")
        assert result.returncode == 2
        assert message in result.stderr
        assert "Traceback" not in result.stderr


def test_scores_of_given_words(saved_model, encoder, tmp_path):
    records = [
        {"id": str(n), "doc_id": "d", "sent_id": n, "tokens": ["gene", "binds"], "pos": [], "entities": entities}
        for n, entities in enumerate([[{"start": 0, "end": 1, "type": "DNA"}], []])
    ]
    (tmp_path / "dev.jsonl").write_text(as_lines(*records))
    result = run("score.py", "--model", saved_model, tmp_path, "--output", tmp_path / "scores.json")
    assert result.returncode == 0, result.stderr
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["given_words"]["gold"] == 1
    assert "Given words" in result.stdout
    missing = run("score.py", "--model", saved_model, tmp_path, "--split", "test")
    assert missing.returncode == 2
    assert "no split 'test'; it has validation" in missing.stderr


def test_predicted_words_do_not_depend_on_the_batch(encoder):
    model, processor = tiny_model(encoder), tiny_processor(encoder)
    records = [{"tokens": ["gene"] * length} for length in (3, 1, 5, 2)]
    together = predict_words(model, processor, records, batch_size=4, threshold=0.3)
    alone = [predict_words(model, processor, [record], threshold=0.3)[0] for record in records]
    spans = [[[(e["start"], e["end"], e["type"]) for e in found] for found in way] for way in (together, alone)]
    assert spans[0] == spans[1]
    assert any(spans[0])


def test_raw_text_is_scored_by_characters(encoder):
    pipeline = NestedNERPipeline(model=tiny_model(encoder), processor=tiny_processor(encoder))
    text = "The gene-protein binds."
    found = pipeline(text, threshold=0.3)
    gold = [{"start": e["start"], "end": e["end"], "type": e["entity_group"]} for e in found]
    assert gold
    perfect = score_raw_text(pipeline, [{"text": text, "entities": gold}], threshold=0.3)
    assert perfect["f1"] == 1
    inside_a_word = [{**entity, "start": entity["start"] + 1} for entity in gold[:1]]
    assert score_raw_text(pipeline, [{"text": text, "entities": inside_a_word}], threshold=0.3)["correct"] == 0


def test_prediction_leaves_the_model_in_its_mode_and_is_without_dropout(encoder):
    model, processor = tiny_model(encoder, mlp_dropout=0.5).train(), tiny_processor(encoder)
    records = [{"tokens": ["gene", "binds"]}]
    first, second = (predict_words(model, processor, records, threshold=0.0) for _ in range(2))
    assert first == second
    assert model.training


def test_output_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "folder" / "out.txt"

    def stop_half_way():
        with open_output(path) as output:
            output.write("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stop_half_way()
    assert list(path.parent.iterdir()) == []
    with open_output(path) as output:
        output.write("\ud800")
    assert path.read_text() == "\\ud800"
    with pytest.raises(ValueError, match="is a folder"), open_output(tmp_path):
        pass


def test_unknown_device_is_told():
    check_device(None)
    check_device("cpu")
    with pytest.raises(ValueError, match="--device bogus"):
        check_device("bogus")
