"""Sentences as a line of words and a line of spans."""

import pytest

from modeling_triaffine.data import CorpusError, detect_format, load_nested_ner
from modeling_triaffine.data.detection import formats_recognizing
from tests.helpers.corpora import read, spelled, write_files

# As prepared for mention hypergraphs: exclusive ends, parts of speech, heads, sentences without entities.
EXCLUSIVE = """IL-2 gene expression requires CD28
NN NN NN VBZ NN
0,1 G#protein|0,2,1,2 G#DNA|4,5,4,5 G#protein

It works .
PRP VBZ .


He slept in Orsk
PRP VBD IN NNP
3,4 LOC

"""
INCLUSIVE = """Nobody slept

IL-2 gene expression requires CD28
0,0 G#protein|0,1 G#DNA|4,4 G#protein

He slept in Orsk
3,3 LOC
"""
GENIA = [("IL-2", "G#protein"), ("IL-2 gene", "G#DNA"), ("CD28", "G#protein")]


def test_ends_are_exclusive_and_lines_may_be_missing(tmp_path):
    records, check = read(write_files(tmp_path, {"train.data": EXCLUSIVE}))
    assert [spelled(record) for record in records] == [GENIA, [], [("Orsk", "LOC")]]
    assert records[1]["tokens"] == ["It", "works", "."]
    assert records[1]["pos"] == ["PRP", "VBZ", "."]
    assert [record["id"] for record in records] == ["train:0:0", "train:1:0", "train:2:0"]
    assert check.counts == {"heads of mentions ignored": 2}


def test_spans_of_one_word_tell_that_their_last_word_is_inside(tmp_path):
    records, check = read(write_files(tmp_path, {"train.data": INCLUSIVE}))
    assert [spelled(record) for record in records] == [[], GENIA, [("Orsk", "LOC")]]
    assert not any(record["pos"] for record in records)
    assert check.counts == {"files with spans such as 3,3, whose last word is therefore part of every span": 1}


def test_a_file_that_does_not_tell_is_reported(tmp_path):
    write_files(tmp_path, {"train/a.data": INCLUSIVE, "train/b.data": "The mayor slept\n0,1 PER\n"})
    [train] = load_nested_ner(tmp_path).values()
    assert spelled(train[-1]) == [("The", "PER")]
    told = "nothing tells whether the last word is part of a span, read as if it were not: 1"
    assert told in train.info.description
    write_files(tmp_path, {"train/b.data": "The mayor\n0,2 PER\n"})
    [train] = load_nested_ner(tmp_path).values()
    assert spelled(train[-1]) == [("The mayor", "PER")]
    assert "nothing tells" not in train.info.description


def test_an_end_that_fits_neither_way_is_an_error(tmp_path):
    path = write_files(tmp_path, {"a.txt": "He slept\n0,0 PER\n\nHe slept\n0,2 PER\n"})
    with pytest.raises(CorpusError, match=r"line 5: the span 0,2 PER is not within the 2 words.*last word is part of"):
        read(path)


def test_splits_of_a_folder(tmp_path):
    write_files(tmp_path, {f"{name}.data": EXCLUSIVE for name in ("train", "dev", "test")})
    assert {name: len(rows) for name, rows in load_nested_ner(tmp_path).items()} == {
        "train": 3,
        "validation": 3,
        "test": 3,
    }


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("0,1 ORG|3,7 PER\n", None),  # without words
        ("One .\nTwo .\nThree .\n0,1 ORG\n", None),  # no sentence of this form
        ("Orsk slept\n0,1 LOC\n", "span_lines"),
        ("Nobody slept\n\n\nOrsk slept\n0,1 LOC", "span_lines"),
        ("IL-2 and NF-kappa B activation .\n0,0 G#protein|2,3 G#protein\n\nIt works .\n", "span_lines"),
        ("NF-kappa B acts\n0,2 G#protein\n", "span_lines"),
        ("NF-kappa B\n0,2 G#protein\n", "span_lines"),
        ("Orsk B-LOC\n0,1 O\n\n", "iob2"),
        ("w O\n0,1 B-LOC\n\n", "iob2"),
    ],
)
def test_recognized_by_its_lines(tmp_path, content, format):
    path = write_files(tmp_path, {"a.dat": content})
    if format is None:
        with pytest.raises(CorpusError, match="cannot be detected"):
            detect_format(path)
    else:
        assert [known.name for known in formats_recognizing(content)] == [format]
        assert detect_format(path).name == format
