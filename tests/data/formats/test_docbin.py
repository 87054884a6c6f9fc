"""spaCy's DocBin: span groups, sentences, and what cannot be read."""

import sys

import pytest

from modeling_triaffine.data import CorpusError, load_nested_ner
from tests.helpers.corpora import read, spelled, triples

spacy = pytest.importorskip("spacy")

from spacy.tokens import DocBin, Span  # noqa: E402

TEXT = "the  mayor of Orsk slept.\n\nHe woke"  # two tokens of white space
SPANS = ((0, 5, "Person"), (4, 5, "City"))
NESTED = [("the mayor of Orsk", "Person"), ("Orsk", "City")]


@pytest.fixture
def write(tmp_path):
    """Writes documents; each is a text and span groups, name → spans (first token, last token exclusive, label)."""

    def write(*documents, ents=(), sentences=False):
        nlp = spacy.blank("en")
        if sentences:
            nlp.add_pipe("sentencizer")
        docs = []
        for text, groups in documents:
            doc = nlp(text)
            for name, spans in groups.items():
                doc.spans[name] = [Span(doc, start, end, label) for start, end, label in spans]
            doc.set_ents([Span(doc, start, end, label) for start, end, label in ents])
            docs.append(doc)
        DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
        return tmp_path / "a.spacy"

    return write


def test_a_span_group_becomes_entities(write):
    records, check = read(write((TEXT, {"sc": SPANS}), ("One.", {}), ("", {})), "docbin")
    assert [" ".join(record["tokens"]) for record in records] == ["the mayor of Orsk slept .", "He woke", "One ."]
    assert [spelled(record) for record in records] == [NESTED, [], []]
    assert [record["id"] for record in records] == ["a:0:0", "a:0:1", "a:1:0"]
    assert check.counts == {"texts without words ignored": 1}


def test_what_no_sentence_holds_is_dropped(write):
    groups = {"sc": ((4, 9, "X"), (1, 2, "X"), (0, 1, ""), (0, 1, "Y"))}
    records, check = read(write((TEXT, groups)), "docbin")
    assert [triples(record) for record in records] == [[(0, 1, "Y")], []]
    assert check.counts == {
        "entities across sentences dropped": 1,
        "entities of white space alone dropped": 1,
        "entities without a type dropped": 1,
    }


def test_sentences_of_the_documents_come_first(write):
    records, _ = read(write(("b. c", {}), sentences=True), "docbin", sentence_splitter="none")
    assert [record["tokens"] for record in records] == [["b.", "c"]]
    records, _ = read(write(("Bee. See", {}), sentences=True), "docbin", sentence_splitter="none")
    assert [record["tokens"] for record in records] == [["Bee", "."], ["See"]]


@pytest.mark.parametrize(("sentences", "sizes"), [(True, [300, 1]), (False, [301])])
def test_long_sentences_stay_whole(write, sentences, sizes):
    file = write(("w " * 299 + ". X", {"sc": [(255, 257, "X"), (299, 301, "Y")]}), sentences=sentences)
    records, check = read(file, "docbin", sentence_splitter="none")
    assert [len(record["tokens"]) for record in records] == sizes
    assert spelled(records[0])[0] == ("w w", "X")
    assert ("across sentences dropped: 1" in check.report()) == sentences


def test_entities_of_the_document_where_there_is_no_group(write):
    records, check = read(write(("Orsk", {}), ents=[(0, 1, "City")]), "docbin")
    assert spelled(records[0]) == [("Orsk", "City")]
    file = write(("Orsk", {"x": [(0, 1, "Y")], "empty": []}), ents=[(0, 1, "City")])
    for columns in (None, {"entities": "ents"}, {"entities": "empty"}):
        records, check = read(file, "docbin", columns=columns)
        assert spelled(records[0]) == [("Orsk", "City")]
        assert check.counts == {"spans of the group 'x' ignored": 1}
    records, check = read(file, "docbin", columns={"entities": "x"})
    assert spelled(records[0]) == [("Orsk", "Y")]
    assert check.counts == {"entities of doc.ents ignored in favor of the span group": 1}


@pytest.mark.parametrize("group", ["incorrect_spans", "coref_clusters_1", "coref_head_clusters_1", "span_candidates"])
@pytest.mark.parametrize("entities", [[], [(0, 1, "City")]])
def test_groups_that_are_no_entities_are_read_only_if_they_are_named(write, group, entities):
    file = write(("Orsk", {"sc": entities, group: [(0, 1, "No")]}), ("Omsk", {group: []}))
    records, check = read(file, "docbin")
    assert [spelled(record) for record in records] == [[("Orsk", kind) for _, _, kind in entities], []]
    assert check.counts == {f"spans of the group {group!r} ignored": 1}
    assert spelled(read(file, "docbin", columns={"entities": group})[0][0]) == [("Orsk", "No")]


def test_the_only_group_of_a_file_without_other_entities(write):
    file = write(("Orsk", {"x": [(0, 1, "Y")], "incorrect_spans": [(0, 1, "Z")]}))
    assert spelled(read(file, "docbin")[0][0]) == [("Orsk", "Y")]


def test_entities_of_a_document_without_the_group_of_another_are_dropped(write):
    records, check = read(write(("Orsk", {"sc": [(0, 1, "Y")]}), ("Omsk", {}), ents=[(0, 1, "City")]), "docbin")
    assert [spelled(record) for record in records] == [[("Orsk", "Y")], []]
    assert check.report() == (
        "a.spacy: sentences: 2; entities kept: 1 of 2; entities of doc.ents dropped where there is no span "
        "group: 1 (document 1); entities of doc.ents ignored in favor of the span group: 1."
    )


def test_one_of_several_groups_must_be_named(write):
    file = write(("Orsk", {"x": [(0, 1, "X")], "y": [(0, 1, "Y")]}))
    with pytest.raises(CorpusError, match=r"'x', 'y'.*columns="):
        read(file, "docbin")
    assert spelled(read(file, "docbin", columns={"entities": "y"})[0][0]) == [("Orsk", "Y")]
    assert spelled(read(file, "docbin", columns={"entities": ["x", "y"]})[0][0]) == [("Orsk", "X"), ("Orsk", "Y")]
    with pytest.raises(CorpusError, match="'x', 'y'"):
        read(file, "docbin", columns={"entities": "z"})
    with pytest.raises(ValueError, match=r"\['tokens'\]"):
        read(file, "docbin", columns={"tokens": 0})


@pytest.mark.parametrize("content", [b"no DocBin", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_another_file(tmp_path, content):
    (tmp_path / "a.spacy").write_bytes(content)
    with pytest.raises(CorpusError, match=r"a\.spacy: .*DocBin"):
        read(tmp_path / "a.spacy", "docbin")


def test_without_spacy(write, monkeypatch, tmp_path):
    file = write(("Orsk", {}))
    monkeypatch.setitem(sys.modules, "spacy.tokens", None)
    with pytest.raises(ImportError, match=r"needs spaCy.*pip install -e '\.\[spacy\]'"):
        load_nested_ner(file)
