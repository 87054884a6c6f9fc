"""Quirks of the corpora of each reader: sentences, entities and counts, as `quirks.yaml` has them; and errors."""

import json
from pathlib import Path

import pytest
import yaml

from modeling_triaffine.data import CorpusError, load_nested_ner
from modeling_triaffine.data.formats.text_spans import FIELDS
from tests.helpers.corpora import (
    ACE_SOURCE,
    BIGBIO_RECORD,
    NESTED,
    PUBLISHED,
    TEXT,
    ace_annotations,
    conllu,
    ere_annotations,
    json_lines,
    read,
    region,
    spelled,
    task,
    triples,
    write_files,
)

QUIRKS = yaml.safe_load(Path(__file__).with_name("quirks.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", QUIRKS)
def test_a_quirk_is_read(tmp_path, name):
    quirk = QUIRKS[name]
    path = write_files(tmp_path, quirk["files"])
    records, check = read(tmp_path if len(quirk["files"]) > 1 else path, **quirk.get("options", {}))
    assert [[" ".join(record["tokens"]), *map(list, spelled(record))] for record in records] == quirk["found"]
    assert check.counts == quirk.get("counts", {})


def lines(*values):
    return {"a.jsonl": json_lines(*values)}


def test_ids_are_those_of_the_corpus_or_numbers(tmp_path):
    def ids(files):
        return [(one["id"], one["doc_id"], one["sent_id"]) for one in read(write_files(tmp_path, files))[0]]

    bare = {"tokens": ["a"], "entities": []}
    assert ids(lines(bare, bare)) == [("a.jsonl:line 1", "a.jsonl", 0), ("a.jsonl:line 2", "a.jsonl", 1)]
    assert ids({"dev.json": json.dumps([PUBLISHED])}) == [("dev:0", "dev:0", 0)]
    assert ids({"t.conllu": "# newdoc id = d\n# sent_id = d-1\n" + conllu("")})[0] == ("d-1", "d", 0)
    again = "# newdoc id = {}\n# sent_id = 0\n" + conllu("")  # numbers may begin anew
    assert [one[0] for one in ids({"u.conllu": again.format("a") + "\n" + again.format("b")})] == ["a:0", "b:0"]
    assert ids({"my.data.jsonl": json.dumps({"text": "a", "entities": []})}) == [("my.data:0:0", "my.data:0", 0)]
    assert ids(lines({"text": "He ran. See", "entities": [], "id": 7})) == [("7:0", "7", 0), ("7:1", "7", 1)]


def test_context_of_published_records(tmp_path):
    (record,), _ = read(write_files(tmp_path, {"dev.json": json.dumps([PUBLISHED])}))
    assert (record["left_tokens"], record["right_tokens"]) == (["It", "rained", "."], [])


def test_of_the_stages_of_an_ace_document_the_last_is_taken(tmp_path):
    for place in ("adj/N_1", "adj/N_2", "timex2norm/N_1", "timex2norm/N_2"):
        annotations = ace_annotations([] if place == "adj/N_2" else NESTED, name=place[-3:])
        write_files(tmp_path, {f"{place}.sgm": ACE_SOURCE, f"{place}.apf.xml": annotations})
    records, check = read(tmp_path)
    assert [*dict.fromkeys(record["doc_id"] for record in records)] == ["N_1", "N_2"]
    assert any(record["entities"] for record in records if record["doc_id"] == "N_2")
    assert check.counts == {"earlier stages of annotation ignored": 2}
    assert {record["doc_id"] for record in read(tmp_path / "adj")[0]} == {"N_1", "N_2"}


REGION = region(13, 17, "City")
WRONG = {
    "no texts": ({"a.txt": "", "a.ann": ""}, "no sentences.*texts without words.*Read as 'brat'"),
    "two texts of one document": ({"a.txt": "", "a.xml": "", "a.rich_ere.xml": ere_annotations()}, "not there once"),
    "regions of another text": (lines(task({**REGION, "value": {**REGION["value"], "text": "Omsk"}})), "quotes 'Omsk'"),
    "a passage before its place": (lines({**BIGBIO_RECORD, "passages": 2 * BIGBIO_RECORD["passages"]}), "begins at 0"),
    "an entity that is not open": ({"a.conllu": conllu("1)(2-x)")}, "closes '1'"),
    "a text in place of words": (lines({"sentences": TEXT, "ners": [[0, 2, "X"]]}), "'text=sentences entities=ners"),
    "tags in place of entities": (lines({"tokens": ["a"], "entities": ["O"]}), "'tokens=tokens entities=entities'"),
    "a field by another name": (lines({"text": "a", "spans": [{"from": 0}]}), "Name it start.*convert --columns"),
    "files of one form": ({"a.json": '{"content": "a", "x": 1}', "b.json": "{}"}, "first record are 'content', 'x'"),
    "no field of spans": (lines({"text": "a", "spans": None, "tracks": []}), "no text has a field of spans"),
    "an end that fits neither way": ({"a.txt": "He ran\n0,0 P\n\nHe ran\n0,2 P\n"}, "line 5: a span of the words 0"),
    "words of a quote": (
        lines({"tokens": ["Ana", "ran"], "entities": [{"start": 0, "end": 2, "type": "X", "text": "Ana"}]}),
        r"'entities\[0\]\.text' is 'Ana', but the words 0 to 2 are 'Ana ran'",
    ),
    "UTF-16 without a mark": ({"a.jsonl": json.dumps({"text": "a"}).encode("utf-16-le")}, "NUL.*as UTF-8"),
    "line ends of Windows": (
        {"a.txt": "He slept.\r\nShe likes Orsk.", "a.ann": "T1\tCity 20 24\tOrsk\r\n"},
        r"a\.ann, line 1: field 'T1' quotes 'Orsk'.*--offsets.*line ends of one",
    ),
}


@pytest.mark.parametrize(("files", "problem"), WRONG.values(), ids=WRONG)
def test_errors_name_what_is_wrong(tmp_path, files, problem):
    path = write_files(tmp_path, files)
    with pytest.raises(CorpusError, match=problem):
        load_nested_ner(tmp_path if len(files) > 1 else path)


def test_every_field_with_the_covered_text_is_compared(tmp_path):
    for name in FIELDS.quote:
        span = {"start": 13, "end": 17, "label": "X", name: "Omsk"}
        path = write_files(tmp_path, lines({"text": TEXT, "spans": [span]}))
        with pytest.raises(CorpusError, match=r"'spans\[0\]' quotes 'Omsk', but from 13 to 17 the text is '.*\[Orsk\]"):
            read(path)


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("Nobody slept\n\n\nOrsk slept\n0,1 LOC", "span_lines"),
        ("IL-2 and NF-kappa B activation .\n0,0 G#protein|2,3 G#protein\n\nIt works .\n", "span_lines"),
        ("Orsk B-LOC\n0,1 O\n\n", "iob2"),
    ],
)
def test_lines_of_spans_are_no_columns_of_tags(tmp_path, content, format):
    rows = load_nested_ner(write_files(tmp_path, {"a.dat": content}), format)
    assert any(map(triples, rows["train"]))
    with pytest.raises(CorpusError, match="cannot be detected"):
        load_nested_ner(write_files(tmp_path, {"b.dat": "0,1 ORG|3,7 PER\n"}))
