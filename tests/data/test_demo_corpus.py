"""The demo corpus is always the same; its sentences as text."""

import hashlib
import json

from modeling_triaffine.data.demo import demo_corpus, write_demo_corpus
from modeling_triaffine.data.texts import detokenize, join_tokens

# SHA-256 of the corpus as JSON: models and figures in the documents are of this one.
DIGEST = "7895ca9704cb486403adbe9d86ee74cf750b07c813a7e1d7e18ee95d31bf47b7"


def test_corpus_is_the_one_of_the_documents():
    corpus = demo_corpus()
    assert {split: len(records) for split, records in corpus.items()} == {"train": 1200, "validation": 150, "test": 150}
    assert hashlib.sha256(json.dumps(corpus, ensure_ascii=False).encode()).hexdigest() == DIGEST


def test_words_are_joined():
    tokens = ["“", "The", "roof", "leaks", ",", "”", "said", "Orsk", ",", "a", "painter", "."]
    assert detokenize(tokens) == "“The roof leaks,” said Orsk, a painter."
    assert detokenize(["He", "’s", "n't", "n’t"]) == "He’sn'tn’t"
    assert join_tokens(["in", "Orsk"]) == ("in Orsk", [(0, 2), (3, 7)])


def test_written_files_hold_the_first_sentences_of_every_split(tmp_path):
    write_demo_corpus(folder := tmp_path / "new" / "demo", sentences=11)
    (folder / "train.jsonl").write_text("old", encoding="utf-8")
    write_demo_corpus(folder, sentences=11)
    assert sorted(path.name for path in folder.iterdir()) == ["test.jsonl", "train.jsonl", "validation.jsonl"]
    read = {path.stem: [*map(json.loads, path.read_text("utf-8").splitlines())] for path in folder.iterdir()}
    sizes = {"train": 9, "validation": 1, "test": 1}
    assert read == {split: records[: sizes[split]] for split, records in demo_corpus().items()}
