"""`max_bad_records`: records that cannot be read are dropped, named and counted; other errors stay."""

import json

import pytest

from modeling_triaffine.data import CorpusError, load_texts
from modeling_triaffine.data import load_nested_ner as load
from tests.helpers.corpora import write_files

CITY = {"start": 0, "end": 1, "type": "City"}
GOOD = {"tokens": ["Orsk", "slept"], "entities": [CITY]}
OUTSIDE = {"tokens": ["Orsk"], "entities": [CITY, {"start": 0, "end": 9, "type": "City"}]}


def lines(*records):
    return "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records)


def brat(**spans):
    texts = {f"c/{name}.txt": "Orsk slept." for name in spans}
    return texts | {f"c/{name}.ann": f"T1\tCity {span}\tOrsk\nT2\tPlace 0 4\tOrsk\n" for name, span in spans.items()}


CORPORA = {
    "a line that is no JSON": ({"a.jsonl": lines(GOOD, '{"tokens": ["Orsk"', GOOD)}, "a.jsonl", "line 2: ", 2, 0),
    "a record without a field": ({"a.jsonl": lines(GOOD, {"tokens": ["a"]}, GOOD)}, "a.jsonl", "line 2: ", 2, 0),
    "a record of a list": ({"a.json": json.dumps([GOOD, OUTSIDE, GOOD])}, "a.json", "record 1: ", 2, 2),
    "an entity outside": ({"a.jsonl": lines(GOOD, OUTSIDE, GOOD)}, "a.jsonl", "line 2: ", 2, 2),
    "a sentence of columns": (
        {"a.tsv": "Orsk\tX\tB-City\n\nOrsk\tX\tB-City\nslept\tO\n\nOrsk\tX\tB-City\n"},
        "a.tsv",
        "line 4: ",
        2,
        0,
    ),
    "a sentence of columns with a byte that is no UTF-8": (
        {"a.tsv": b"Orsk\tB-City\n\nOrsk\tB-City\nslept\xff\tO\n.\tO\n\nOrsk\tB-City\n"},
        "a.tsv",
        "line 4: byte 6 is not valid utf-8",
        2,
        0,
    ),
    "a sentence of columns with a carriage return": (
        {"a.tsv": "Orsk\tB-City\r\n\r\nOrsk\tB-City\r\nslept\rwell\tO\r\n\r\nOrsk\tB-City\r\n"},
        "a.tsv",
        "line 4: there is a carriage return",
        2,
        0,
    ),
    "a line of spans with a byte that is no UTF-8": (
        {"a.txt": b"Orsk slept\n0,1 City\n\n\xff\n0,1 City\n\nOrsk\n0,1 City\n"},
        "a.txt",
        "line 4: byte 1 is not valid utf-8",
        2,
        0,
    ),
    "a document of brat with a byte that is no UTF-8": (
        {**brat(a="0 4", b="0 4", c="0 4"), "c/b.txt": b"Orsk\xff"},
        "c",
        "b.txt",
        2,
        0,
    ),
    "a text with a byte that is no UTF-8": (
        {"a.jsonl": b'{"text": "Orsk", "label": []}\n{"text": "\xff", "label": []}\n{"text": "Orsk", "label": []}\n'},
        "a.jsonl",
        "line 2: byte 11 is not valid utf-8",
        2,
        0,
    ),
    "a line of spans": (
        {"a.txt": "Orsk slept\n0,1 City\n\nOrsk\n0,9 City\n\nOrsk\n0,1 City\n"},
        "a.txt",
        "line 5: ",
        2,
        0,
    ),
    "a record with the id of another": (
        {"a.jsonl": lines({**GOOD, "id": "1"}, {**GOOD, "id": "1"}, {**GOOD, "id": "2"})},
        "a.jsonl",
        "line 2: ",
        2,
        1,
    ),
    "a document of brat": (brat(a="0 4", b="1 5", c="0 4"), "c", "b.ann, line 1: ", 2, 2),
    "a document of brat that is none": (brat(a="0 4", b="x", c="0 4"), "c", "b.ann, line 1: ", 2, 0),
    "a text outside of its spans": (
        {"a.jsonl": lines(*({"text": "Orsk slept.", "label": [[0, end, "City"]]} for end in (4, 99, 4)))},
        "a.jsonl",
        "line 2: ",
        2,
        1,
    ),
    "a document of PubTator": (
        {"a.pubtator": "1|t|Orsk\n1\t0\t4\tOrsk\tCity\n\n2|t|Orsk\nOrsk\n\n3|t|Orsk\n3\t0\t4\tOrsk\tCity\n"},
        "a.pubtator",
        "line 5: ",
        2,
        0,
    ),
    "a question": (
        {
            "a.jsonl": lines(
                {"context": "Orsk", "query": "?", "entity_label": "City", "span_position": ["0;0"], "qas_id": "1.1"},
                {"context": "Orsk", "query": "?", "entity_label": "City", "span_position": ["7;7"], "qas_id": "2.1"},
                {"context": "Orsk", "query": "?", "qas_id": "2.2"},
                {"context": "Orsk", "query": "?", "entity_label": "City", "span_position": ["0;0"], "qas_id": "3.1"},
            )
        },
        "a.jsonl",
        "line 3: ",
        2,
        0,
    ),
    "a sentence of CoNLL-U": (
        {
            "a.conllu": "\n".join(
                f"1\tOrsk\t_\tPROPN{columns}\tEntity=(1-City)\n" for columns in ("\t_" * 5, "\t_" * 4, "\t_" * 5)
            )
        },
        "a.conllu",
        "line 3: ",
        2,
        0,
    ),
}


@pytest.mark.parametrize("case", CORPORA)
def test_a_bad_record_is_dropped_named_and_counted(tmp_path, caplog, case):
    files, name, place, kept, dropped = CORPORA[case]
    write_files(tmp_path, files)
    bad = 2 if case == "a question" else 1
    with pytest.raises(CorpusError, match=place) as error:
        load(tmp_path / name)
    assert "dropped before" not in str(error.value)
    corpus = load(tmp_path / name, max_bad_records=bad)["train"]
    assert len(corpus) == kept
    report = corpus.info.description
    assert f"bad records dropped: {bad} (" in report
    assert place in report
    entities = sum(map(len, corpus["entities"]))
    assert f"entities kept: {entities} of {entities + dropped};" in report
    assert caplog.messages == [report]
    with pytest.raises(CorpusError, match=place):  # the cache does not answer for another number
        load(tmp_path / name)


def test_one_more_is_an_error_that_counts_those_before(tmp_path):
    write_files(tmp_path, {"a.jsonl": lines(GOOD, "{", OUTSIDE, {"tokens": []}, GOOD)})
    told = r"line 4: .*\. Bad records dropped before: 2, as many as max_bad_records allows\.$"
    with pytest.raises(CorpusError, match=told):
        load(tmp_path / "a.jsonl", max_bad_records=2)
    report = load(tmp_path / "a.jsonl", max_bad_records=3)["train"].info.description
    assert all(f"line {number}: " in report for number in (2, 3, 4))


def test_all_are_named_however_many(tmp_path):
    write_files(tmp_path, {"a.jsonl": lines(GOOD, *["{"] * 7)})
    report = load(tmp_path / "a.jsonl", max_bad_records=7)["train"].info.description
    assert all(f"line {number}: " in report for number in range(2, 9))


def test_what_is_no_record_stays_an_error_that_says_so(tmp_path):
    write_files(tmp_path, {"a.json": f"[{json.dumps(GOOD)}, ", "a.xml": "<collection><document>"})
    for name in ("a.json", "a.xml"):
        with pytest.raises(CorpusError, match="It cannot be dropped as a single record, so max_bad_records"):
            load(tmp_path / name, max_bad_records=9)
        with pytest.raises(CorpusError) as error:
            load(tmp_path / name)
        assert "max_bad_records" not in str(error.value)


def test_if_all_are_bad_there_are_no_sentences(tmp_path):
    write_files(tmp_path, {"a.jsonl": lines(OUTSIDE)})
    with pytest.raises(CorpusError, match=r"no sentences\. .*bad records dropped: 1 \(.*line 1: "):
        load(tmp_path / "a.jsonl", max_bad_records=1)


def test_counts_of_a_dropped_record_are_taken_back(tmp_path):
    bad = {"tokens": ["Orsk"], "other": 1, "entities": [{**CITY, "more": 1}, {"start": 0, "end": 9, "type": "City"}]}
    write_files(tmp_path, {"a.jsonl": lines(GOOD, bad)})
    report = load(tmp_path / "a.jsonl", max_bad_records=1)["train"].info.description
    assert "'other' ignored" not in report
    assert "'more' ignored" not in report


def test_of_texts_and_of_streams(tmp_path, caplog):
    write_files(tmp_path, brat(a="0 4", b="1 5", c="x"))
    with pytest.raises(CorpusError, match="Bad records dropped before: 1"):
        load_texts(tmp_path / "c", max_bad_records=1)
    assert [text["doc_id"] for text in load_texts(tmp_path / "c", max_bad_records=2)["train"]] == ["a"]
    told = caplog.messages.pop()
    assert "bad records dropped: 2 (" in told
    assert "b.ann, line 1" in told
    assert "c.ann, line 1" in told
    rows = list(load(tmp_path / "c", max_bad_records=2, streaming=True)["train"])
    assert [row["doc_id"] for row in rows] == ["a"]
    assert "bad records dropped: 2 (" in caplog.text


def test_the_id_of_a_dropped_record_is_free(tmp_path):
    write_files(tmp_path, {"a.jsonl": lines({**OUTSIDE, "id": "1"}, {**GOOD, "id": "1"})})
    assert load(tmp_path / "a.jsonl", max_bad_records=1)["train"]["id"][:] == ["1"]
