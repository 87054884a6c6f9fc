"""Static word vectors: every form of their files, and what a model makes of them."""

import gzip
import logging
from pathlib import Path

import numpy as np
import pytest

from modeling_triaffine.training.run import prepare_run, train_and_save
from modeling_triaffine.training.word_vectors import read_word_vectors, vectors_of
from tests.helpers.micro_training import micro_records, run_arguments, write_corpus, write_recipe

SIZE = 7
STORED = ["the", "gene", "IL-2", "naïve", "中文"]
NUMBERS = dict(zip(STORED, np.random.default_rng(1).normal(size=(5, SIZE)).astype("<f2").astype("<f4"), strict=True))
HEAD = f"{len(STORED)} {SIZE}\n".encode()
LINES = [f"{word} {' '.join(map(str, vector.tolist()))}".encode() for word, vector in NUMBERS.items()]
BINARY = [f"{word} ".encode() + vector.tobytes() for word, vector in NUMBERS.items()]
FORMS = {
    "fastText or word2vec": HEAD + b"\n".join(LINES) + b"\n",
    "fastText, with a space at the end of each line": HEAD + b" \n".join(LINES) + b" \n",
    "GloVe": b"\n".join(LINES),
    "GloVe, gzipped": gzip.compress(b"\n".join(LINES)),
    "word2vec, binary": HEAD + b"".join(BINARY),
    "word2vec, binary, as its own program writes it": HEAD + b"\n".join(BINARY) + b"\n",
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_words_asked_for_are_found(tmp_path, content):
    (tmp_path / "vectors").write_bytes(content)
    found = read_word_vectors(tmp_path / "vectors", ["gene", "Gene", "naïve", "中文", "unheard-of", "IL-2", "The"])
    assert found.keys() == {*STORED}
    for word, vector in found.items():
        assert vector.dtype == np.float32
        np.testing.assert_array_equal(vector, NUMBERS[word])


def test_words_with_spaces_and_words_that_come_twice(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("alpha 1 2\n. . . 3 4\nalpha 5 6\n1 7 8\n. 9 9\n", encoding="utf-8")
    vectors = read_word_vectors(path, ["alpha", ". . .", "1", "."])
    found = {word: vector.tolist() for word, vector in vectors.items()}
    assert found == {"alpha": [1, 2], ". . .": [3, 4], "1": [7, 8], ".": [9, 9]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no vectors of these words"),
        (b"just a text\nof two lines\n", "line 1: there is no word with 2 numbers"),
        (b"\x80\x04\x95pickled", "line 1: there is no word"),
        (b"\xba\x16\x4f\x2f\x0c\0\0\0of fastText", "of fastText the `.vec`"),
        (b"3 2\na 1 2\nb 1\nc 3 4\n", "line 3: there is no word with 2 numbers"),
        (b"2 2\na 1 2\nb 1 x\n", "line 3: there is no word with 2 numbers"),
        (b"2 2\na 1 nan\nb 1 2\n", "not finite"),
        (b"2 2\na \0\0\0\0\0\0\0\0b \0\0\0\0", "is cut off: it has 1 of 2 words"),
        (gzip.compress(b"1 2\na \0\0\0\0\0\0\0\0", mtime=0), "cannot be read as vectors. Unpack it"),
    ],
)
def test_damaged_files_and_files_of_other_forms(tmp_path, content, message):
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"vectors.*{message}"):
        read_word_vectors(path, ["a", "b"])


def test_the_table_has_the_mean_for_unknown_words():
    vocabulary = {name: number for number, name in enumerate(["[PAD]", "[UNK]", *NUMBERS])}
    table = vectors_of(vocabulary, NUMBERS).numpy()
    assert table.shape == (len(STORED) + 2, SIZE)
    assert not table[0].any()
    np.testing.assert_allclose(table[1], np.mean(list(NUMBERS.values()), axis=0), rtol=1e-5)
    np.testing.assert_array_equal(table[2:], list(NUMBERS.values()))
    padding = {"[PAD]": np.ones(SIZE)}  # no word of texts
    np.testing.assert_array_equal(vectors_of(vocabulary, NUMBERS | padding), table)


def options(corpus: Path, folder: Path, *more: object) -> list[str]:
    short = ("--num_train_epochs", 1, "--disable_tqdm", 1, "--card_examples", 0, "--use_cpu")
    return run_arguments(write_recipe(folder / "recipe"), corpus, folder / "out", *short, *more)


@pytest.fixture
def corpus(tmp_path) -> Path:
    validation = micro_records(6, seed=1)
    validation[0]["tokens"][0] = "later"
    return write_corpus(tmp_path / "corpus", train=micro_records(12), dev=validation)


@pytest.fixture
def vectors_file(tmp_path) -> Path:
    """Vectors of some words of the corpus, of one that only its validation data have, and of one that none has."""
    path = tmp_path / "vectors.vec"
    words = {"kappa": "1 2 3", "alpha": "4 5 6", "later": "7 8 9", "elsewhere": "0 0 1"}
    path.write_text("4 3\n" + "".join(f"{word} {vector}\n" for word, vector in words.items()), encoding="utf-8")
    return path


def test_a_new_model_starts_with_the_vectors(tmp_path, corpus, vectors_file, caplog):
    with caplog.at_level(logging.INFO):
        run = prepare_run(options(corpus, tmp_path, "--word_vectors", vectors_file))
    model, words = run.trainer.model, run.trainer.processing_class.vocabularies["words"]
    assert list(words) == ["[PAD]", "[UNK]", "kappa", "alpha", "later"]
    weight = model.words.word_embedding.weight
    assert weight.tolist() == [[0, 0, 0], [4, 5, 6], [1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert (model.config.word_vocab_size, model.config.word_embedding_size) == (5, 3)
    assert "Word vectors of 3 numbers; 6 of 9 words have none." in caplog.text
    [feature] = run.trainer.processing_class.encode([["Kappa", "beta", "kappa"]])
    assert feature["word_ids"].tolist() == [2, 1, 2]
    with pytest.raises(ValueError, match="word_embedding_size is 4, but the vectors have 3 numbers"):
        prepare_run(options(corpus, tmp_path, "--word_vectors", vectors_file, "--word_embedding_size", 4))


def test_sizes_that_the_data_decides_do_not_hinder_a_further_run(tmp_path, corpus, vectors_file):
    sizes = ("--word_embedding_size", "0", "--learn_span_width", "--max_span_width", "none")
    given = options(corpus, tmp_path, "--word_vectors", vectors_file, *sizes)
    train_and_save(prepare_run(given))
    further = prepare_run([*given, "--resume_from_checkpoint"])
    assert list(further.trainer.processing_class.vocabularies["words"])[2:] == ["kappa", "alpha", "later"]
