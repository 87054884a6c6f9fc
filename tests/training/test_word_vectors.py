"""Static word vectors: files that their own library has written, every form of them, and what a model makes of them."""

import gzip
import logging
from pathlib import Path

import numpy as np
import pytest
import torch

from modeling_triaffine import TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.new_model import number_names
from modeling_triaffine.training.run import prepare_run, train_and_save
from modeling_triaffine.training.word_vectors import read_word_vectors
from tests.helpers.micro_training import micro_records, run_arguments, write_corpus, write_recipe

pytest.importorskip("gensim", reason="needs the extra embeddings")

from gensim.models import FastText, KeyedVectors
from gensim.models.fasttext import save_facebook_model

SIZE = 7
STORED = ["the", "gene", "IL-2", "naïve", "中文"]
ASKED = ["gene", "Gene", "naïve", "中文", "unheard-of", "IL-2"]


@pytest.fixture(scope="module")
def fasttext() -> FastText:
    """A fastText model with sub-words, hardly trained."""
    model = FastText(vector_size=SIZE, min_count=1, bucket=50, workers=1, seed=1)
    model.build_vocab([STORED])
    model.train([STORED], total_examples=1, epochs=1)
    return model


@pytest.fixture(scope="module")
def keyed(fasttext) -> KeyedVectors:
    """The same vectors, of words alone."""
    vectors = KeyedVectors(SIZE)
    vectors.add_vectors(STORED, [fasttext.wv[word] for word in STORED])
    return vectors


def glove(path: Path, vectors: KeyedVectors) -> Path:
    lines = (f"{word} {' '.join(map(str, vectors[word].tolist()))}\n" for word in STORED)
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def files(fasttext, keyed, tmp_path_factory) -> dict[str, Path]:
    """The same vectors in every form, written by gensim where it writes that form."""
    folder = tmp_path_factory.mktemp("vectors")
    named = {name: folder / name for name in ("words.bin", "words.vec", "words.w2v", "words.newlines")}
    save_facebook_model(fasttext, str(named["words.bin"]))
    keyed.save_word2vec_format(str(named["words.vec"]), binary=False)
    keyed.save_word2vec_format(str(named["words.w2v"]), binary=True)
    # word2vec's own program ends each vector with a new line.
    entries = (f"{word} ".encode() + keyed[word].tobytes() + b"\n" for word in STORED)
    named["words.newlines"].write_bytes(f"{len(STORED)} {SIZE}\n".encode() + b"".join(entries))
    # So does fastText's `.vec` with a space at the end of each line.
    named["words.trailing"] = folder / "words.trailing"
    named["words.trailing"].write_bytes(named["words.vec"].read_bytes().replace(b"\n", b" \n"))
    named["glove.txt"] = glove(folder / "glove.txt", keyed)
    named["glove.txt.gz"] = folder / "glove.txt.gz"
    named["glove.txt.gz"].write_bytes(gzip.compress(named["glove.txt"].read_bytes()))
    return named


def check(vectors, keyed, stored):
    assert vectors.size == SIZE
    for word in stored:
        assert vectors.vectors[word].dtype == np.float32
        np.testing.assert_allclose(vectors.vectors[word], keyed[word], rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["words.vec", "words.trailing", "glove.txt", "glove.txt.gz", "words.w2v", "words.newlines"]
)
def test_words_asked_for_are_found(files, keyed, name):
    vectors = read_word_vectors(files[name], ASKED)
    assert vectors.vectors.keys() == {"gene", "naïve", "中文", "IL-2"}
    check(vectors, keyed, vectors.vectors)
    assert vectors.unknown == ["unheard-of"]
    kept = read_word_vectors(files[name], ["gene", "unheard-of"], keep_all=True)
    assert set(kept.vectors) == set(STORED)
    check(kept, keyed, STORED)


def test_fasttext_makes_vectors_of_subwords(files, keyed, fasttext):
    vectors = read_word_vectors(files["words.bin"], [*ASKED, ""])
    check(vectors, keyed, ["gene", "naïve", "中文", "IL-2"])
    np.testing.assert_allclose(vectors.vectors["unheard-of"], fasttext.wv["unheard-of"], rtol=1e-5)
    # A word in lower case comes before its sub-words, and a word without sub-words has none.
    assert ("Gene" in vectors.vectors, vectors.unknown) == (False, [""])
    assert {*STORED} < read_word_vectors(files["words.bin"], ["unheard-of"], keep_all=True).vectors.keys()


def test_words_with_spaces_and_words_that_come_twice(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("alpha 1 2\n. . . 3 4\nalpha 5 6\n1 7 8\n. 9 9\n", encoding="utf-8")
    vectors = read_word_vectors(path, ["alpha", ". . .", "1", "."])
    found = {word: vector.tolist() for word, vector in vectors.vectors.items()}
    assert found == {"alpha": [1, 2], ". . .": [3, 4], "1": [7, 8], ".": [9, 9]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no vectors of these words"),
        (b"just a text\nof two lines\n", "line 1: there is no word with 2 numbers"),
        (b"\x80\x04\x95pickled", "line 1: there is no word"),
        (b"3 2\na 1 2\nb 1\nc 3 4\n", "line 3: there is no word with 2 numbers"),
        (b"2 2\na 1 2\nb 1 x\n", "line 3: there is no word with 2 numbers"),
        (b"2 2\na 1 nan\nb 1 2\n", "not finite"),
        (b"2 2\na \0\0\0\0\0\0\0\0b \0\0\0\0", "is cut off: it has 1 of 2 words"),
        (gzip.compress(b"1 2\na \0\0\0\0\0\0\0\0", mtime=0), "cannot be read as vectors. Unpack it"),
        (b"\xba\x16\x4f\x2f\x0c\0\0\0broken", "cannot be read as fastText word vectors"),
    ],
)
def test_damaged_files_and_files_of_other_forms(tmp_path, content, message):
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"vectors.*{message}"):
        read_word_vectors(path, ["a", "b"])


def test_a_damaged_fasttext_file_is_an_error(files, tmp_path):
    path = tmp_path / "words.bin"
    whole = files["words.bin"].read_bytes()
    for size in (50, 100, len(whole) // 2):  # in its header, among its words, among its vectors
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"words\.bin cannot be read as fastText word vectors"):
            read_word_vectors(path, ["gene"])


def test_without_gensim_the_error_says_what_to_install(files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gensim.models.fasttext", None)
    with pytest.raises(ImportError, match=r"pip install -e '.\[embeddings\]'"):
        read_word_vectors(files["words.bin"], ["gene"])
    assert read_word_vectors(files["words.vec"], ["gene"]).unknown == []


def test_the_table_has_the_mean_for_unknown_words(files):
    vectors = read_word_vectors(files["words.vec"], STORED)
    table = vectors.table(number_names(vectors.vectors))
    assert table.shape == (len(STORED) + 2, SIZE)
    assert not table[0].any()
    np.testing.assert_allclose(table[1], np.mean(list(vectors.vectors.values()), axis=0), rtol=1e-5)
    np.testing.assert_array_equal(table[2:], list(vectors.vectors.values()))
    vectors.vectors["[PAD]"] = np.ones(SIZE)  # no word of texts
    np.testing.assert_array_equal(vectors.table(number_names(STORED)), table)


# ---- In training ----


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


def test_trained_vectors_are_saved_with_the_model_and_kept_in_further_runs(tmp_path, corpus, vectors_file):
    sizes = ("--word_embedding_size", "0", "--learn_span_width", "--max_span_width", "none")  # the data decides
    given = options(corpus, tmp_path, "--word_vectors", vectors_file, "--keep_all_word_vectors", *sizes)
    run = prepare_run(given)
    before = run.trainer.model.words.word_embedding.weight.detach().clone()
    train_and_save(run)
    prepare_run([*given, "--resume_from_checkpoint"])
    model = TriaffineForNestedNER.from_pretrained(tmp_path / "out")
    processor = TriaffineProcessor.from_pretrained(tmp_path / "out")
    words = processor.vocabularies["words"]
    assert list(words)[2:] == ["kappa", "alpha", "later", "elsewhere"]
    after = model.words.word_embedding.weight
    assert torch.equal(after, run.trainer.model.words.word_embedding.weight)
    assert not torch.equal(after[words["kappa"]], before[words["kappa"]]), "seen in training"
    assert processor.encode([["elsewhere"]])[0]["word_ids"].tolist() == [5]
