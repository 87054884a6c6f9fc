"""The demo corpus: always the same, well-formed, nested three deep, with names that no other split has."""

import hashlib
import json
import re
from collections import Counter

import pytest

from modeling_triaffine.data.alignment import detokenize, record_as_text
from modeling_triaffine.data.demo import demo_corpus, write_demo_corpus
from modeling_triaffine.data.record_checker import RecordChecker
from modeling_triaffine.data.statistics import corpus_statistics

TYPES = {"PERSON", "ORGANIZATION", "LOCATION", "FACILITY", "EVENT"}
# SHA-256 of the corpus as JSON: models and figures in the documents are of this one.
DIGEST = "7895ca9704cb486403adbe9d86ee74cf750b07c813a7e1d7e18ee95d31bf47b7"


@pytest.fixture(scope="module")
def corpus():
    return demo_corpus()


def all_records(corpus):
    return [record for records in corpus.values() for record in records]


def test_corpus_is_the_one_of_the_documents(corpus):
    assert {split: len(records) for split, records in corpus.items()} == {"train": 1200, "validation": 150, "test": 150}
    assert hashlib.sha256(json.dumps(corpus, ensure_ascii=False).encode()).hexdigest() == DIGEST


def test_records_pass_the_checks_of_the_readers(corpus):
    check = RecordChecker("demo", labels=TYPES)
    for record in all_records(corpus):
        assert check(record, record["id"]) == record
    assert not check.report()  # nothing dropped: no duplicates, no unknown fields


def test_documents_group_neighbouring_sentences(corpus):
    for records in corpus.values():
        documents = Counter(record["doc_id"] for record in records)
        assert [record["sent_id"] for record in records] == [n for size in documents.values() for n in range(size)]
        assert [record["doc_id"] for record in records] == list(documents.elements())


def test_entities_are_nested_and_of_all_types(corpus):
    for records in corpus.values():
        counts = corpus_statistics(records)
        assert counts["nesting_depth"] == 3
        assert 0.30 <= counts["nested_entities"] / counts["entities"] <= 0.50
        assert min(counts["entities_by_type"].get(kind, 0) for kind in TYPES) >= 0.05 * counts["entities"]


def test_no_name_of_one_split_occurs_in_another(corpus):
    # Parts of longer names, such as Castle, are shared; a name of one word is invented.
    names = {
        split: {
            record["tokens"][entity["start"]]
            for record in records
            for entity in record["entities"]
            if entity["end"] - entity["start"] == 1
        }
        for split, records in corpus.items()
    }
    assert all(len(found) > 50 for found in names.values())
    assert not names["train"] & (names["validation"] | names["test"])
    assert not names["validation"] & names["test"]


def test_first_sentences_of_every_split(corpus):
    small = demo_corpus(sentences=11)
    assert small == {split: corpus[split][:size] for split, size in (("train", 9), ("validation", 1), ("test", 1))}


def test_detokenize():
    tokens = ["“", "The", "roof", "leaks", ",", "”", "said", "Orsk", ",", "a", "painter", "."]
    assert detokenize(tokens) == "“The roof leaks,” said Orsk, a painter."
    assert detokenize(["He", "’s", "n't", "n’t"]) == "He’sn'tn’t"
    assert detokenize([]) == ""


def test_entities_of_the_text_are_those_of_the_record(corpus):
    for record in all_records(corpus):
        text, entities = record_as_text(record)
        assert re.findall(r"\w+|[^\w\s]", text) == record["tokens"]
        for by_characters, by_words in zip(entities, record["entities"], strict=True):
            assert by_characters["word"] == text[by_characters["start"] : by_characters["end"]]
            assert by_characters["word"] == detokenize(record["tokens"][by_words["start"] : by_words["end"]])
            assert by_characters["entity_group"] == by_words["type"]


def test_written_files_hold_the_corpus(tmp_path):
    folder = tmp_path / "new" / "demo"
    write_demo_corpus(folder, sentences=50)
    (folder / "train.jsonl").write_text("old", encoding="utf-8")
    write_demo_corpus(folder, sentences=50)
    assert sorted(path.name for path in folder.iterdir()) == ["test.jsonl", "train.jsonl", "validation.jsonl"]
    read = {path.stem: [*map(json.loads, path.read_text("utf-8").splitlines())] for path in folder.iterdir()}
    assert read == demo_corpus(sentences=50)
