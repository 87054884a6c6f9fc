"""BioC, in XML and JSON."""

import json

import pytest

from modeling_triaffine import load_nested_ner
from tests.helpers.corpora import (
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


def located(kind, text, *locations):
    """An annotation of BioC; locations are (offset, length)."""
    places = [{"offset": offset, "length": length} for offset, length in locations]
    return {"infons": {"type": kind}, "locations": places, "text": text}


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


@pytest.mark.parametrize(
    ("title", "text", "quote"), [("Café in Orsk.", "The naïve mayor.", "mayor"), ("éé éé", "Or", "Or")]
)
@pytest.mark.parametrize("offsets", [None, "bytes"])
def test_passages_whose_offsets_count_bytes(tmp_path, title, text, quote, offsets):
    second = len(title.encode()) + 1
    start = second + len(text[: text.index(quote)].encode())
    annotations = [located("X", quote, (start, len(quote)))]
    passages = [{"offset": 0, "text": title}, {"offset": second, "text": text, "annotations": annotations}]
    file = write_json(tmp_path / "a.json", {"documents": [{"id": "a", "passages": passages}]})
    records = load_nested_ner(file, offsets=offsets)["train"]
    assert [one for record in records for one in spelled(record)] == [(quote, "X")]


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


def test_fragments_and_zero_lengths_of_bioc(tmp_path):
    annotations = [
        located("Person", "The mayor of Orsk", (0, 17)),
        located("Role", "mayor Orsk", (4, 5), (13, 4)),
        located("Point", "", (4, 0)),
    ]
    document = {**BIOC_DOCUMENT, "passages": [{"offset": 0, "text": TEXT, "annotations": annotations}]}
    (record,), check = read(write_json(tmp_path / "a.json", document))
    assert spelled(record) == [("The mayor of Orsk", "Person")]
    assert check.counts == {"discontinuous entities dropped": 1, "entities without characters dropped": 1}
