"""Commands as a user runs them: prediction from files and standard input, scores, statistics, mistakes."""

import gzip
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from modeling_triaffine import NestedNERPipeline, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.commands import main
from modeling_triaffine.data.formats.genia import SPLIT_STARTS
from modeling_triaffine.errors import PIPE_CLOSED
from modeling_triaffine.evaluation.prediction import predict_words, score_raw_text
from tests.helpers.portable import near
from tests.helpers.processes import PATIENCE
from tests.helpers.tiny import save_tiny_model, tiny_model, tiny_pipeline, tiny_processor

TEXTS = ["The gene binds DNA. It works.", "", "protein"]


def as_lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)


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
    assert [json.loads(line) for line in printed.out.splitlines()] == near(lines)


def test_no_bars_are_drawn_where_there_is_no_terminal(saved_model, tmp_path):
    (tmp_path / "texts.txt").write_text(TEXTS[0])
    program = [sys.executable, "-c", "from modeling_triaffine.commands import main; main()"]
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_DISABLE_PROGRESS_BARS"}
    options = {"capture_output": True, "text": True, "timeout": PATIENCE, "check": True, "env": environment}
    result = subprocess.run([*program, "predict", "--model", saved_model, tmp_path / "texts.txt"], **options)
    assert "entities" in result.stdout
    assert "%|" not in result.stderr


def test_prediction_with_thresholds_by_label(saved_model, command, tmp_path):
    labels = NestedNERPipeline(model=saved_model).model.config.entity_labels
    (tmp_path / "texts.txt").write_text(TEXTS[0])
    options = ["predict", "--model", saved_model, tmp_path / "texts.txt"]
    everything = ",".join(f"{label}={0 if label == labels[0] else 1}" for label in labels)
    (line,) = command(*options, "--threshold", everything).out.splitlines()
    assert {entity["entity_group"] for entity in json.loads(line)["entities"]} == {labels[0]}
    refused = command(*options, "--threshold", "virus=0.5")
    assert refused.code == 2
    assert all(name in refused.err for name in ("virus", *labels))


def test_prediction_in_a_pipe(saved_model, tmp_path, monkeypatch):
    """Whose reader closes it early: what is written afterwards, as at the end of a process, is no error."""
    (tmp_path / "texts.txt").write_text(f"{TEXTS[0]}\n" * 2000)
    options = ["predict", "--model", saved_model, "--batch-size", 4, tmp_path / "texts.txt"]
    reading, writing = os.pipe()
    with os.fdopen(reading) as reader, os.fdopen(writing, "w") as writer, ThreadPoolExecutor(1) as other:
        monkeypatch.setattr(sys, "stdout", writer)
        first = other.submit(lambda: (reader.readline(), reader.close())[0])
        with pytest.raises(SystemExit) as end:
            main([*map(str, options)])
        print("more", flush=True)
    assert json.loads(first.result())["text"] == TEXTS[0]
    assert end.value.code == PIPE_CLOSED


@pytest.mark.parametrize("output", [[], ["--output", "-"]])
def test_lines_are_flushed_to_standard_output_as_they_come(saved_model, tmp_path, monkeypatch, output):
    (tmp_path / "texts.txt").write_text("gene\nDNA")
    stream, flushed = io.StringIO(), []
    monkeypatch.setattr(stream, "flush", lambda: flushed.append(stream.getvalue().count("\n")))
    monkeypatch.setattr(sys, "stdout", stream)
    main(["predict", "--model", str(saved_model), str(tmp_path / "texts.txt"), *output])
    assert 1 in flushed


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
    printed = result.err.splitlines()[-1]
    assert printed.startswith("error: ")
    assert "in.jsonl, line 2: there is no text under 'body'" in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_the_input_is_not_written_over(saved_model, command, tmp_path):
    (tmp_path / "texts.txt").write_text(TEXTS[0])
    (tmp_path / "link.txt").symlink_to(tmp_path / "texts.txt")
    result = command("predict", "--model", saved_model, tmp_path / "texts.txt", "--output", tmp_path / "link.txt")
    assert result.code == 2
    assert "is an input file, which would be lost" in result.err
    assert (tmp_path / "texts.txt").read_text() == TEXTS[0]


@pytest.mark.parametrize("name", ["texts.csv", "texts.TSV", "texts.parquet"])
def test_tables_are_no_lines_of_text(saved_model, command, tmp_path, name):
    (tmp_path / name).write_text("id\ttext\n1\tgene\n")
    result = command("predict", "--model", saved_model, tmp_path / name)
    assert (result.code, result.out) == (2, "")
    assert all(fact in result.err for fact in (f"{name} is a table", "(.jsonl)", "`triaffine-ner tag`"))
    assert command("predict", "--model", saved_model, "--format", "text", tmp_path / name).code == 0


def test_json_on_standard_input_without_its_format_is_told(saved_model, command, monkeypatch, caplog):
    for line, told in (('{"text": "gene"}', 1), ("{gene}", 0)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
        caplog.clear()
        assert command("predict", "--model", saved_model).code == 0
        assert len([one for one in caplog.messages if "standard input, line 1" in one and "jsonl" in one]) == told


def test_mistakes_in_prediction_are_one_paragraph(saved_model, command, tmp_path):
    for arguments, fact in (
        (["--model", saved_model, tmp_path / "nowhere.txt"], "There is no file"),
        (["--model", tmp_path / "nowhere", tmp_path / "nowhere.txt"], str(tmp_path / "nowhere")),
    ):
        result = command("predict", *arguments)
        assert result.code == 2
        assert fact in result.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"text": ', "invalid JSON"),
        (b"{", "a JSON value goes on in the next line. Give JSON lines"),
        (b'[{"text": "a"},', "a JSON value goes on in the next line. Give JSON lines"),
        (b"[" * 100_000, "the JSON is nested too deeply"),
        (b'{"text": "a", "n": ' + b"1" * 5000 + b"}", "a number has thousands of digits"),
        (b'{"text": "\xff"}', "byte 11 is not valid utf-8"),
        (b'[{"text": "a"}]', "expected a JSON object, found [{'text': 'a'}] (list). Give one JSON object"),
        (b'{"text": null}', "there is no text under 'text', but null"),
        (
            b'{"text": "a", "entities": [1]}',
            "there is a field 'entities' already. Give another one for the entities with",
        ),
    ],
)
@pytest.mark.parametrize("source", ["file", "standard input"])
def test_a_line_that_cannot_be_read_is_named(saved_model, command, tmp_path, monkeypatch, line, problem, source):
    content = b'{"text": "gene"}\n\n' + line + b"\n"
    (tmp_path / "in.jsonl").write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), errors="surrogateescape"))
    name = tmp_path / "in.jsonl" if source == "file" else "-"
    result = command("predict", "--model", saved_model, "--format", "jsonl", name)
    assert result.code == 2
    assert f"error: {source if name == '-' else name}, line 3: {problem}" in result.err.splitlines()[-1]


@pytest.mark.parametrize("name", ["in.jsonl", "in.NDJSON"])
def test_entities_get_a_field_of_their_own(saved_model, command, tmp_path, name):
    (tmp_path / name).write_text(as_lines({"text": TEXTS[0], "entities": ["mine"]}))
    options = ["predict", "--model", saved_model, "--threshold", "0.3", tmp_path / name]
    record = json.loads(command(*options, "--entities-column", "found").out)
    assert record["entities"] == ["mine"]
    assert record["found"]


@pytest.mark.parametrize("form", ["text", "jsonl"])
@pytest.mark.parametrize("source", ["file", "standard input"])
def test_a_byte_order_mark_is_no_part_of_the_text(saved_model, command, tmp_path, monkeypatch, form, source):
    content = (TEXTS[0] if form == "text" else as_lines({"text": TEXTS[0]})).encode("utf-8-sig")
    (tmp_path / "in").write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    name = tmp_path / "in" if source == "file" else "-"
    result = command("predict", "--model", saved_model, "--format", form, name)
    assert json.loads(result.out)["text"] == TEXTS[0]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("gene\ncaf\xe9\n".encode("latin-1"), "line 2: byte 4 is not valid utf-8. Save the file as UTF-8."),
        (gzip.compress(b"gene", mtime=0), "line 1: the file is compressed with gzip"),
    ],
)
def test_a_plain_file_that_is_not_utf_8_is_an_error(saved_model, command, tmp_path, content, problem):
    (tmp_path / "in.txt").write_bytes(content)
    result = command("predict", "--model", saved_model, tmp_path / "in.txt")
    assert result.code == 2
    assert f"in.txt, {problem}" in result.err.splitlines()[-1]


# ---- evaluate


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


def test_scores_of_given_words(evaluate, command, marking_model, tmp_path):
    sentences = [["gene", "binds"], ["The", "gene-protein", "binds"]]
    model = TriaffineForNestedNER.from_pretrained(marking_model)
    processor = TriaffineProcessor.from_pretrained(marking_model)
    found, others = predict_words(model, processor, [{"tokens": tokens} for tokens in sentences])
    right = [{name: entity[name] for name in ("start", "end", "type")} for entity in found]
    wrong = {**right[0], "type": "DNA" if right[0]["type"] == "protein" else "protein"}
    (tmp_path / "corpus").mkdir()
    records = [
        {"id": str(n), "doc_id": "d", "sent_id": n, "tokens": tokens, "pos": [], "entities": gold}
        for n, (tokens, gold) in enumerate(zip(sentences, [[wrong, *right[1:]], []], strict=True))
    ]
    (tmp_path / "corpus" / "dev.jsonl").write_text(as_lines(*records))
    result, scores = evaluate(tmp_path / "corpus")
    counts = {name: scores["given_words"][name] for name in ("correct", "gold", "predicted")}
    assert len(found) > 1
    assert counts == {"correct": len(found) - 1, "gold": len(found), "predicted": len(found) + len(others)}
    assert list(scores) == ["given_words"]
    rows = [row for row in scores["given_words"].values() if isinstance(row, dict) and "predicted" in row]
    rows += scores["given_words"]["by_label"].values()
    assert any(row["gold"] == 0 for row in rows)
    for row in rows:  # – in the table
        assert (row["precision"] is None) == (row["predicted"] == 0)
        assert (row["f1"] is None) == (not row["predicted"] and not row["gold"])
    assert "Given words:" in result.out
    assert "Raw text" not in result.out
    assert evaluate(tmp_path / "corpus", "--split", "dev")[1] == scores
    alone, of_the_only_split = evaluate(tmp_path / "corpus" / "dev.jsonl")
    assert (alone.code, of_the_only_split) == (0, scores), "the only split there is, whatever its name"
    assert evaluate(tmp_path / "corpus" / "dev.jsonl", "--split", "dev")[1] == scores
    piped = command("evaluate", "--model", marking_model, tmp_path / "corpus", "--output", "-")
    assert json.loads(piped.out) == scores
    assert "Given words:" in piped.err
    assert evaluate(tmp_path / "corpus", "--no_raw_text")[1] == scores
    no_text, _ = evaluate(tmp_path / "corpus", "--raw-text")
    assert no_text.code == 2
    assert all(part in no_text.err for part in ("dev.jsonl", "'json_lines'"))
    missing, _ = evaluate(tmp_path / "corpus", "--split", "test")
    assert missing.code == 2
    assert "no split 'test'. Give --split validation" in missing.err


def test_texts_are_scored_in_the_models_sentences_and_no_other_split_is_read(encoder, evaluate, tmp_path):
    tiny_model(encoder, seed=2).save_pretrained(tmp_path / "model")
    tiny_processor(encoder, sentence_splitter="lines", word_splitter="whitespace").save_pretrained(tmp_path / "model")
    (tmp_path / "corpus").mkdir()
    # The second one crosses the lines, the third one ends inside a word.
    gold = [[start, end, "protein"] for start, end in ((0, 12), (11, 20), (0, 4), (13, 20))]
    (tmp_path / "corpus" / "dev.jsonl").write_text(as_lines({"text": "gene. Binds-\nprotein", "label": gold}))
    (tmp_path / "corpus" / "train.jsonl").write_text("damaged")
    _, scores = evaluate(tmp_path / "corpus", model=tmp_path / "model")
    assert [scores[kind]["gold"] for kind in ("given_words", "raw_text")] == [2, 4]


def test_scores_of_the_raw_text_of_one_split_of_genia(evaluate, tmp_path, monkeypatch):
    for number, split in enumerate(("train", "validation", "test")):
        monkeypatch.setitem(SPLIT_STARTS, split, number)
    gene, protein = (f'<cons sem="G#protein_molecule">{word}</cons>' for word in ("gene", "protein"))
    articles = [
        f"<article><articleinfo><bibliomisc>{number}</bibliomisc></articleinfo><title><sentence>{text}</sentence></title>"
        "</article>"
        for number, text in enumerate((f"{gene} binds", protein, f"{gene} {gene} x"))
    ]
    (tmp_path / "genia.xml").write_text(f'<set xmlns:gpml="x">{"".join(articles)}</set>')
    result, scores = evaluate(tmp_path / "genia.xml")
    for kind in ("given_words", "raw_text"):
        assert {name: scores[kind][name] for name in ("correct", "gold", "predicted")} == {
            "correct": 1, "gold": 1, "predicted": 1
        }  # fmt: skip
    assert "Raw text:" in result.out
    _, without = evaluate(tmp_path / "genia.xml", "--no-raw-text")
    assert list(without) == ["given_words"]
    _, of_test = evaluate(tmp_path / "genia.xml", "--split", "test")
    assert of_test["given_words"]["gold"] == of_test["raw_text"]["gold"] == 2


def test_predicted_words_do_not_depend_on_the_batch(encoder):
    model, processor = tiny_model(encoder), tiny_processor(encoder)
    records = [{"tokens": ["gene"] * length} for length in (3, 1, 5, 2)]
    together = predict_words(model, processor, records, batch_size=4, threshold=0.3)
    alone = [predict_words(model, processor, [record], threshold=0.3)[0] for record in records]
    spans = [[[(e["start"], e["end"], e["type"]) for e in found] for found in way] for way in (together, alone)]
    assert spans[0] == spans[1]
    assert any(spans[0])


def test_raw_text_is_scored_by_characters(encoder):
    pipeline = tiny_pipeline(encoder)
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
    assert first == near(second)
    assert model.training


@pytest.mark.parametrize(("name", "more"), [("statistics", []), ("convert", ["out", "--to", "iob2"])])
def test_bad_records_of_a_corpus(command, caplog, tmp_path, name, more):
    good = '{"tokens": ["Orsk"], "entities": [{"start": 0, "end": 1, "type": "City"}]}\n'
    (tmp_path / "a.jsonl").write_text(f"{good}{{\n{good}")
    more = [tmp_path / more[0], *more[1:]] if more else []
    failed = command(name, tmp_path / "a.jsonl", *more)
    assert (failed.code, "line 2: " in failed.err) == (2, True)
    assert command(name, tmp_path / "a.jsonl", *more, "--max_bad_records", 1).code == 0
    assert ["bad records dropped: 1 (" in told and "line 2: " in told for told in caplog.messages] == [True]


def test_statistics_of_a_corpus_without_entities(command, tmp_path):
    (tmp_path / "a.tsv").write_text("slept\tO\n")
    counted = command("statistics", tmp_path / "a.tsv")
    assert "warning: a.tsv: there are no entities; look at what was dropped" in counted.err
    long = "B-" + 200 * "x"
    (tmp_path / "a.tsv").write_text(f"Orsk\t{long}\tO\nOmsk\tO\tO\n")
    counted = command("statistics", tmp_path / "a.tsv")
    assert "no entities" not in counted.err
    assert "nested entities, inner and outer" in counted.out
    assert max(map(len, counted.out.splitlines())) <= 100


def test_several_files_are_one_corpus(command, tmp_path):
    """Named one by one, as a shell expands a pattern, or by a pattern in quotes."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.tsv").write_text(f"{name}\tB-X\n\nslept\tO\n")
    one_by_one = [folder / "a.tsv", folder / "b.tsv"]
    for number, corpus in enumerate((one_by_one, [folder / "*.tsv"])):
        counted = json.loads(command("statistics", *corpus, "--json").out)
        assert counted["in"]["sentences"] == 4
        out = tmp_path / f"out{number}"
        assert command("convert", *corpus, out, "--to", "json_lines").code == 0
        names = [json.loads(line)["doc_id"] for line in (out / "train.jsonl").read_text().splitlines()]
        assert names == ["a", "a", "b", "b"]
    (folder / "b-test.tsv").write_text("b\tB-X\n")
    failed = command("statistics", folder)
    assert (failed.code, "b-test.tsv could be a split" in failed.err, "--test_file" in failed.err) == (2, True, True)


def test_scores_are_written_although_the_reader_of_the_tables_leaves(command, marking_model, tmp_path, close_output):
    close_output()
    (tmp_path / "dev.jsonl").write_text(as_lines({"tokens": ["gene", "binds"], "entities": []}))
    result = command("evaluate", "--model", marking_model, tmp_path / "dev.jsonl", "--output", tmp_path / "scores.json")
    assert result.code == PIPE_CLOSED
    assert "given_words" in json.loads((tmp_path / "scores.json").read_text())


def test_scores_are_not_written_over_the_corpus(evaluate, command, marking_model, tmp_path):
    corpus = tmp_path / "dev.jsonl"
    corpus.write_text('{"tokens": ["Orsk"], "entities": []}\n')
    for output, message in ((corpus, "a file of the corpus, which would be lost"), (tmp_path, "is a folder")):
        refused = command("evaluate", "--model", marking_model, corpus, "--output", output)
        assert (refused.code, message in refused.err, refused.out) == (2, True, "")
    assert "Orsk" in corpus.read_text()


def test_outputs_that_are_no_new_folder(command, tmp_path):
    (tmp_path / "a.tsv").write_text("Orsk\tB-X\n")
    for output, message in (("-", "not standard output"), (tmp_path / "a.tsv", "is a file")):
        refused = command("convert", tmp_path / "a.tsv", output, "--to", "json_lines")
        assert (refused.code, message in refused.err) == (2, True)


def test_a_home_folder_behind_an_equals_sign(command, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("Orsk")
    assert str(tmp_path / "nothing") in command("predict", "--model=~/nothing", tmp_path / "a.txt").err
