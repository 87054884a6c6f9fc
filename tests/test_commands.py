"""The command line as a user meets it: help, prediction from files and standard input, scores, mistakes told."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.commands import COMMANDS, PIPE_CLOSED
from modeling_triaffine.evaluation.prediction import predict_words, score_raw_text
from modeling_triaffine.scripts import check_device, open_output
from tests.tiny import tiny_model, tiny_processor

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PROGRAM = Path(sys.executable).with_name("triaffine-ner")
TEXTS = ["The gene binds DNA. It works.", "", "protein"]


def as_lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)


# ---- help and mistakes


def test_help_lists_every_command(command):
    result = command("--help")
    assert result.code == 0
    listed = [line.split()[0] for line in result.out.splitlines() if line.startswith("  ") and not line[2].isspace()]
    assert set(COMMANDS) <= set(listed)
    assert command("--version").out.startswith("triaffine-ner ")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_an_example(command, name):
    result = command(name, "--help")
    assert result.code == 0
    description = result.out[result.out.index("\n\n") : result.out.index("options:")]
    assert f"\n    triaffine-ner {name} " in description


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["predicct"], "invalid choice: 'predicct'"),
        (["predict"], "the following arguments are required: --model"),
        (["predict", "--model", "x", "--batch-size", "0"], "0 is too small; give at least 1"),
    ],
)
def test_mistakes_on_the_command_line_end_with_code_2(command, arguments, message):
    result = command(*arguments)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err


# ---- predict


def test_prediction_from_a_file_of_texts_in_either_spelling(saved_model, command, tmp_path):
    expected = NestedNERPipeline(model=saved_model)(TEXTS, threshold=0.3)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    options = ["predict", "--model", saved_model, "--threshold", "0.3", tmp_path / "texts.txt"]
    written = command(*options, "--batch_size", "2", "--output", tmp_path / "out" / "entities.jsonl")
    assert (written.code, written.out) == (0, "")
    lines = [json.loads(line) for line in (tmp_path / "out" / "entities.jsonl").read_text().splitlines()]
    assert [line["text"] for line in lines] == TEXTS
    spans = [[(one["start"], one["end"], one["entity_group"]) for one in line["entities"]] for line in lines]
    assert spans == [[(one["start"], one["end"], one["entity_group"]) for one in found] for found in expected]
    printed = command(*options, "--batch-size=2")
    assert [json.loads(line) for line in printed.out.splitlines()] == lines


def test_prediction_in_a_pipe(saved_model, tmp_path):
    """The installed program and the script; the reader of the one closes the pipe early."""
    (tmp_path / "texts.txt").write_text(f"{TEXTS[0]}\n" * 2000)
    command = f"{PROGRAM} predict --model {saved_model} --batch-size 4 texts.txt | head -n 1; echo ${{PIPESTATUS[0]}}"
    cut = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    first, code = cut.stdout.splitlines()
    assert json.loads(first)["text"] == TEXTS[0]
    assert int(code) == PIPE_CLOSED
    assert "Traceback" not in cut.stderr
    assert "BrokenPipe" not in cut.stderr
    script = [sys.executable, str(EXAMPLES / "predict.py"), "--model", str(saved_model)]
    piped = subprocess.run(script, input=TEXTS[0], capture_output=True, text=True, timeout=300, check=False)
    assert piped.returncode == 0, piped.stderr
    assert json.loads(piped.stdout)["text"] == TEXTS[0]


def test_prediction_keeps_the_fields_of_json_lines_and_leaves_nothing_half_written(saved_model, command, tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(as_lines({"id": 7, "body": TEXTS[0]}, {"body": "a \ud800 gene", "more": [1]}))
    options = ["predict", "--model", saved_model, source, "--output", target, "--text-column", "body"]
    assert command(*options).code == 0
    first, second = (json.loads(line) for line in target.read_text().splitlines())
    assert (first["id"], second["more"]) == (7, [1])
    target.unlink()
    source.write_text(as_lines({"body": "x"}, {"text": "y"}))
    result = command(*options)
    assert result.code == 2
    told = result.err.splitlines()[-1]
    assert told.startswith("error: ")
    assert "in.jsonl, line 2: there is no text under 'body'" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_the_input_is_not_written_over(saved_model, command, tmp_path):
    (tmp_path / "texts.txt").write_text(TEXTS[0])
    (tmp_path / "link.txt").symlink_to(tmp_path / "texts.txt")
    result = command("predict", "--model", saved_model, tmp_path / "texts.txt", "--output", tmp_path / "link.txt")
    assert result.code == 2
    assert "is the input file, which would be lost" in result.err
    assert (tmp_path / "texts.txt").read_text() == TEXTS[0]


def test_mistakes_in_prediction_are_told_in_one_paragraph(saved_model, command, tmp_path):
    (tmp_path / "broken.jsonl").write_text("{")
    for arguments, message in (
        (["--model", saved_model, tmp_path / "broken.jsonl"], "broken.jsonl, line 1: this is no JSON"),
        (["--model", saved_model, tmp_path / "nowhere.txt"], "There is no file"),
        (
            ["--model", tmp_path / "nowhere", tmp_path / "broken.jsonl"],
            "nowhere: it is no folder, and no name of a model",
        ),
    ):
        result = command("predict", *arguments)
        assert result.code == 2
        assert message in result.err.splitlines()[-1]


# ---- evaluate


def test_scores_of_given_words(saved_model, command, tmp_path):
    records = [
        {"id": str(n), "doc_id": "d", "sent_id": n, "tokens": ["gene", "binds"], "pos": [], "entities": entities}
        for n, entities in enumerate([[{"start": 0, "end": 1, "type": "DNA"}], []])
    ]
    (tmp_path / "dev.jsonl").write_text(as_lines(*records))
    result = command("evaluate", "--model", saved_model, tmp_path, "--output", tmp_path / "scores.json")
    assert result.code == 0
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["given_words"]["gold"] == 1
    assert "Given words" in result.out
    missing = command("evaluate", "--model", saved_model, tmp_path, "--split", "test")
    assert missing.code == 2
    assert "no split 'test'; give --split validation" in missing.err
    alone = command("evaluate", "--model", saved_model, tmp_path / "dev.jsonl", "--output", tmp_path / "alone.json")
    assert alone.code == 0, "the only split there is, whatever its name"
    assert json.loads((tmp_path / "alone.json").read_text()) == scores


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
