"""In whose words a run reads its data, and which texts it scores."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from datasets import DatasetDict

from modeling_triaffine.commands.corpus_split import load_split
from modeling_triaffine.data import FORMATS, Text
from modeling_triaffine.model.text_triaffine import word_splitter
from modeling_triaffine.training.corpora import Corpus, read_corpus
from modeling_triaffine.training.options import DataArguments

SPLITTER = word_splitter("punctuation")
WORDS = [
    {"tokens": ["CD28", "-mediated"], "entities": [{"start": 0, "end": 1, "type": "protein"}]},
    {"tokens": ["It", "works"], "entities": []},
]
CONLLU = "1\tCD28\t" + "_\t" * 7 + "Entity=(1-protein)|SpaceAfter=No\n2\t-mediated\t" + "_\t" * 7 + "_\n\n"
CUT = ["CD28", "-", "mediated"]


@pytest.fixture
def read(tmp_path: Path):
    """Reads a training file of a format with options of the data."""

    def read(format: str, reads_tags: bool = False, **options: object) -> Corpus:
        contents = {
            "a.jsonl": "".join(f"{json.dumps(record)}\n" for record in WORDS),
            "a.conllu": CONLLU,
            "texts.jsonl": json.dumps({"text": "CD28-mediated", "label": [[0, 4, "protein"]]}),
        }
        (tmp_path / format).write_text(contents[format], encoding="utf-8")
        return read_corpus(DataArguments(train_file=str(tmp_path / format), **options), SPLITTER, reads_tags)

    return read


def trained_on(corpus: Corpus) -> list[list[str]]:
    return list(corpus.to_train_on()["train"]["tokens"])


@pytest.mark.parametrize(
    ("format", "options", "words", "first"),
    [
        ("texts.jsonl", {}, "text", [CUT]),
        ("texts.jsonl", {"words": "corpus"}, "text", [CUT]),  # it has no other words
        ("a.conllu", {}, "text", [CUT]),
        ("a.conllu", {"words": "corpus"}, "corpus", [["CD28", "-mediated"]]),
        ("a.conllu", {"words": "both"}, "both", [["CD28", "-mediated"], CUT]),
        ("a.conllu", {"reads_tags": True}, "corpus", [["CD28", "-mediated"]]),
        ("a.jsonl", {}, "both", [["CD28", "-mediated"], ["It", "works"], CUT]),
    ],
)
def test_words_of_the_training_data(read, format, options, words, first):
    corpus = read(format, **options)
    assert (corpus.words, trained_on(corpus)) == (words, first)
    assert all(record["entities"] == [{"start": 0, "end": 1, "type": "protein"}] or record["tokens"][0] == "It"
               for record in corpus.to_train_on()["train"])  # fmt: skip
    own = [CUT] if format == "texts.jsonl" else [["CD28", "-mediated"]]
    assert list(corpus.given["train"]["tokens"])[:1] == own
    assert (corpus.cut is corpus.given) == (format == "texts.jsonl" or words == "corpus")  # read once


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"words": "both"}, ["2 ", "1 "]),
        ({"words": "text"}, ["1 of 2"]),
        ({"words": "corpus"}, ["of the corpus"]),
    ],
)
def test_the_choice_of_words_is_described(read, options, said):
    corpus = read("a.jsonl", **options)
    assert all(part in corpus.describe_words() for part in said)
    equal = corpus.change(lambda splits: DatasetDict(train=splits["train"].select([1])))
    assert not any(character.isdigit() for character in equal.describe_words())  # nothing is read twice


@pytest.mark.parametrize(
    ("options", "named"), [({"words": "corpus"}, "--words"), ({"reads_tags": True}, "--pos_tagger")]
)
def test_words_of_the_corpus_alone_are_warned_of(read, caplog, options, named):
    read("a.conllu", **options)
    assert any(named in message for message in caplog.messages)


def test_a_limit_counts_sentences_of_the_corpus(read):
    assert trained_on(read("a.jsonl", max_train_samples=1)) == [["CD28", "-mediated"], CUT]


@pytest.mark.parametrize(
    ("splitter", "sentences"),
    [
        *((choice, ["One.", "Two three."]) for choice in (None, "punctuation")),
        ("lines", ["One. Two", "three."]),
        ("none", ["One. Two three."]),
    ],
)
def test_sentences_of_texts_are_those_of_the_model(tmp_path: Path, splitter, sentences):
    file = tmp_path / "texts.jsonl"
    file.write_text(json.dumps({"text": "One. Two\nthree.", "label": []}))
    corpus = read_corpus(DataArguments(train_file=str(file)), word_splitter("whitespace"), False, splitter)
    assert trained_on(corpus) == [sentence.split() for sentence in sentences]


def test_sentences_of_a_docbin_without_any_are_those_of_the_model(tmp_path: Path):
    spacy = pytest.importorskip("spacy")
    file = tmp_path / "train.spacy"
    spacy.tokens.DocBin(docs=[spacy.blank("en")("Bee. See.")]).to_disk(file)
    words = ["Bee", ".", "See", "."]
    corpus = read_corpus(DataArguments(train_file=str(file)), SPLITTER, False, "none")
    assert [list(part["train"]["tokens"]) for part in (corpus.given, corpus.cut)] == [[words]] * 2
    processor = SimpleNamespace(word_splitter="punctuation", sentence_splitter="none")
    assert list(load_split(str(file), None, None, processor, 0).records["tokens"]) == [words]


def test_sentences_that_the_corpus_marks_stay(tmp_path: Path):
    (tmp_path / "a.conllu").write_text(CONLLU * 2)
    corpus = read_corpus(DataArguments(train_file=str(tmp_path / "a.conllu")), SPLITTER, False, "none")
    assert trained_on(corpus) == [CUT, CUT]


def test_texts_of_a_limited_split_are_those_read_completely(tmp_path: Path):
    file = tmp_path / "dev.jsonl"
    texts = ["One. Two.", "Three. Four."]
    file.write_text("".join(json.dumps({"id": text, "text": text, "label": []}) + "\n" for text in texts))
    for limit, expected in ((None, texts), (9, texts), (3, texts[:1]), (1, [])):
        for split, limited in (("validation", "max_eval_samples"), ("test", "max_predict_samples")):
            corpus = read_corpus(DataArguments(**{f"{split}_file": str(file), limited: limit}), SPLITTER, False)
            assert [text["text"] for text in corpus.texts[split]] == expected


def test_each_split_of_a_folder_is_read_in_its_own_format(tmp_path: Path):
    """Words without their text in one split do not hide the text of another."""
    (tmp_path / "train.jsonl").write_text(json.dumps(WORDS[0]))
    (tmp_path / "test.jsonl").write_text(json.dumps({"text": "It works. Yes", "label": []}))
    corpus = read_corpus(DataArguments(train_file=str(tmp_path)), word_splitter("characters"), False, "none")
    assert [text["text"] for text in corpus.texts["test"]] == ["It works. Yes"]
    for splits in (corpus.given, corpus.cut):
        assert list(splits["test"]["tokens"]) == [[*"Itworks.Yes"]]
    assert trained_on(corpus) == [["CD28", "-mediated"], [*"CD28-mediated"]]


def test_a_split_inside_of_a_file_keeps_its_texts_beside_a_file_of_another(tmp_path: Path, monkeypatch):
    known = FORMATS["conllu"]
    starts = {"train": 0, "validation": 1}

    def read(path: Path, check: object) -> Iterator[Text]:
        return map(lambda text, split: {**text, "split": split}, known.read(path, check), starts)

    monkeypatch.setitem(FORMATS.registered, "conllu", replace(known, read=read, split_starts=starts))
    (tmp_path / "a.conllu").write_text(CONLLU * 2)
    (tmp_path / "test.jsonl").write_text(json.dumps({"text": "It works.", "label": []}))
    files = {"train_file": str(tmp_path / "a.conllu"), "test_file": str(tmp_path / "test.jsonl")}
    texts = read_corpus(DataArguments(**files), SPLITTER, False).texts
    assert [text["text"] for text in texts["test"]] == ["It works."]
    assert len(texts["validation"]) == 1


def test_a_corpus_of_words_has_no_texts_to_score(tmp_path: Path):
    (tmp_path / "dev.jsonl").write_text(json.dumps(WORDS[0]))
    data = DataArguments(validation_file=str(tmp_path / "dev.jsonl"))
    assert read_corpus(data, SPLITTER, False).texts == {}


@pytest.mark.parametrize("words", ["text", "both"])
def test_a_corpus_is_read_once(tmp_path: Path, monkeypatch, words):
    known = FORMATS["conllu"]
    readings = []

    def read(path: Path, check: object) -> Iterator[Text]:
        readings.append(path)
        return known.read(path, check)

    monkeypatch.setitem(FORMATS.registered, "conllu", replace(known, read=read))
    (tmp_path / "dev.conllu").write_text(f"# {words}\n{CONLLU}")
    data = DataArguments(validation_file=str(tmp_path / "dev.conllu"), words=words)
    corpus = read_corpus(data, SPLITTER, False)
    (text,) = corpus.texts["validation"]
    assert text["text"] == "CD28-mediated"
    assert [list(part["validation"]["tokens"]) for part in (corpus.given, corpus.cut)] == [
        [["CD28", "-mediated"]],
        [CUT],
    ]
    assert len(readings) == 1
