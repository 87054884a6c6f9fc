"""`triaffine-ner preannotate`: predictions as annotation tools import them, and read again as these export them."""

import json
import shutil
import sys

import pytest

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.data.writing_texts import PREDICTION_WRITERS
from modeling_triaffine.evaluation.uncertainty import MEASURES, read_texts
from tests.helpers.corpora import read, write_files

TEXTS = ["The gene binds 😀 DNA. It works", "", "protein", "IL-2 gene: a protein", " ", "DNA or gene"]
WRITTEN = [text for text in TEXTS if text.strip()]


@pytest.fixture(scope="module")
def found(saved_model):
    """What the model finds in each text that has words."""
    return read_texts(NestedNERPipeline(model=str(saved_model)), WRITTEN, threshold=0.3)


@pytest.fixture
def run(command, tmp_path, saved_model):
    def run(tool, *options, model=saved_model):
        source = write_files(tmp_path, {"texts.txt": "\n".join(TEXTS)})
        output = tmp_path / "out.json"
        arguments = (source, "--model", model, "--to", tool, "--output", output, "--threshold", 0.3, *options)
        return output, command("preannotate", *arguments)

    return run


def accept_in_label_studio(output):
    """Makes of the predictions the export of a project in which every one was accepted as it is."""
    tasks = json.loads(output.read_text())
    for number, task in enumerate(tasks, start=1):
        task.update(id=number, annotations=[{"result": task.pop("predictions")[0]["result"]}])
    output.write_text(json.dumps(tasks))


@pytest.mark.parametrize("tool", PREDICTION_WRITERS)
def test_predictions_are_read_again(run, found, tool):
    if tool == "inception":
        pytest.importorskip("cassis")
    output, result = run(tool)
    assert (result.code, result.out) == (0, "")
    number = sum(len(one.entities) for one in found)
    assert number > 5
    assert f"6 texts read, 2 of them without words; 4 written with {number} entities" in result.err
    if tool == "label_studio":
        accept_in_label_studio(output)
    records, check = read(output)
    assert check.entities_dropped == 0
    again = [
        ("".join(record["tokens"][entity["start"] : entity["end"]]), entity["type"])
        for record in records
        for entity in record["entities"]
    ]
    written = [("".join(entity["word"].split()), entity["entity_group"]) for one in found for entity in one.entities]
    assert sorted(again) == sorted(written)


def test_label_studio_has_scores_and_the_labelling_configuration(run, found):
    output, result = run("label_studio")
    task = json.loads(output.read_text())[0]
    assert task["data"]["text"] == WRITTEN[0]
    assert task["data"]["uncertainty"] == pytest.approx(found[0].uncertainty, abs=1e-5)
    (prediction,) = task["predictions"]
    scores = [entity["score"] for entity in found[0].entities]
    assert [region["score"] for region in prediction["result"]] == pytest.approx(scores, abs=1e-5)
    assert prediction["score"] == pytest.approx(min(scores), abs=1e-5)
    region = prediction["result"][0]
    assert (region["from_name"], region["to_name"], region["type"]) == ("label", "text", "labels")
    value = region["value"]
    assert WRITTEN[0][value["start"] : value["end"]] == value["text"]
    assert '<Labels name="label" toName="text"><Label value="DNA" /><Label value="protein" /></Labels>' in result.err


def test_brat_has_scores_as_notes(run, found):
    folder, _ = run("brat")
    first = found[0].entities[0]
    lines = (folder / "texts-00001.ann").read_text().splitlines()
    assert lines[1] == f"#1\tAnnotatorNotes T1\tscore {first['score']:.4f}"


@pytest.fixture
def renamed(saved_model, tmp_path):
    """The model with other names for its labels."""

    def rename(**names):
        folder = shutil.copytree(saved_model, tmp_path / "model", dirs_exist_ok=True)
        config = json.loads((folder / "config.json").read_text())
        labels = {number: names.get(label, label) for number, label in config["id2label"].items()}
        config |= {"id2label": labels, "label2id": {label: int(number) for number, label in labels.items()}}
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    return rename


def test_labels_with_spaces_have_others_in_brat_alone(run, renamed, found):
    model = renamed(DNA="nucleic acid")
    folder, result = run("brat", model=model)
    assert result.code == 0, result.err
    assert "Types of brat have no spaces: 'nucleic acid' is 'nucleic_acid'." in result.err
    lines = [line for file in folder.glob("*.ann") for line in file.read_text().splitlines() if line.startswith("T")]
    kinds = [line.split("\t")[1].split()[0] for line in lines]
    expected = [entity["entity_group"].replace("DNA", "nucleic_acid") for one in found for entity in one.entities]
    assert sorted(kinds) == sorted(expected)
    assert "nucleic_acid" in kinds


def test_labels_that_brat_would_confuse_are_refused_before_predicting(run, renamed, monkeypatch):
    monkeypatch.setattr("modeling_triaffine.evaluation.uncertainty.read_texts", None)
    output, result = run("brat", model=renamed(DNA="a b", protein="a_b"))
    assert result.code != 0
    assert "'a b' and 'a_b' would both be 'a_b' in brat" in result.err
    assert not output.exists()


@pytest.mark.parametrize("tool", ["brat", "inception"])
def test_names_that_no_file_can_have_are_refused_before_predicting(command, saved_model, tmp_path, monkeypatch, tool):
    monkeypatch.setattr("modeling_triaffine.evaluation.uncertainty.read_texts", None)
    lines = [json.dumps({"text": text, "id": name}) for text, name in (("a gene", "good"), ("DNA", "../bad"))]
    source = write_files(tmp_path, {"texts": "\n".join(lines)})
    options = ("--model", saved_model, "--format", "jsonl", "--to", tool, "--output", tmp_path / "out")
    result = command("preannotate", source, *options)
    assert result.code != 0
    assert "'../bad' has a name that is not a valid file name" in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("tool", ["brat", "doccano"])
def test_an_output_that_cannot_be_written_is_found_before_predicting(command, saved_model, tmp_path, monkeypatch, tool):
    monkeypatch.setattr("modeling_triaffine.evaluation.uncertainty.read_texts", None)
    source = write_files(tmp_path, {"texts.txt": "a gene"})
    result = command("preannotate", source, "--model", saved_model, "--to", tool, "--output", source / "out")
    assert result.code == 2
    assert str(source) in result.err


def test_a_missing_extra_is_named_before_predicting(command, saved_model, tmp_path, monkeypatch):
    monkeypatch.setattr("modeling_triaffine.evaluation.uncertainty.read_texts", None)
    monkeypatch.setitem(sys.modules, "cassis", None)
    source = write_files(tmp_path, {"texts.txt": "a gene"})
    result = command("preannotate", source, "--model", saved_model, "--to", "inception", "--output", tmp_path / "out")
    assert result.code == 2
    assert "extra `cas`" in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("measure", MEASURES)
def test_the_least_sure_come_first_within_the_budget(run, saved_model, measure):
    output, result = run("doccano", "--sort", "uncertain", "--measure", measure, "--budget", 3)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    read_again = read_texts(NestedNERPipeline(model=str(saved_model)), WRITTEN, measure)
    expected = sorted(read_again, key=lambda one: -one.uncertainty)[:3]
    assert [row["text"] for row in rows] == [one.text for one in expected]
    assert [row["uncertainty"] for row in rows] == pytest.approx([one.uncertainty for one in expected], abs=1e-5)
    assert "3 written with" in result.err
    assert f"; {measure} {expected[0].uncertainty:.3f}"[:-1] in result.err


def test_ranked_documents_of_folders_are_in_one(command, saved_model, tmp_path):
    lines = [json.dumps({"text": text, "id": f"dö/{number}"}) for number, text in enumerate(WRITTEN)]
    source = write_files(tmp_path, {"texts": "\n".join(lines)})
    options = ("--format", "jsonl", "--to", "brat", "--output", tmp_path / "out", "--sort", "uncertain", "--budget", 2)
    assert command("preannotate", source, "--model", saved_model, *options).code == 0
    assert len(list((tmp_path / "out").glob("0000[12]-dö-[0-9].txt"))) == 2


def test_ranked_documents_are_named_by_their_place(run, found):
    folder, _ = run("brat", "--sort", "uncertain", "--budget", 1)
    least_sure = max(found, key=lambda one: one.uncertainty)
    (text,) = folder.glob("*.txt")
    assert text.name.startswith("00001-texts-0000")
    assert text.read_text() == least_sure.text


def test_texts_of_a_folder_and_of_json_lines_keep_their_names(command, saved_model, tmp_path):
    write_files(tmp_path / "in", {"a/1.txt": "gene\r\nDNA", "b.txt": "\ufeffprotein"})
    arguments = ("--model", saved_model, "--to", "brat", "--output")
    assert command("preannotate", tmp_path / "in", *arguments, tmp_path / "out").code == 0
    assert (tmp_path / "out" / "a" / "1.txt").read_bytes() == b"gene \nDNA"
    assert (tmp_path / "out" / "b.txt").read_bytes() == b"protein"
    lines = write_files(
        tmp_path,
        {"a.jsonl": '{"id": 7, "body": "gene", "entities": []}\n{"body": "DNA"}\n{"id": null, "body": "a gene"}\n'},
    )
    assert command("preannotate", lines, *arguments, tmp_path / "other", "--text-column", "body").code == 0
    assert sorted(file.name for file in (tmp_path / "other").glob("*.txt")) == ["7.txt", "a-00002.txt", "a-00003.txt"]


@pytest.mark.parametrize("tool", ["brat", "inception", "doccano", "label_studio"])
def test_halves_of_surrogate_pairs_are_replaced(command, saved_model, tmp_path, tool):
    if tool == "inception":
        pytest.importorskip("cassis")
    lines = write_files(tmp_path, {"a.jsonl": '{"text": "a \\ud800 gene"}\n'})
    result = command("preannotate", lines, "--model", saved_model, "--to", tool, "--output", tmp_path / "out")
    assert result.code == 0, result.err
    name = {"brat": "out/a-00001.txt", "inception": "out/a-00001.json"}.get(tool, "out")
    assert "a \ufffd gene" in (tmp_path / name).read_text(encoding="utf-8").replace("\\ufffd", "\ufffd")


MISTAKES = {
    "no tool": (["texts.txt", "--output", "x"], ["--to"]),
    "another tool": (["texts.txt", "--output", "x", "--to", "nonesuch"], ["'nonesuch'", "'label_studio'"]),
    "no file": (["none.txt", "--output", "x", "--to", "brat"], ["none.txt"]),
    "no texts": (["empty.txt", "--output", "x", "--to", "brat"], ["empty.txt", "no text"]),
    "folder without texts": (["folder", "--output", "x", "--to", "brat"], ["folder", ".txt"]),
    "output is a folder": (["texts.txt", "--output", "folder", "--to", "doccano"], ["--output folder"]),
    "output is the standard one": (["texts.txt", "--output", "-", "--to", "doccano"], ["--output -", "file"]),
    "output is the standard one, no folder": (["texts.txt", "--output", "-", "--to", "brat"], ["--output -", "folder"]),
    "output is the input": (["texts.txt", "--output", "texts.txt", "--to", "doccano"], ["is an input file"]),
    "output is a text of the folder": (
        ["in", "--output", "in/b.txt", "--to", "doccano"],
        ["in/b.txt is an input file"],
    ),
    "output exists": (["texts.txt", "--output", "folder", "--to", "brat"], ["--output folder"]),
    "ids": (["ids.jsonl", "--output", "x", "--to", "doccano"], ["ids.jsonl", "'1'"]),
    "id outside": (["outside.jsonl", "--output", "x", "--to", "brat"], ["'../a'"]),
    "no text field": (["ids.jsonl", "--output", "x", "--to", "doccano", "--text-column", "t"], ["line 1", "'t'"]),
    "budget": (["texts.txt", "--output", "x", "--to", "brat", "--budget", "0"], ["--budget"]),
    "encoding": (["latin", "--output", "x", "--to", "brat"], ["a.txt", "byte 4"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(command, saved_model, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    files = {"texts.txt": "gene", "empty.txt": "\n \n", "folder/x.md": "", "latin/a.txt": "caf\xe9".encode("latin-1")}
    files["ids.jsonl"] = '{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}\n'
    files |= {"in/a.txt": "a", "in/b.txt": "b"}
    files["outside.jsonl"] = '{"id": "../a", "text": "gene"}\n'
    write_files(tmp_path, files)
    arguments, facts = MISTAKES[name]
    result = command("preannotate", *arguments, "--model", saved_model)
    assert (result.code, result.out) == (2, "")
    assert [fact for fact in facts if fact not in result.err] == []
    assert (tmp_path / "in" / "b.txt").read_text() == "b"
    assert {path.name for path in tmp_path.iterdir()} == {name.partition("/")[0] for name in files}
