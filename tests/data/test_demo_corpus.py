"""The demo corpus: reproducible, well-formed, nested three deep, with names that only their sentence explains."""

import hashlib
import json
import re
from collections import Counter, defaultdict

import pytest

from modeling_triaffine.data import demo
from modeling_triaffine.data.alignment import detokenize, record_as_text
from modeling_triaffine.data.demo import CAST, GRAMMAR, NAMES_OF_A_CAST, demo_corpus, write_demo_corpus
from modeling_triaffine.data.record_checker import RecordChecker
from modeling_triaffine.data.statistics import corpus_statistics

TYPES = {"PERSON", "ORGANIZATION", "LOCATION", "FACILITY", "EVENT"}
TAGS = {"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "VERB"}
# SHA-256 of the corpus with seed 3 and 50 sentences, as JSON.
DIGEST = "eaa3f954f8487804e2b144064d89c61e539e0f88b2639568da7de1394195124f"
# Every word that is not an invented name.
WORDS = {
    word.lower() for text in (*GRAMMAR.values(), *(form for _, forms in CAST.values() for form in forms))
    for word in re.findall(r"[A-Za-z]+", re.sub(r"\$\w+|<\w+>", " ", text))
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus():
    return demo_corpus()


def all_records(corpus):
    return [record for records in corpus.values() for record in records]


def is_name(token):
    return token.isalpha() and token.lower() not in WORDS


def names_of(records):
    return {token for record in records for token in record["tokens"] if is_name(token)}


# ---------------------------------------------------------------------------------------------- form


def test_sizes(corpus):
    assert {split: len(records) for split, records in corpus.items()} == {"train": 1200, "validation": 150, "test": 150}


@pytest.mark.parametrize("sentences", [10, 11, 99])
def test_small_corpora_have_every_split(sentences):
    small = demo_corpus(sentences=sentences)
    assert all(small.values())
    assert sum(map(len, small.values())) == sentences


def test_records_pass_the_checks_of_the_readers(corpus):
    check = RecordChecker("demo", labels=TYPES)
    for record in all_records(corpus):
        assert check(record, record["id"]) == record
    assert not check.report()  # nothing dropped: no duplicates, no unknown fields


def test_entities_do_not_cross_and_are_sorted(corpus):
    for record in all_records(corpus):
        spans = [(entity["start"], entity["end"]) for entity in record["entities"]]
        assert spans == sorted(spans, key=lambda span: (span[0], -span[1]))
        assert not any(a[0] < b[0] < a[1] < b[1] for a in spans for b in spans), record["id"]


def test_tags_are_universal_and_names_are_proper_nouns(corpus):
    for record in all_records(corpus):
        assert len(record["pos"]) == len(record["tokens"])
        assert set(record["pos"]) <= TAGS
        for token, tag in zip(record["tokens"], record["pos"], strict=True):
            assert token[0].isalnum() == (tag != "PUNCT"), token
            assert token[0].isdigit() <= (tag == "NUM"), token
            assert tag != "PROPN" or token[0].isupper(), token
            assert is_name(token) <= (tag == "PROPN"), token


def test_documents_group_neighbouring_sentences(corpus):
    for records in corpus.values():
        documents = Counter(record["doc_id"] for record in records)
        assert all(4 <= size <= 6 for size in list(documents.values())[:-1])
        numbering = [number for size in documents.values() for number in range(size)]
        assert [record["sent_id"] for record in records] == numbering
        assert [record["doc_id"] for record in records] == list(documents.elements())


def test_sentences_look_like_sentences(corpus):
    for record in all_records(corpus):
        text = detokenize(record["tokens"])
        assert re.fullmatch(r"“?[A-Z].*[.?]", text), text
        assert not re.search(r"  | [,.?”]|“ |[$<>\[\]_|/]", text), text
        assert 4 <= len(record["tokens"]) <= 40, text


# ---------------------------------------------------------------------------------------------- what it is made for


def test_shares_of_nested_entities_types_and_empty_sentences(corpus):
    for records in corpus.values():
        counts = corpus_statistics(records)
        assert counts["nesting_depth"] == 3
        assert 0.30 <= counts["nested_entities"] / counts["entities"] <= 0.50
        assert counts["entities_by_type"].keys() == TYPES
        assert min(counts["entities_by_type"].values()) >= 0.05 * counts["entities"]
        assert 0.03 <= counts["entities_per_sentence"][0] / len(records) <= 0.2


def test_sentences_vary(corpus):
    sentences = [tuple(record["tokens"]) for record in corpus["train"] if record["entities"]]
    assert len(set(sentences)) > 0.99 * len(sentences)
    shapes = {tuple("_" if is_name(token) else token for token in sentence) for sentence in sentences}
    assert len(shapes) > 0.8 * len(sentences)


@pytest.mark.parametrize("seed", [13, 14])
def test_no_name_of_one_split_occurs_in_another(seed):
    names = {split: names_of(records) for split, records in demo_corpus(seed).items()}
    assert all(len(found) >= NAMES_OF_A_CAST for found in names.values())
    assert not names["train"] & names["validation"]
    assert not names["train"] & names["test"]
    assert not names["validation"] & names["test"]


def test_names_suffice_for_any_number_of_sentences(monkeypatch):
    monkeypatch.setattr(demo, "MAX_NAMES", NAMES_OF_A_CAST)
    assert len(names_of(demo_corpus(sentences=400)["train"])) == NAMES_OF_A_CAST


def test_other_words_of_validation_and_test_are_known_from_training(corpus):
    words = {split: Counter(t.lower() for r in records for t in r["tokens"]) for split, records in corpus.items()}
    for split in ("validation", "test"):
        known = words[split].keys() & WORDS
        new = sum(words[split][word] for word in known - words["train"].keys())
        assert new <= 0.002 * words[split].total()


def test_same_name_has_several_types(corpus):
    types = defaultdict(set)
    for record in corpus["train"]:
        for entity in record["entities"]:
            if entity["end"] - entity["start"] == 1:
                types[record["tokens"][entity["start"]]].add(entity["type"])
    assert sum(len(found) >= 2 for found in types.values()) > 0.2 * len(types)
    assert any(len(found) >= 3 for found in types.values())


def test_a_sentence_determines_its_entities_whatever_the_names():
    """No two sentences that differ in names alone are marked differently, so no name has to be guessed."""
    marked = defaultdict(set)
    for record in all_records(demo_corpus(seed=1, sentences=6000)):
        shape = tuple("_" if is_name(token) else token for token in record["tokens"])
        marked[shape].add(tuple((e["start"], e["end"], e["type"]) for e in record["entities"]))
    repeated = [shape for shape, markings in marked.items() if len(markings) > 1]
    assert not repeated
    assert len(marked) < 6000  # shapes do come again, so the test has something to compare


def test_a_name_stands_for_one_thing_within_a_document(corpus):
    types = defaultdict(set)
    for record in all_records(corpus):
        for entity in record["entities"]:
            if entity["end"] - entity["start"] == 1:
                types[record["doc_id"], record["tokens"][entity["start"]]].add(entity["type"])
    assert all(len(found) == 1 for found in types.values())


# ---------------------------------------------------------------------------------------------- seed, text, files


def test_corpus_is_the_same_everywhere():
    """Whatever the process's hash seed, which is another in every run; another seed gives another corpus."""
    assert demo_corpus(seed=4, sentences=50)["train"][:20] != demo_corpus(seed=3, sentences=50)["train"][:20]
    text = json.dumps(demo_corpus(seed=3, sentences=50), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == DIGEST


def test_detokenize():
    tokens = ["“", "The", "roof", "leaks", ",", "”", "said", "Orsk", ",", "a", "painter", "."]
    assert detokenize(tokens) == "“The roof leaks,” said Orsk, a painter."
    assert detokenize(["He", "’s", "n't", "n’t"]) == "He’sn'tn’t"
    assert detokenize([]) == ""


def test_entities_of_the_text_are_those_of_the_record(corpus):
    for record in all_records(corpus):
        text, entities = record_as_text(record)
        assert text == detokenize(record["tokens"])
        assert re.findall(r"\w+|[^\w\s]", text) == record["tokens"]
        assert len(entities) == len(record["entities"])
        for by_characters, by_words in zip(entities, record["entities"], strict=True):
            assert by_characters["word"] == text[by_characters["start"] : by_characters["end"]]
            assert by_characters["word"] == detokenize(record["tokens"][by_words["start"] : by_words["end"]])
            assert by_characters["entity_group"] == by_words["type"]


def test_written_files_hold_the_corpus(tmp_path):
    folder = tmp_path / "new" / "demo"
    write_demo_corpus(folder, seed=3, sentences=50)
    (folder / "train.jsonl").write_text("old", encoding="utf-8")
    write_demo_corpus(folder, seed=3, sentences=50)
    assert sorted(path.name for path in folder.iterdir()) == ["test.jsonl", "train.jsonl", "validation.jsonl"]
    read = {path.stem: [*map(json.loads, path.read_text("utf-8").splitlines())] for path in folder.iterdir()}
    assert read == demo_corpus(seed=3, sentences=50)
