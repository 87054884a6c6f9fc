"""`predict`: every form of input and output, and what is rejected."""

import gzip
import io
import json
import os
import sys

import pytest

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.errors import PIPE_CLOSED
from modeling_triaffine.evaluation.prediction import read_texts
from tests.helpers.corpora import json_lines, read, write_files
from tests.helpers.portable import near

TEXTS = ["The gene binds DNA. It works.", "", "protein"]


@pytest.fixture
def predict(command, saved_model, tmp_path):
    def run(source, *options, files=None):
        if files:
            write_files(tmp_path, files)
        return command("predict", "--model", saved_model, "--threshold", 0.3, tmp_path / source, *options)

    return run


@pytest.fixture
def standard_input(monkeypatch):
    def give(content, is_terminal=False):
        stream = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
        monkeypatch.setattr(sys, "stdin", stream)

    return give


def test_lines_of_a_file_in_either_spelling_of_an_option(saved_model, predict, tmp_path):
    expected = NestedNERPipeline(saved_model)(TEXTS, threshold=0.3)
    files = {"texts.txt": "\n".join(TEXTS)}
    written = predict("texts.txt", "--batch_size", "2", "--output", tmp_path / "out" / "entities.jsonl", files=files)
    assert (written.code, written.out) == (0, "")
    found = [json.loads(line) for line in (tmp_path / "out" / "entities.jsonl").read_text().splitlines()]
    assert found == near([{"text": text, "entities": of} for text, of in zip(TEXTS, expected, strict=True)])
    assert f"Documents: 3. Entities: {sum(map(len, expected))} (" in written.err
    printed = predict("texts.txt", "--batch-size=2")
    assert [json.loads(line) for line in printed.out.splitlines()] == near(found)


def test_a_folder_of_texts(predict, tmp_path):
    files = {"in/b.txt": "\ufeffgene\nDNA", "in/a/1.txt": "protein", "in/.hidden.txt": "x", "in/c.txt": b"caf\xe9"}
    files |= {"in/d.PDF": b"%PDF-1", "in/e.md": "gene"}
    result = predict("in", "--html", tmp_path / "report.html", "--output", tmp_path / "out.jsonl", files=files)
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [result.code, *((one["id"], one["text"]) for one in found)] == [3, ("a/1", "protein"), ("b", "gene\nDNA")]
    assert all(fact in result.err for fact in ("Documents: 2.", "Rejected: 2.", "left out: 1, such as e.md."))
    for place in (result.err, (tmp_path / "report.html").read_text()):
        assert all(problem in place for problem in ("in/c.txt: byte 4 is not valid", "in/d.PDF: the file is a PDF"))
    assert "<h3>a/1</h3>" in place


def test_a_text_and_a_page_alone(predict, command, saved_model, tmp_path):
    result = command("predict", "--model", saved_model, "--text", "gene", "--html", tmp_path / "report.html")
    assert f"Written: {tmp_path / 'report.html'}" in result.err.splitlines()
    assert (result.code, result.out) == (0, "")
    assert all(part in (tmp_path / "report.html").read_text() for part in ("<title>Entities in a text</", "gene"))
    assert json.loads(command("predict", "--model", saved_model, "--text", "gene").out)["text"] == "gene"


def test_a_pipe_with_a_name_is_read_once(command, saved_model):
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as writer:
        print("gene", file=writer)
        writer.close()
        result = command("predict", "--model", saved_model, f"/dev/fd/{reading}")
    assert (result.code, json.loads(result.out)["text"]) == (0, "gene")


def test_on_a_terminal_each_line_is_drawn(command, saved_model, monkeypatch, standard_input):
    standard_input(b"gene binds\nDNA\x1b[2J\n", is_terminal=True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    result = command("predict", "--model", saved_model, "--threshold", "0")
    assert "> > > \nDocuments: 2." in result.err
    assert "gene binds\n" in result.out
    assert "{" not in result.out
    assert "\x1b" not in result.out


BAD_LINES = {
    b'{"text": ': "invalid JSON",
    b"[" * 100_000: "invalid JSON: maximum recursion",
    b'{"text": "a", "n": ' + b"1" * 5000 + b"}": "invalid JSON: Exceeds the limit",
    b'{"text": "\xff"}': "byte 11 is not valid utf-8",
    b'[{"text": "a"}]': "expected a JSON object, found [{'text': 'a'}] (list)",
    b'{"text": null}': "expected a text under 'text', found null",
    b'{"text": 1}': "expected a text under 'text', found int",
    b'{"body": "a", "n": 1}': "there is no 'text', but 'body', 'n'",
    b"{}": "there is no 'text', but none",
    b'{"text": "a", "entities": []}': "there is 'entities' already",
}


@pytest.mark.parametrize("source", ["in.jsonl", "-"])
def test_lines_that_cannot_be_read_are_rejected_and_others_go_on(predict, command, saved_model, standard_input, source):
    good = b'\xef\xbb\xbf{"text": "gene", "n": 7}', b'{"text": "a \\ud800 gene"}'
    content = b"\n".join([good[0], b"", *BAD_LINES, good[1], b""])
    standard_input(content)
    files = {"in.jsonl": content}
    result = predict(source, files=files) if source != "-" else command("predict", "--model", saved_model)
    assert result.code == 3
    first, last = map(json.loads, result.out.splitlines())
    assert (first["n"], last["text"]) == (7, "a \ud800 gene")
    assert [f"line {n}: {bad}" in result.err for n, bad in enumerate(BAD_LINES.values(), 3)] == [True] * len(BAD_LINES)
    assert f"Rejected: {len(BAD_LINES)}." in result.err


@pytest.mark.parametrize(
    ("name", "content", "options", "fact"),
    [
        ("a.jsonl", '{"b": "x", "i": 1}', (), "a.jsonl, line 1: there is no 'text', but 'b', 'i'. Give --text-column"),
        ("a.jsonl", json_lines({"text": "x", "entities": []}), (), "Give another --entities-column"),
        ("a.json", '[{"text": "a"}, {"text": "b"}]', (), "it is a list"),
        ("a.txt", gzip.compress(b"gene", mtime=0), (), "the file is compressed with gzip"),
        ("a.txt", b"%PDF-1.7\n", (), "the file is a PDF"),
        ("a.docx", b"PK\x03\x04\n", (), "the file is a Word document"),
        ("a.csv", "id,text\n", (), "is a table, whose lines are not texts"),
        ("a/b.md", "x", (), "a is a folder without .txt files"),
        ("a.txt", "Marie".encode("utf-16-le"), (), "there is a NUL byte, as in UTF-16"),
        ("a.txt", "x", ("--output", "a.txt"), "is the input, which would be lost"),
        ("a.txt", "x", ("--html", "a.txt"), "is the input, which would be lost"),
        ("a.txt", "x", ("--html", "."), "is a folder"),
        ("a.txt", "x", ("--text", "y"), "There are two inputs"),
        ("a.txt", "x", ("--entities-column", "text"), "there is 'text' already"),
        ("a.txt", "x", ("--uncertain", "1"), "--uncertain needs --to"),
        ("a.txt", "x", ("--to", "doccano", "--html", "b"), "--html is written beside JSON lines"),
        ("a.txt", "x", ("--output", "b", "--html", "b"), "--html is written beside JSON lines"),
        ("a.txt", "x", ("--to", "brat"), "brat imports a new folder"),
        ("a.txt", "x", ("--to", "doccano", "--output", "-"), "doccano imports a file"),
        ("a.jsonl", json_lines({"text": "x", "id": "../b"}), ("--to", "brat", "--output", "out"), "'../b'"),
        ("a.jsonl", json_lines(*[{"text": "x", "id": "b"}] * 2), ("--to", "brat", "--output", "out"), "the id 'b'"),
    ],
)
def test_mistakes_leave_nothing_half_written(predict, tmp_path, monkeypatch, name, content, options, fact):
    monkeypatch.chdir(tmp_path)
    result = predict(name.partition("/")[0], *options, files={name: content})
    assert (result.code, result.out) == (2, "")
    assert fact in result.err
    assert [path.name for path in tmp_path.iterdir()] == [name.partition("/")[0]]


def test_entities_get_a_field_of_their_own(predict):
    files = {"a.ndjson": json_lines({"body": TEXTS[0], "entities": ["mine"]})}
    result = predict("a.ndjson", "--entities-column", "found", "--text-column", "body", files=files)
    record = json.loads(result.out)
    assert record["entities"] == ["mine"]
    assert record["found"]


def test_a_reader_may_close_the_pipe_early(predict, close_output):
    close_output()
    assert predict("texts.txt", files={"texts.txt": f"{TEXTS[0]}\n" * 2}).code == PIPE_CLOSED
    print("more", flush=True)


# ---- annotation tools

WRITTEN = ["The gene binds 😀 DNA. It works", "protein", "IL-2 gene: a protein", "DNA or gene"]


@pytest.fixture(scope="module")
def found(saved_model):
    return read_texts(NestedNERPipeline(saved_model), WRITTEN, threshold=0.3)


@pytest.fixture
def for_tool(predict, tmp_path):
    def run(tool, *options):
        files = {"texts.txt": "\n".join([*WRITTEN[:2], "", " ", *WRITTEN[2:]])}
        return tmp_path / "out", predict("texts.txt", "--to", tool, "--output", tmp_path / "out", *options, files=files)

    return run


def accept_in_label_studio(output):
    """Makes of the predictions the export of a project in which every one was accepted as it is."""
    tasks = json.loads(output.read_text())
    for number, task in enumerate(tasks, start=1):
        task.update(id=number, annotations=[{"result": task.pop("predictions")[0]["result"]}])
    output.write_text(json.dumps(tasks))


@pytest.mark.parametrize("tool", ["label_studio", "brat", "doccano", "inception"])
def test_predictions_are_read_again(for_tool, found, tool):
    if tool == "inception":
        pytest.importorskip("cassis")
    output, result = for_tool(tool)
    assert (result.code, result.out) == (0, "")
    assert "4 of 6 texts written" in result.err
    if tool == "label_studio":
        assert '<Labels name="label" toName="text"><Label value="DNA" />' in result.err
        accept_in_label_studio(output)
    records, check = read(output)
    assert check.entities_dropped == 0
    again = [
        ("".join(record["tokens"][entity["start"] : entity["end"]]), entity["type"])
        for record in records
        for entity in record["entities"]
    ]
    written = [("".join(entity["word"].split()), entity["entity_group"]) for text in found for entity in text.entities]
    assert len(written) > 5
    assert sorted(again) == sorted(written)


def test_the_least_sure_come_first(for_tool, saved_model):
    output, _ = for_tool("doccano", "--uncertain", 3)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    read_again = read_texts(NestedNERPipeline(saved_model), WRITTEN)
    expected = sorted(read_again, key=lambda text: -text.uncertainty)[:3]
    assert [row["text"] for row in rows] == [text.text for text in expected]
    assert [row["uncertainty"] for row in rows] == pytest.approx([text.uncertainty for text in expected], abs=1e-5)
    output.unlink()
    folder, _ = for_tool("brat", "--uncertain", 1)
    (text,) = folder.glob("*.txt")
    assert text.name.startswith("00001-texts-0000")  # documents in a folder are sorted by name
    assert text.read_text() == expected[0].text


def test_documents_of_a_tool_keep_their_names(predict, tmp_path):
    predict("in", "--to", "brat", "--output", tmp_path / "out", files={"in/a/1.txt": "gene", "in/b.txt": "protein"})
    assert (tmp_path / "out" / "a" / "1.txt").read_text() == "gene"
    predict("in", "--to", "brat", "--output", tmp_path / "first", "--uncertain", 2)  # in one folder, in this order
    assert {file.name.split("-", 1)[1] for file in (tmp_path / "first").iterdir()} >= {"a-1.txt", "b.txt"}
    files = {"a.jsonl": '{"id": 0, "text": "gene \\ud800"}\n{"text": "DNA"}\n{"id": null, "text": "a gene"}\n'}
    predict("a.jsonl", "--to", "brat", "--output", tmp_path / "other", files=files)
    assert sorted(file.name for file in (tmp_path / "other").glob("*.txt")) == ["0.txt", "a-00002.txt", "a-00003.txt"]
    assert "gene \ufffd" in (tmp_path / "other" / "0.txt").read_text(encoding="utf-8")
