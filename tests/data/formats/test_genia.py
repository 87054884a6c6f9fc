"""The reader of GENIA's XML: documents, splits, and the counts of the whole file. Its rules are in `quirks.yaml`."""

import os

import pytest

from modeling_triaffine.data import corpus_statistics, load_nested_ner, load_texts
from modeling_triaffine.data.formats.genia import SPLIT_STARTS
from tests.helpers.corpora import article, cons, genia, write_files


def test_splits_are_counted_in_sentences(tmp_path, monkeypatch):
    """A document over a border comes in two pieces, and one that comes again has a name of its own."""
    assert SPLIT_STARTS == {"train": 0, "validation": 15_023, "test": 16_692}
    monkeypatch.setitem(SPLIT_STARTS, "validation", 3)
    monkeypatch.setitem(SPLIT_STARTS, "test", 9)
    first = f"A  {cons('G#protein_molecule', cons('G#protein_subunit', 'Cd 9') + ' chain')}."
    path = write_files(tmp_path, {"a.xml": genia(article(first, "B"), article("c", "d", "e"))})
    found = {name: [*zip(rows["id"], rows["sent_id"], strict=True)] for name, rows in load_nested_ner(path).items()}
    assert found == {
        "train": [("MEDLINE:1:0", 0), ("MEDLINE:1:1", 1), ("MEDLINE:1#2:0", 0)],
        "validation": [("MEDLINE:1#2:1", 1), ("MEDLINE:1#2:2", 2)],
    }
    splits = load_texts(path)
    assert {split: [(one["doc_id"], one["text"]) for one in texts] for split, texts in splits.items()} == {
        "train": [("MEDLINE:1", "A  Cd 9 chain.\nB"), ("MEDLINE:1#2", "c")],
        "validation": [("MEDLINE:1#2", "d e")],
    }
    (document, _) = splits["train"]
    spans = [(document["text"][one["start"] : one["end"]], one["type"]) for one in document["entities"]]
    assert spans == [("Cd 9", "protein"), ("Cd 9 chain", "protein")]


def test_the_whole_corpus_has_the_published_numbers():
    """Articles of training and development, which may not be shipped."""
    if not (path := os.environ.get("TRIAFFINE_GENIA_XML")):
        pytest.skip("needs the path of GENIA's XML in TRIAFFINE_GENIA_XML")
    corpus = load_nested_ner(path)
    names = ("sentences", "entities", "nested_entities", "most_entities", "longest_sentence")
    whole, dev = map(corpus_statistics, (corpus, corpus["validation"]))
    assert [whole[name] for name in names] == [16_692, 50_509, 9_064, 25, 149]
    assert [dev[name] for name in names] == [1_669, 4_367, 799, 18, 131]
    assert whole["spans_above_max_candidates"] == 0
    report = corpus["train"].info.description
    assert "coordinated entities dropped: 934" in report
    assert "further types of a span dropped: 26" in report
    splits = load_texts(path)
    kept = {split: sum(len(one["entities"]) for one in texts) for split, texts in splits.items()}
    assert kept == {"train": 46_142, "validation": 4_367}
    for document in splits["train"] + splits["validation"]:
        assert all(document["text"][one["start"] : one["end"]].strip() for one in document["entities"])
