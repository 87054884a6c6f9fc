"""The start of a run: its corpus, in whose words, the texts that it scores; and a recipe in Python."""

import json
from pathlib import Path

import pytest
import torch
from datasets import DatasetDict, IterableDataset

from modeling_triaffine import start_from_recipe
from modeling_triaffine.data import loading, write_nested_ner
from modeling_triaffine.model.options_triaffine import MODEL_OPTIONS
from modeling_triaffine.training.plan import make_plan, parse_training_plan
from modeling_triaffine.training.run import prepare_run
from modeling_triaffine.training.start import BaseModel, Corpus, find_base_model, read_corpus, start_model
from tests.helpers.micro_training import micro_dataset, micro_records, write_recipe

# ---- The corpus ----

WORDS = [
    {"tokens": ["CD28", "-mediated"], "entities": [{"start": 0, "end": 1, "type": "protein"}]},
    {"tokens": ["It", "works"], "entities": []},
]
CONLLU = "1\tCD28\t" + "_\t" * 7 + "Entity=(1-protein)|SpaceAfter=No\n2\t-mediated\t" + "_\t" * 7 + "_\n\n"
CUT = ["CD28", "-", "mediated"]


def read_with(**options: object) -> Corpus:
    """Reads a corpus with these options, for a new model."""
    given = {"output_dir": "unused", "use_cpu": True, "eval_strategy": "no", "do_eval": False, **options}
    return read_corpus(make_plan(given), BaseModel())


@pytest.fixture
def read(tmp_path: Path):
    """Reads a training file of a format with options of the data."""

    def read(format: str, **options: object) -> Corpus:
        contents = {
            "a.jsonl": "".join(f"{json.dumps(record)}\n" for record in WORDS),
            "a.conllu": CONLLU,
            "texts.jsonl": json.dumps({"text": "CD28-mediated", "label": [[0, 4, "protein"]]}),
        }
        (tmp_path / format).write_text(contents[format], encoding="utf-8")
        return read_with(train_file=tmp_path / format, **options)

    return read


def trained_on(corpus: Corpus) -> list[list[str]]:
    return list(corpus.to_train_on["train"]["tokens"])


@pytest.mark.parametrize(
    ("format", "options", "words", "first"),
    [
        ("texts.jsonl", {}, "text", [CUT]),
        ("texts.jsonl", {"words": "corpus"}, "text", [CUT]),  # it has no other words
        ("a.conllu", {}, "text", [CUT]),
        ("a.conllu", {"words": "corpus"}, "corpus", [["CD28", "-mediated"]]),
        ("a.conllu", {"words": "both"}, "both", [["CD28", "-mediated"], CUT]),
        ("a.conllu", {"pos_embedding_size": 2}, "corpus", [["CD28", "-mediated"]]),
        ("a.jsonl", {}, "both", [["CD28", "-mediated"], ["It", "works"], CUT]),
    ],
)
def test_words_of_the_training_data(read, format, options, words, first):
    corpus = read(format, **options)
    assert (corpus.words, trained_on(corpus)) == (words, first)
    assert all(record["entities"] == [{"start": 0, "end": 1, "type": "protein"}] or record["tokens"][0] == "It"
               for record in corpus.to_train_on["train"])  # fmt: skip
    own = [CUT] if format == "texts.jsonl" else [["CD28", "-mediated"]]
    assert list(corpus.given["train"]["tokens"])[:1] == own
    assert (corpus.to_train_on is corpus.given) == (format == "texts.jsonl" or words == "corpus")  # read once


def test_a_limit_counts_sentences_of_the_corpus(read):
    assert trained_on(read("a.jsonl", max_train_samples=1)) == [["CD28", "-mediated"], CUT]


def test_sentences_that_the_corpus_marks_stay(tmp_path: Path):
    (tmp_path / "a.conllu").write_text(CONLLU * 2)
    corpus = read_with(train_file=tmp_path / "a.conllu", sentence_splitter="none")
    assert trained_on(corpus) == [CUT, CUT]


def test_each_split_of_a_folder_is_read_in_its_own_format(tmp_path: Path):
    """Words without their text in one split do not hide the text of another."""
    for split in ("train", "dev"):
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(WORDS[0]))
    (tmp_path / "test.jsonl").write_text(json.dumps({"text": "It works. Yes", "label": []}))
    corpus = read_with(train_file=tmp_path, word_splitter="characters", sentence_splitter="none")
    assert corpus.texts.keys() == {"test"}  # words alone are no text to score
    assert [text["text"] for text in corpus.texts["test"]] == ["It works. Yes"]
    for splits in (corpus.given, corpus.to_train_on):
        assert list(splits["test"]["tokens"]) == [[*"Itworks.Yes"]]
    assert trained_on(corpus) == [["CD28", "-mediated"], [*"CD28-mediated"]]


@pytest.mark.parametrize("words", ["text", "both"])
def test_a_corpus_is_read_once(tmp_path: Path, monkeypatch, words):
    readings = []
    read = loading._texts

    def counted(*arguments: object) -> object:
        readings.append(1)
        return read(*arguments)

    monkeypatch.setattr(loading, "_texts", counted)
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conllu").write_text(f"# {words}\n{CONLLU}")
    corpus = read_with(train_file=tmp_path, words=words)
    (text,) = corpus.texts["validation"]
    assert text["text"] == "CD28-mediated"
    given, to_train_on = (list(part["validation"]["tokens"]) for part in (corpus.given, corpus.to_train_on))
    assert (given, to_train_on) == ([["CD28", "-mediated"]], [CUT])
    assert len(readings) == 2


def test_a_share_of_the_documents_is_held_out(tmp_path: Path, caplog):
    """Whole documents, with all of their texts, the same for the same seed; of a single document, sentences."""
    texts = [{"id": str(number), "text": f"One {number}. Two {number}.", "label": []} for number in [*range(10)] * 2]
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(text) + "\n" for text in texts))
    caplog.set_level("INFO")

    def held_out(seed: int) -> list[str]:
        corpus = read_with(train_file=file, dev_share=0.3, seed=seed)
        names = {split: {*corpus.given[split]["doc_id"]} for split in ("train", "validation")}
        found = {split: {name.removesuffix("#2") for name in names[split]} for split in names}
        assert (len(found["train"]), len(found["validation"]), len(corpus.given["validation"])) == (7, 3, 12)
        assert found["train"].isdisjoint(found["validation"])
        assert {text["doc_id"] for text in corpus.texts["validation"]} == names["validation"]
        return sorted(found["validation"])

    assert held_out(1) == held_out(1) != held_out(2)
    assert "3 of 10 training documents (--dev_share)" in caplog.text
    file.write_text("".join(json.dumps({**WORDS[1], "doc_id": "a", "sent_id": n}) + "\n" for n in range(8)))
    splits = read_with(train_file=file, dev_share=0.25).given
    assert (len(splits["train"]), len(splits["validation"])) == (6, 2)
    with pytest.raises(ValueError, match="leave out --dev_share"):
        read_with(train_file=file, validation_file=file, dev_share=0.25)


# ---- A recipe in Python ----

TRAINING = {"learning_rate": 1e-2, "num_train_epochs": 1, "ema_decay": 0.5, "learn_span_width": True}
TRAINING |= {"use_cpu": True, "disable_tqdm": True}
UNTAGGED = {"train": micro_dataset(micro_records(2)).select_columns(["tokens", "entities"])}


@pytest.fixture(scope="module")
def corpus():
    return {"train": micro_dataset(micro_records(12, 0)), "validation": micro_dataset(micro_records(4, 1))}


@pytest.fixture
def recipe(tmp_path):
    return write_recipe(tmp_path / "recipe", training=TRAINING)


def test_equal_sentences_are_counted(tmp_path, recipe, corpus, caplog):
    caplog.set_level("INFO")
    start_from_recipe(recipe, {**corpus, "validation": corpus["train"].select(range(3))}, tmp_path)
    assert "of validation in train: 3 of 3" in caplog.text


def test_it_starts_as_a_run_does(tmp_path, recipe, corpus):
    write_nested_ner(corpus, tmp_path / "corpus", "json_lines")
    sizes = {"char_embedding_size": 4, "char_lstm_hidden_size": 4}
    options = {"recipe": recipe, "train_file": tmp_path / "corpus", "words": "corpus", "output_dir": tmp_path / "run"}
    run = prepare_run([f"--{name}={value}" for name, value in {**options, **sizes}.items()])
    model, processor, arguments = start_from_recipe(recipe, corpus, tmp_path / "python", **sizes)

    of_run = run.trainer.model.config
    for name in ("id2label", *MODEL_OPTIONS):
        assert getattr(model.config, name) == getattr(of_run, name), name
    assert model.config.max_span_width is not None
    assert processor.vocabularies == run.trainer.processing_class.vocabularies
    torch.testing.assert_close(model.state_dict(), run.trainer.model.state_dict())
    assert (arguments.learning_rate, arguments.ema_decay) == (1e-2, 0.5)
    assert arguments.output_dir == str(tmp_path / "python")


@pytest.mark.parametrize(
    ("option", "chosen", "other", "text", "count", "expected"),
    [
        ("sentence_splitter", "lines", "none", "A cat. It\nsat. No.", len, [3, 2, 1]),
        ("word_splitter", "syllables", "whitespace", "서울은 크다", lambda data: len(data["entities"][0]), [0, 1, 0]),
    ],
)
def test_a_splitter_is_saved_and_read_again(tmp_path, recipe, corpus, option, chosen, other, text, count, expected):
    model, processor, _ = start_from_recipe(recipe, corpus, tmp_path, **{option: chosen})
    assert getattr(processor, option) == chosen
    model.save_pretrained(tmp_path / "model")
    processor.save_pretrained(tmp_path / "model")
    (tmp_path / "train.jsonl").write_text(json.dumps({"text": text, "label": [[0, 2, "DNA"]]}))
    files = ["--train_file", str(tmp_path / "train.jsonl"), "--output_dir", str(tmp_path / "out")]
    files += ["--eval_strategy", "no", "--recipe", str(recipe)]
    trained = ["--model_name_or_path", str(tmp_path / "model")]
    plans = [parse_training_plan([*files, *more]) for more in ([], trained, [*trained, f"--{option}", other])]
    assert [count(read_corpus(plan, find_base_model(plan)).given["train"]) for plan in plans] == expected
    _, again = start_model(plans[-1], find_base_model(plans[-1]), DatasetDict(corpus), model.config.entity_labels)
    assert getattr(again, option) == other


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"recipe": "genia-minilmm"}, "'genia-minilmm'"),
        ({"corpus": UNTAGGED, "pos_embedding_size": 4}, "has parts of speech .*_embedding_size 0"),
        ({"word_vectors": 3}, "word_vectors is 3; it must be a string."),
        ({"learning_rates": 1e-3}, r"option: learning_rates. Did you mean learning_rate\?$"),
        *(({name: "a"}, f"'{name}'.*`trainer`") for name in ("train_file", "keep_labels", "license")),
        ({"corpus": UNTAGGED["train"]}, "no split 'train'. Give a DatasetDict of load_nested_ner"),
        ({"corpus": {"train": IterableDataset.from_generator(list)}}, "IterableDataset.* has no len"),
    ],
)
def test_wrong_use_is_named(tmp_path, recipe, corpus, options, facts):
    with pytest.raises(ValueError, match=facts):
        start_from_recipe(**{"recipe": recipe, "corpus": corpus, "output_dir": tmp_path, **options})
