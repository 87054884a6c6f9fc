"""Biomedical corpora of passages: bigbio, BioC and PubTator. What holds for every format is in test_formats.py."""

import json

import pytest
from datasets import Dataset, DatasetDict

from modeling_triaffine.data import CorpusError, adapt_dataset, detect_format
from tests.helpers.corpora import (
    BIGBIO_RECORD,
    BIOC_DOCUMENT,
    BIOC_XML,
    NESTED,
    TEXT,
    TOKENS,
    read,
    spelled,
    write_files,
    write_json,
)


def entity(kind, *offsets, text=()):
    return {"id": "9", "type": kind, "text": list(text), "offsets": [list(pair) for pair in offsets], "normalized": []}


def passage(start, text):
    return {"id": "8", "type": "x", "text": [text], "offsets": [[start, start + len(text)]]}


def located(kind, text, *locations):
    """An annotation of BioC; locations are (offset, length)."""
    places = [{"offset": offset, "length": length} for offset, length in locations]
    return {"infons": {"type": kind}, "locations": places, "text": text}


TWO_PASSAGES = {
    **BIGBIO_RECORD,
    "passages": [passage(30, "He saw CD28-positive cells"), passage(0, "It rained in Orsk")],
    "entities": [
        entity("City", (13, 17), text=["Orsk"]),
        entity("Cell", (37, 50), (51, 56), text=["CD28-positive", "cells"]),
        entity("Protein", (37, 39), text=["CD"]),
        entity("Split", (30, 32), (51, 56), text=["He", "cells"]),
        entity("Crossing", (13, 32)),
        entity("Topic"),
    ],
    "relations": [{"id": "r"}, {"id": "s"}],
}


def test_passages_are_placed_by_their_offsets_and_what_is_dropped_is_counted(tmp_path):
    records, check = read(write_json(tmp_path / "a.jsonl", TWO_PASSAGES))
    assert [" ".join(record["tokens"]) for record in records] == ["It rained in Orsk", "He saw CD28 - positive cells"]
    assert [spelled(record) for record in records] == [[("Orsk", "City")], [("CD28 - positive cells", "Cell")]]
    assert check.counts == {
        "entities with a boundary inside a word dropped": 1,
        "discontinuous entities dropped": 1,
        "entities across sentences dropped": 1,
        "entities without offsets dropped": 1,
        "relations ignored": 2,
    }
    assert (check.entities_kept, check.entities_dropped) == (2, 4)


def test_rows_of_a_data_set_with_the_columns_of_bigbio():
    rows = Dataset.from_list([BIGBIO_RECORD, {**BIGBIO_RECORD, "id": "2", "document_id": "b"}])
    adapted = adapt_dataset(DatasetDict({"train": rows}), "bigbio_kb")["train"]
    assert [(row["id"], spelled(row)) for row in adapted] == [("a:0", NESTED), ("b:0", NESTED)]
    with pytest.raises(CorpusError, match=r"'passages'.*'tokens'"):
        adapt_dataset(Dataset.from_list([{"tokens": ["a"]}]), "bigbio_kb")
    with pytest.raises(ValueError, match=r"'bigbio_ner'.*'bigbio_kb'"):
        adapt_dataset(rows, "bigbio_ner")


SENTENCES = {
    "id": "a",
    "passages": [
        {
            "offset": 0,
            "sentences": [
                {"offset": 0, "text": TEXT, "annotations": [located("City", "Orsk", (13, 4))]},
                {"offset": 25, "text": "He ran", "annotations": []},
            ],
        }
    ],
}


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(BIOC_DOCUMENT),
        json.dumps([BIOC_DOCUMENT]),
        json.dumps({**BIOC_DOCUMENT, "annotations": None, "relations": None}),
        json.dumps({"source": "x", "documents": [BIOC_DOCUMENT]}),
        json.dumps({"source": "x", "documents": [BIOC_DOCUMENT]}, indent=1),
        json.dumps([{"documents": [BIOC_DOCUMENT]}]),
        json.dumps({"PubTator3": [BIOC_DOCUMENT]}, indent=1),
        BIOC_XML,
    ],
)
def test_forms_of_bioc(tmp_path, content):
    (record,), check = read(write_files(tmp_path, {"a.dat": content}))
    assert (record["id"], record["tokens"], spelled(record)) == ("a:0", TOKENS, NESTED)
    assert not check.report()


def test_bioc_with_sentences_that_have_the_text(tmp_path):
    first, second = read(write_json(tmp_path / "a.jsonl", SENTENCES))[0]
    assert (first["tokens"], spelled(first), second["tokens"]) == (TOKENS, [("Orsk", "City")], ["He", "ran"])


def test_bioc_counts_what_it_drops(tmp_path):
    annotations = [
        located("Person", "The Orsk", (0, 3), (13, 4)),
        located("City", "Orsk", (13, 2), (15, 2)),
        located("X", ""),
    ]
    document = {
        "id": "a",
        "passages": [{"offset": 0, "text": TEXT, "annotations": annotations, "relations": [{}, {}]}],
        "relations": [{"id": "R1"}],
    }
    (record,), check = read(write_json(tmp_path / "a.json", document))
    assert spelled(record) == [("Orsk", "City")]
    assert check.counts == {
        "discontinuous entities dropped": 1,
        "entities without offsets dropped": 1,
        "relations ignored": 3,
    }


def test_pubtator_as_published(tmp_path):
    lines = [
        "1|t|Naloxone reverses clonidine.",
        "1|a|In rats, it did not. Clonidine won",
        "1\t0\t8\tNaloxone\tChemical\tD009270",
        "1\t18\t27\tclonidine\tChemical\tD003000\tpart|part",
        "1\t50\t59\tClonidine\tChemical\tD003000",
        "1\tCID\tD009270\tD003000",
        "",
        "2|t|No abstract",
        "",
        "",
    ]
    path = write_files(tmp_path, {"train.PubTator.txt": "\n".join(lines)})
    assert detect_format(path).name == "pubtator"
    records, check = read(path)
    assert [record["id"] for record in records] == ["1:0", "1:1", "1:2", "2:0"]
    found = [entity for record in records for entity in spelled(record)]
    assert found == [("Naloxone", "Chemical"), ("clonidine", "Chemical"), ("Clonidine", "Chemical")]
    assert check.counts == {"relations ignored": 1}


@pytest.mark.parametrize("quote", ["mayor Orsk", "mayor of Orsk", "Orsk mayor", "mayor [...] Orsk", "other"])
def test_fragments_and_zero_lengths_of_bioc(tmp_path, quote):
    annotations = [
        located("Person", "The mayor of Orsk", (0, 17)),
        located("Role", quote, (4, 5), (13, 4)),
        located("Point", "", (4, 0)),
    ]
    document = {**BIOC_DOCUMENT, "passages": [{"offset": 0, "text": TEXT, "annotations": annotations}]}
    (record,), check = read(write_json(tmp_path / "a.json", document))
    assert spelled(record) == [("The mayor of Orsk", "Person")]
    assert check.counts == {"discontinuous entities dropped": 1, "entities without characters dropped": 1}


@pytest.mark.parametrize(
    "span", [[{"begin": 4, "end": 9}, {"begin": 13, "end": 17}], [[4, 9], [13, 17]], [{"start": 13, "end": 17}, [4, 9]]]
)
def test_fragments_of_pubannotation(tmp_path, span):
    denotations = [{"span": span, "obj": "Role"}, {"span": [{"begin": 13, "end": 17}], "obj": "City"}]
    (record,), check = read(write_json(tmp_path / "a.json", {"text": TEXT, "denotations": denotations}))
    assert spelled(record) == [("Orsk", "City")]
    assert check.counts == {"discontinuous entities dropped": 1}
