"""Statistics of a corpus, by hand; those of GENIA are in `formats/test_genia.py`."""

import json
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.data import corpus_statistics, load_nested_ner
from modeling_triaffine.data.statistics import quantile, repeated_sentences
from tests.helpers.corpora import write_files, write_json


def record(tokens, entities, pos=()):
    return {
        "tokens": tokens.split(),
        "pos": list(pos),
        "entities": [{"start": start, "end": end, "type": kind} for start, end, kind in entities],
    }


def test_counts():
    statistics = corpus_statistics(
        [
            record(
                "a b c d e", [(0, 4, "PER"), (1, 3, "ORG"), (1, 3, "GPE"), (2, 3, "PER"), (4, 5, "PER")], pos="NNNNN"
            ),
            record("a b", [(0, 1, "PER"), (0, 1, "ORG")]),  # one span, two types: not nested
            record("a", []),
        ],
        max_candidates=3,
    )
    assert statistics == {
        "sentences": 3,
        "tokens": 8,
        "entities": 7,
        "nested_entities": 4,
        "inner_entities": 3,
        "entities_by_type": {"GPE": 1, "ORG": 2, "PER": 4},
        "sentences_with_pos": 1,
        "most_entities": 5,
        "longest_sentence": 5,
        "nesting_depth": 3,
        "sentence_lengths": {1: 1, 2: 1, 5: 1},
        "entity_lengths": {1: 4, 2: 2, 4: 1},
        "entities_per_sentence": {0: 1, 2: 1, 5: 1},
        "entity_depths": {1: 4, 2: 2, 3: 1},
        "spans_above_max_candidates": 1,
        "needed_candidates": 4,
    }


def test_of_nothing_and_of_several_splits():
    statistics = corpus_statistics([])
    assert (statistics["sentences"], statistics["entities"], statistics["most_entities"]) == (0, 0, 0)
    splits = {"train": [record("a b", [(0, 2, "X")])], "test": [{"tokens": ["c"], "entities": []}]}
    assert corpus_statistics(splits) == corpus_statistics(chain.from_iterable(splits.values()))


def test_equal_sentences_are_counted():
    orsk, other, alone = record("Orsk slept", [(0, 1, "City")]), record("Orsk slept", []), record("He ran", [])
    assert repeated_sentences({"train": [orsk, other, orsk, alone], "test": [alone]}) == (
        "equal sentences: 2 in train, 1 of them with other entities; of test in train: 1 of 1"
    )
    assert repeated_sentences({"validation": [alone, orsk], "train": [orsk]}) == "of validation in train: 1 of 2"
    assert repeated_sentences({"train": [orsk, alone]}) == ""


@given(st.lists(st.integers(0, 20), min_size=1), st.floats(0.01, 1))
def test_quantile(values, share):
    distribution = {value: values.count(value) for value in values}
    result = quantile(distribution, share)
    assert sum(value <= result for value in values) / len(values) >= share
    assert sum(value < result for value in values) / len(values) < share


@pytest.mark.parametrize(
    ("given", "split"),
    [("dev.jsonl", "validation"), ("news-test.jsonl", "test"), ("news.jsonl", "news.jsonl"), ("dev", "validation")],
)
def test_what_is_given_alone_is_called_by_the_split_in_its_name(command, tmp_path, given, split):
    names = ("dev", "news-test", "train", "news", "dev/a", "dev/b", "news/a")
    write_files(tmp_path, {f"{name}.jsonl": json.dumps(record("a", [(0, 1, "PER")])) for name in names})
    assert [*json.loads(command("statistics", tmp_path / given, "--json").out)] == [split]
    assert [*load_nested_ner(tmp_path / given)] == ["train"]  # as training reads it


def test_the_table_of_the_command_and_its_warning(command, tmp_path):
    for name, count in (("train", 4), ("dev", 1)):
        entities = [(start, start + 1, "PER") for start in range(count)]
        records = [record(f"{name} {number}", []) for number in range(40)]
        records += [*(record(f"{number} b c", []) for number in range(3)), record("a b c d", entities)]
        write_json(tmp_path / f"{name}.jsonl", *records)
    result = command("statistics", tmp_path)
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0] == ["train", "validation", "total"]
    for name, *numbers in (
        ("entities", "4", "1", "5"),
        ("sentence lengths, median", "2", "2", "2"),
        ("sentence lengths, 95 %", "3", "3", "3"),
        ("sentence lengths, most", "4", "4", "4"),
        ("entities per sentence, median", "0", "0", "0"),
        ("entities per sentence, most", "4", "1", "4"),
        ("entities by type: PER", "4", "1", "5"),
        ("needed candidates", "4", "1", "4"),
    ):
        assert [*name.split(), *numbers] in lines
    assert "of validation in train: 4 of 44" in result.err
    assert result.code == 0
