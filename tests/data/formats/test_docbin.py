"""spaCy's DocBin: span groups, sentences, and what cannot be read."""

import sys

import pytest

from modeling_triaffine.data import CorpusError
from tests.helpers.corpora import read, spelled

spacy = pytest.importorskip("spacy")

from spacy.tokens import DocBin, Span  # noqa: E402

TEXT = "the  mayor of Orsk slept.\n\nHe woke"  # two tokens of white space
NESTED = [("the mayor of Orsk", "Person"), ("Orsk", "City")]
IGNORED, IGNORED_ENTS = ({f"spans of the group {name!r} ignored": 1} for name in ("x", "ents"))


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


def test_a_span_group_becomes_entities_and_what_no_sentence_holds_is_dropped(write):
    spans = ((0, 5, "Person"), (4, 5, "City"), (4, 9, "X"), (1, 2, "X"), (0, 1, ""))
    records, check = read(write((TEXT, {"sc": spans}), ("One.", {}), ("", {})), "docbin")
    assert [" ".join(record["tokens"]) for record in records] == ["the mayor of Orsk slept .", "He woke", "One ."]
    assert [spelled(record) for record in records] == [NESTED, [], []]
    assert [record["id"] for record in records] == ["a:0:0", "a:0:1", "a:1:0"]
    assert check.counts == {
        "entities across sentences dropped": 1,
        "entities of white space alone dropped": 1,
        "entities without a type dropped": 1,
        "texts without words ignored": 1,
    }


@pytest.mark.parametrize(("text", "words"), [("b. c", [["b.", "c"]]), ("Bee. See", [["Bee", "."], ["See"]])])
def test_sentences_of_the_documents_come_first(write, text, words):
    records, _ = read(write((text, {}), sentences=True), "docbin", sentence_splitter="none")
    assert [record["tokens"] for record in records] == words


# Span groups of "Orsk", types in doc.ents, the columns named, the types that are read, and what is counted.
GROUPS = [
    ({}, ["City"], None, ["City"], {}),
    *(({"x": ["Y"], "empty": []}, ["City"], name, ["City"], IGNORED) for name in (None, "ents")),
    ({"x": ["Y"], "empty": []}, ["City"], "x", ["Y"], IGNORED_ENTS),
    ({"sc": ["Y"]}, ["City"], None, ["Y"], IGNORED_ENTS),
]


@pytest.mark.parametrize(("groups", "ents", "named", "kinds", "counts"), GROUPS)
def test_one_group_has_the_entities(write, groups, ents, named, kinds, counts):
    spans = {name: [(0, 1, kind) for kind in of_group] for name, of_group in groups.items()}
    file = write(("Orsk", spans), ents=[(0, 1, kind) for kind in ents])
    records, check = read(file, "docbin", columns=None if named is None else {"entities": named})
    assert (spelled(records[0]), check.counts) == ([("Orsk", kind) for kind in kinds], counts)


def test_errors(write, monkeypatch, tmp_path):
    file = write(("Orsk", {"x": [(0, 1, "X")], "y": [(0, 1, "Y")]}))
    for columns in (None, {"entities": "z"}):
        with pytest.raises(CorpusError, match=r"'x', 'y'.*columns="):
            read(file, "docbin", columns=columns)
    for content in (b"no DocBin", b"x\x9c\x03\x00\x00\x00\x00\x01"):
        (tmp_path / "b.spacy").write_bytes(content)
        with pytest.raises(CorpusError, match=r"b\.spacy: .*DocBin"):
            read(tmp_path / "b.spacy", "docbin")
    monkeypatch.setitem(sys.modules, "spacy.tokens", None)
    with pytest.raises(ImportError, match=r"needs spaCy.*pip install '\.\[spacy\]'"):
        read(file, "docbin")
