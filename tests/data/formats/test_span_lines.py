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


def test_a_file_that_does_not_tell_is_an_error_unless_the_ends_are_given(tmp_path):
    """As a document of NNE may have no span of one word."""
    write_files(tmp_path, {"train/a.mrg": INCLUSIVE, "train/b.mrg": "\nMr. Pierre Vinken left\nNNP\n0,2 PER\n"})
    says = r"b\.mrg, line 4: .* word 2 may be in 0,2 PER, or not\. .*columns={'inclusive_end': True} or False"
    with pytest.raises(CorpusError, match=says):
        load_nested_ner(tmp_path)
    write_files(tmp_path, {"train/b.mrg": "Mr. Pierre Vinken left\nNNP NNP NNP VBD\n0,2 PER\n\nNo one left\n"})
    [train] = load_nested_ner(tmp_path, columns={"inclusive_end": True}).values()
    assert spelled(train[-2]) == [("Mr. Pierre Vinken", "PER")]
    [train] = load_nested_ner(tmp_path / "train" / "b.mrg", columns={"inclusive_end": False}).values()
    assert spelled(train[0]) == [("Mr. Pierre", "PER")]


def test_many_spans_of_which_none_is_of_one_word_end_before_their_end(tmp_path):
    path = write_files(tmp_path, {"a.txt": "Port Velmar slept\n0,2 LOC\n\n" * 20})
    assert spelled(read(path)[0][0]) == [("Port Velmar", "LOC")]


@pytest.mark.parametrize("columns", [{}, {"entities": 1}, {"inclusive_end": "true"}])
def test_columns_that_say_nothing_of_ends(tmp_path, columns):
    with pytest.raises(ValueError, match="inclusive_end"):
        read(write_files(tmp_path, {"train.data": INCLUSIVE}), columns=columns)


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
