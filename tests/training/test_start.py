"""A recipe in Python: the model, processor and arguments that a trainer starts from."""

import json
import re

import pytest
import torch
from datasets import DatasetDict, IterableDataset

from modeling_triaffine import start_from_recipe
from modeling_triaffine.data import write_nested_ner
from modeling_triaffine.model.options_triaffine import MODEL_OPTIONS
from modeling_triaffine.training.corpora import read_corpus
from modeling_triaffine.training.plan import parse_training_plan
from modeling_triaffine.training.run import prepare_run
from modeling_triaffine.training.start import find_base_model, start_model
from tests.helpers.micro_training import micro_dataset, micro_records, write_recipe

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
    expected = run.trainer.model.state_dict()
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(weight, expected[name])
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
    _, again, _ = start_model(plans[-1], find_base_model(plans[-1]), DatasetDict(corpus), model.config.entity_labels)
    assert getattr(again, option) == other


@pytest.mark.parametrize(
    ("options", "error", "facts"),
    [
        ({"recipe": "genia-minilmm"}, ValueError, "'genia-minilmm'"),
        ({"corpus": UNTAGGED, "pos_embedding_size": 4}, ValueError, "has parts of speech .*_embedding_size 0"),
        ({"license": 3}, ValueError, "license is 3; it must be a string."),
        ({"learning_rates": 1e-3}, ValueError, r"option: learning_rates. Did you mean learning_rate\?$"),
        *(({name: "a"}, ValueError, f"'{name}'.*`trainer`") for name in ("train_file", "keep_labels")),
        ({"corpus": UNTAGGED["train"]}, ValueError, "no split 'train'. Give a DatasetDict of load_nested_ner"),
        ({"corpus": {"train": IterableDataset.from_generator(list)}}, ValueError, "IterableDataset.* has no len"),
    ],
)
def test_wrong_use_is_named(tmp_path, recipe, corpus, options, error, facts):
    given = {"recipe": recipe, "corpus": corpus, "output_dir": tmp_path, **options}
    with pytest.raises(error) as caught:
        start_from_recipe(**given)
    assert re.search(facts, str(caught.value))
